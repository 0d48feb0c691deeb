/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small seeded generator for simulations and tests (SplitMix64, Steele, Lea and Flood 2014). Not
 * for secrets: those come from getrandom(2).
 */
#pragma once

#include <stdint.h>

struct rand {
    uint64_t state;
};

static inline uint64_t rand_next(struct rand *r)
{
    uint64_t z = (r->state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/* Uniform in 0 .. n-1; n > 0. The bias of the modulo is below 2^-32 for the ranges used here. */
static inline uint64_t rand_below(struct rand *r, uint64_t n)
{
    return rand_next(r) % n;
}
