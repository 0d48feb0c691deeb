/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/seal/seal.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/log.h"

const char *seal_mode_name(uint32_t mode)
{
    static const char *const names[] = {"none", "integrity", "encrypt"};

    return mode < sizeof names / sizeof *names ? names[mode] : "?";
}

int seal_derive_from(const struct seal_source *source, const char *label, const void *context,
                     size_t n_context, void *ret, size_t n_ret)
{
    static const uint8_t none[1];
    EVP_PKEY_CTX *hkdf = EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, NULL);
    size_t n = n_ret;

    /* The label ends in its 0, so that no context can be taken for a part of it. */
    bool good =
        hkdf && EVP_PKEY_derive_init(hkdf) == 1 &&
        EVP_PKEY_CTX_set_hkdf_md(hkdf, EVP_sha256()) == 1 &&
        EVP_PKEY_CTX_set1_hkdf_salt(hkdf, source->n_salt > 0 ? source->salt : none,
                                    (int)source->n_salt) == 1 &&
        EVP_PKEY_CTX_set1_hkdf_key(hkdf, source->secret, (int)source->n_secret) == 1 &&
        EVP_PKEY_CTX_add1_hkdf_info(hkdf, (const void *)label, (int)strlen(label) + 1) == 1 &&
        (n_context == 0 || EVP_PKEY_CTX_add1_hkdf_info(hkdf, context, (int)n_context) == 1) &&
        EVP_PKEY_derive(hkdf, ret, &n) == 1 && n == n_ret;
    EVP_PKEY_CTX_free(hkdf);
    return good ? 0 : -EIO;
}

int seal_derive(const uint8_t secret[SEAL_SECRET_BYTES], const char *label, const void *context,
                size_t n_context, void *ret, size_t n_ret)
{
    const struct seal_source source = {.secret = secret, .n_secret = SEAL_SECRET_BYTES};

    return seal_derive_from(&source, label, context, n_context, ret, n_ret);
}

bool seal_equal(const void *a, const void *b, size_t n)
{
    return CRYPTO_memcmp(a, b, n) == 0;
}

void seal_random(void *ret, size_t n)
{
    assert(n <= 256);
    /* Up to 256 bytes come whole, once the kernel has started. */
    if (getrandom(ret, n, 0) != (ssize_t)n) {
        log_error("the kernel has no random numbers");
        abort();
    }
}

void seal_forget(void *secret, size_t n)
{
    OPENSSL_cleanse(secret, n);
}

int seal_key_init(struct seal_key *k, const uint8_t secret[SEAL_SECRET_BYTES], const char *label,
                  const void *context, size_t n_context, enum seal_mode mode)
{
    struct {
        uint8_t key[GMAC_KEY_BYTES];
        uint32_t salt;
    } made;

    memset(k, 0, sizeof *k);
    k->mode = mode;
    if (mode == SEAL_NONE)
        return 0;
    int rc = seal_derive(secret, label, context, n_context, &made, sizeof made);
    if (rc < 0)
        return rc;
    k->salt = made.salt;
    if (mode == SEAL_INTEGRITY) {
        rc = gmac_init(&k->gmac, made.key, gmac_best());
    } else {
        k->cipher = EVP_CIPHER_CTX_new();
        rc = k->cipher &&
                     EVP_CipherInit_ex(k->cipher, EVP_aes_128_gcm(), NULL, made.key, NULL, 1) == 1
                 ? 0
                 : -EIO;
    }
    seal_forget(&made, sizeof made);
    return rc;
}

void seal_key_deinit(struct seal_key *k)
{
    EVP_CIPHER_CTX_free(k->cipher);
    gmac_deinit(&k->gmac);
    memset(k, 0, sizeof *k);
}

static void seal_nonce(const struct seal_key *k, uint64_t number, uint8_t nonce[GMAC_NONCE_BYTES])
{
    uint64_t le = htole64(number);

    memcpy(nonce, &k->salt, sizeof k->salt);
    memcpy(nonce + sizeof k->salt, &le, sizeof le);
}

/* AES-GCM over head and data. `code`: out, the tag to be made; else the one to be checked. */
static bool seal_gcm(struct seal_key *k, uint64_t number, bool out, const void *head, size_t n_head,
                     const void *from, size_t n, void *to, uint64_t *code)
{
    uint8_t nonce[GMAC_NONCE_BYTES], tag[SEAL_TAG_BYTES], none[SEAL_TAG_BYTES];
    int len;

    seal_nonce(k, number, nonce);
    if (EVP_CipherInit_ex(k->cipher, NULL, NULL, NULL, nonce, out) != 1 ||
        (n_head > 0 && EVP_CipherUpdate(k->cipher, NULL, &len, head, (int)n_head) != 1) ||
        (n > 0 && EVP_CipherUpdate(k->cipher, to, &len, from, (int)n) != 1))
        return false;
    if (!out) {
        memcpy(tag, code, sizeof *code);
        return EVP_CIPHER_CTX_ctrl(k->cipher, EVP_CTRL_AEAD_SET_TAG, sizeof *code, tag) == 1 &&
               EVP_CipherFinal_ex(k->cipher, none, &len) == 1;
    }
    if (EVP_CipherFinal_ex(k->cipher, none, &len) != 1 ||
        EVP_CIPHER_CTX_ctrl(k->cipher, EVP_CTRL_AEAD_GET_TAG, sizeof tag, tag) != 1)
        return false;
    memcpy(code, tag, sizeof *code);
    return true;
}

uint64_t seal_key_wrap(struct seal_key *k, uint64_t number, const void *head, size_t n_head,
                       const void *from, size_t n, void *to)
{
    uint8_t nonce[GMAC_NONCE_BYTES];
    uint64_t code = 0;

    if (k->mode == SEAL_ENCRYPT) {
        /* The cipher was set up, and the sizes are ours: it does not refuse. If it did, nothing of
         * the data must leave in the clear. */
        if (!seal_gcm(k, number, true, head, n_head, from, n, to, &code))
            memset(to, 0, n);
        return code;
    }
    if (to != from)
        memcpy(to, from, n);
    if (k->mode == SEAL_NONE)
        return 0;
    seal_nonce(k, number, nonce);
    return gmac_code(&k->gmac, nonce, head, n_head, to, n);
}

int seal_key_unwrap(struct seal_key *k, uint64_t number, uint64_t code, const void *head,
                    size_t n_head, const void *from, size_t n, void *to)
{
    uint8_t nonce[GMAC_NONCE_BYTES];

    if (k->mode == SEAL_ENCRYPT)
        return seal_gcm(k, number, false, head, n_head, from, n, to, &code) ? 0 : SEAL_E_CODE;
    /* The copy is what is checked. */
    if (to != from)
        memcpy(to, from, n);
    if (k->mode == SEAL_NONE)
        return 0;
    seal_nonce(k, number, nonce);
    return gmac_code(&k->gmac, nonce, head, n_head, to, n) == code ? 0 : SEAL_E_CODE;
}

static int seal_init_direction(struct seal_key *k, uint64_t *ret_id, const uint8_t *secret,
                               bool of_lower, enum seal_mode mode)
{
    const uint8_t context[] = {of_lower ? 'L' : 'H', (uint8_t)mode};
    int rc =
        seal_derive(secret, "motet datagrams: id", context, sizeof context, ret_id, sizeof *ret_id);

    return rc < 0 ? rc
                  : seal_key_init(k, secret, "motet datagrams: key", context, sizeof context, mode);
}

int seal_init(struct seal *s, const uint8_t secret[SEAL_SECRET_BYTES], bool lower,
              enum seal_mode mode)
{
    memset(s, 0, sizeof *s);
    s->made = true;
    s->lower = lower;
    s->mode = mode;
    memcpy(s->secret, secret, sizeof s->secret);
    int rc = seal_init_direction(&s->out, &s->out_id, secret, lower, mode);

    return rc < 0 ? rc : seal_init_direction(&s->in, &s->in_id, secret, !lower, mode);
}

void seal_deinit(struct seal *s)
{
    seal_key_deinit(&s->out);
    seal_key_deinit(&s->in);
    seal_forget(s->secret, sizeof s->secret);
    s->made = false;
}

bool seal_is_of(const struct seal *s, const uint8_t secret[SEAL_SECRET_BYTES])
{
    return s->made && seal_equal(s->secret, secret, sizeof s->secret);
}

void seal_wrap(struct seal *s, struct seal_mark *ret_mark, const void *head, size_t n_head,
               const void *from, size_t n, void *to)
{
    uint64_t number = ++s->number;

    *ret_mark = (struct seal_mark){
        .id = htole64(s->out_id),
        .number = htole64(number),
        .code = seal_key_wrap(&s->out, number, head, n_head, from, n, to),
    };
}

/* Could this number be new? The window has a ring of bits, RFC 6479. */
static bool seal_is_new(const struct seal *s, uint64_t number)
{
    if (number > s->last)
        return true;
    return number != 0 && s->last - number < SEAL_WINDOW - 64 &&
           !(s->seen[number / 64 % (SEAL_WINDOW / 64)] >> number % 64 & 1);
}

static void seal_take(struct seal *s, uint64_t number)
{
    if (number > s->last) {
        uint64_t words = number / 64 - s->last / 64;
        for (uint64_t i = 1; i <= words && i <= SEAL_WINDOW / 64; i++)
            s->seen[(s->last / 64 + i) % (SEAL_WINDOW / 64)] = 0;
        s->last = number;
    }
    s->seen[number / 64 % (SEAL_WINDOW / 64)] |= 1ull << number % 64;
}

int seal_unwrap(struct seal *s, const struct seal_mark *mark, const void *head, size_t n_head,
                const void *from, size_t n, void *to)
{
    uint64_t number = le64toh(mark->number);

    if (s->in.mode != SEAL_NONE && !seal_is_new(s, number))
        return SEAL_E_OLD;
    int rc = seal_key_unwrap(&s->in, number, mark->code, head, n_head, from, n, to);
    /* Only what is sound moves the window. */
    if (rc == 0 && s->in.mode != SEAL_NONE)
        seal_take(s, number);
    return rc;
}

struct seal *seal_find(struct seal *table, uint64_t id)
{
    uint64_t key = le64toh(id);
    struct seal *s;

    HASH_FIND(hh, table, &key, sizeof key, s);
    return s;
}

void seal_add(struct seal **table, struct seal *s)
{
    if (!s->hh.tbl)
        HASH_ADD(hh, *table, in_id, sizeof s->in_id, s);
}

void seal_remove(struct seal **table, struct seal *s)
{
    if (s->hh.tbl) {
        HASH_DEL(*table, s);
        s->hh = (UT_hash_handle){0};
    }
}
