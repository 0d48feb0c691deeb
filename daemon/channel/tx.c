/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From the ranks to the network: takes messages from the up rings, copies each into a block,
 * numbers it in the flow to its destination node, and sends what the flows let go. The copy is
 * deliberate: the rank may die the next moment, networks want registered memory, and the block is
 * also what is sent again.
 *
 * A rank can write anything into its ring at any time. A message's header is copied once, the copy
 * is checked and used; a ring with rubbish is not read any more, and control is told.
 */
#include <errno.h>
#include <string.h>

#include "daemon/channel/state.h"

/* Messages taken from one ring before the next one has its turn. */
#define PER_RING 16u
/* A ring silent for so long is not polled any more: its rank rings the bell. */
#define QUIET_NS (2 * CLOCK_NS_PER_MS)

/* Packets kept for a node to which there is no way now. */
#define STRANDED_MAX 32u

static int poison(struct up *up, const char *why)
{
    up->poisoned = true;
    up->poison = why;
    return TX_E_POISON;
}

int tx_admit(struct channel *ch, const struct channel_job *job, uint32_t rank,
             struct flow **ret_flow)
{
    struct flow *f = send_flow(ch, job->nodes[job->world[rank].node].slot);

    /* A node that cannot be reached must not take the blocks that others need. */
    if (f->no_route_ns != 0 && flow_tx_pending(&f->tx) >= STRANDED_MAX)
        return TX_E_CLOSED;
    if (flow_tx_room(&f->tx) == 0 ||
        ch->pool.n_use[BLOCK_FLOW] + ch->pool.n_use[BLOCK_ORPHAN] + ch->n_aside_blocks >=
            ch->tx_max ||
        ch->pool.n_free <= ch->n_receives / 4)
        return TX_E_BLOCKED;
    if (ch->credit.n > 0 && !credit_take(&ch->credit, job->config.job, rank, ch->now_ns))
        return TX_E_CLOSED;
    *ret_flow = f;
    return 0;
}

static void describe(const struct channel *ch, const struct up *up, const struct ring_slot *slot,
                     uint32_t len, uint32_t peer, struct wire_header *h)
{
    *h = (struct wire_header){
        .magic = WIRE_MAGIC,
        .version = WIRE_VERSION,
        .type = WIRE_DATA,
        .flow_channel = (uint8_t)ch->idx,
        .src_node = ch->node_id,
        .dst_node = up->job->nodes[up->job->world[peer].node].node_id,
        .src_epoch = ch->epoch,
        .job = up->job->config.job,
        .len = len,
        .src_rank = up->world,
        .dst_rank = peer,
        .msg_kind = slot->kind,
        .msg_flags = slot->flags,
        .msg_context = slot->context,
        .msg_source = slot->source,
        .msg_tag = slot->tag,
        .msg_order = slot->order,
    };
}

/* Takes one message. 0, TX_E_BLOCKED, or TX_E_POISON. */
static int take(struct channel *ch, struct up *up, const struct ring_slot *slot)
{
    struct channel_job *job = up->job;
    /* Loaded once: the rank can write them while they are checked. */
    uint32_t len = __atomic_load_n(&slot->len, __ATOMIC_RELAXED);
    uint32_t peer = __atomic_load_n(&slot->peer, __ATOMIC_RELAXED);
    uint16_t data_line = __atomic_load_n(&slot->data_line, __ATOMIC_RELAXED);

    if (len > ch->packet_bytes)
        return poison(up, "message longer than a packet");
    if (peer >= job->layout.shape.n_world)
        return poison(up, "destination rank that does not exist");
    const void *payload = ring_payload(&up->ring, slot, len, data_line);
    if (!payload)
        return poison(up, "payload outside of the ring");

    const struct segment_world *to = &job->world[peer];
    struct wire_header local;
    if (job->nodes[to->node].slot == 0) {
        bool kept = false;
        describe(ch, up, slot, len, peer, &local);
        if (hold_deliver(ch, job, to->local, &local, payload, BLOCK_NONE, &kept) != 0)
            return TX_E_BLOCKED;
        count_add(&ch->count, COUNT_MSGS_LOCAL, 1);
    } else {
        struct flow *f;
        int rc = ch->n_asides > 0 && aside_find(ch, job, peer) ? TX_E_CLOSED
                                                               : tx_admit(ch, job, peer, &f);
        if (rc == TX_E_BLOCKED)
            return rc;
        if (rc == TX_E_CLOSED) {
            describe(ch, up, slot, len, peer, &local);
            if (aside_add(ch, job, &local, payload) != 0)
                return TX_E_BLOCKED;
        } else {
            uint32_t block = pool_take(&ch->pool, BLOCK_FLOW);
            struct wire_header *h = arena_header(&ch->hub->arena, block);
            describe(ch, up, slot, len, peer, h);
            memcpy(h + 1, payload, len);
            send_add(ch, f, block);
        }
    }
    ring_advance(&up->ring, len);
    count_add(&ch->count, COUNT_MSGS_UP, 1);
    return 0;
}

static void report_poison(struct channel *ch, struct up *up)
{
    struct cmd_event event = {
        .type = EVENT_POISONED, .job = up->job->config.job, .rank = up->world, .text = up->poison};

    if (up->poison && cmd_event(ch, &event))
        up->poison = NULL;
}

static uint32_t drain(struct channel *ch, struct up *up, uint32_t budget)
{
    uint32_t n = 0;

    if (up->poisoned) {
        report_poison(ch, up);
        return 0;
    }
    up->blocked = false;
    while (n < budget) {
        const struct ring_slot *slot = ring_peek(&up->ring);
        if (!slot)
            break;
        int rc = take(ch, up, slot);
        if (rc == TX_E_BLOCKED) {
            up->blocked = true;
            break;
        }
        if (rc == TX_E_POISON) {
            count_add(&ch->count, COUNT_POISONED, 1);
            report_poison(ch, up);
            break;
        }
        n++;
    }
    return n;
}

void tx_activate_up(struct channel *ch, struct up *up)
{
    if (up->gone)
        return;
    up->last_ns = ch->now_ns;
    if (up->active)
        return;
    up->active = true;
    if (up->known)
        list_remove(&up->node);
    up->known = true;
    list_append(&ch->ups_active, &up->node);
    /* seq_cst: bell_notify reads it. A producer that saw 0 has rung the bell. */
    atomic_store_explicit(&up->ring.shared->active, 1, memory_order_seq_cst);
}

static void quieten(struct channel *ch, struct up *up)
{
    up->active = false;
    list_remove(&up->node);
    list_append(&ch->ups_quiet, &up->node);
    /* A producer that still saw 1 does not ring; the quiet rings are looked at, one per turn and
     * all before sleeping. */
    atomic_store_explicit(&up->ring.shared->active, 0, memory_order_seq_cst);
}

static void hear_bells(struct channel *ch)
{
    list_foreach(it, &ch->jobs) {
        struct channel_job *job = list_entry(it, struct channel_job, node);
        for (uint32_t w = 0; w < job->n_words; w++) {
            uint64_t bits = bell_collect(job->bell, w);
            while (bits) {
                uint32_t r = w * 64 + (uint32_t)__builtin_ctzll(bits);
                bits &= bits - 1;
                /* Ranks can set any bit. */
                if (r < job->n_local)
                    tx_activate_up(ch, &job->ups[r]);
            }
        }
    }
}

uint32_t tx_poll(struct channel *ch, uint32_t budget)
{
    uint32_t n = 0;

    hear_bells(ch);
    if (ch->n_asides > 0)
        n += aside_poll(ch, budget);
    if (!list_empty(&ch->ups_quiet)) {
        struct list *first = ch->ups_quiet.next;
        list_remove(first);
        list_append(&ch->ups_quiet, first);
        struct up *up = list_entry(first, struct up, node);
        if (!up->poisoned && ring_peek(&up->ring))
            tx_activate_up(ch, up);
    }
    struct list *last = ch->ups_active.prev;
    list_foreach_safe(it, &ch->ups_active) {
        if (n >= budget)
            break;
        struct up *up = list_entry(it, struct up, node);
        uint32_t got = drain(ch, up, PER_RING);
        bool end = it == last;
        if (got > 0) {
            n += got;
            up->last_ns = ch->now_ns;
            if (ch->ups_active.next != ch->ups_active.prev) {
                /* Others have their turn before this one comes again. */
                list_remove(it);
                list_append(&ch->ups_active, it);
            }
        } else if (!up->blocked && !up->draining && !up->poison &&
                   ch->now_ns - up->last_ns > QUIET_NS) {
            quieten(ch, up);
        }
        if (end)
            break;
    }
    return n;
}

bool tx_has_work(struct channel *ch)
{
    list_foreach(it, &ch->jobs) {
        struct channel_job *job = list_entry(it, struct channel_job, node);
        for (uint32_t w = 0; w < job->n_words; w++)
            if (atomic_load_explicit(&job->bell->rung[w], memory_order_acquire) != 0)
                return true;
    }
    list_foreach(it, &ch->ups_active) {
        struct up *up = list_entry(it, struct up, node);
        if (!up->blocked && !up->poisoned && ring_peek(&up->ring))
            return true;
    }
    list_foreach(it, &ch->ups_quiet) {
        struct up *up = list_entry(it, struct up, node);
        if (!up->poisoned && ring_peek(&up->ring))
            return true;
    }
    return false;
}
