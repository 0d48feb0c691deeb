/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Outgoing messages: the announcement of sends (eager or RTS), control messages, and what waits for
 * room in a ring. Nothing here blocks; what finds no room is kept, in order per peer, and tried
 * again by progress.
 */
#ifndef MOTET_CLIENT_P2P_OUTBOUND_H
#define MOTET_CLIENT_P2P_OUTBOUND_H

#include "client/p2p/peer.h"
#include "client/p2p/transfer.h"

/* 0 or MPI_ERR_NO_MEM. */
int outbound_init(struct engine *e);

/* Retries what waits (e->n_waiting). Returns how many messages left. */
int outbound_poll(struct engine *e);

/* Sends to another process: publishes the message or its announcement, or queues it behind what
 * waits already. */
void outbound_send(struct peer *p, struct transfer *t);

/* The short path of blocking sends: publishes a dense message that fits, or returns false having
 * done nothing. context and source: what the receiver matches. */
bool outbound_try_eager(struct peer *p, const struct buffer *message, MPI_Count bytes,
                        uint32_t context, int32_t source, int32_t tag);

/* Sends PULL, FIN or CREDIT; payload of at most 16 bytes. */
void outbound_control(struct peer *p, uint8_t kind, uint32_t context, const void *payload,
                      uint32_t len);

void outbound_repay(struct peer *p);
/* Notes that an eager message of `bytes` from this peer found its receive, and gives the allowance
 * back in batches. */
static inline void outbound_owe(struct peer *p, uint64_t bytes)
{
    p->eager_owed += bytes;
    if (__builtin_expect(p->eager_owed >= PEER_EAGER_ALLOWANCE / 4, 0))
        outbound_repay(p);
}

#endif
