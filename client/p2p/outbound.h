/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends: which protocol carries a message, and what waits for room in a ring. Nothing here blocks;
 * what finds no room is kept, in order per peer, and tried again when the engine has its turn.
 */
#ifndef MOTET_CLIENT_P2P_OUTBOUND_H
#define MOTET_CLIENT_P2P_OUTBOUND_H

#include "client/p2p/eager.h"
#include "client/p2p/peer.h"
#include "client/p2p/transfer.h"

/* Starts a send that transfer_new set up; may complete it at once. */
void outbound_start(struct transfer *t);

/* The short path of sends: publishes a message that is eager and finds room, or returns false
 * having done nothing. context and source: what the receiver matches. */
static inline bool outbound_try_eager(struct peer *p, const struct buffer *message, MPI_Count bytes,
                                      uint32_t context, int32_t source, int32_t tag)
{
    /* Nothing overtakes what waits. */
    return list_empty(&p->backlog) && eager_send(p, message, bytes, context, source, tag);
}

/* Retries what waits. Returns how many messages left. */
int outbound_poll(struct engine *e);

#endif
