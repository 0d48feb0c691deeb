/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/port/relay.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "daemon/port/way.h"

/* Of a packet, as the limit of a queue counts them: larger ones count for several. */
#define RELAY_PACKET_BYTES 16384u

static bool relay_is_full(const struct relay *relay, const struct link *link, enum wire_class cls)
{
    const struct link_out *out = &link->out[cls];

    return out->queue.n >= relay->queue_max ||
           out->queue_bytes >= (uint64_t)relay->queue_max * RELAY_PACKET_BYTES;
}

/* Hands the packet on. 0, or the counter that says why not. */
static uint32_t relay_try(struct relay *relay, uint32_t block, uint32_t len)
{
    struct port *port = relay->links->port;
    struct wire_header *h = port_header(port, block);
    uint32_t slot = port_slot_of(port, h->dst_node);

    if (slot == UINT32_MAX)
        return COUNT_DROP_NODE;
    if (h->hops_left <= 1)
        return COUNT_DROP_HOPS;
    /* This block is needed for receiving: bulk gives way first. */
    enum wire_class cls = wire_class(h);
    if (port->n_posted < port->n_receives / (cls == WIRE_QUICK ? 8 : 4) && port->pool.n_free == 0)
        return COUNT_DROP_QUEUE;
    uint32_t count = h->seq;
    hop_word way = way_choose(relay->links, slot, len, &count, false);
    if (way == HOP_NONE)
        return COUNT_DROP_ROUTE;
    h->hops_left--;
    wire_seal(h);
    if (hop_channel(way) == port->idx &&
        relay_is_full(relay, &relay->links->table[hop_next_slot(way)], cls))
        return COUNT_DROP_QUEUE;
    return way_send(relay->links, way, block) ? 0 : COUNT_DROP_QUEUE;
}

void relay_forward(struct relay *relay, uint32_t block, uint32_t len)
{
    struct port *port = relay->links->port;

    port->arena->held[block].len = len;
    uint32_t why = relay_try(relay, block, len);
    if (why == 0) {
        count_add(&port->count, COUNT_FORWARDED, 1);
        return;
    }
    count_add(&port->count, (enum count_id)why, 1);
    port_block_done(port, block, -EHOSTUNREACH);
}

void relay_given(struct relay *relay, uint32_t block)
{
    struct port *port = relay->links->port;
    struct link *link = &relay->links->table[port->arena->held[block].slot];

    const struct wire_header *h = port_header(port, block);

    if (link_is_alive(link) && relay_is_full(relay, link, wire_class(h)) &&
        h->src_node != port->node_id) {
        count_add(&port->count, COUNT_DROP_QUEUE, 1);
        port_block_done(port, block, -ENOBUFS);
        return;
    }
    if (!link_is_alive(link) || port->net_lost) {
        port_block_done(port, block, -ENETDOWN);
        return;
    }
    way_send_here(relay->links, link, block);
}

void relay_add_link(struct relay *relay, const struct cmd_link *at)
{
    if (relay->links->port->net_lost || at->len > NET_ADDRESS_BYTES || link_is_at(relay->links, at))
        return;
    relay_remove_link(relay, at->slot);
    link_add(relay->links, at);
}

/* What waited for a neighbour that is not to be reached now: what is passed on takes another way,
 * the rest goes back to whoever sent it. */
static void relay_redirect(struct relay *relay, struct block_queue waiting)
{
    struct port *port = relay->links->port;

    for (uint32_t block; (block = block_queue_pop(&waiting, port->arena)) != BLOCK_NONE;) {
        const struct wire_header *h = port_header(port, block);
        if (h->src_node != port->node_id && h->type == WIRE_DATA)
            relay_forward(relay, block, port->arena->held[block].len);
        else
            port_block_done(port, block, -ENETDOWN);
    }
}

void relay_remove_link(struct relay *relay, uint32_t slot)
{
    relay_redirect(relay, link_remove(relay->links, slot));
}

void relay_mend(struct relay *relay)
{
    struct links *links = relay->links;

    links->mend = false;
    list_foreach_safe(it, &links->up) {
        struct link *link = list_entry(it, struct link, node);
        if (link->fell)
            relay_redirect(relay, link_take_queue(links, link));
        if (link->renew)
            link_renew(links, link);
    }
}
