/* SPDX-License-Identifier: BSD-3-Clause */
/* Outgoing rings: one per rank of this node, one per channel; made ready at first use, so silent pairs cost nothing. */
#include "client/link/link.h"

#include <stdlib.h>

static struct ring_producer *producers; /* [n_local + n_channels] */
static bool *ready;
bool outbox_needs_channel;
static uint32_t spread; /* position in the cycle that shares large traffic among channels */

int outbox_init(void)
{
    size_t n = link_self.n_local + link_self.n_channels;

    producers = calloc(n, sizeof *producers);
    ready = calloc(n, sizeof *ready);
    return producers && ready ? 0 : -1;
}

void outbox_deinit(void)
{
    for (uint32_t i = 0; producers && ready && i < link_self.n_local + link_self.n_channels; i++)
        if (ready[i])
            free(producers[i].data_end);
    free(producers);
    free(ready);
    producers = NULL;
    ready = NULL;
}

static void make_ready(uint32_t idx, void *ring, const struct ring_shape *shape, const struct bell_ref *bell)
{
    uint32_t *data_end = calloc(shape->n_slots, sizeof *data_end);

    if (!data_end)
        abort(); /* a few KiB at the first message to a peer: nothing can be said without them */
    ring_producer_init(&producers[idx], ring, shape, data_end, bell);
    ready[idx] = true;
}

struct ring_producer *outbox_local(uint32_t local_rank)
{
    if (!ready[local_rank]) {
        struct bell_ref bell = {
            .bell = &segment_rank_at(link_self.base, &link_self.layout, local_rank)->bell,
            .bit = link_self.local_rank,
            .event_fd = -1,
            .fenced = link_self.fenced,
        };
        make_ready(local_rank, segment_local_ring(link_self.base, &link_self.layout, link_self.local_rank, local_rank),
                   &link_self.layout.shape.local, &bell);
    }
    return &producers[local_rank];
}

static struct ring_producer *channel_ring(uint32_t channel)
{
    uint32_t idx = link_self.n_local + channel;

    if (channel >= link_self.n_channels)
        return NULL;
    if (!ready[idx]) {
        struct bell_ref bell = {
            .bell = segment_channel_bell(link_self.base, &link_self.layout, channel),
            .bit = link_self.local_rank,
            .event_fd = link_self.event_fds[channel],
            .fenced = link_self.fenced,
        };
        make_ready(idx, segment_up_ring(link_self.base, &link_self.layout, link_self.local_rank, channel),
                   &link_self.layout.shape.up, &bell);
    }
    return &producers[idx];
}

struct ring_producer *outbox_remote(uint32_t node, bool large)
{
    uint32_t slot = segment_node_at(link_self.base, &link_self.layout, node)->slot;

    if (slot >= HOP_MAX_NODES)
        return NULL;
    const struct hop_entry *entry = &link_self.hops->entries[slot];
    hop_word way = atomic_load_explicit(&entry->quick, memory_order_relaxed);
    if (large) {
        /* A low-discrepancy walk through 0..65535 (golden ratio) takes each way in proportion to its share. */
        uint16_t at = (uint16_t)(spread += 40503);
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
    return way == HOP_NONE ? NULL : channel_ring(hop_channel(way));
}
