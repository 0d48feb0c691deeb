/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/cluster/auth.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

int auth_load_key(const char *path, struct auth_key *ret_key, char *ret_why, size_t size)
{
    FD_AUTO fd = open(path, O_RDONLY | O_CLOEXEC);
    uint8_t buf[AUTH_KEY_MAX + 1];
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0) {
        int rc = -errno;
        snprintf(ret_why, size, "cannot read the cluster key %s: %s", path, strerror(-rc));
        return rc;
    }
    if (!S_ISREG(st.st_mode)) {
        snprintf(ret_why, size, "the cluster key %s is %s, expected a file", path,
                 S_ISDIR(st.st_mode) ? "a folder" : "something else");
        return -EINVAL;
    }
    if (st.st_mode & 077) {
        snprintf(ret_why, size,
                 "the cluster key %s can be read by others (mode %04o); expected 0600 or 0400",
                 path, (unsigned)st.st_mode & 07777);
        return -EPERM;
    }
    ssize_t got = read(fd, buf, sizeof buf);
    size_t len = got > 0 ? (size_t)got : 0;
    while (len > 0 && isspace(buf[len - 1]))
        len--;
    if (len < AUTH_KEY_MIN || len > AUTH_KEY_MAX) {
        snprintf(ret_why, size, "the cluster key %s has %s%zu bytes; expected %u to %u", path,
                 len > AUTH_KEY_MAX ? "more than " : "", len > AUTH_KEY_MAX ? AUTH_KEY_MAX : len,
                 AUTH_KEY_MIN, AUTH_KEY_MAX);
        return -EINVAL;
    }
    memcpy(ret_key->bytes, buf, len);
    ret_key->len = len;
    OPENSSL_cleanse(buf, sizeof buf);
    return 0;
}

int auth_mac(const struct auth_key *key, const struct auth_part *parts, size_t n_parts,
             uint8_t ret_mac[AUTH_MAC_BYTES])
{
    uint8_t message[8192];
    size_t at = 0;
    unsigned mac_len = 0;

    for (size_t i = 0; i < n_parts; i++) {
        uint32_t len = (uint32_t)parts[i].len;
        if (parts[i].len > sizeof message || sizeof message - at < sizeof len + parts[i].len)
            return -EIO;
        memcpy(message + at, &len, sizeof len);
        memcpy(message + at + sizeof len, parts[i].data, parts[i].len);
        at += sizeof len + parts[i].len;
    }
    if (!HMAC(EVP_sha256(), key->bytes, (int)key->len, message, at, ret_mac, &mac_len) ||
        mac_len != AUTH_MAC_BYTES)
        return -EIO;
    return 0;
}

bool auth_equal(const uint8_t *a, const uint8_t *b)
{
    return CRYPTO_memcmp(a, b, AUTH_MAC_BYTES) == 0;
}
