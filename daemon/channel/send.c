/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/channel/send.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define SEND_FLOWS ((size_t)HOP_MAX_NODES * WIRE_CLASSES)

int send_init(struct sender *s, struct links *links, const struct job_table *jobs,
              const struct send_config *config)
{
    *s = (struct sender){
        .port = links->port,
        .links = links,
        .jobs = jobs,
        .limits = config->limits,
        .unreachable_after_ns = config->unreachable_after_ns,
        .table = port_sparse(SEND_FLOWS * sizeof *s->table),
        .rows = port_sparse(SEND_FLOWS * sizeof *s->rows),
        .due_ns = UINT64_MAX,
    };
    list_init(&s->active);
    list_init(&s->shown);
    for (uint32_t cls = 0; cls < WIRE_CLASSES; cls++)
        list_init(&s->dirty[cls]);
    return s->table && s->rows ? 0 : -ENOMEM;
}

void send_deinit(struct sender *s)
{
    port_sparse_free(s->table, SEND_FLOWS * sizeof *s->table);
    port_sparse_free(s->rows, SEND_FLOWS * sizeof *s->rows);
}

static void send_release(struct sender *s, uint32_t block)
{
    if (s->port->arena->blocks[block].out)
        pool_change(&s->port->pool, block, BLOCK_ORPHAN);
    else
        pool_give(&s->port->pool, block);
}

static void send_release_all(struct sender *s, const uint32_t *blocks, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        send_release(s, blocks[i]);
}

static void send_dirty(struct sender *s, struct flow *f)
{
    if (list_empty(&f->dirty))
        list_append(&s->dirty[f->cls], &f->dirty);
}

static void send_set_active(struct sender *s, struct flow *f)
{
    bool is = !list_empty(&f->active), should = flow_tx_pending(&f->tx) > 0;

    if (is == should)
        return;
    if (should) {
        list_append(&s->active, &f->active);
        s->n_active++;
    } else {
        list_remove(&f->active);
        s->n_active--;
        f->no_route_ns = 0;
    }
}

/* Gives the packet its place in the flow. */
static void send_number(struct sender *s, struct flow *f, uint32_t block)
{
    struct wire_header *h = port_header(s->port, block);

    h->flow_class = f->cls;
    h->flags = (uint8_t)((h->flags & WIRE_F_FOREIGN) | (f->tx.first ? WIRE_F_FIRST : 0));
    h->seq = flow_tx_add(&f->tx, block, (uint32_t)sizeof *h + h->len);
    s->n_pending[f->cls]++;
}

/* Empties the flow; its blocks are in s->scratch. Returns how many. */
static uint32_t send_give_up(struct sender *s, struct flow *f)
{
    uint32_t n = flow_tx_drop(&f->tx, s->scratch);

    s->n_pending[f->cls] -= n;
    return n;
}

/*
 * The destination has this incarnation now. The flow begins again, with what is unacknowledged: it
 * may be for a job that started on the new incarnation before we heard of it. Packets of jobs that
 * are over here are dropped; a job that ran on the old incarnation will be over soon, and its
 * packets turn to nothing then (see send_transmit).
 */
static void send_check_epoch(struct sender *s, struct flow *f)
{
    uint32_t epoch =
        atomic_load_explicit(&s->port->hops->entries[f->slot].epoch, memory_order_relaxed);
    uint32_t n_dropped = 0;

    if (epoch == 0 || epoch == f->dst_epoch)
        return;
    if (f->dst_epoch != 0) {
        uint32_t n = send_give_up(s, f);
        flow_tx_init(&f->tx, &s->limits);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t block = s->scratch[i];
            struct wire_header *h = port_header(s->port, block);
            uint32_t copy = BLOCK_NONE;
            uint32_t peer;
            if (!job_table_sender(s->jobs, h, &peer)) {
                send_release(s, block);
                n_dropped++;
                continue;
            }
            if (s->port->arena->blocks[block].out) {
                copy = pool_take(&s->port->pool, BLOCK_FLOW);
                if (copy == BLOCK_NONE) {
                    send_release(s, block);
                    n_dropped++;
                    continue;
                }
                memcpy(arena_at(s->port->arena, copy), h, sizeof *h + h->len);
                send_release(s, block);
                block = copy;
            }
            send_number(s, f, block);
        }
        send_set_active(s, f);
        send_dirty(s, f);
        count_add(&s->port->count, COUNT_RESETS, 1);
        count_add(&s->port->count, COUNT_DROP_EPOCH, n_dropped);
        if (n_dropped > 0) {
            struct cmd_event event = {.type = EVENT_RESTARTED, .slot = f->slot, .value = n_dropped};
            port_event(s->port, &event);
        }
    }
    f->dst_epoch = epoch;
}

static struct flow *send_at(const struct sender *s, uint32_t slot, uint32_t cls)
{
    return &s->table[slot * WIRE_CLASSES + cls];
}

struct flow *send_flow(struct sender *s, uint32_t slot, enum wire_class cls)
{
    struct flow *f = send_at(s, slot, cls);

    if (!f->ready) {
        flow_tx_init(&f->tx, &s->limits);
        list_init(&f->active);
        list_init(&f->dirty);
        list_init(&f->shown);
        f->slot = (uint16_t)slot;
        f->cls = (uint8_t)cls;
        f->ready = true;
    }
    if (atomic_load_explicit(&s->port->hops->entries[slot].epoch, memory_order_relaxed) !=
        f->dst_epoch)
        send_check_epoch(s, f);
    return f;
}

void send_add(struct sender *s, struct flow *f, uint32_t block)
{
    send_number(s, f, block);
    send_set_active(s, f);
    send_dirty(s, f);
}

/* Sends one packet of the flow over this way. False if it could not be handed over. */
static bool send_transmit(struct sender *s, struct flow *f, uint32_t seq, hop_word way)
{
    struct flow_packet *p = flow_tx_packet(&f->tx, seq);
    struct block *b = &s->port->arena->blocks[p->block];
    struct wire_header *h = port_header(s->port, p->block);
    bool again = seq != f->tx.send_next;
    uint32_t block = p->block;

    /* Of another job, which may go on when the one here is over, somebody may wait. */
    if (again && h->job != 0 && !(h->flags & WIRE_F_FOREIGN) && !job_table_find(s->jobs, h->job)) {
        /* Nobody waits for it any more; only its number must still arrive. */
        h->job = 0;
        h->len = 0;
        p->len = sizeof *h;
    }
    uint32_t len = p->len;
    h->hops_left = WIRE_MAX_HOPS;
    h->dst_epoch = f->dst_epoch;
    h->flags = (uint8_t)((h->flags & (WIRE_F_FIRST | WIRE_F_FOREIGN)) |
                         (flow_tx_ask(&f->tx, seq) ? WIRE_F_ACK : 0));
    h->sent_us = (uint32_t)(s->port->now_ns / CLOCK_NS_PER_US);
    wire_seal(h);
    s->port->arena->held[block].len = len;
    b->out = true;
    /* Numbered before it goes: sending may fail at once, and then finds it lost. */
    flow_tx_sent(&f->tx, seq, (uint32_t)(way & 0xffffff), s->port->now_ns);
    if (!way_send(s->links, way, block)) {
        b->out = false;
        flow_tx_lost(&f->tx, seq);
        return false;
    }
    f->last_word = way;
    f->packets++;
    f->bytes += len;
    if (again)
        count_add(&s->port->count, COUNT_RESENT, 1);
    return true;
}

bool send_has_work(const struct sender *s)
{
    return !list_empty(&s->dirty[WIRE_QUICK]) || !list_empty(&s->dirty[WIRE_BULK]) ||
           s->port->n_lost > 0;
}

bool send_has_room(const struct sender *s, const struct flow *f)
{
    return flow_tx_room(&f->tx) > 0 && !port_is_short(s->port);
}

static void send_flow_out(struct sender *s, struct flow *f)
{
    uint32_t seq;
    /* Sending may fail and come back at once; such packets wait for the next turn. */
    uint32_t budget = FLOW_WINDOW;

    while (budget-- > 0 && flow_tx_next(&f->tx, &seq)) {
        struct flow_packet *p = flow_tx_packet(&f->tx, seq);
        hop_word way =
            f->dst_epoch ? way_choose(s->links, f->slot, p->len, &f->pick, true) : HOP_NONE;
        if (way == HOP_NONE) {
            if (f->no_route_ns == 0)
                f->no_route_ns = s->port->now_ns ? s->port->now_ns : 1;
            break;
        }
        f->no_route_ns = 0;
        if (s->port->arena->blocks[p->block].out) {
            /* Its last transmission has not left this node. Over the same way there is no point in
             * repeating it; over another one a copy goes, since the first may be read any
             * moment. */
            uint32_t copy = BLOCK_NONE;
            if (f->tx.paths[p->path].key != (uint32_t)(way & 0xffffff) && !port_is_short(s->port))
                copy = pool_take(&s->port->pool, BLOCK_FLOW);
            if (copy == BLOCK_NONE) {
                flow_tx_defer(&f->tx, seq, s->port->now_ns);
                continue;
            }
            memcpy(arena_at(s->port->arena, copy), arena_at(s->port->arena, p->block), p->len);
            send_release(s, p->block);
            p->block = copy;
        }
        if (!send_transmit(s, f, seq, way)) {
            send_dirty(s, f);
            break;
        }
    }
    if (flow_tx_due(&f->tx) < s->due_ns)
        s->due_ns = flow_tx_due(&f->tx);
}

/* Sending this block failed. */
static void send_lost(struct sender *s, uint32_t block)
{
    const struct wire_header *h = port_header(s->port, block);
    uint32_t slot = port_slot_of(s->port, h->dst_node);

    if (slot == UINT32_MAX || !send_at(s, slot, h->flow_class)->ready)
        return;
    struct flow *f = send_at(s, slot, h->flow_class);
    if (!flow_tx_holds(&f->tx, h->seq) || flow_tx_packet(&f->tx, h->seq)->block != block)
        return;
    flow_tx_lost(&f->tx, h->seq);
    send_dirty(s, f);
}

static void send_all_lost(struct sender *s)
{
    for (uint32_t i = 0; i < s->port->n_lost; i++) {
        uint32_t block = s->port->lost[i];
        struct block *b = &s->port->arena->blocks[block];
        b->lost = false;
        /* It may have been given up meanwhile, or sent again. */
        if (b->use == BLOCK_FLOW && !b->out)
            send_lost(s, block);
    }
    s->port->n_lost = 0;
}

static void send_pump_class(struct sender *s, struct list *dirty)
{
    struct list todo;

    if (list_empty(dirty))
        return;
    /* Flows that become dirty meanwhile wait for the next turn. */
    todo = *dirty;
    todo.next->prev = todo.prev->next = &todo;
    list_init(dirty);
    while (!list_empty(&todo)) {
        struct flow *f = list_entry(todo.next, struct flow, dirty);
        list_remove(&f->dirty);
        send_flow_out(s, f);
    }
}

void send_pump(struct sender *s)
{
    if (s->port->n_lost > 0)
        send_all_lost(s);
    send_pump_class(s, &s->dirty[WIRE_QUICK]);
    send_pump_class(s, &s->dirty[WIRE_BULK]);
}

bool send_on_ack(struct sender *s, uint32_t src_slot, const struct wire_header *h)
{
    struct flow *f = send_at(s, src_slot, h->flow_class);
    struct wire_ack ack = {0};
    const uint32_t fixed = offsetof(struct wire_ack, selective);

    if (!f->ready || h->src_epoch != f->dst_epoch || h->len < fixed || h->len > sizeof ack ||
        (h->len - fixed) % 8 != 0) {
        count_add(&s->port->count, COUNT_DROP_BAD, 1);
        return false;
    }
    memcpy(&ack, h + 1, h->len);
    count_add(&s->port->count, COUNT_ACKS_IN, 1);
    uint32_t n = flow_tx_ack(&f->tx, &ack, (h->len - fixed) / 8, s->port->now_ns, s->scratch);
    s->n_pending[f->cls] -= n;
    send_release_all(s, s->scratch, n);
    send_set_active(s, f);
    if (flow_tx_pending(&f->tx) > 0)
        send_dirty(s, f);
    return true;
}

void send_on_reset(struct sender *s, uint32_t src_slot)
{
    /* The hop table is the authority on incarnations; the reset only makes us look at once. */
    for (uint32_t cls = 0; cls < WIRE_CLASSES; cls++)
        if (send_at(s, src_slot, cls)->ready)
            send_check_epoch(s, send_at(s, src_slot, cls));
}

const struct wire_header *send_refused(struct sender *s, uint32_t src_slot,
                                       const struct wire_header *h)
{
    struct flow *f = send_at(s, src_slot, h->flow_class);

    if (!f->ready || h->src_epoch != f->dst_epoch || !flow_tx_holds(&f->tx, h->seq))
        return NULL;
    uint32_t block = flow_tx_packet(&f->tx, h->seq)->block;
    const struct wire_header *message = port_header(s->port, block);
    /* Empty already: an old refusal. */
    if (h->job == 0 || message->job != h->job || message->dst_rank != h->dst_rank)
        return NULL;
    /* Sent again since, and on its way out of this node: it will be refused again. */
    return s->port->arena->blocks[block].out ? NULL : message;
}

uint32_t send_take_back(struct sender *s, uint32_t src_slot, const struct wire_header *h)
{
    struct flow *f = send_at(s, src_slot, h->flow_class);
    uint32_t seq = h->seq;
    uint32_t empty = pool_take(&s->port->pool, BLOCK_FLOW);

    if (empty == BLOCK_NONE)
        return BLOCK_NONE;
    struct wire_header *e = port_header(s->port, empty);
    *e = *port_header(s->port, flow_tx_packet(&f->tx, seq)->block);
    e->job = 0;
    e->len = 0;
    uint32_t block = flow_tx_replace(&f->tx, seq, empty, sizeof *e);
    send_dirty(s, f);
    return block;
}

void send_on_routes(struct sender *s)
{
    list_foreach_safe(it, &s->active) {
        struct flow *f = list_entry(it, struct flow, active);
        const struct hop_entry *e = &s->port->hops->entries[f->slot];
        uint32_t keys[1 + HOP_MAX_WIDE], n = 0;

        send_check_epoch(s, f);
        hop_word way = atomic_load_explicit(&e->quick, memory_order_relaxed);
        if (way != HOP_NONE)
            keys[n++] = (uint32_t)(way & 0xffffff);
        for (uint32_t i = 0; i < HOP_MAX_WIDE; i++) {
            way = atomic_load_explicit(&e->wide[i], memory_order_relaxed);
            if (way != HOP_NONE)
                keys[n++] = (uint32_t)(way & 0xffffff);
        }
        flow_tx_reroute(&f->tx, keys, n);
        send_dirty(s, f);
    }
}

void send_timers(struct sender *s)
{
    uint64_t due = UINT64_MAX;

    list_foreach(it, &s->active) {
        struct flow *f = list_entry(it, struct flow, active);
        if (flow_tx_due(&f->tx) <= s->port->now_ns) {
            uint32_t n = flow_tx_timeout(&f->tx, s->port->now_ns);
            if (n > 0) {
                count_add(&s->port->count, COUNT_TIMEOUTS, n);
                send_dirty(s, f);
                if (hop_channel(f->last_word) == s->port->idx)
                    link_doubt(s->links, hop_next_slot(f->last_word));
            }
        }
        if (flow_tx_due(&f->tx) < due)
            due = flow_tx_due(&f->tx);
    }
    s->due_ns = due;
}

void send_no_route(struct sender *s)
{
    list_foreach_safe(it, &s->active) {
        struct flow *f = list_entry(it, struct flow, active);
        if (f->no_route_ns == 0)
            continue;
        if (s->port->now_ns - f->no_route_ns < s->unreachable_after_ns) {
            send_dirty(s, f);
            continue;
        }
        uint32_t n = send_give_up(s, f);
        send_release_all(s, s->scratch, n);
        send_set_active(s, f);
        count_add(&s->port->count, COUNT_DROP_UNREACHABLE, n);
        struct cmd_event event = {.type = EVENT_UNREACHABLE, .slot = f->slot, .value = n};
        port_event(s->port, &event);
    }
}

static void send_show(const struct sender *s, const struct flow *f)
{
    struct count_flow row = {
        .slot = f->slot,
        .window = flow_tx_window(&f->tx),
        .in_flight = f->tx.n_sent,
        .queued = f->tx.n_resend + (f->tx.next - f->tx.send_next),
        .srtt_us = f->tx.srtt_us,
        .rto_us = (uint32_t)(f->tx.rto_ns / 1000),
        .next_slot = hop_next_slot(f->last_word),
        .next_channel = hop_channel(f->last_word),
        .packets = f->packets,
        .bytes = f->bytes,
        .resent = f->tx.n_resent,
    };
    count_row_write(&s->rows[f->slot * WIRE_CLASSES + f->cls], &row, sizeof row);
}

void send_snapshot(struct sender *s)
{
    /* What has been acknowledged since is shown once more. */
    list_foreach_safe(it, &s->shown) {
        struct flow *f = list_entry(it, struct flow, shown);
        list_remove(&f->shown);
        if (list_empty(&f->active))
            send_show(s, f);
    }
    list_foreach(it, &s->active) {
        struct flow *f = list_entry(it, struct flow, active);
        send_show(s, f);
        list_append(&s->shown, &f->shown);
    }
}
