/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Eager messages: those that leave whole and unasked. Up to 32 bytes ride in the ring's slot, up to
 * the eager limit of the way in the ring's data area, as long as the peer's allowance lasts
 * (credit.h).
 */
#ifndef MOTET_CLIENT_P2P_EAGER_H
#define MOTET_CLIENT_P2P_EAGER_H

#include "client/p2p/peer.h"
#include "client/p2p/transfer.h"

/* Whether the protocol is for a message of this size now. */
static inline bool eager_fits(const struct peer *p, MPI_Count bytes)
{
    return bytes <= p->eager_limit && credit_allows(&p->credit, (uint64_t)bytes);
}

/* Publishes a message of `bytes` for who matches context, source and tag. False, having done
 * nothing: too large, no allowance or no room. Whatever waits before it is the caller's business.
 */
bool eager_send(struct peer *p, const struct buffer *message, MPI_Count bytes, uint32_t context,
                int32_t source, int32_t tag);

/* A receive takes a message that is here whole. */
static inline void eager_receive(struct transfer *t, uint32_t src_world, int32_t source,
                                 int32_t tag, const void *payload, uint32_t len)
{
    transfer_matched(t, src_world, source, tag);
    int error = transfer_check_length(t, len);
    if (__builtin_expect(len > t->bytes, 0))
        len = (uint32_t)t->bytes;
    transfer_unpack_all(&t->buffer, payload, len);
    t->base.bytes = len;
    transfer_complete(t, error);
}

#endif
