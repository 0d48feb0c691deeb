/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Delivery into a rank's down ring, and what happens when the ring is full: the message is held,
 * charged to the rank, and delivered when there is room. Held messages lie in blocks as records of
 * wire header and payload, packed as long as they fit; a received packet is such a record already
 * and is kept where it is. A rank over its limit is refused: its messages stay with their senders,
 * which are told (rx.c), and named to control when that lasts.
 */
#include <string.h>

#include "daemon/channel/state.h"

#define RECORD_ALIGN 16u

static uint32_t record_bytes(uint32_t len)
{
    return ((uint32_t)sizeof(struct wire_header) + len + RECORD_ALIGN - 1) & ~(RECORD_ALIGN - 1);
}

static bool put(struct channel *ch, struct down *down, const struct wire_header *h,
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
    count_add(&ch->count, COUNT_MSGS_DOWN, 1);
    return true;
}

static int refuse(struct channel *ch, struct down *down)
{
    if (down->refused_ns == 0)
        down->refused_ns = ch->now_ns;
    if (ch->now_ns - down->refused_ns >= ch->config.hold_stall_ns &&
        (down->reported_ns == 0 || ch->now_ns - down->reported_ns >= ch->config.hold_stall_ns)) {
        struct cmd_event event = {.type = EVENT_HOLD_OVERFLOW,
                                  .job = down->job->config.job,
                                  .rank = down->job->ups[down->local].world,
                                  .value = down->hold_bytes};
        if (cmd_event(ch, &event))
            down->reported_ns = ch->now_ns;
    }
    return HOLD_E_REFUSED;
}

static int hold(struct channel *ch, struct down *down, const struct wire_header *h,
                const void *payload, uint32_t block, bool *ret_kept)
{
    struct hub *hub = ch->hub;
    uint32_t need = record_bytes(h->len);

    if (down->n_hold > 0) {
        struct block *last = &hub->blocks[down->hold_tail];
        if (last->len + need <= hub->arena.stride) {
            uint8_t *at = (uint8_t *)arena_at(&hub->arena, down->hold_tail) + last->len;
            memcpy(at, h, sizeof *h);
            memcpy(at + sizeof *h, payload, h->len);
            last->len += need;
            goto held;
        }
    }
    if (down->n_hold >= down->job->hold_max || ch->held_bytes / hub->arena.stride >= ch->hold_max)
        return refuse(ch, down);
    if (block == BLOCK_NONE) {
        block = pool_take(&ch->pool, BLOCK_HOLD);
        if (block == BLOCK_NONE)
            return refuse(ch, down);
        uint8_t *at = arena_at(&hub->arena, block);
        memcpy(at, h, sizeof *h);
        memcpy(at + sizeof *h, payload, h->len);
    } else {
        *ret_kept = true;
    }
    hub->blocks[block].len = need;
    hub->blocks[block].next = BLOCK_NONE;
    if (down->n_hold++ == 0) {
        down->hold_head = block;
        down->hold_off = 0;
        list_append(&ch->holding, &down->node);
    } else {
        hub->blocks[down->hold_tail].next = block;
    }
    down->hold_tail = block;
    ch->held_bytes += hub->arena.stride;

held:
    down->hold_bytes += need;
    count_add(&ch->count, COUNT_HELD, 1);
    return 0;
}

int hold_deliver(struct channel *ch, struct channel_job *job, uint32_t local,
                 const struct wire_header *h, const void *payload, uint32_t block, bool *ret_kept)
{
    struct down *down = &job->downs[local];

    /* A rank that is gone reads nothing any more. */
    if (down->gone)
        return 0;
    if (down->n_hold == 0 && put(ch, down, h, payload))
        return 0;
    return hold(ch, down, h, payload, block, ret_kept);
}

static void drop_first(struct channel *ch, struct down *down)
{
    uint32_t block = down->hold_head;

    down->hold_head = ch->hub->blocks[block].next;
    down->hold_off = 0;
    ch->held_bytes -= ch->hub->arena.stride;
    if (--down->n_hold == 0) {
        list_remove(&down->node);
        if (down->n_told > 0)
            rx_go(ch, down);
    }
    channel_block_done(ch, block, 0);
}

uint32_t hold_poll(struct channel *ch)
{
    struct hub *hub = ch->hub;
    uint32_t n = 0;

    list_foreach_safe(it, &ch->holding) {
        struct down *down = list_entry(it, struct down, node);
        while (down->n_hold > 0) {
            const struct wire_header *h =
                (const void *)((uint8_t *)arena_at(&hub->arena, down->hold_head) + down->hold_off);
            if (!put(ch, down, h, h + 1))
                break;
            uint32_t bytes = record_bytes(h->len);
            down->refused_ns = 0;
            down->hold_bytes -= bytes;
            down->hold_off += bytes;
            n++;
            if (down->hold_off >= hub->blocks[down->hold_head].len)
                drop_first(ch, down);
        }
    }
    return n;
}

bool hold_is_high(const struct channel *ch, const struct channel_job *job, uint32_t local)
{
    const struct down *down = &job->downs[local];

    /* Half of the rank's share, and less when the channel as a whole holds much: what is under way
     * must still fit. */
    return down->n_hold > job->hold_max / 2 ||
           (down->n_hold > job->hold_max / 16 &&
            ch->held_bytes / ch->hub->arena.stride > ch->hold_max / 2);
}

bool hold_has_work(struct channel *ch)
{
    void *place;

    list_foreach(it, &ch->holding) {
        struct down *down = list_entry(it, struct down, node);
        const struct wire_header *h =
            (const void *)((uint8_t *)arena_at(&ch->hub->arena, down->hold_head) + down->hold_off);
        if (ring_claim(&down->ring, h->len, &place))
            return true;
    }
    return false;
}

void hold_release(struct channel *ch, struct down *down)
{
    while (down->n_hold > 0)
        drop_first(ch, down);
    down->hold_bytes = 0;
}
