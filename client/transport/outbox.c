/* SPDX-License-Identifier: BSD-3-Clause */
/* Outgoing rings: one per rank of this node, one per channel; made ready at first use, so silent
 * pairs cost nothing. */
#include "client/transport/transport.h"

#include <stdlib.h>

#include "client/transport/end.h"

int outbox_init(struct outbox *box, uint32_t vci)
{
    uint32_t n = transport_here->n_local + (vci == 0 ? transport_here->n_channels : 0);

    *box = (struct outbox){.vci = vci,
                           .n = n,
                           .producers = calloc(n, sizeof *box->producers),
                           .ready = calloc(n, sizeof *box->ready)};
    return box->producers && box->ready ? 0 : -1;
}

void outbox_deinit(struct outbox *box)
{
    for (uint32_t i = 0; box->producers && box->ready && i < box->n; i++)
        if (box->ready[i])
            free(box->producers[i].data_end);
    free(box->producers);
    free(box->ready);
    *box = (struct outbox){0};
}

static void outbox_make_ready(struct outbox *box, uint32_t idx, void *ring,
                              const struct ring_shape *shape, const struct bell_ref *bell)
{
    uint32_t *data_end = calloc(shape->n_slots, sizeof *data_end);

    if (!data_end)
        end_no_memory(__func__, "the first message to a peer", shape->n_slots * sizeof *data_end);
    ring_producer_init(&box->producers[idx], ring, shape, data_end, bell);
    box->ready[idx] = true;
}

struct ring_producer *outbox_local(struct outbox *box, uint32_t local_rank)
{
    if (!box->ready[local_rank]) {
        struct bell_ref bell = {
            .bell =
                &segment_rank_at(transport_here->base, &transport_here->layout, local_rank)->bell,
            .bit = segment_first_bit(&transport_here->layout.shape, box->vci) +
                   transport_here->local_rank,
            .event_fd = -1,
            .fenced = transport_here->fenced,
        };
        outbox_make_ready(box, local_rank,
                          segment_local_ring(transport_here->base, &transport_here->layout,
                                             box->vci, transport_here->local_rank, local_rank),
                          &transport_here->layout.shape.local, &bell);
    }
    return &box->producers[local_rank];
}

static struct ring_producer *outbox_channel_ring(struct outbox *box, uint32_t channel)
{
    uint32_t idx = transport_here->n_local + channel;

    if (channel >= transport_here->n_channels)
        return NULL;
    if (!box->ready[idx]) {
        struct bell_ref bell = {
            .bell = segment_channel_bell(transport_here->base, &transport_here->layout, channel),
            .bit = transport_here->local_rank,
            .event_fd = transport_here->event_fds[channel],
            .fenced = transport_here->fenced,
        };
        outbox_make_ready(box, idx,
                          segment_up_ring(transport_here->base, &transport_here->layout,
                                          transport_here->local_rank, channel),
                          &transport_here->layout.shape.up, &bell);
    }
    return &box->producers[idx];
}

static bool outbox_is_closed(uint32_t channel, uint32_t world_rank)
{
    return channel < transport_here->n_channels &&
           atomic_load_explicit(&segment_closed_at(transport_here->base, &transport_here->layout,
                                                   channel)[world_rank],
                                memory_order_relaxed) != 0;
}

struct ring_producer *outbox_remote(struct outbox *box, uint32_t world_rank, uint32_t node,
                                    bool large)
{
    uint32_t slot = segment_node_at(transport_here->base, &transport_here->layout, node)->slot;

    if (slot >= HOP_MAX_NODES)
        return NULL;
    /* Another job's ranks on this node: any channel joins them. */
    if (slot == 0)
        return outbox_is_closed(0, world_rank) ? NULL : outbox_channel_ring(box, 0);
    const struct hop_entry *entry = &transport_here->hops->entries[slot];
    hop_word way = atomic_load_explicit(&entry->quick, memory_order_relaxed);
    if (large) {
        /* A low-discrepancy walk through 0..65535 (golden ratio) takes each way in proportion to
         * its share. */
        uint16_t at = (uint16_t)(box->spread += 40503);
        for (uint32_t i = 0; i < HOP_MAX_WIDE; i++) {
            hop_word wide = atomic_load_explicit(&entry->wide[i], memory_order_relaxed);
            if (wide == HOP_NONE)
                break;
            way = wide;
            if (at < hop_share(wide))
                break;
            at = (uint16_t)(at - hop_share(wide));
        }
    }
    return way == HOP_NONE || outbox_is_closed(hop_channel(way), world_rank)
               ? NULL
               : outbox_channel_ring(box, hop_channel(way));
}
