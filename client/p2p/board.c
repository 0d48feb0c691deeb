/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/p2p/board.h"

#include <stdlib.h>

#include "base/clock.h"
#include "client/link/link.h"
#include "client/p2p/transfer.h"

static struct queue_record *records;
static uint32_t n_records, n_used; /* n_used: records ever taken */
static uint32_t *returned, n_returned, max_returned;
static struct list deferred;

void board_init(void)
{
    list_init(&deferred);
    n_used = n_returned = max_returned = 0;
    returned = NULL;
    records = NULL;
    n_records = 0;
    if (link_self.base) {
        records = segment_board_at(link_self.base, &link_self.layout, link_self.local_rank);
        n_records = link_self.layout.shape.board_records;
    }
}

void board_deinit(void)
{
    free(returned);
    returned = NULL;
    records = NULL;
    n_records = n_used = n_returned = max_returned = 0;
}

static struct queue_record *take(void)
{
    if (n_returned > 0)
        return &records[returned[--n_returned]];
    if (n_used == n_records)
        return NULL;
    struct queue_record *r = &records[n_used++];
    atomic_store_explicit(&link_self.me->board_high, n_used, memory_order_release);
    return r;
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
    if (!t->record && !(t->record = take()))
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

void board_show_unexpected(struct unexpected *u)
{
    if (!u->record && !(u->record = take()))
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

void board_show_wait(struct queue_record **record, uint32_t context, int peer, int32_t peer_world, int tag)
{
    struct queue_record *r = *record;

    peer = peer == MPI_ANY_SOURCE ? QUEUE_ANY_SOURCE : peer;
    tag = tag == MPI_ANY_TAG ? QUEUE_ANY_TAG : tag;
    if (r && r->peer == peer && r->tag == tag && r->context == context)
        return; /* still the same: its age counts */
    if (!r && !(r = *record = take()))
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
    return record ? (uint32_t)(record - records) + 1 : 0;
}

struct queue_record *board_of(uint32_t local_rank, uint32_t index)
{
    if (index == 0 || index > n_records)
        return NULL;
    return segment_board_at(link_self.base, &link_self.layout, local_rank) + index - 1;
}

void board_hide(struct queue_record **record)
{
    struct queue_record *r = *record;

    if (!r)
        return;
    *record = NULL;
    atomic_store_explicit(&r->state, QUEUE_FREE, memory_order_release);
    if (n_returned == max_returned) {
        uint32_t bigger = max_returned ? 2 * max_returned : 64;
        uint32_t *grown = realloc(returned, bigger * sizeof *returned);
        if (!grown)
            return; /* one record less to show */
        returned = grown;
        max_returned = bigger;
    }
    returned[n_returned++] = (uint32_t)(r - records);
}

void board_defer(struct transfer *t)
{
    list_append(&deferred, &t->link);
}

void board_publish(void)
{
    list_foreach_safe(it, &deferred) {
        list_remove(it);
        board_show(list_entry(it, struct transfer, link), QUEUE_POSTED);
    }
}
