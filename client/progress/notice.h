/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notices: what the slow paths tell the tool interface (client/tools/event.h), if it asked. While
 * it has not, each place costs the look at one pointer. Told by any thread that is in the library,
 * with a vci's lock or the library lock; the one who is told must not wait for either.
 */
#ifndef MOTET_CLIENT_PROGRESS_NOTICE_H
#define MOTET_CLIENT_PROGRESS_NOTICE_H

#include <stddef.h>
#include <stdint.h>

enum notice {
    NOTICE_UNEXPECTED, /* a message that no receive waits for: source, tag, bytes */
    NOTICE_STALLED,   /* a send waits for room or is held up for lack of allowance: world rank, tag,
                         bytes */
    NOTICE_ANNOUNCED, /* a large message is announced: world rank, tag, bytes */
    NOTICE_SLEPT,     /* a wait has slept: -, -, nanoseconds */
    NOTICES
};

struct notice_state {
    /* context: of a message, with enum p2p_context added. NULL: nobody listens. */
    void (*fn)(enum notice notice, uint32_t context, int peer, int tag, int64_t amount);
    void (*begin)(void); /* MPI has begun */
    void (*end)(void);   /* it is about to end: counters that are to outlive it are read now */
};
extern struct notice_state *notice_here;

static inline void notice_tell(enum notice notice, uint32_t context, int peer, int tag,
                               int64_t amount)
{
    if (__builtin_expect(notice_here->fn != NULL, 0))
        notice_here->fn(notice, context, peer, tag, amount);
}

#endif
