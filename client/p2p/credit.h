/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The allowance of eager bytes that two ranks give each other: what one of them may have sent to
 * the other before it has found its receive. It bounds what one rank can make another one hold;
 * beyond it messages are only announced. What found its receive is owed back and returned in
 * batches. Pure: whoever calls sends the message (peer_owe).
 */
#ifndef MOTET_CLIENT_P2P_CREDIT_H
#define MOTET_CLIENT_P2P_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

#define CREDIT_BYTES (1u << 20)
/* What an eager message costs beside its bytes: its record at the receiver. */
#define CREDIT_OVERHEAD 64u
/* Owed bytes that are worth a message. */
#define CREDIT_BATCH (CREDIT_BYTES / 4)

struct credit {
    uint64_t used; /* of the allowance that the peer gives us */
    uint64_t owed; /* of the one that we give it */
};

static inline bool credit_allows(const struct credit *c, uint64_t bytes)
{
    return c->used + bytes + CREDIT_OVERHEAD <= CREDIT_BYTES;
}

/* A message of `bytes`, which the allowance allows, leaves. */
static inline void credit_take(struct credit *c, uint64_t bytes)
{
    c->used += bytes + CREDIT_OVERHEAD;
}

/* The peer returned so much. It is never believed to have had more than was taken. */
static inline void credit_returned(struct credit *c, uint64_t bytes)
{
    c->used -= bytes < c->used ? bytes : c->used;
}

/* A message of `bytes` from the peer found its receive. True: it is time for credit_settle. */
static inline bool credit_owe(struct credit *c, uint64_t bytes)
{
    c->owed += bytes + CREDIT_OVERHEAD;
    return __builtin_expect(c->owed >= CREDIT_BATCH, 0);
}

/* What is to be returned to the peer, in full. */
static inline uint64_t credit_settle(struct credit *c)
{
    uint64_t owed = c->owed;

    c->owed = 0;
    return owed;
}

#endif
