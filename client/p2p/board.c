/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/p2p/board.h"

#include <stdlib.h>

#include "base/clock.h"
#include "client/client.h"
#include "client/p2p/transfer.h"
#include "client/transport/transport.h"

struct board_state {
    struct queue_record *records;
    uint32_t n_records;
};
static struct board_state board_first;
static struct board_state *board_here = &board_first;
CLIENT_PART(board_here, board_first);

void board_init(struct engine *e)
{
    list_init(&e->deferred);
    e->n_returned = e->max_returned = 0;
    e->returned = NULL;
    board_here->records = transport_here->base
                              ? segment_board_at(transport_here->base, &transport_here->layout,
                                                 transport_here->local_rank)
                              : NULL;
    board_here->n_records = transport_here->base ? transport_here->layout.shape.board_records : 0;
}

void board_deinit(struct engine *e)
{
    free(e->returned);
    e->returned = NULL;
    e->n_returned = e->max_returned = 0;
}

static struct queue_record *take(struct engine *e)
{
    if (e->n_returned > 0)
        return &board_here->records[e->returned[--e->n_returned]];
    if (board_here->n_records == 0)
        return NULL;
    /* One that nobody has used yet. VCIs share the counter, which never falls. */
    uint32_t high = atomic_load_explicit(&transport_here->me->board_high, memory_order_relaxed);
    do
        if (high >= board_here->n_records)
            return NULL;
    while (!atomic_compare_exchange_weak_explicit(&transport_here->me->board_high, &high, high + 1,
                                                  memory_order_release, memory_order_relaxed));
    return &board_here->records[high];
}

/* Makes the fields readable: from here on the daemon may copy them. */
static void show(struct queue_record *r, enum queue_state state)
{
    r->since_ns = clock_coarse_ns();
    /* release: pairs with the acquire of the daemon's scan. */
    atomic_store_explicit(&r->state, state, memory_order_release);
}

void board_show(struct transfer *t, enum queue_state state)
{
    if (!t->record && !(t->record = take(t->engine)))
        return;
    struct queue_record *r = t->record;
    atomic_store_explicit(&r->state, QUEUE_FREE, memory_order_relaxed);
    r->context = t->context;
    r->peer = t->rank == MPI_ANY_SOURCE ? QUEUE_ANY_SOURCE : t->rank;
    r->tag = t->tag == MPI_ANY_TAG ? QUEUE_ANY_TAG : t->tag;
    r->bytes = (uint64_t)(state == QUEUE_RENDEZVOUS_IN ? t->total : t->bytes);
    r->done_bytes = (uint64_t)t->moved;
    r->peer_world = t->rank == MPI_ANY_SOURCE && state == QUEUE_POSTED ? -1 : (int32_t)t->world;
    show(r, state);
}

void board_show_unexpected(struct engine *e, struct unexpected *u)
{
    if (!u->record && !(u->record = take(e)))
        return;
    struct queue_record *r = u->record;
    atomic_store_explicit(&r->state, QUEUE_FREE, memory_order_relaxed);
    r->context = u->match.context;
    r->peer = u->match.source;
    r->tag = u->match.tag;
    r->bytes = (uint64_t)u->bytes;
    r->done_bytes = 0;
    r->peer_world = (int32_t)u->src_world;
    show(r, QUEUE_UNEXPECTED);
}

void board_show_wait(struct engine *e, struct queue_record **record, uint32_t context, int peer,
                     int32_t peer_world, int tag)
{
    struct queue_record *r = *record;

    peer = peer == MPI_ANY_SOURCE ? QUEUE_ANY_SOURCE : peer;
    tag = tag == MPI_ANY_TAG ? QUEUE_ANY_TAG : tag;
    if (r && r->peer == peer && r->tag == tag && r->context == context)
        return; /* still the same: its age counts */
    if (!r && !(r = *record = take(e)))
        return;
    atomic_store_explicit(&r->state, QUEUE_FREE, memory_order_relaxed);
    r->context = context;
    r->peer = peer;
    r->tag = tag;
    r->bytes = r->done_bytes = 0;
    r->peer_world = peer_world;
    show(r, QUEUE_POSTED);
}

void board_moved(struct transfer *t)
{
    if (t->record)
        t->record->done_bytes = (uint64_t)t->moved;
}

uint32_t board_index(const struct queue_record *record)
{
    return record ? (uint32_t)(record - board_here->records) + 1 : 0;
}

struct queue_record *board_of(uint32_t local_rank, uint32_t index)
{
    if (index == 0 || index > board_here->n_records)
        return NULL;
    return segment_board_at(transport_here->base, &transport_here->layout, local_rank) + index - 1;
}

void board_hide(struct engine *e, struct queue_record **record)
{
    struct queue_record *r = *record;

    if (!r)
        return;
    *record = NULL;
    atomic_store_explicit(&r->state, QUEUE_FREE, memory_order_release);
    if (e->n_returned == e->max_returned) {
        uint32_t bigger = e->max_returned ? 2 * e->max_returned : 64;
        uint32_t *grown = realloc(e->returned, bigger * sizeof *e->returned);
        if (!grown)
            return; /* one record less to show */
        e->returned = grown;
        e->max_returned = bigger;
    }
    e->returned[e->n_returned++] = (uint32_t)(r - board_here->records);
}

void board_defer(struct transfer *t)
{
    list_append(&t->engine->deferred, &t->link);
}

static void add(_Atomic uint64_t *counter, uint64_t *n)
{
    /* relaxed: the library lock is held, and the daemon wants no order. */
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + *n,
                          memory_order_relaxed);
    *n = 0;
}

void board_publish(struct engine *e)
{
    struct segment_rank *me = transport_here->me;

    list_foreach_safe(it, &e->deferred) {
        list_remove(it);
        board_show(list_entry(it, struct transfer, link), QUEUE_POSTED);
    }
    add(&me->sent_msgs, &e->sent_msgs);
    add(&me->sent_bytes, &e->sent_bytes);
    add(&me->recv_msgs, &e->recv_msgs);
    add(&me->recv_bytes, &e->recv_bytes);
    add(&me->rendezvous_out, &e->rendezvous_out);
    add(&me->rendezvous_in, &e->rendezvous_in);
}
