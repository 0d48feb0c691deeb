/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this rank knows of each rank it talks to: the way, the order, the eager allowance, and what
 * waits for room. Made at the first message in either direction.
 */
#ifndef MOTET_CLIENT_P2P_PEER_H
#define MOTET_CLIENT_P2P_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "client/p2p/engine.h"
#include "client/transport/transport.h"
#include "proto/msg.h"

/* Eager bytes a rank may have outstanding at another one before they find their receives. Bounds
 * what one rank can make another one hold; beyond it messages are announced only. */
#define PEER_EAGER_ALLOWANCE (1u << 20)
/* What an eager message costs beside its bytes: its record at the receiver. */
#define PEER_EAGER_OVERHEAD 64u

struct peer {
    struct engine *engine;
    uint32_t world;
    bool local;
    bool no_readv;              /* reading its memory was refused once */
    uint32_t node;              /* of a remote peer */
    struct ring_producer *ring; /* of a local peer */
    uint32_t eager_limit;       /* bytes */
    uint64_t eager_out;         /* allowance in use */
    uint64_t eager_owed;        /* to be given back to the peer */
    uint32_t order_out;         /* number of the next ordered message to a remote peer */
    uint32_t order_in;          /* number expected from it */
    struct list early;          /* struct early_message: arrived before their turn, by number */
    struct list pending;        /* struct transfer.link: sends that wait for room, oldest first */
    struct list control;        /* struct control_message that wait for room */
    struct list busy;           /* in outbound's list while anything waits */
};

/* 0 or MPI_ERR_NO_MEM. */
int peer_init(struct engine *e);
void peer_deinit(struct engine *e);
struct peer *peer_make(struct engine *e, uint32_t world);

/* Never NULL: without memory for a peer's state no message can be sent at all and the process
 * ends. */
static inline struct peer *peer_get(struct engine *e, uint32_t world)
{
    struct peer *p = e->peers[world];
    return __builtin_expect(p != NULL, 1) ? p : peer_make(e, world);
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

#endif
