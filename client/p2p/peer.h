/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this rank knows of each rank it talks to: the way, the order, the eager allowance, and what
 * waits for room. Made at the first message in either direction. Control messages (PULL, FINISHED,
 * CREDIT) leave here.
 */
#ifndef MOTET_CLIENT_P2P_PEER_H
#define MOTET_CLIENT_P2P_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "client/p2p/credit.h"
#include "client/p2p/engine.h"
#include "client/p2p/method/method.h"
#include "client/transport/transport.h"
#include "proto/msg.h"

struct peer {
    struct engine *engine;
    uint32_t world;
    bool local;
    bool no_readv;               /* reading its memory was refused once */
    uint32_t node;               /* of a remote peer */
    struct ring_producer *ring;  /* of a local peer */
    struct method_table *method; /* of a local peer, from its first large message on */
    uint32_t eager_limit;        /* bytes */
    struct credit credit;
    uint32_t order_out;          /* number of the next ordered message to a remote peer */
    uint32_t order_in;           /* number expected from it */
    struct list early;           /* inbound.c: what arrived before its turn, by number */
    struct list backlog;         /* struct transfer.link: sends that wait for room, oldest first */
    struct list control_backlog; /* struct control_message that wait for room */
    struct list busy;            /* in engine.busy_peers while one of the two is not empty */
};

/* 0 or MPI_ERR_NO_MEM. */
int peer_init(struct engine *e);
void peer_deinit(struct engine *e);
struct peer *peer_make(struct engine *e, uint32_t world);
/* These peers are others from now on; no transfer with them is under way. */
void peer_forget(struct engine *e, uint32_t first, uint32_t n);

/* Never NULL: without memory for a peer's state no message can be sent at all and the process
 * ends. */
static inline struct peer *peer_get(struct engine *e, uint32_t world)
{
    struct peer *p = e->peers[world];
    return __builtin_expect(p != NULL, 1) ? p : peer_make(e, world);
}

/* How large messages to and from a local peer are copied. NULL: no memory for it. */
struct method_table *peer_make_method(struct peer *p);
static inline struct method_table *peer_method(struct peer *p)
{
    return __builtin_expect(p->method != NULL, 1) ? p->method : peer_make_method(p);
}

/* Process id of a rank of this node. */
static inline int32_t peer_pid(const struct peer *p)
{
    return atomic_load_explicit(&segment_rank_at(transport_here->base, &transport_here->layout,
                                                 transport_world(p->world)->local)
                                     ->pid,
                                memory_order_relaxed);
}

/* Ring towards it now, NULL while there is no way. */
static inline struct ring_producer *peer_ring(struct peer *p, bool large)
{
    return p->local ? p->ring : outbox_remote(&p->engine->outbox, p->world, p->node, large);
}

/* The part of the header that a message to another node has alone. Out of line, so that the short
 * path within a node stays short. */
void peer_number(struct peer *p, struct ring_slot *slot);

/* Fills the header of a message, which has an order among those to the same peer, and publishes
 * it. */
static inline void peer_publish(struct peer *p, struct ring_producer *ring, struct ring_slot *slot,
                                uint8_t kind, uint32_t context, int32_t source, int32_t tag)
{
    slot->kind = kind;
    slot->context = context;
    slot->source = source;
    slot->tag = tag;
    if (p->local) {
        slot->flags = 0;
        if (__builtin_expect(p->engine->vci->index == 0, 1))
            transport_here->needs_channel = false;
    } else {
        peer_number(p, slot);
    }
    ring_publish(ring);
}

/* Something of this peer waits for room from now on. */
void peer_mark_busy(struct peer *p);

/* Sends PULL, FINISHED or CREDIT, or keeps it until there is room; payload of at most 16 bytes. */
void peer_send_control(struct peer *p, uint8_t kind, uint32_t context, const void *payload,
                       uint32_t len);
/* Retries those that were kept, in order. Returns how many left. */
int peer_retry_control(struct peer *p);

void peer_repay(struct peer *p);
/* Notes that an eager message of `bytes` from this peer found its receive, and gives the allowance
 * back in batches. */
static inline void peer_owe(struct peer *p, uint64_t bytes)
{
    if (credit_owe(&p->credit, bytes))
        peer_repay(p);
}

#endif
