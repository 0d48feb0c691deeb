/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ways: which neighbour and channel a packet leaves by, the hand-over between the channels of a
 * node, and forwarding. A forwarded packet stays in the block it arrived in. Nothing here waits:
 * where a queue is full the packet is dropped, since its source still has it; so gateways in a ring
 * cannot wait for one another.
 */
#include <errno.h>
#include <string.h>

#include "daemon/channel/state.h"

static bool usable(const struct channel *ch, hop_word way)
{
    if (way == HOP_NONE)
        return false;
    uint32_t channel = hop_channel(way);
    if (channel >= ch->n_channels || hop_next_slot(way) == 0 || hop_next_slot(way) >= HOP_MAX_NODES)
        return false;
    return channel != ch->idx || (ch->links[hop_next_slot(way)].up && !ch->net_lost);
}

/* Chooses among ways in proportion to their shares. The multiples of the golden ratio spread evenly
 * over any stretch. */
static hop_word choose(const hop_word *ways, uint32_t n, uint32_t count)
{
    uint32_t total = 0;

    if (n == 1)
        return ways[0];
    for (uint32_t i = 0; i < n; i++)
        total += hop_share(ways[i]) + 1u;
    uint32_t at = (uint32_t)((uint64_t)(count * 2654435769u) * total >> 32);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t share = hop_share(ways[i]) + 1u;
        if (at < share)
            return ways[i];
        at -= share;
    }
    return ways[n - 1];
}

hop_word relay_route(struct channel *ch, uint32_t slot, uint32_t len, uint32_t *counter, bool own)
{
    const struct hop_entry *e = &ch->hops->entries[slot];
    hop_word quick = atomic_load_explicit(&e->quick, memory_order_relaxed);
    hop_word all[HOP_MAX_WIDE], mine[HOP_MAX_WIDE];
    uint32_t n_all = 0, n_mine = 0;

    bool quick_good = usable(ch, quick);
    if (len <= ROUTE_SMALL_BYTES + sizeof(struct wire_header) && quick_good &&
        (!own || hop_channel(quick) == ch->idx))
        return quick;
    for (uint32_t i = 0; i < HOP_MAX_WIDE; i++) {
        hop_word way = atomic_load_explicit(&e->wide[i], memory_order_relaxed);
        if (way == HOP_NONE)
            break;
        if (!usable(ch, way))
            continue;
        all[n_all++] = way;
        if (hop_channel(way) == ch->idx)
            mine[n_mine++] = way;
    }
    if (own && n_mine > 0)
        /* The rank has chosen among the channels already. */
        return choose(mine, n_mine, (*counter)++);
    if (quick_good && (own || len <= ROUTE_SMALL_BYTES + sizeof(struct wire_header) || n_all == 0))
        return quick;
    return n_all > 0 ? choose(all, n_all, (*counter)++) : HOP_NONE;
}

static void send_here(struct channel *ch, struct link *link, uint32_t block)
{
    if (link->n_queued >= LINK_MARK) {
        struct wire_header *h = arena_header(&ch->hub->arena, block);
        if (!(h->flags & WIRE_F_CONGESTED)) {
            h->flags |= WIRE_F_CONGESTED;
            wire_seal(h);
            count_add(&ch->count, COUNT_CONGESTED, 1);
        }
    }
    link_send(ch, link, block);
}

bool relay_out(struct channel *ch, hop_word way, uint32_t block)
{
    uint32_t channel = hop_channel(way);

    if (channel == ch->idx) {
        send_here(ch, &ch->links[hop_next_slot(way)], block);
        return true;
    }
    ch->hub->blocks[block].slot = hop_next_slot(way);
    if (!lane_push(&ch->hub->give[ch->idx * ch->n_channels + channel], block, ch->fenced))
        return false;
    count_add(&ch->count, COUNT_HANDED, 1);
    channel_wake(ch->hub, channel);
    return true;
}

void relay_forward(struct channel *ch, uint32_t block, uint32_t len)
{
    struct wire_header *h = arena_header(&ch->hub->arena, block);
    uint32_t slot = channel_slot_of(ch, h->dst_node);
    enum count_id why = COUNT_DROP_ROUTE;

    ch->hub->blocks[block].len = len;
    if (slot == UINT32_MAX) {
        why = COUNT_DROP_NODE;
    } else if (h->hops_left <= 1) {
        why = COUNT_DROP_HOPS;
    } else if (ch->n_posted < ch->n_receives / 4 && ch->pool.n_free == 0) {
        /* This block is needed for receiving. */
        why = COUNT_DROP_QUEUE;
    } else {
        uint32_t count = h->seq;
        hop_word way = relay_route(ch, slot, len, &count, false);
        if (way != HOP_NONE) {
            h->hops_left--;
            wire_seal(h);
            if (hop_channel(way) == ch->idx &&
                ch->links[hop_next_slot(way)].n_queued >= ch->config.relay_limit) {
                why = COUNT_DROP_QUEUE;
            } else if (relay_out(ch, way, block)) {
                count_add(&ch->count, COUNT_FORWARDED, 1);
                return;
            } else {
                why = COUNT_DROP_QUEUE;
            }
        }
    }
    count_add(&ch->count, why, 1);
    channel_block_done(ch, block, -EHOSTUNREACH);
}

static void given(struct channel *ch, uint32_t value)
{
    uint32_t block = value & LANE_BLOCK_MASK;

    if (value & LANE_BIT) {
        rx_given(ch, block);
        return;
    }
    struct link *link = &ch->links[ch->hub->blocks[block].slot];
    if (link->up && link->n_queued >= ch->config.relay_limit &&
        arena_header(&ch->hub->arena, block)->src_node != ch->node_id) {
        count_add(&ch->count, COUNT_DROP_QUEUE, 1);
        channel_block_done(ch, block, -ENOBUFS);
        return;
    }
    if (!link->up || ch->net_lost) {
        channel_block_done(ch, block, -ENETDOWN);
        return;
    }
    send_here(ch, link, block);
}

uint32_t relay_poll(struct channel *ch, uint32_t budget)
{
    struct hub *hub = ch->hub;
    uint32_t value, n = 0;

    for (uint32_t from = 0; from < ch->n_channels; from++) {
        if (from == ch->idx)
            continue;
        struct lane *back = &hub->back[from * ch->n_channels + ch->idx];
        while (lane_pop(back, &value)) {
            channel_block_done(ch, value & LANE_BLOCK_MASK, value & LANE_BIT ? -EIO : 0);
            n++;
        }
        struct lane *give = &hub->give[from * ch->n_channels + ch->idx];
        for (uint32_t i = 0; i < budget && lane_pop(give, &value); i++) {
            given(ch, value);
            n++;
        }
    }
    return n;
}
