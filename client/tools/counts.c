/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/tools/counts.h"

#include "client/client.h"
#include "client/p2p/credit.h"
#include "client/p2p/peer.h"
#include "client/p2p/protocols.h"
#include "client/progress/progress.h"
#include "client/rma/message.h"
#include "client/rma/win.h"
#include "client/transport/transport.h"

struct counts_state {
    struct counts kept;
};
static struct counts_state counts_first;
static struct counts_state *counts_here = &counts_first;
CLIENT_PART(counts_here, counts_first);

/* Calls fn for each engine that may have something, with its lock. */
static void counts_each(void (*fn)(struct engine *e, void *arg), void *arg)
{
    for (uint32_t i = 0; i < SEGMENT_MAX_VCIS; i++) {
        struct engine *e = vci_here->table[i].engine;
        if (!e)
            continue;
        engine_enter(e);
        fn(e, arg);
        engine_leave(e);
    }
}

/* ---- counters ---- */

static void counts_add_engine(struct engine *e, void *arg)
{
    struct counts *c = arg;

    c->sent_msgs += e->sent_msgs;
    c->sent_bytes += e->sent_bytes;
    c->recv_msgs += e->recv_msgs;
    c->recv_bytes += e->recv_bytes;
    c->rendezvous_out += e->rendezvous_out;
    c->rendezvous_in += e->rendezvous_in;
    c->daemon_sent_msgs += e->daemon_sent_msgs;
    c->daemon_sent_bytes += e->daemon_sent_bytes;
    c->daemon_recv_msgs += e->daemon_recv_msgs;
    c->daemon_recv_bytes += e->daemon_recv_bytes;
    c->credit_stalls += e->n_credit_stalls;
    c->room_stalls += e->n_room_stalls;
}

static uint64_t counts_load(_Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Engines add what they have counted to the rank's counters when they wait, and begin again. */
static void counts_add_rank(struct segment_rank *me, struct counts *c)
{
    c->sent_msgs += counts_load(&me->sent_msgs);
    c->sent_bytes += counts_load(&me->sent_bytes);
    c->recv_msgs += counts_load(&me->recv_msgs);
    c->recv_bytes += counts_load(&me->recv_bytes);
    c->rendezvous_out += counts_load(&me->rendezvous_out);
    c->rendezvous_in += counts_load(&me->rendezvous_in);
    c->sleeps += counts_load(&me->sleeps);
}

void counts_read(struct counts *ret_counts)
{
    struct counts c = counts_here->kept;

    counts_each(counts_add_engine, &c);
    if (transport_here->base && vci_here->ops)
        counts_add_rank(transport_here->me, &c);
    if (vci_here->ops)
        c.slept_ns += progress_here->slept_ns;
    *ret_counts = c;
}

void counts_keep(void)
{
    struct counts c;

    counts_read(&c);
    counts_here->kept = c;
}

/* ---- levels ---- */

static void counts_add_unexpected(const struct match *m, struct counts_levels *l)
{
    for (uint32_t i = 0; i < MATCH_CONTEXT_CLASSES; i++)
        list_foreach(it, &m->arrivals[i])
            l->unexpected_bytes +=
                (uint64_t)list_entry(it, struct unexpected, match.arrival)->bytes;
}

static void counts_add_peers(const struct engine *e, struct counts_levels *l)
{
    for (uint32_t i = 0; transport_here->base && i < transport_here->n_world; i++) {
        const struct peer *p = e->peers[i];
        if (!p)
            continue;
        double part = (double)p->credit.used / CREDIT_BYTES;
        if (part > l->allowance)
            l->allowance = part;
        list_foreach(it, &p->backlog)
            l->pending++;
    }
}

static void counts_add_levels(struct engine *e, void *arg)
{
    struct counts_levels *l = arg;

    l->posted += e->match.posted.n;
    l->unexpected += e->match.n_unexpected;
    counts_add_unexpected(&e->match, l);
    counts_add_peers(e, l);
    l->rendezvous += rendezvous_n_under_way(&protocols_of(e)->rendezvous);
}

void counts_read_levels(struct counts_levels *ret_levels)
{
    *ret_levels = (struct counts_levels){0};
    counts_each(counts_add_levels, ret_levels);
}

void counts_of_comm(const struct comm *comm, uint64_t *ret_posted, uint64_t *ret_unexpected)
{
    struct engine *e = engine_of(comm);
    uint32_t context = comm->context_id + P2P_CONTEXT_USER;

    engine_enter(e);
    *ret_posted = match_table_count(&e->match.posted, context);
    *ret_unexpected = match_table_count(&e->match.unexpected, context);
    engine_leave(e);
}

uint64_t counts_of_win(const struct win *win)
{
    uint64_t n = 0;

    for (int i = 0; i < win->comm->size; i++)
        if (win->targets[i].link)
            n += win->targets[i].link->n_flying + win->targets[i].link->n_queued;
    return n;
}

uint64_t counts_windows(void)
{
    uint64_t n = 0;

    for (const struct win *win = win_here->all; win; win = win->next)
        n++;
    return n;
}

/* ---- watermarks ---- */

static void counts_watch_engine(struct engine *e, void *arg)
{
    const bool *watched = arg;

    match_table_watch(&e->match.posted, *watched);
    match_table_watch(&e->match.unexpected, *watched);
}

void counts_watch(bool watched)
{
    counts_each(counts_watch_engine, &watched);
}

static void counts_add_high(struct engine *e, void *arg)
{
    uint64_t *high = arg;

    high[0] += e->match.posted.high;
    high[1] += e->match.unexpected.high;
}

void counts_high(uint64_t *ret_posted, uint64_t *ret_unexpected)
{
    uint64_t high[2] = {0};

    counts_each(counts_add_high, high);
    *ret_posted = high[0];
    *ret_unexpected = high[1];
}
