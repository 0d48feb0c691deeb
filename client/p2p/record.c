/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/p2p/record.h"

#include <stdlib.h>

#include "client/transport/transport.h"

void record_init(struct record_set *set)
{
    *set = (struct record_set){0};
    if (!transport_here->base)
        return;
    set->records =
        segment_board_at(transport_here->base, &transport_here->layout, transport_here->local_rank);
    set->n_records = transport_here->layout.shape.board_records;
}

void record_deinit(struct record_set *set)
{
    free(set->returned);
    *set = (struct record_set){0};
}

struct queue_record *record_take(struct record_set *set)
{
    if (set->n_returned > 0)
        return &set->records[set->returned[--set->n_returned]];
    if (set->n_records == 0)
        return NULL;
    /* One that nobody has used yet. Engines share the counter, which never falls. */
    uint32_t high = atomic_load_explicit(&transport_here->me->board_high, memory_order_relaxed);
    do
        if (high >= set->n_records)
            return NULL;
    while (!atomic_compare_exchange_weak_explicit(&transport_here->me->board_high, &high, high + 1,
                                                  memory_order_release, memory_order_relaxed));
    return &set->records[high];
}

void record_show_wait(struct record_set *set, struct queue_record **record, uint32_t context,
                      int peer, int32_t peer_world, int tag)
{
    struct queue_record *r = *record;

    if (r && r->peer == record_peer(peer) && r->tag == record_tag(tag) && r->context == context)
        return; /* still the same: its age counts */
    if (!(r = record_begin(set, record)))
        return;
    r->context = context;
    r->peer = record_peer(peer);
    r->tag = record_tag(tag);
    r->bytes = r->done_bytes = 0;
    r->peer_world = peer_world;
    record_publish(r, QUEUE_POSTED);
}

void record_hide(struct record_set *set, struct queue_record **record)
{
    struct queue_record *r = *record;

    if (!r)
        return;
    *record = NULL;
    atomic_store_explicit(&r->state, QUEUE_FREE, memory_order_release);
    if (set->n_returned == set->max_returned) {
        uint32_t bigger = set->max_returned ? 2 * set->max_returned : 64;
        uint32_t *grown = realloc(set->returned, bigger * sizeof *set->returned);
        if (!grown)
            return; /* one record less to show */
        set->returned = grown;
        set->max_returned = bigger;
    }
    set->returned[set->n_returned++] = (uint32_t)(r - set->records);
}

uint32_t record_index(const struct record_set *set, const struct queue_record *record)
{
    return record ? (uint32_t)(record - set->records) + 1 : 0;
}

struct queue_record *record_of(const struct record_set *set, uint32_t local_rank, uint32_t index)
{
    if (index == 0 || index > set->n_records)
        return NULL;
    return segment_board_at(transport_here->base, &transport_here->layout, local_rank) + index - 1;
}
