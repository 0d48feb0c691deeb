/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine: what every module of the point-to-point layer uses of one vci
 * (client/progress/vci.h): rings, match tables, peers, transfers, queue records. The protocols'
 * own state lies around it (protocols.h). Whoever calls anything that takes an engine, or a
 * transfer, peer or message of it, holds the vci's lock.
 *
 * Engine 0 talks to every rank, the others only to ranks of this node.
 */
#ifndef MOTET_CLIENT_P2P_ENGINE_H
#define MOTET_CLIENT_P2P_ENGINE_H

#include <stdint.h>

#include "base/list.h"
#include "client/object/comm.h"
#include "client/p2p/match.h"
#include "client/p2p/record.h"
#include "client/progress/notice.h"
#include "client/progress/request.h"
#include "client/progress/vci.h"
#include "client/transport/transport.h"

struct peer;
struct transfer;
struct transfer_chunk;

struct engine {
    struct vci *vci;
    struct inbox inbox;
    struct outbox outbox;
    struct match match;
    struct record_set records;
    /* p2p_set_taker(); NULL: none */
    bool (*taker)(uint32_t context, int32_t source, int32_t tag, const void *payload,
                  MPI_Count bytes);

    /* What waits for something that comes without a message to it (room in a ring, other grants):
     * peers in `busy_peers` and transfers in the lists of rendezvous.h. While there is any, the
     * engine's turn looks after them and nobody sleeps for long. */
    int n_waiting;

    /* peer.c */
    struct peer **peers; /* by world rank, in engine 0 also of other jobs; NULL until the first
                            message */
    uint32_t n_peers;
    struct list busy_peers; /* those with a backlog */
    uint8_t copy_method;    /* of large messages within the node: MOTET_COPY (method/method.h) */

    /* transfer.c */
    struct transfer_chunk *chunks;
    struct transfer *free_transfers; /* linked through `buffer.base` */
    size_t transfer_bytes;           /* with what the protocols add to one */
    struct list unshown;             /* blocking receives that have no record yet */

    struct request sent; /* request_init_sent */
    bool shares_sent;

    /* Added to the rank's counters when it waits; those of vci 0 count there at once. */
    uint64_t sent_msgs, sent_bytes, recv_msgs, recv_bytes, rendezvous_out, rendezvous_in;

    /* For tools (client/tools/counts.h): what passed the daemon, packets of large messages
     * included, and sends that were held up. */
    uint64_t daemon_sent_msgs, daemon_sent_bytes, daemon_recv_msgs, daemon_recv_bytes;
    uint64_t n_credit_stalls, n_room_stalls;
};

static inline struct engine *engine_of(const struct comm *comm)
{
    return comm->vci->engine;
}

static inline void engine_enter(struct engine *e)
{
    vci_take(e->vci);
}

static inline void engine_leave(struct engine *e)
{
    vci_give(e->vci);
}

/* Adds a message that no receive waits for, and shows it. */
static inline void engine_add_unexpected(struct engine *e, struct unexpected *u)
{
    match_add_unexpected(&e->match, u);
    notice_tell(NOTICE_UNEXPECTED, u->match.context, u->match.source, u->match.tag, u->bytes);
    struct queue_record *r = record_begin(&e->records, &u->record);
    if (!r)
        return;
    r->context = u->match.context;
    r->peer = u->match.source;
    r->tag = u->match.tag;
    r->bytes = (uint64_t)u->bytes;
    r->done_bytes = 0;
    r->peer_world = (int32_t)u->src_world;
    record_publish(r, QUEUE_UNEXPECTED);
}

/* One writer: plain read, relaxed store. */
static inline void engine_add(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static inline void engine_count_sent(struct engine *e, uint64_t bytes)
{
    if (__builtin_expect(e->vci->index != 0, 0)) {
        e->sent_msgs++;
        e->sent_bytes += bytes;
        return;
    }
    engine_add(&transport_here->me->sent_msgs, 1);
    engine_add(&transport_here->me->sent_bytes, bytes);
}

static inline void engine_count_received(struct engine *e, uint64_t bytes)
{
    if (__builtin_expect(e->vci->index != 0, 0)) {
        e->recv_msgs++;
        e->recv_bytes += bytes;
        return;
    }
    engine_add(&transport_here->me->recv_msgs, 1);
    engine_add(&transport_here->me->recv_bytes, bytes);
}

#endif
