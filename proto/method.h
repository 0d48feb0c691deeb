/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How large messages of a node are copied, shown in the job segment: for each ordered pair of local
 * ranks and each vci a board, with an entry for each class of sizes, for messages that their sender
 * waits for alone and for others. The receiver writes it (client/p2p/method), the sender follows
 * it, the daemon shows it.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

enum method {
    METHOD_RINGS = 0, /* two copies through the rings' shared memory, both ranks at work */
    METHOD_READ = 1,  /* one copy by the receiver, out of the sender's memory */
    METHOD_BOTH = 2,  /* one copy by both ranks, each a part (client/p2p/coop.h) */
    METHOD_N
};

enum method_state {
    METHOD_UNTRIED = 0,
    METHOD_TRYING = 1, /* the sender says when it began; method: the one tried now */
    METHOD_MEASURED = 2,
    METHOD_FIXED = 3,   /* by the setting MOTET_COPY */
    METHOD_REFUSED = 4, /* the kernel does not let the receiver read; rings */
    METHOD_N_STATES
};

/* Sizes below 32 KiB, 64 KiB, ... 8 MiB, and all others. */
#define METHOD_CLASSES     10u
#define METHOD_FIRST_LIMIT 15u /* log2 */

struct method_entry {
    _Atomic uint8_t method, state;
    uint8_t reserved[2];
    _Atomic uint32_t mb_per_s[METHOD_N]; /* of the last trial; 0: not tried */
};
static_assert(sizeof(struct method_entry) == 16, "method entry");

enum method_kind { METHOD_WINDOW = 0, METHOD_ALONE = 1, METHOD_KINDS };

struct method_board {
    struct method_entry entries[METHOD_KINDS][METHOD_CLASSES];
};
static_assert(sizeof(struct method_board) == 320, "method board");

static inline uint32_t method_class(uint64_t bytes)
{
    uint64_t above = bytes >> METHOD_FIRST_LIMIT;
    uint32_t class = above ? 64u - (uint32_t)__builtin_clzll(above) : 0;

    return class < METHOD_CLASSES ? class : METHOD_CLASSES - 1;
}

/* The least size in a class. */
static inline uint64_t method_class_bytes(uint32_t class)
{
    return class ? (uint64_t)1 << (METHOD_FIRST_LIMIT - 1 + class) : 0;
}
