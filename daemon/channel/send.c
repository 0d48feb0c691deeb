/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sending side of flows: what is in them, which of it goes when and by which way, what comes
 * back (acknowledgements, refusals, failures, news of routes and incarnations), and the messages
 * that were refused and wait to be sent again.
 */
#include <errno.h>
#include <string.h>

#include "daemon/channel/state.h"

/* Between two looks at the messages that were refused. */
#define PARK_NS CLOCK_NS_PER_MS

static void release(struct channel *ch, uint32_t block)
{
    if (ch->hub->blocks[block].out)
        pool_change(&ch->pool, block, BLOCK_ORPHAN);
    else
        pool_give(&ch->pool, block);
}

static void release_all(struct channel *ch, const uint32_t *blocks, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        release(ch, blocks[i]);
}

void send_dirty(struct channel *ch, struct flow *f)
{
    if (list_empty(&f->dirty))
        list_append(&ch->dirty_flows, &f->dirty);
}

static void set_active(struct channel *ch, struct flow *f)
{
    bool is = !list_empty(&f->active), should = flow_tx_pending(&f->tx) > 0;

    if (is == should)
        return;
    if (should) {
        list_append(&ch->active_flows, &f->active);
        ch->n_active++;
    } else {
        list_remove(&f->active);
        ch->n_active--;
        f->no_route_ns = 0;
    }
}

/*
 * The destination has this incarnation now. The flow begins again, with what is unacknowledged: it
 * may be for a job that started on the new incarnation before we heard of it. Packets of jobs that
 * are over here are dropped; a job that ran on the old incarnation will be over soon, and its
 * packets turn to nothing then (see transmit).
 */
static void check_epoch(struct channel *ch, struct flow *f)
{
    uint32_t epoch = atomic_load_explicit(&ch->hops->entries[f->slot].epoch, memory_order_relaxed);
    uint32_t n_dropped = 0;

    if (epoch == 0 || epoch == f->dst_epoch)
        return;
    if (f->dst_epoch != 0) {
        uint32_t n = flow_tx_drop(&f->tx, ch->scratch);
        flow_tx_init(&f->tx, &ch->limits);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t block = ch->scratch[i];
            struct wire_header *h = arena_header(&ch->hub->arena, block);
            uint32_t copy = BLOCK_NONE;
            if (!job_find(ch, h->job)) {
                release(ch, block);
                n_dropped++;
                continue;
            }
            if (ch->hub->blocks[block].out) {
                copy = pool_take(&ch->pool, BLOCK_FLOW);
                if (copy == BLOCK_NONE) {
                    release(ch, block);
                    n_dropped++;
                    continue;
                }
                memcpy(arena_at(&ch->hub->arena, copy), h, sizeof *h + h->len);
                release(ch, block);
                block = copy;
                h = arena_header(&ch->hub->arena, block);
            }
            h->flags = f->tx.first ? WIRE_F_FIRST : 0;
            h->seq = flow_tx_add(&f->tx, block, (uint32_t)sizeof *h + h->len);
        }
        set_active(ch, f);
        send_dirty(ch, f);
        count_add(&ch->count, COUNT_RESETS, 1);
        count_add(&ch->count, COUNT_DROP_EPOCH, n_dropped);
        if (n_dropped > 0) {
            struct cmd_event event = {.type = EVENT_RESTARTED, .slot = f->slot, .value = n_dropped};
            cmd_event(ch, &event);
        }
    }
    f->dst_epoch = epoch;
}

struct flow *send_flow(struct channel *ch, uint32_t slot)
{
    struct flow *f = &ch->flows[slot];

    if (!f->ready) {
        flow_tx_init(&f->tx, &ch->limits);
        list_init(&f->active);
        list_init(&f->dirty);
        f->slot = (uint16_t)slot;
        f->ready = true;
    }
    if (atomic_load_explicit(&ch->hops->entries[slot].epoch, memory_order_relaxed) != f->dst_epoch)
        check_epoch(ch, f);
    return f;
}

void send_add(struct channel *ch, struct flow *f, uint32_t block)
{
    struct wire_header *h = arena_header(&ch->hub->arena, block);

    h->flags = f->tx.first ? WIRE_F_FIRST : 0;
    h->seq = flow_tx_add(&f->tx, block, (uint32_t)sizeof *h + h->len);
    set_active(ch, f);
    send_dirty(ch, f);
}

/* Sends one packet of the flow over this way. False if it could not be handed over. */
static bool transmit(struct channel *ch, struct flow *f, uint32_t seq, hop_word way)
{
    struct flow_packet *p = flow_tx_packet(&f->tx, seq);
    struct block *b = &ch->hub->blocks[p->block];
    struct wire_header *h = arena_header(&ch->hub->arena, p->block);
    bool again = seq != f->tx.send_next;
    uint32_t block = p->block;

    if (again && h->job != 0 && !job_find(ch, h->job)) {
        /* Nobody waits for it any more; only its number must still arrive. */
        h->job = 0;
        h->len = 0;
        p->len = sizeof *h;
    }
    uint32_t len = p->len;
    h->hops_left = WIRE_MAX_HOPS;
    h->dst_epoch = f->dst_epoch;
    h->flags = (uint8_t)((h->flags & WIRE_F_FIRST) | (flow_tx_ask(&f->tx, seq) ? WIRE_F_ACK : 0));
    h->sent_us = (uint32_t)(ch->now_ns / CLOCK_NS_PER_US);
    wire_seal(h);
    b->len = len;
    b->out = true;
    /* Numbered before it goes: sending may fail at once, and then finds it lost. */
    flow_tx_sent(&f->tx, seq, (uint32_t)(way & 0xffffff), ch->now_ns);
    if (!relay_out(ch, way, block)) {
        b->out = false;
        flow_tx_lost(&f->tx, seq);
        return false;
    }
    f->last_word = way;
    f->packets++;
    f->bytes += len;
    if (again)
        count_add(&ch->count, COUNT_RESENT, 1);
    return true;
}

static void pump(struct channel *ch, struct flow *f)
{
    uint32_t seq;
    /* Sending may fail and come back at once; such packets wait for the next turn. */
    uint32_t budget = FLOW_WINDOW;

    while (budget-- > 0 && flow_tx_next(&f->tx, &seq)) {
        struct flow_packet *p = flow_tx_packet(&f->tx, seq);
        hop_word way = f->dst_epoch ? relay_route(ch, f->slot, p->len, &f->pick, true) : HOP_NONE;
        if (way == HOP_NONE) {
            if (f->no_route_ns == 0)
                f->no_route_ns = ch->now_ns ? ch->now_ns : 1;
            break;
        }
        f->no_route_ns = 0;
        if (ch->hub->blocks[p->block].out) {
            /* Its last transmission has not left this node. Over the same way there is no point in
             * repeating it; over another one a copy goes, since the first may be read any
             * moment. */
            uint32_t copy = BLOCK_NONE;
            if (f->tx.paths[p->path].key != (uint32_t)(way & 0xffffff) &&
                ch->pool.n_free > ch->n_receives / 4)
                copy = pool_take(&ch->pool, BLOCK_FLOW);
            if (copy == BLOCK_NONE) {
                flow_tx_defer(&f->tx, seq, ch->now_ns);
                continue;
            }
            memcpy(arena_at(&ch->hub->arena, copy), arena_at(&ch->hub->arena, p->block), p->len);
            release(ch, p->block);
            p->block = copy;
        }
        if (!transmit(ch, f, seq, way)) {
            send_dirty(ch, f);
            break;
        }
    }
    if (flow_tx_due(&f->tx) < ch->flow_due_ns)
        ch->flow_due_ns = flow_tx_due(&f->tx);
}

void send_pump_dirty(struct channel *ch)
{
    struct list todo;

    if (list_empty(&ch->dirty_flows))
        return;
    /* Flows that become dirty meanwhile wait for the next turn. */
    todo = ch->dirty_flows;
    todo.next->prev = todo.prev->next = &todo;
    list_init(&ch->dirty_flows);
    while (!list_empty(&todo)) {
        struct flow *f = list_entry(todo.next, struct flow, dirty);
        list_remove(&f->dirty);
        pump(ch, f);
    }
}

void send_on_ack(struct channel *ch, uint32_t src_slot, const struct wire_header *h)
{
    struct flow *f = &ch->flows[src_slot];
    struct wire_ack ack = {0};
    const uint32_t fixed = offsetof(struct wire_ack, selective);

    if (!f->ready || h->src_epoch != f->dst_epoch || h->len < fixed || h->len > sizeof ack ||
        (h->len - fixed) % 8 != 0) {
        count_add(&ch->count, COUNT_DROP_BAD, 1);
        return;
    }
    memcpy(&ack, h + 1, h->len);
    count_add(&ch->count, COUNT_ACKS_IN, 1);
    if (h->job != 0 && h->msg_context != 0) {
        credit_go(&ch->credit, h->job, h->dst_rank);
        ch->park_ns = 0;
    } else if (h->job != 0) {
        count_add(&ch->count, COUNT_STOPS, 1);
        credit_stop(&ch->credit, h->job, h->dst_rank, ch->now_ns);
    }
    uint32_t n = flow_tx_ack(&f->tx, &ack, (h->len - fixed) / 8, ch->now_ns, ch->scratch);
    release_all(ch, ch->scratch, n);
    set_active(ch, f);
    if (flow_tx_pending(&f->tx) > 0)
        send_dirty(ch, f);
}

void send_on_reset(struct channel *ch, uint32_t src_slot, const struct wire_header *h)
{
    struct flow *f = &ch->flows[src_slot];

    /* The hop table is the authority on incarnations; the reset only makes us look at once. */
    (void)h;
    if (f->ready)
        check_epoch(ch, f);
}

void send_on_refuse(struct channel *ch, uint32_t src_slot, const struct wire_header *h)
{
    struct flow *f = &ch->flows[src_slot];

    if (!f->ready || h->src_epoch != f->dst_epoch || !flow_tx_holds(&f->tx, h->seq))
        return;
    const struct flow_packet *p = flow_tx_packet(&f->tx, h->seq);
    const struct wire_header *message = arena_header(&ch->hub->arena, p->block);
    /* Empty already: an old refusal. */
    if (h->job == 0 || message->job != h->job || message->dst_rank != h->dst_rank)
        return;
    uint32_t empty = pool_take(&ch->pool, BLOCK_FLOW);
    if (empty == BLOCK_NONE)
        return;
    if (!credit_park(&ch->credit, h->job, h->dst_rank, ch->now_ns)) {
        pool_give(&ch->pool, empty);
        return;
    }
    struct wire_header *e = arena_header(&ch->hub->arena, empty);
    *e = *message;
    e->job = 0;
    e->len = 0;
    ch->parked[ch->n_parked++] = flow_tx_replace(&f->tx, h->seq, empty, sizeof *e);
    send_dirty(ch, f);
}

/* True if the parked message is no longer parked. */
static bool unpark(struct channel *ch, uint32_t block)
{
    struct wire_header *h = arena_header(&ch->hub->arena, block);
    uint32_t slot = channel_slot_of(ch, h->dst_node);

    if (slot == UINT32_MAX || !job_find(ch, h->job)) {
        credit_drop(&ch->credit, h->job, h->dst_rank);
        release(ch, block);
        return true;
    }
    struct flow *f = send_flow(ch, slot);
    if (ch->hub->blocks[block].out || f->no_route_ns != 0 || flow_tx_room(&f->tx) == 0 ||
        !credit_unpark(&ch->credit, h->job, h->dst_rank, ch->now_ns))
        return false;
    send_add(ch, f, block);
    return true;
}

void send_unpark(struct channel *ch)
{
    uint32_t n = 0;

    ch->park_ns = ch->now_ns + PARK_NS;
    for (uint32_t i = 0; i < ch->n_parked; i++)
        if (!unpark(ch, ch->parked[i]))
            ch->parked[n++] = ch->parked[i];
    ch->n_parked = n;
}

void send_on_lost(struct channel *ch, uint32_t block)
{
    const struct wire_header *h = arena_header(&ch->hub->arena, block);
    uint32_t slot = channel_slot_of(ch, h->dst_node);

    if (slot == UINT32_MAX || !ch->flows[slot].ready)
        return;
    struct flow *f = &ch->flows[slot];
    if (!flow_tx_holds(&f->tx, h->seq) || flow_tx_packet(&f->tx, h->seq)->block != block)
        return;
    flow_tx_lost(&f->tx, h->seq);
    send_dirty(ch, f);
}

void send_on_routes(struct channel *ch)
{
    list_foreach_safe(it, &ch->active_flows) {
        struct flow *f = list_entry(it, struct flow, active);
        const struct hop_entry *e = &ch->hops->entries[f->slot];
        uint32_t keys[1 + HOP_MAX_WIDE], n = 0;

        check_epoch(ch, f);
        hop_word way = atomic_load_explicit(&e->quick, memory_order_relaxed);
        if (way != HOP_NONE)
            keys[n++] = (uint32_t)(way & 0xffffff);
        for (uint32_t i = 0; i < HOP_MAX_WIDE; i++) {
            way = atomic_load_explicit(&e->wide[i], memory_order_relaxed);
            if (way != HOP_NONE)
                keys[n++] = (uint32_t)(way & 0xffffff);
        }
        flow_tx_reroute(&f->tx, keys, n);
        send_dirty(ch, f);
    }
}

void send_timers(struct channel *ch)
{
    uint64_t due = UINT64_MAX;

    list_foreach(it, &ch->active_flows) {
        struct flow *f = list_entry(it, struct flow, active);
        if (flow_tx_due(&f->tx) <= ch->now_ns) {
            uint32_t n = flow_tx_timeout(&f->tx, ch->now_ns);
            if (n > 0) {
                count_add(&ch->count, COUNT_TIMEOUTS, n);
                send_dirty(ch, f);
            }
        }
        if (flow_tx_due(&f->tx) < due)
            due = flow_tx_due(&f->tx);
    }
    ch->flow_due_ns = due;
}

void send_no_route(struct channel *ch)
{
    list_foreach_safe(it, &ch->active_flows) {
        struct flow *f = list_entry(it, struct flow, active);
        if (f->no_route_ns == 0)
            continue;
        if (ch->now_ns - f->no_route_ns < ch->config.unreachable_after_ns) {
            send_dirty(ch, f);
            continue;
        }
        uint32_t n = flow_tx_drop(&f->tx, ch->scratch);
        release_all(ch, ch->scratch, n);
        set_active(ch, f);
        count_add(&ch->count, COUNT_DROP_UNREACHABLE, n);
        struct cmd_event event = {.type = EVENT_UNREACHABLE, .slot = f->slot, .value = n};
        cmd_event(ch, &event);
    }
}
