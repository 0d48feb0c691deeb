/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine: all that the point-to-point layer keeps for one vci (client/progress/vci.h): rings,
 * match tables, peers, transfers, rendezvous, records on the board. Whoever calls anything that
 * takes an engine, or a transfer, peer or message of it, holds the vci's lock.
 *
 * Engine 0 talks to every rank, the others only to ranks of this node.
 */
#ifndef MOTET_CLIENT_P2P_ENGINE_H
#define MOTET_CLIENT_P2P_ENGINE_H

#include <stdint.h>

#include "base/list.h"
#include "client/object/comm.h"
#include "client/p2p/match.h"
#include "client/progress/request.h"
#include "client/progress/vci.h"
#include "client/transport/transport.h"

struct peer;
struct pool_chunk;
struct rendezvous_number;
struct transfer;

struct engine {
    struct vci *vci;
    struct inbox inbox;
    struct outbox outbox;
    struct match match;
    struct peer **peers; /* by world rank; NULL until the first message */

    /* outbound.c: peers with something waiting; their number, and that of the transfers in the
     * lists of rendezvous.c. */
    struct list busy_peers;
    int n_waiting;

    struct request sent; /* request_init_sent */
    bool shares_sent;

    /* transfer.c */
    struct pool_chunk *chunks;
    struct transfer *free_transfers; /* linked through `buffer.base` */

    /* rendezvous.c */
    struct rendezvous_number *numbers;
    uint32_t n_numbers, max_numbers, first_free_number;
    struct list sending;  /* sends with granted bytes left */
    struct list starving; /* receives that wait for budget */
    uint64_t budget_used;

    /* joint.c */
    struct list offers;  /* sends */
    struct list joining; /* receives that wait for the sender's last chunks */
    int n_offers, n_joining;

    /* board.c: indices of records that were used and given back; blocking receives that may enter
     * the board. */
    uint32_t *returned, n_returned, max_returned;
    struct list deferred;

    /* Added to the rank's counters when it waits; vci 0 counts there at once. */
    uint64_t sent_msgs, sent_bytes, recv_msgs, recv_bytes, rendezvous_out, rendezvous_in;
};

/* Makes the engines of all vcis. 0 or MPI_ERR_NO_MEM. */
int engine_init(void);
void engine_deinit(void);

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

#endif
