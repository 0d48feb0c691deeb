/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From the network to the ranks: checks each packet, passes it to the channel that owns its flow,
 * finds out whether it is new, delivers it, and acknowledges. Packets for other nodes go to relay.
 * Whatever a packet says is checked against the hop table and the job's tables before it is used.
 *
 * The receiving end of a flow belongs to the channel on which its first packet arrived, for ever:
 * threads do not die, NICs do.
 */
#include <string.h>

#include "daemon/channel/state.h"

/* At most one reset in this time: a peer with an old view may send a whole window. */
#define RESET_NS (5 * CLOCK_NS_PER_MS)
/* At most one stop in this time per flow. */
#define STOP_NS CLOCK_NS_PER_MS

enum { ACK_NONE, ACK_WAITING, ACK_URGENT };

uint32_t rx_note(struct channel *ch, uint32_t dst_slot, enum wire_type type)
{
    const struct hop_entry *e = &ch->hops->entries[dst_slot];
    uint32_t block = pool_take(&ch->pool, BLOCK_NOTE);

    if (block == BLOCK_NONE)
        return block;
    *arena_header(&ch->hub->arena, block) = (struct wire_header){
        .magic = WIRE_MAGIC,
        .version = WIRE_VERSION,
        .type = (uint8_t)type,
        .hops_left = WIRE_MAX_HOPS,
        .src_node = ch->node_id,
        .dst_node = atomic_load_explicit(&e->node_id, memory_order_relaxed),
        .src_epoch = ch->epoch,
        .dst_epoch = atomic_load_explicit(&e->epoch, memory_order_relaxed),
        .sent_us = (uint32_t)(ch->now_ns / CLOCK_NS_PER_US),
    };
    return block;
}

/* Sends a note with n_bytes of payload in place. */
static void send_note(struct channel *ch, uint32_t slot, uint32_t block, uint32_t n_bytes,
                      hop_word way)
{
    struct wire_header *h = arena_header(&ch->hub->arena, block);

    (void)slot;
    h->len = n_bytes;
    wire_seal(h);
    ch->hub->blocks[block].len = (uint32_t)sizeof *h + n_bytes;
    if (!relay_out(ch, way, block))
        pool_give(&ch->pool, block);
}

static void acknowledge(struct channel *ch, struct flow_in *in)
{
    uint32_t count = in->rx.cumulative;
    hop_word way = relay_route(ch, in->slot, 0, &count, false);
    struct wire_ack ack;

    list_remove(&in->ack);
    in->ack_state = ACK_NONE;
    uint32_t n_words = flow_rx_ack(&in->rx, &ack);
    if (way == HOP_NONE)
        return;
    uint32_t block = rx_note(ch, in->slot, WIRE_ACK);
    if (block == BLOCK_NONE)
        return;
    struct wire_header *h = arena_header(&ch->hub->arena, block);
    uint32_t n_bytes = (uint32_t)offsetof(struct wire_ack, selective) + 8 * n_words;
    h->flow_channel = in->flow_channel;
    h->dst_epoch = in->rx.src_epoch;
    h->job = in->stop_job;
    h->dst_rank = in->stop_rank;
    h->msg_context = in->stop_job != 0 && in->stop_over;
    in->stop_job = 0;
    in->stop_rank = 0;
    memcpy(h + 1, &ack, n_bytes);
    count_add(&ch->count, COUNT_ACKS_OUT, 1);
    send_note(ch, in->slot, block, n_bytes, way);
}

uint32_t rx_acks(struct channel *ch, bool all)
{
    uint32_t n = 0;

    while (!list_empty(&ch->acks_urgent)) {
        acknowledge(ch, list_entry(ch->acks_urgent.next, struct flow_in, ack));
        n++;
    }
    /* The delay is the same for all: first come, first due. */
    while (!list_empty(&ch->acks_waiting)) {
        struct flow_in *in = list_entry(ch->acks_waiting.next, struct flow_in, ack);
        if (!all && in->rx.ack_due_ns > ch->now_ns)
            break;
        acknowledge(ch, in);
        n++;
    }
    return n;
}

static void want_ack(struct channel *ch, struct flow_in *in, bool urgent)
{
    if (in->ack_state == ACK_URGENT || (in->ack_state == ACK_WAITING && !urgent))
        return;
    if (in->ack_state == ACK_WAITING)
        list_remove(&in->ack);
    else
        in->rx.ack_due_ns = ch->now_ns + ch->config.ack_delay_ns;
    list_append(urgent ? &ch->acks_urgent : &ch->acks_waiting, &in->ack);
    in->ack_state = urgent ? ACK_URGENT : ACK_WAITING;
}

/* Tells the source that the packet was refused. If this is lost the packet comes again, and so does
 * this. */
static void refuse(struct channel *ch, struct flow_in *in, const struct wire_header *h)
{
    uint32_t count = h->seq;
    hop_word way = relay_route(ch, in->slot, 0, &count, false);

    count_add(&ch->count, COUNT_REFUSED, 1);
    if (way == HOP_NONE)
        return;
    uint32_t block = rx_note(ch, in->slot, WIRE_REFUSE);
    if (block == BLOCK_NONE)
        return;
    struct wire_header *note = arena_header(&ch->hub->arena, block);
    note->flow_channel = in->flow_channel;
    note->dst_epoch = in->rx.src_epoch;
    note->seq = h->seq;
    note->job = h->job;
    note->dst_rank = h->dst_rank;
    send_note(ch, in->slot, block, 0, way);
}

static void reset(struct channel *ch, const struct wire_header *h)
{
    uint32_t slot = channel_slot_of(ch, h->src_node);
    uint32_t count = 0;

    if (slot == UINT32_MAX || ch->now_ns < ch->reset_ns)
        return;
    hop_word way = relay_route(ch, slot, 0, &count, false);
    if (way == HOP_NONE)
        return;
    uint32_t block = rx_note(ch, slot, WIRE_RESET);
    if (block == BLOCK_NONE)
        return;
    ch->reset_ns = ch->now_ns + RESET_NS;
    struct wire_header *note = arena_header(&ch->hub->arena, block);
    note->flow_channel = h->flow_channel;
    note->dst_epoch = h->src_epoch;
    send_note(ch, slot, block, 0, way);
}

/* Tells the source that this rank does not drain. */
static void stop(struct channel *ch, struct flow_in *in, struct down *down, uint32_t rank)
{
    uint32_t i = 0;

    while (i < down->n_told && down->told[i] != in)
        i++;
    if (i == down->n_told && i < HOLD_TOLD)
        down->told[down->n_told++] = in;
    if (ch->now_ns - in->stop_ns < STOP_NS)
        return;
    in->stop_ns = ch->now_ns;
    in->stop_job = down->job->config.job;
    in->stop_rank = rank;
    in->stop_over = false;
    want_ack(ch, in, true);
}

void rx_go(struct channel *ch, struct down *down)
{
    for (uint32_t i = 0; i < down->n_told; i++) {
        struct flow_in *in = down->told[i];
        in->stop_ns = 0;
        in->stop_job = down->job->config.job;
        in->stop_rank = down->job->ups[down->local].world;
        in->stop_over = true;
        want_ack(ch, in, true);
    }
    down->n_told = 0;
}

/* Brings the message to its rank. 0: taken (delivered, or to be forgotten); HOLD_E_REFUSED: not
 * now. */
static int deliver(struct channel *ch, struct flow_in *in, const struct wire_header *h,
                   uint32_t block, bool *ret_kept)
{
    struct channel_job *job = job_find(ch, h->job);

    if (!job) {
        if (h->job == 0)
            return 0;
        if (job_may_come(ch, h->job))
            return HOLD_E_REFUSED;
        count_add(&ch->count, COUNT_DROP_JOB, 1);
        return 0;
    }
    uint32_t n_world = job->layout.shape.n_world;
    if (h->dst_rank >= n_world || h->src_rank >= n_world ||
        job->nodes[job->world[h->dst_rank].node].slot != 0 ||
        job->nodes[job->world[h->src_rank].node].node_id != h->src_node) {
        count_add(&ch->count, COUNT_DROP_RANK, 1);
        return 0;
    }
    uint32_t rank = h->dst_rank, local = job->world[rank].local;
    int rc = hold_deliver(ch, job, local, h, h + 1, block, ret_kept);
    if (job->downs[local].n_hold > 0 && hold_is_high(ch, job, local))
        stop(ch, in, &job->downs[local], rank);
    return rc;
}

/* Data of a flow that this channel owns. True if the block was kept. */
static bool data(struct channel *ch, uint32_t slot, const struct wire_header *h, uint32_t block)
{
    struct flow_in *in = &ch->flows_in[slot * HOP_MAX_CHANNELS + h->flow_channel];
    bool kept = false;

    if (in->rx.src_epoch != h->src_epoch) {
        if (in->ack.next == NULL)
            list_init(&in->ack);
        list_remove(&in->ack);
        flow_rx_init(&in->rx, h->src_epoch);
        in->slot = (uint16_t)slot;
        in->flow_channel = h->flow_channel;
        in->ack_state = ACK_NONE;
    }
    if (h->flags & WIRE_F_FIRST)
        flow_rx_skip(&in->rx, h->seq);
    switch (flow_rx_check(&in->rx, h->seq)) {
    case FLOW_NEW:
        break;
    case FLOW_DUPLICATE:
        count_add(&ch->count, COUNT_DUPLICATES, 1);
        want_ack(ch, in, true);
        return false;
    case FLOW_FAR:
        count_add(&ch->count, COUNT_DROP_BAD, 1);
        return false;
    }
    if (h->job != 0 && flow_rx_refused(&in->rx, h->seq)) {
        refuse(ch, in, h);
        return false;
    }
    /* The header is not looked at after delivery: a held block may have been read and sent home by
     * then. */
    struct wire_header copy = *h;
    if (deliver(ch, in, h, block, &kept) != 0) {
        flow_rx_refuse(&in->rx, copy.seq);
        refuse(ch, in, &copy);
        return false;
    }
    flow_rx_take(&in->rx, copy.seq);
    in->rx.sent_us = copy.sent_us;
    in->rx.n_unacked++;
    if (copy.flags & WIRE_F_CONGESTED)
        in->rx.n_congested++;
    want_ack(ch, in,
             in->rx.n_unacked >= FLOW_ACK_EVERY || (copy.flags & WIRE_F_ACK) ||
                 flow_rx_gap(&in->rx, copy.seq));
    return kept;
}

/* Gives a received block to another channel of this node. */
static void give(struct channel *ch, uint32_t to, uint32_t block)
{
    if (!lane_push(&ch->hub->give[ch->idx * ch->n_channels + to], block | LANE_BIT, ch->fenced)) {
        count_add(&ch->count, COUNT_DROP_QUEUE, 1);
        channel_block_done(ch, block, 0);
        return;
    }
    count_add(&ch->count, COUNT_HANDED, 1);
    channel_wake(ch->hub, to);
}

/* The channel that owns this incoming flow: the first to ask. */
static uint32_t owner_of(struct channel *ch, uint32_t slot, uint32_t flow_channel)
{
    _Atomic uint8_t *word = &ch->hub->rx_owner[slot * HOP_MAX_CHANNELS + flow_channel];
    uint8_t owner = atomic_load_explicit(word, memory_order_relaxed);

    /* relaxed: the word is all that is shared; the flow's state is made and used by its owner
     * only. */
    if (owner == 0 &&
        atomic_compare_exchange_strong_explicit(word, &owner, (uint8_t)(ch->idx + 1),
                                                memory_order_relaxed, memory_order_relaxed))
        owner = (uint8_t)(ch->idx + 1);
    return owner - 1u;
}

/* A packet for this node, found sound. Takes the block. */
static void local(struct channel *ch, uint32_t block)
{
    const struct wire_header *h = arena_header(&ch->hub->arena, block);
    uint32_t slot = channel_slot_of(ch, h->src_node);
    bool kept = false;

    if (slot == UINT32_MAX || slot == 0) {
        count_add(&ch->count, COUNT_DROP_NODE, 1);
        goto done;
    }
    if (h->src_epoch == 0 ||
        h->src_epoch !=
            atomic_load_explicit(&ch->hops->entries[slot].epoch, memory_order_relaxed) ||
        h->dst_epoch != ch->epoch) {
        count_add(&ch->count, COUNT_DROP_EPOCH, 1);
        if (h->type == WIRE_DATA && h->dst_epoch != ch->epoch)
            reset(ch, h);
        goto done;
    }
    switch ((enum wire_type)h->type) {
    case WIRE_DATA:
        if (h->flow_channel >= HOP_MAX_CHANNELS) {
            count_add(&ch->count, COUNT_DROP_BAD, 1);
            break;
        }
        uint32_t owner = owner_of(ch, slot, h->flow_channel);
        if (owner != ch->idx) {
            give(ch, owner, block);
            return;
        }
        kept = data(ch, slot, h, block);
        break;
    case WIRE_ACK:
    case WIRE_RESET:
    case WIRE_REFUSE:
        if (h->flow_channel >= ch->n_channels) {
            count_add(&ch->count, COUNT_DROP_BAD, 1);
            break;
        }
        if (h->flow_channel != ch->idx) {
            give(ch, h->flow_channel, block);
            return;
        }
        if (h->type == WIRE_ACK)
            send_on_ack(ch, slot, h);
        else if (h->type == WIRE_REFUSE)
            send_on_refuse(ch, slot, h);
        else
            send_on_reset(ch, slot, h);
        break;
    case WIRE_PROBE:
        ch->n_household++;
        link_on_probe(ch, h);
        break;
    case WIRE_ECHO:
        ch->n_household++;
        link_on_echo(ch, h);
        break;
    }
done:
    if (!kept)
        channel_block_done(ch, block, 0);
}

void rx_packet(struct channel *ch, uint32_t block, uint32_t len)
{
    struct wire_header *h = arena_header(&ch->hub->arena, block);

    if (wire_verify(h, len) != 0) {
        count_add(&ch->count, COUNT_DROP_BAD, 1);
        channel_block_done(ch, block, 0);
        return;
    }
    count_add(&ch->count, COUNT_PACKETS_IN, 1);
    count_add(&ch->count, COUNT_BYTES_IN, len);
    if (h->dst_node == ch->node_id)
        local(ch, block);
    else
        relay_forward(ch, block, len);
}

void rx_given(struct channel *ch, uint32_t block)
{
    local(ch, block);
}
