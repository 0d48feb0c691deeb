/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cluster key: what daemons prove to one another that they have. HMAC-SHA256 (RFC 2104, FIPS
 * 198-1) from libcrypto.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AUTH_MAC_BYTES 32u
#define AUTH_KEY_MIN   32u
#define AUTH_KEY_MAX   1024u

struct auth_key {
    uint8_t bytes[AUTH_KEY_MAX];
    size_t len;
};

/* Reads the key. 0, or negative errno with one line in *ret_why. */
int auth_load_key(const char *path, struct auth_key *ret_key, char *ret_why, size_t size);

struct auth_part {
    const void *data;
    size_t len;
};

/* The code of a message given in parts; each goes in with its length, so that parts cannot be
 * shifted against one another. 0 or -EIO. */
int auth_mac(const struct auth_key *key, const struct auth_part *parts, size_t n_parts,
             uint8_t ret_mac[AUTH_MAC_BYTES]);
/* Compares in constant time. */
bool auth_equal(const uint8_t *a, const uint8_t *b);
