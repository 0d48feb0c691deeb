/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/port/way.h"

/* Packets of up to this payload take the quick way, others the wide ones. */
#define WAY_SMALL_BYTES 4096u
/* A queue this long is a sign of congestion. */
#define WAY_MARK       64u
#define WAY_MARK_BYTES (1u << 20)

static bool way_usable(const struct links *links, hop_word way)
{
    const struct port *port = links->port;

    if (way == HOP_NONE)
        return false;
    uint32_t channel = hop_channel(way);
    if (channel >= port->n_channels || hop_next_slot(way) == 0 ||
        hop_next_slot(way) >= HOP_MAX_NODES)
        return false;
    return channel != port->idx ||
           (link_is_alive(&links->table[hop_next_slot(way)]) && !port->net_lost);
}

/* Chooses among ways in proportion to their shares. The multiples of the golden ratio spread evenly
 * over any stretch. */
static hop_word way_pick(const hop_word *ways, uint32_t n, uint32_t count)
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

hop_word way_choose(const struct links *links, uint32_t slot, uint32_t len, uint32_t *counter,
                    bool own)
{
    const struct port *port = links->port;
    const struct hop_entry *e = &port->hops->entries[slot];
    hop_word quick = atomic_load_explicit(&e->quick, memory_order_relaxed);
    hop_word all[HOP_MAX_WIDE], mine[HOP_MAX_WIDE];
    uint32_t n_all = 0, n_mine = 0;

    bool quick_good = way_usable(links, quick);
    if (len <= WAY_SMALL_BYTES + sizeof(struct wire_header) && quick_good &&
        (!own || hop_channel(quick) == port->idx))
        return quick;
    for (uint32_t i = 0; i < HOP_MAX_WIDE; i++) {
        hop_word way = atomic_load_explicit(&e->wide[i], memory_order_relaxed);
        if (way == HOP_NONE)
            break;
        if (!way_usable(links, way))
            continue;
        all[n_all++] = way;
        if (hop_channel(way) == port->idx)
            mine[n_mine++] = way;
    }
    if (own && n_mine > 0)
        /* The rank has chosen among the channels already. */
        return way_pick(mine, n_mine, (*counter)++);
    if (quick_good && (own || len <= WAY_SMALL_BYTES + sizeof(struct wire_header) || n_all == 0))
        return quick;
    return n_all > 0 ? way_pick(all, n_all, (*counter)++) : HOP_NONE;
}

void way_send_here(struct links *links, struct link *link, uint32_t block)
{
    struct wire_header *h = port_header(links->port, block);
    const struct link_out *out = &link->out[wire_class(h)];

    if (out->queue.n >= WAY_MARK || out->queue_bytes >= WAY_MARK_BYTES) {
        if (!(h->flags & WIRE_F_CONGESTED)) {
            h->flags |= WIRE_F_CONGESTED;
            wire_seal(h);
            count_add(&links->port->count, COUNT_CONGESTED, 1);
        }
    }
    link_send(links, link, block);
}

bool way_send(struct links *links, hop_word way, uint32_t block)
{
    struct port *port = links->port;
    uint32_t channel = hop_channel(way);

    if (channel == port->idx) {
        way_send_here(links, &links->table[hop_next_slot(way)], block);
        return true;
    }
    port->arena->held[block].slot = hop_next_slot(way);
    enum wire_class cls = wire_class(port_header(port, block));
    if (!handover_push(hub_give(port->hub, port->idx, channel, cls), block, port->fenced))
        return false;
    count_add(&links->port->count, COUNT_HANDED, 1);
    hub_wake(port->hub, channel);
    return true;
}
