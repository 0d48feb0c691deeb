/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/channel/delivery.h"

#include <assert.h>
#include <string.h>

void delivery_init(struct delivery *d, struct acks *acks, const struct job_table *jobs,
                   uint32_t blocks_max, uint64_t stall_ns)
{
    *d = (struct delivery){.port = acks->port,
                           .acks = acks,
                           .jobs = jobs,
                           .blocks_max = blocks_max,
                           .stall_ns = stall_ns};
    list_init(&d->waiting);
}

/* Writes the message into the ring. False: there is no room. */
static bool delivery_write(struct delivery *d, struct down *down, const struct wire_header *h,
                           const void *payload)
{
    void *place;
    struct ring_slot *slot = ring_claim(&down->ring, h->len, &place);

    if (!slot)
        return false;
    memcpy(place, payload, h->len);
    slot->kind = h->msg_kind;
    slot->flags = h->msg_flags;
    slot->context = h->msg_context;
    slot->source = h->msg_source;
    slot->tag = h->msg_tag;
    slot->peer = h->src_rank;
    slot->order = h->msg_order;
    ring_publish(&down->ring);
    count_add(&d->port->count, COUNT_MSGS_DOWN, 1);
    return true;
}

static int delivery_refuse(struct delivery *d, struct down *down)
{
    uint64_t now = d->port->now_ns;

    if (down->refused_ns == 0)
        down->refused_ns = now;
    if (now - down->refused_ns >= d->stall_ns &&
        (down->reported_ns == 0 || now - down->reported_ns >= d->stall_ns)) {
        struct cmd_event event = {.type = EVENT_BACKLOG_OVERFLOW,
                                  .job = down->job->config.job,
                                  .rank = down->world,
                                  .value = down->backlog.n_bytes};
        if (port_event(d->port, &event))
            down->reported_ns = now;
    }
    return DELIVERY_E_REFUSED;
}

/* Adds a message to the rank's backlog, within the limits of the rank and of the channel. */
static int delivery_wait(struct delivery *d, struct down *down, const struct wire_header *h,
                         const void *payload, uint32_t block, bool *ret_kept)
{
    const struct arena *arena = d->port->arena;

    if (record_queue_append(&down->backlog, arena, h, payload)) {
        count_add(&d->port->count, COUNT_HELD, 1);
        return 0;
    }
    if (down->backlog.blocks.n >= down->job->backlog_max || d->n_blocks >= d->blocks_max ||
        !job_table_may_keep(d->jobs, down->job, JOB_BLOCKS_DELIVERING, d->blocks_max))
        return delivery_refuse(d, down);
    if (block == BLOCK_NONE) {
        block = pool_take(&d->port->pool, BLOCK_BACKLOG);
        if (block == BLOCK_NONE)
            return delivery_refuse(d, down);
        record_queue_append_block(&down->backlog, arena, block, h, payload);
    } else {
        record_queue_keep_block(&down->backlog, arena, block);
        *ret_kept = true;
    }
    if (down->backlog.blocks.n == 1)
        list_append(&d->waiting, &down->node);
    d->n_blocks++;
    down->job->n_blocks[JOB_BLOCKS_DELIVERING]++;
    count_add(&d->port->count, COUNT_HELD, 1);
    return 0;
}

int delivery_put(struct delivery *d, struct down *down, const struct wire_header *h,
                 const void *payload, uint32_t block, bool *ret_kept)
{
    /* A rank that is gone reads nothing any more. */
    if (down->gone)
        return 0;
    if (record_queue_empty(&down->backlog) && delivery_write(d, down, h, payload))
        return 0;
    return delivery_wait(d, down, h, payload, block, ret_kept);
}

/* A block of the backlog is empty. */
static void delivery_block_done(struct delivery *d, struct down *down, uint32_t block)
{
    assert(d->n_blocks > 0 && down->job->n_blocks[JOB_BLOCKS_DELIVERING] > 0);
    d->n_blocks--;
    down->job->n_blocks[JOB_BLOCKS_DELIVERING]--;
    if (record_queue_empty(&down->backlog)) {
        list_remove(&down->node);
        for (uint32_t i = 0; i < down->n_told; i++)
            ack_go(d->acks, down->told[i].in, down->told[i].job, down->world);
        down->n_told = 0;
    }
    port_block_done(d->port, block, 0);
}

uint32_t delivery_poll(struct delivery *d)
{
    const struct arena *arena = d->port->arena;
    uint32_t n = 0;

    list_foreach_safe(it, &d->waiting) {
        struct down *down = list_entry(it, struct down, node);
        while (!record_queue_empty(&down->backlog)) {
            const struct wire_header *h = record_queue_first(&down->backlog, arena);
            if (!delivery_write(d, down, h, h + 1))
                break;
            down->refused_ns = 0;
            n++;
            uint32_t block = record_queue_advance(&down->backlog, arena);
            if (block != BLOCK_NONE)
                delivery_block_done(d, down, block);
        }
    }
    return n;
}

/* Half of the rank's share, and less when the channel as a whole holds much: what is under way must
 * still fit. */
static bool delivery_is_high(const struct delivery *d, const struct down *down)
{
    uint32_t n = down->backlog.blocks.n, max = down->job->backlog_max;

    return n > max / 2 || (n > max / 16 && d->n_blocks > d->blocks_max / 2);
}

void delivery_check_high(struct delivery *d, struct down *down, struct flow_in *in, uint64_t job)
{
    uint32_t i = 0;

    if (record_queue_empty(&down->backlog) || !delivery_is_high(d, down))
        return;
    while (i < down->n_told && (down->told[i].in != in || down->told[i].job != job))
        i++;
    if (i == down->n_told && i < DELIVERY_TOLD) {
        down->told[i].in = in;
        down->told[i].job = job;
        down->n_told++;
    }
    ack_stop(d->acks, in, job, down->world);
}

bool delivery_has_work(const struct delivery *d)
{
    void *place;

    list_foreach(it, &d->waiting) {
        struct down *down = list_entry(it, struct down, node);
        if (ring_claim(&down->ring, record_queue_first(&down->backlog, d->port->arena)->len,
                       &place))
            return true;
    }
    return false;
}

void delivery_release(struct delivery *d, struct down *down)
{
    for (uint32_t block;
         (block = record_queue_drop_block(&down->backlog, d->port->arena)) != BLOCK_NONE;)
        delivery_block_done(d, down, block);
}
