/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/channel/rx.h"

#include <string.h>

/* Nobody known is meant. 0: to be forgotten; DELIVERY_E_REFUSED: he may still come. */
static int rx_unknown(struct rx *rx, const struct wire_header *h)
{
    if (job_table_may_come(rx->jobs, h->job, rx->port->now_ns))
        return DELIVERY_E_REFUSED;
    count_add(&rx->port->count, COUNT_DROP_JOB, 1);
    return 0;
}

/* Of the job that the packet is for: whether its source and destination are what they say. */
static bool rx_ranks_fit(const struct channel_job *job, const struct wire_header *h, uint32_t peer)
{
    return h->dst_rank < job->layout.shape.n_world && job_table_slot(job, h->dst_rank) == 0 &&
           job->nodes[job->world[peer].node].node_id == h->src_node;
}

/* Brings the message to its rank. 0: taken (delivered, or to be forgotten); DELIVERY_E_REFUSED: not
 * now. */
static int rx_deliver(struct rx *rx, struct flow_in *in, struct wire_header *h, uint32_t block,
                      bool *ret_kept)
{
    const uint64_t number = h->job;
    const struct channel_job *job;
    uint32_t peer = h->src_rank, n_peers, stamp = 0;

    if (h->job == 0)
        return 0;
    if (h->flags & WIRE_F_FOREIGN) {
        const struct channel_foreign *f = job_table_foreign_in(rx->jobs, h->job);
        if (!f)
            return rx_unknown(rx, h);
        job = f->job;
        n_peers = f->n;
        stamp = h->src_rank < f->n ? f->places[h->src_rank].stamp : 0;
        peer += f->first;
    } else {
        job = job_table_find(rx->jobs, h->job);
        if (!job)
            return rx_unknown(rx, h);
        n_peers = job->layout.shape.n_world;
    }
    if (h->src_rank >= n_peers || !rx_ranks_fit(job, h, peer)) {
        count_add(&rx->port->count, COUNT_DROP_RANK, 1);
        return 0;
    }
    struct down *down = &job->downs[job->world[h->dst_rank].local];
    h->src_rank = peer | stamp; /* as the ranks of this job know it */
    int rc = delivery_put(rx->delivery, down, h, h + 1, block, ret_kept);
    delivery_check_high(rx->delivery, down, in, number);
    return rc;
}

/* Data of a flow that this channel owns. True if the block was kept. */
static bool rx_data(struct rx *rx, uint32_t slot, struct wire_header *h, uint32_t block)
{
    struct flow_in *in = ack_flow(rx->acks, slot, h);
    bool kept = false;

    if (h->flags & WIRE_F_FIRST)
        flow_rx_skip(&in->rx, h->seq);
    switch (flow_rx_check(&in->rx, h->seq)) {
    case FLOW_NEW:
        break;
    case FLOW_DUPLICATE:
        count_add(&rx->port->count, COUNT_DUPLICATES, 1);
        ack_want(rx->acks, in, true);
        return false;
    case FLOW_FAR:
        count_add(&rx->port->count, COUNT_DROP_BAD, 1);
        return false;
    }
    if (h->job != 0 && flow_rx_refused(&in->rx, h->seq)) {
        ack_refuse(rx->acks, in, h);
        return false;
    }
    /* The header is not looked at after delivery: a held block may have been read and sent home by
     * then. */
    struct wire_header copy = *h;
    if (rx_deliver(rx, in, h, block, &kept) != 0) {
        flow_rx_refuse(&in->rx, copy.seq);
        ack_refuse(rx->acks, in, &copy);
        return false;
    }
    flow_rx_take(&in->rx, copy.seq);
    in->rx.sent_us = copy.sent_us;
    in->rx.n_unacked++;
    if (copy.flags & WIRE_F_CONGESTED)
        in->rx.n_congested++;
    ack_want(rx->acks, in,
             in->rx.n_unacked >= FLOW_ACK_EVERY || (copy.flags & WIRE_F_ACK) ||
                 flow_rx_gap(&in->rx, copy.seq));
    return kept;
}

/* Gives a received block to another channel of this node. */
static void rx_give(struct rx *rx, uint32_t to, uint32_t block)
{
    enum wire_class cls = wire_class(port_header(rx->port, block));

    if (!handover_push(hub_give(rx->port->hub, rx->port->idx, to, cls), block | HANDOVER_BIT,
                       rx->port->fenced)) {
        count_add(&rx->port->count, COUNT_DROP_QUEUE, 1);
        port_block_done(rx->port, block, 0);
        return;
    }
    count_add(&rx->port->count, COUNT_HANDED, 1);
    hub_wake(rx->port->hub, to);
}

/* A packet for this node, found sound. Takes the block. */
static void rx_local(struct rx *rx, uint32_t block)
{
    struct wire_header *h = port_header(rx->port, block);
    uint32_t slot = port_slot_of(rx->port, h->src_node);
    bool kept = false;

    if (slot == UINT32_MAX || slot == 0) {
        count_add(&rx->port->count, COUNT_DROP_NODE, 1);
        goto done;
    }
    if (h->type == WIRE_PROBE || h->type == WIRE_ECHO) {
        /* Between the two ends of a link, whose incarnations its secret names. The hop table has
         * none for a node that was given up, and only the probes can show that it is back. */
        rx->links->n_household++;
        if (h->type == WIRE_PROBE)
            link_on_probe(rx->links, h);
        else
            link_on_echo(rx->links, h);
        goto done;
    }
    if (h->src_epoch == 0 ||
        h->src_epoch !=
            atomic_load_explicit(&rx->port->hops->entries[slot].epoch, memory_order_relaxed) ||
        h->dst_epoch != rx->port->epoch) {
        count_add(&rx->port->count, COUNT_DROP_EPOCH, 1);
        if (h->type == WIRE_DATA && h->dst_epoch != rx->port->epoch)
            ack_reset(rx->acks, slot, h);
        goto done;
    }
    switch ((enum wire_type)h->type) {
    case WIRE_DATA:
        if (h->flow_channel >= HOP_MAX_CHANNELS) {
            count_add(&rx->port->count, COUNT_DROP_BAD, 1);
            break;
        }
        uint32_t owner = hub_rx_owner(rx->port->hub, slot, h, rx->port->idx);
        if (owner != rx->port->idx) {
            rx_give(rx, owner, block);
            return;
        }
        kept = rx_data(rx, slot, h, block);
        break;
    case WIRE_ACK:
    case WIRE_RESET:
    case WIRE_REFUSE:
        if (h->flow_channel >= rx->port->n_channels) {
            count_add(&rx->port->count, COUNT_DROP_BAD, 1);
            break;
        }
        if (h->flow_channel != rx->port->idx) {
            rx_give(rx, h->flow_channel, block);
            return;
        }
        if (h->type == WIRE_REFUSE)
            backlog_on_refuse(rx->backlog, slot, h);
        else if (h->type == WIRE_RESET)
            send_on_reset(rx->backlog->sender, slot);
        else if (send_on_ack(rx->backlog->sender, slot, h))
            backlog_on_word(rx->backlog, h);
        break;
    case WIRE_PROBE:
    case WIRE_ECHO:
        break;
    }
done:
    if (!kept)
        port_block_done(rx->port, block, 0);
}

void rx_packet(struct rx *rx, uint32_t block, uint32_t len)
{
    struct wire_header *h = port_header(rx->port, block);

    if (wire_verify(h, len) != 0) {
        count_add(&rx->port->count, COUNT_DROP_BAD, 1);
        port_block_done(rx->port, block, 0);
        return;
    }
    count_add(&rx->port->count, COUNT_PACKETS_IN, 1);
    count_add(&rx->port->count, COUNT_BYTES_IN, len);
    if (h->dst_node == rx->port->node_id)
        rx_local(rx, block);
    else
        relay_forward(rx->relay, block, len);
}

void rx_given(struct rx *rx, uint32_t block)
{
    rx_local(rx, block);
}
