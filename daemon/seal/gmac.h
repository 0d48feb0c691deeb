/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GMAC (NIST SP 800-38D) with AES-128 and a 96-bit nonce, cut to 64 bits: the code that tells
 * whether a packet comes from whom it claims to come from, as it was sent. Of the primitives that
 * were measured it is the cheapest wherever the processor multiplies without carries: 16 KiB on an
 * EPYC of 2024 take 0.7 us; SipHash-1-3 takes 3.4, SipHash-2-4 5.7. Processors
 * without get it from libcrypto. Used by seal.c alone; any thread, a key belongs to one.
 *
 * A nonce must never be used twice under one key: two codes under one nonce give the key of the
 * hash away. With messages of 64 KiB a forger's chance is 2^-52 a try.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GMAC_KEY_BYTES   16u
#define GMAC_NONCE_BYTES 12u
/* Blocks of data that are multiplied before one reduction. */
#define GMAC_BLOCKS 64u

/* How it is computed; all give the same. */
enum gmac_way {
    GMAC_LIBCRYPTO,
    GMAC_CLMUL, /* x86: AES-NI and PCLMULQDQ */
    GMAC_WIDE,  /* x86: VPCLMULQDQ on 512 bits as well */
};

struct gmac {
    _Alignas(16) uint8_t powers[GMAC_BLOCKS + 1][16]; /* of the hash key: the highest first */
    uint8_t rounds[11][16];                           /* AES round keys */
    void *cipher;                                     /* libcrypto's context, else NULL */
    enum gmac_way way;
};

/* The fastest way that this processor knows. */
enum gmac_way gmac_best(void);
/* 0, or -EIO when libcrypto refuses; gmac_deinit in any case. */
int gmac_init(struct gmac *g, const uint8_t key[GMAC_KEY_BYTES], enum gmac_way way);
void gmac_deinit(struct gmac *g);

/* The first 8 bytes of the tag, in memory order, over head and data, one behind the other. n_head
 * is a multiple of 16, at most 16 * GMAC_BLOCKS. */
uint64_t gmac_code(const struct gmac *g, const uint8_t nonce[GMAC_NONCE_BYTES], const void *head,
                   size_t n_head, const void *data, size_t n_data);
