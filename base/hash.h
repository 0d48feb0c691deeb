/* SPDX-License-Identifier: BSD-3-Clause */
/* Hashes for names and headers. Neither is cryptographic. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* FNV-1a, 32 bit (Fowler, Noll, Vo). */
static inline uint32_t hash_fnv1a(const void *data, size_t n)
{
    const unsigned char *p = data;
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 16777619u;
    return h;
}

/* Mixes one 64-bit word (the finaliser of MurmurHash3, Appleby). */
static inline uint64_t hash_mix64(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ (x >> 33);
}
