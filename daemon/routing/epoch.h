/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Epochs: the numbers of a daemon's incarnations. Each start takes a later one than all before it,
 * so peers know what is of the past. Numbers go round (as serial numbers do, RFC 1982): of two of
 * them the later one is less than half of all numbers ahead.
 *
 * A clock gives the first guess, and nothing but a guess: it may have been ahead once, or have been
 * set back. Peers keep the latest epoch that they have seen of a node, and tell it with what they
 * know; a daemon that hears of a later one of its own begins again with the next one after that.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define EPOCH_HALF 0x80000000u

/* a is a later incarnation than b. Exactly one of two different ones is later than the other. */
static inline bool epoch_newer(uint32_t a, uint32_t b)
{
    return a - b == EPOCH_HALF ? a > b : a != b && a - b < EPOCH_HALF;
}

/* The next one. Never 0, which stands for unknown. */
static inline uint32_t epoch_after(uint32_t epoch)
{
    return epoch + 1 ? epoch + 1 : 1;
}
