/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/channel/ack.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "daemon/port/way.h"

/* At most one reset in this time: a peer with an old view may send a whole window. */
#define RESET_NS (5 * CLOCK_NS_PER_MS)
/* At most one stop in this time per flow. */
#define STOP_NS CLOCK_NS_PER_MS

#define ACK_FLOWS ((size_t)HOP_MAX_NODES * HOP_MAX_CHANNELS * WIRE_CLASSES)

enum { ACK_NONE, ACK_WAITING, ACK_URGENT };

int ack_init(struct acks *acks, struct links *links, uint64_t delay_ns)
{
    *acks = (struct acks){
        .port = links->port,
        .links = links,
        .delay_ns = delay_ns,
        .table = port_sparse(ACK_FLOWS * sizeof *acks->table),
    };
    list_init(&acks->urgent);
    list_init(&acks->waiting);
    return acks->table ? 0 : -ENOMEM;
}

void ack_deinit(struct acks *acks)
{
    port_sparse_free(acks->table, ACK_FLOWS * sizeof *acks->table);
}

struct flow_in *ack_flow(struct acks *acks, uint32_t slot, const struct wire_header *h)
{
    struct flow_in *in =
        &acks->table[(slot * HOP_MAX_CHANNELS + h->flow_channel) * WIRE_CLASSES + h->flow_class];

    assert(slot < HOP_MAX_NODES && h->flow_channel < HOP_MAX_CHANNELS &&
           h->flow_class < WIRE_CLASSES);
    if (in->rx.src_epoch != h->src_epoch) {
        if (in->ack.next == NULL)
            list_init(&in->ack);
        list_remove(&in->ack);
        flow_rx_init(&in->rx, h->src_epoch);
        in->slot = (uint16_t)slot;
        in->flow_channel = h->flow_channel;
        in->flow_class = h->flow_class;
        in->ack_state = ACK_NONE;
    }
    return in;
}

static void ack_send(struct acks *acks, uint32_t block, uint32_t n_bytes, hop_word way)
{
    port_note_seal(acks->port, block, n_bytes);
    if (!way_send(acks->links, way, block))
        pool_give(&acks->port->pool, block);
}

static void ack_send_one(struct acks *acks, struct flow_in *in)
{
    uint32_t count = in->rx.cumulative;
    hop_word way = way_choose(acks->links, in->slot, 0, &count, false);
    struct wire_ack ack;

    list_remove(&in->ack);
    in->ack_state = ACK_NONE;
    uint32_t n_words = flow_rx_ack(&in->rx, &ack);
    if (way == HOP_NONE)
        return;
    uint32_t block = port_note(acks->port, in->slot, WIRE_ACK);
    if (block == BLOCK_NONE)
        return;
    struct wire_header *h = port_header(acks->port, block);
    uint32_t n_bytes = (uint32_t)offsetof(struct wire_ack, selective) + 8 * n_words;
    h->flow_channel = in->flow_channel;
    h->flow_class = in->flow_class;
    h->dst_epoch = in->rx.src_epoch;
    h->job = in->stop_job;
    h->dst_rank = in->stop_rank;
    h->msg_context = in->stop_job != 0 && in->stop_over;
    in->stop_job = 0;
    in->stop_rank = 0;
    memcpy(h + 1, &ack, n_bytes);
    count_add(&acks->port->count, COUNT_ACKS_OUT, 1);
    ack_send(acks, block, n_bytes, way);
}

uint32_t ack_poll(struct acks *acks, bool all)
{
    uint32_t n = 0;

    while (!list_empty(&acks->urgent)) {
        ack_send_one(acks, list_entry(acks->urgent.next, struct flow_in, ack));
        n++;
    }
    /* The delay is the same for all: first come, first due. */
    while (!list_empty(&acks->waiting)) {
        struct flow_in *in = list_entry(acks->waiting.next, struct flow_in, ack);
        if (!all && in->rx.ack_due_ns > acks->port->now_ns)
            break;
        ack_send_one(acks, in);
        n++;
    }
    return n;
}

uint64_t ack_due(const struct acks *acks)
{
    if (list_empty(&acks->waiting))
        return UINT64_MAX;
    return list_entry(acks->waiting.next, struct flow_in, ack)->rx.ack_due_ns;
}

void ack_want(struct acks *acks, struct flow_in *in, bool urgent)
{
    if (in->ack_state == ACK_URGENT || (in->ack_state == ACK_WAITING && !urgent))
        return;
    if (in->ack_state == ACK_WAITING)
        list_remove(&in->ack);
    else
        in->rx.ack_due_ns = acks->port->now_ns + acks->delay_ns;
    list_append(urgent ? &acks->urgent : &acks->waiting, &in->ack);
    in->ack_state = urgent ? ACK_URGENT : ACK_WAITING;
}

void ack_stop(struct acks *acks, struct flow_in *in, uint64_t job, uint32_t rank)
{
    if (acks->port->now_ns - in->stop_ns < STOP_NS)
        return;
    in->stop_ns = acks->port->now_ns;
    in->stop_job = job;
    in->stop_rank = rank;
    in->stop_over = false;
    ack_want(acks, in, true);
}

void ack_go(struct acks *acks, struct flow_in *in, uint64_t job, uint32_t rank)
{
    in->stop_ns = 0;
    in->stop_job = job;
    in->stop_rank = rank;
    in->stop_over = true;
    ack_want(acks, in, true);
}

void ack_refuse(struct acks *acks, const struct flow_in *in, const struct wire_header *h)
{
    uint32_t count = h->seq;
    hop_word way = way_choose(acks->links, in->slot, 0, &count, false);

    count_add(&acks->port->count, COUNT_REFUSED, 1);
    if (way == HOP_NONE)
        return;
    uint32_t block = port_note(acks->port, in->slot, WIRE_REFUSE);
    if (block == BLOCK_NONE)
        return;
    struct wire_header *note = port_header(acks->port, block);
    note->flow_channel = in->flow_channel;
    note->flow_class = in->flow_class;
    note->dst_epoch = in->rx.src_epoch;
    note->seq = h->seq;
    note->job = h->job;
    note->dst_rank = h->dst_rank;
    ack_send(acks, block, 0, way);
}

void ack_reset(struct acks *acks, uint32_t slot, const struct wire_header *h)
{
    uint32_t count = 0;

    if (acks->port->now_ns < acks->reset_ns)
        return;
    hop_word way = way_choose(acks->links, slot, 0, &count, false);
    if (way == HOP_NONE)
        return;
    uint32_t block = port_note(acks->port, slot, WIRE_RESET);
    if (block == BLOCK_NONE)
        return;
    acks->reset_ns = acks->port->now_ns + RESET_NS;
    struct wire_header *note = port_header(acks->port, block);
    note->flow_channel = h->flow_channel;
    note->flow_class = h->flow_class;
    note->dst_epoch = h->src_epoch;
    ack_send(acks, block, 0, way);
}
