/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages set aside at their source. A ring is first in, first out, so a message to a rank that
 * does not drain, or to a node without a way, would hold up what its sender has for others. It is
 * taken out of the ring into blocks, a queue for each such destination, and the destination is
 * closed for this channel in the job's segment: ranks keep what they have for it until it is open
 * again. So a destination costs at most what lay in the rings when it closed. Where the room for
 * all of them (a quarter of the blocks) or the table is full, the ring waits after all.
 */
#include <string.h>

#include "daemon/channel/state.h"

#define RECORD_ALIGN 16u

static uint32_t record_bytes(uint32_t len)
{
    return ((uint32_t)sizeof(struct wire_header) + len + RECORD_ALIGN - 1) & ~(RECORD_ALIGN - 1);
}

struct aside *aside_find(struct channel *ch, const struct channel_job *job, uint32_t rank)
{
    for (uint32_t i = 0; i < ch->n_asides; i++)
        if (ch->asides[i].rank == rank && ch->asides[i].job == job)
            return &ch->asides[i];
    return NULL;
}

static void set_closed(const struct aside *a, uint8_t closed)
{
    /* relaxed: a rank that sees it late sends a message more or waits a millisecond more. */
    atomic_store_explicit(&a->job->closed[a->rank], closed, memory_order_relaxed);
}

static struct up *up_of(const struct aside *a, const struct wire_header *h)
{
    return &a->job->ups[a->job->world[h->src_rank].local];
}

/* Room for a record of `need` bytes at the end; NULL: none. */
static void *claim(struct channel *ch, struct aside *a, uint32_t need)
{
    struct hub *hub = ch->hub;

    if (a->n_blocks > 0) {
        struct block *last = &hub->blocks[a->tail];
        if (last->len + need <= hub->arena.stride) {
            last->len += need;
            return (uint8_t *)arena_at(&hub->arena, a->tail) + last->len - need;
        }
    }
    if (ch->n_aside_blocks >= ch->tx_max / 2 || ch->pool.n_free <= ch->n_receives / 4)
        return NULL;
    uint32_t block = pool_take(&ch->pool, BLOCK_HOLD);
    if (block == BLOCK_NONE)
        return NULL;
    hub->blocks[block].len = need;
    hub->blocks[block].next = BLOCK_NONE;
    if (a->n_blocks++ == 0) {
        a->head = block;
        a->off = 0;
    } else {
        hub->blocks[a->tail].next = block;
    }
    a->tail = block;
    ch->n_aside_blocks++;
    return arena_at(&hub->arena, block);
}

int aside_add(struct channel *ch, struct channel_job *job, const struct wire_header *h,
              const void *payload)
{
    struct aside *a = aside_find(ch, job, h->dst_rank);
    bool fresh = !a;

    if (fresh) {
        if (ch->n_asides == ASIDE_MAX)
            return ASIDE_E_FULL;
        a = &ch->asides[ch->n_asides];
        *a = (struct aside){.job = job, .rank = h->dst_rank};
    }
    uint8_t *at = claim(ch, a, record_bytes(h->len));
    if (!at)
        return ASIDE_E_FULL;
    memcpy(at, h, sizeof *h);
    memcpy(at + sizeof *h, payload, h->len);
    ch->n_asides += fresh;
    up_of(a, h)->n_aside++;
    set_closed(a, 1);
    count_add(&ch->count, COUNT_ASIDE, 1);
    return 0;
}

static void drop_first(struct channel *ch, struct aside *a)
{
    uint32_t block = a->head;

    a->head = ch->hub->blocks[block].next;
    a->off = 0;
    a->n_blocks--;
    ch->n_aside_blocks--;
    pool_give(&ch->pool, block);
}

static void forget(struct channel *ch, struct aside *a)
{
    set_closed(a, 0);
    *a = ch->asides[--ch->n_asides];
}

/* Sends the first message of the queue; false: not now. */
static bool send_first(struct channel *ch, struct aside *a)
{
    struct hub *hub = ch->hub;
    const struct wire_header *h =
        (const void *)((uint8_t *)arena_at(&hub->arena, a->head) + a->off);
    struct flow *f;

    if (tx_admit(ch, a->job, a->rank, &f) != 0)
        return false;
    uint32_t block = pool_take(&ch->pool, BLOCK_FLOW);
    memcpy(arena_at(&hub->arena, block), h, sizeof *h + h->len);
    send_add(ch, f, block);
    up_of(a, h)->n_aside--;
    a->off += record_bytes(h->len);
    if (a->off >= hub->blocks[a->head].len)
        drop_first(ch, a);
    return true;
}

uint32_t aside_poll(struct channel *ch, uint32_t budget)
{
    uint32_t n = 0;

    /* From the end: forget() puts the last one in the place of the one that goes. */
    for (uint32_t i = ch->n_asides; i-- > 0;) {
        struct aside *a = &ch->asides[i];
        while (a->n_blocks > 0 && n < budget && send_first(ch, a))
            n++;
        /* While it is stopped it stays closed: the next burst would come here again. */
        if (a->n_blocks == 0 && !credit_is_stopped(&ch->credit, a->job->config.job, a->rank))
            forget(ch, a);
    }
    return n;
}

void aside_release(struct channel *ch, const struct channel_job *job)
{
    for (uint32_t i = ch->n_asides; i-- > 0;) {
        struct aside *a = &ch->asides[i];
        if (a->job != job)
            continue;
        while (a->n_blocks > 0)
            drop_first(ch, a);
        forget(ch, a);
    }
}
