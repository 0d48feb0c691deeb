/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks into the library: what is open when a program has nothing more to do? */
#include "tests/sim/client/client_program.h"

#include <stdio.h>

#include "client/object/handle.h"
#include "client/p2p/peer.h"
#include "client/p2p/protocols.h"
#include "client/progress/vci.h"
#include "client/transport/transport.h"
#include "tests/sim/client/client_process.h"
#include "tests/sim/client/client_world.h"

static const char *peer_open(const struct peer *p)
{
    return !list_empty(&p->early)             ? "a message waits for an earlier one"
           : !list_empty(&p->backlog)         ? "a send waits for room"
           : !list_empty(&p->control_backlog) ? "a control message waits for room"
                                              : NULL;
}

static const char *engine_open(struct engine *e, struct rank_balance *balance)
{
    const char *open = NULL;

    for (uint32_t r = 0; r < transport_here->n_world; r++) {
        const struct peer *p = e->peers[r];
        if (!p)
            continue;
        balance->out[r] += p->credit.used;
        balance->owed[r] += p->credit.owed;
        open = open ? open : peer_open(p);
    }
    const struct rendezvous *r = &protocols_of(e)->rendezvous;
    const struct coop *c = &protocols_of(e)->coop;
    return open                        ? open
           : e->n_waiting > 0          ? "a transfer waits"
           : e->match.posted.n > 0     ? "a receive is posted"
           : e->match.n_unexpected > 0 ? "a message was not received"
           : !list_empty(&e->unshown)  ? "a blocking receive is left"
           : !list_empty(&r->sending)  ? "a rendezvous sends"
           : !list_empty(&r->backlog)  ? "a rendezvous waits for budget"
           : r->budget_used > 0        ? "granted bytes did not come"
           : c->n_offers > 0           ? "a cooperative copy is offered"
           : c->n_joining > 0          ? "a cooperative copy is under way"
                                       : NULL;
}

static const char *board_open(void)
{
    const struct queue_record *records =
        segment_board_at(transport_here->base, &transport_here->layout, transport_here->local_rank);

    for (uint32_t i = 0; i < transport_here->layout.shape.board_records; i++)
        if (atomic_load(&records[i].state) != QUEUE_FREE)
            return "a record is on the board";
    return NULL;
}

static void look(const struct program *p)
{
    struct rank_balance *balance = &p->rank->balance;

    *balance = (struct rank_balance){.settled = true};
    for (uint32_t i = 0; i < transport_here->layout.shape.n_vcis; i++) {
        const char *open = engine_open(vci_here->table[i].engine, balance);
        balance->open = balance->open ? balance->open : open;
    }
    if (!balance->open)
        balance->open = handle_count() > p->n_handles ? "a handle was not freed" : board_open();
}

static void report_peer(const struct peer *p)
{
    const char *open = peer_open(p);

    fprintf(stderr, "  with %u: sent %u, received %u in order, out %llu, owed %llu%s%s\n", p->world,
            p->order_out, p->order_in, (unsigned long long)p->credit.used,
            (unsigned long long)p->credit.owed, open ? ", " : "", open ? open : "");
}

void settle_report(void)
{
    for (uint32_t i = 0; transport_here->base && i < transport_here->layout.shape.n_vcis; i++) {
        const struct engine *e = vci_here->table[i].engine;
        for (uint32_t r = 0; e && r < transport_here->n_world; r++)
            if (e->peers[r])
                report_peer(e->peers[r]);
    }
}

void settle_begin(struct program *p)
{
    p->n_handles = handle_count();
}

void settle(struct program *p)
{
    do {
        int flag = 0;
        MPI_Status status;
        CHECK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status));
        if (flag)
            world_fail("a message from %d with tag %d was not received", status.MPI_SOURCE,
                       status.MPI_TAG);
        look(p);
        process_pause(1000 + program_draw(&p->own, 400000));
    } while (!world_is_settled(p->rank));
}
