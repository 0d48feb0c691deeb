/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/channel/tx.h"

#include <assert.h>
#include <string.h>

/* Messages taken from one ring before the next one has its turn. */
#define PER_RING 16u
/* A ring silent for so long is not polled any more: its rank rings the bell. */
#define QUIET_NS (2 * CLOCK_NS_PER_MS)

enum { TX_E_BLOCKED = 1, TX_E_POISON };

void tx_init(struct tx *tx, struct backlog *backlog, struct delivery *delivery)
{
    *tx = (struct tx){
        .port = backlog->port, .jobs = backlog->jobs, .backlog = backlog, .delivery = delivery};
    list_init(&tx->active);
    list_init(&tx->quiet);
}

static int tx_poison(struct up *up, const char *why)
{
    up->poisoned = true;
    up->poison = why;
    return TX_E_POISON;
}

static void tx_describe(const struct tx *tx, const struct up *up, const struct ring_slot *slot,
                        uint32_t len, uint32_t peer, struct wire_header *h)
{
    const struct channel_foreign *f = job_table_foreign(up->job, peer);

    *h = (struct wire_header){
        .magic = WIRE_MAGIC,
        .version = WIRE_VERSION,
        .type = WIRE_DATA,
        .flow_channel = (uint8_t)tx->port->idx,
        .src_node = tx->port->node_id,
        .dst_node = up->job->nodes[up->job->world[peer].node].node_id,
        .src_epoch = tx->port->epoch,
        .flags = f ? WIRE_F_FOREIGN : 0,
        .job = f ? f->out : up->job->config.job,
        .len = len,
        .src_rank = up->world,
        .dst_rank = f ? peer - f->first : peer,
        .msg_kind = slot->kind,
        .msg_flags = slot->flags,
        .msg_context = slot->context,
        .msg_source = slot->source,
        .msg_tag = slot->tag,
        .msg_order = slot->order,
    };
}

/* To a rank of this node. 0 or TX_E_BLOCKED. */
static int tx_deliver(struct tx *tx, const struct up *up, const struct ring_slot *slot,
                      uint32_t len, uint32_t peer, const void *payload)
{
    const struct channel_job *job = up->job;
    const struct channel_foreign *f = job_table_foreign(job, peer);
    struct wire_header own;
    bool kept = false;

    tx_describe(tx, up, slot, len, peer, &own);
    if (f) {
        /* The other end of the connection is here, too. */
        const struct channel_foreign *other = job_table_foreign_in(tx->jobs, f->out);
        /* It is told to the channels before anybody hears of it: perhaps not read yet. */
        if (!other && cmd_pending(&tx->port->cmds))
            return TX_E_BLOCKED;
        if (!other || up->world >= other->n || own.dst_rank >= other->job->layout.shape.n_world ||
            job_table_slot(other->job, own.dst_rank) != 0) {
            count_add(&tx->port->count, COUNT_DROP_RANK, 1);
            return 0;
        }
        job = other->job;
        own.src_rank = (other->first + up->world) | other->places[up->world].stamp;
    }
    if (delivery_put(tx->delivery, &job->downs[job->world[own.dst_rank].local], &own, payload,
                     BLOCK_NONE, &kept) != 0)
        return TX_E_BLOCKED;
    count_add(&tx->port->count, COUNT_MSGS_LOCAL, 1);
    return 0;
}

/* To a rank of another node. 0 or TX_E_BLOCKED. */
static int tx_send(struct tx *tx, struct up *up, const struct ring_slot *slot, uint32_t len,
                   uint32_t peer, const void *payload)
{
    struct wire_header own;
    struct flow *f;
    int rc = backlog_admit(tx->backlog, up->job, peer, port_class(tx->port, len), &f);

    if (rc == BACKLOG_E_BLOCKED)
        return TX_E_BLOCKED;
    if (rc == BACKLOG_E_CLOSED) {
        tx_describe(tx, up, slot, len, peer, &own);
        return backlog_add(tx->backlog, up->job, &own, payload) == 0 ? 0 : TX_E_BLOCKED;
    }
    uint32_t block = pool_take(&tx->port->pool, BLOCK_FLOW);
    struct wire_header *h = port_header(tx->port, block);
    tx_describe(tx, up, slot, len, peer, h);
    memcpy(h + 1, payload, len);
    send_add(tx->backlog->sender, f, block);
    return 0;
}

/* Takes one message. 0, TX_E_BLOCKED, or TX_E_POISON. */
static int tx_take(struct tx *tx, struct up *up, const struct ring_slot *slot)
{
    const struct channel_job *job = up->job;
    /* Loaded once: the rank can write them while they are checked. */
    uint32_t len = __atomic_load_n(&slot->len, __ATOMIC_RELAXED);
    uint32_t peer = __atomic_load_n(&slot->peer, __ATOMIC_RELAXED);
    uint16_t data_line = __atomic_load_n(&slot->data_line, __ATOMIC_RELAXED);

    if (len > tx->port->packet_bytes)
        return tx_poison(up, "message longer than a packet");
    if (peer >= job_table_peers(job))
        return tx_poison(up, "destination rank that does not exist");
    const void *payload = ring_payload(&up->ring, slot, len, data_line);
    if (!payload)
        return tx_poison(up, "payload outside of the ring");

    int rc = 0;
    bool nobody = peer >= job->layout.shape.n_world && !job_table_foreign(job, peer);
    /* The rank is told of its peers when the channels have been: perhaps not read yet. */
    if (nobody && cmd_pending(&tx->port->cmds))
        rc = TX_E_BLOCKED;
    else if (nobody)
        count_add(&tx->port->count, COUNT_DROP_RANK, 1); /* of a job that is over */
    else if (job_table_slot(job, peer) == 0)
        rc = tx_deliver(tx, up, slot, len, peer, payload);
    else
        rc = tx_send(tx, up, slot, len, peer, payload);
    if (rc != 0)
        return rc;
    ring_advance(&up->ring, len);
    count_add(&tx->port->count, COUNT_MSGS_UP, 1);
    return 0;
}

static void tx_report_poison(struct tx *tx, struct up *up)
{
    struct cmd_event event = {
        .type = EVENT_POISONED, .job = up->job->config.job, .rank = up->world, .text = up->poison};

    if (up->poison && port_event(tx->port, &event))
        up->poison = NULL;
}

static uint32_t tx_drain(struct tx *tx, struct up *up, uint32_t budget)
{
    uint32_t n = 0;

    if (up->poisoned) {
        tx_report_poison(tx, up);
        return 0;
    }
    up->blocked = false;
    while (n < budget) {
        const struct ring_slot *slot = ring_peek(&up->ring);
        if (!slot)
            break;
        int rc = tx_take(tx, up, slot);
        if (rc == TX_E_BLOCKED) {
            up->blocked = true;
            break;
        }
        if (rc == TX_E_POISON) {
            count_add(&tx->port->count, COUNT_POISONED, 1);
            tx_report_poison(tx, up);
            break;
        }
        n++;
    }
    return n;
}

void tx_activate(struct tx *tx, struct up *up)
{
    if (up->gone)
        return;
    up->last_ns = tx->port->now_ns;
    if (up->active)
        return;
    up->active = true;
    if (up->known)
        list_remove(&up->node);
    up->known = true;
    list_append(&tx->active, &up->node);
    /* seq_cst: bell_notify reads it. A producer that saw 0 has rung the bell. */
    atomic_store_explicit(&up->ring.shared->active, 1, memory_order_seq_cst);
}

static void tx_quieten(struct tx *tx, struct up *up)
{
    up->active = false;
    list_remove(&up->node);
    list_append(&tx->quiet, &up->node);
    /* A producer that still saw 1 does not ring; the quiet rings are looked at, one per turn and
     * all before sleeping. */
    atomic_store_explicit(&up->ring.shared->active, 0, memory_order_seq_cst);
}

static void tx_hear_bells(struct tx *tx)
{
    list_foreach(it, &tx->jobs->all) {
        struct channel_job *job = list_entry(it, struct channel_job, node);
        for (uint32_t w = 0; w < job->n_words; w++) {
            uint64_t bits = bell_collect(job->bell, w);
            while (bits) {
                uint32_t r = w * 64 + (uint32_t)__builtin_ctzll(bits);
                bits &= bits - 1;
                /* Ranks can set any bit. */
                if (r < job->n_local)
                    tx_activate(tx, &job->ups[r]);
            }
        }
    }
}

uint32_t tx_poll(struct tx *tx, uint32_t budget)
{
    uint32_t n = 0;

    tx_hear_bells(tx);
    if (tx->backlog->n_queues > 0)
        n += backlog_poll(tx->backlog, budget);
    if (!list_empty(&tx->quiet)) {
        struct list *first = tx->quiet.next;
        list_remove(first);
        list_append(&tx->quiet, first);
        struct up *up = list_entry(first, struct up, node);
        if (!up->poisoned && ring_peek(&up->ring))
            tx_activate(tx, up);
    }
    struct list *last = tx->active.prev;
    list_foreach_safe(it, &tx->active) {
        if (n >= budget)
            break;
        struct up *up = list_entry(it, struct up, node);
        uint32_t got = tx_drain(tx, up, PER_RING);
        bool end = it == last;
        if (got > 0) {
            n += got;
            up->last_ns = tx->port->now_ns;
            if (tx->active.next != tx->active.prev) {
                /* Others have their turn before this one comes again. */
                list_remove(it);
                list_append(&tx->active, it);
            }
        } else if (!up->blocked && !up->draining && !up->poison &&
                   tx->port->now_ns - up->last_ns > QUIET_NS) {
            tx_quieten(tx, up);
        }
        if (end)
            break;
    }
    return n;
}

bool tx_has_work(const struct tx *tx)
{
    list_foreach(it, &tx->jobs->all) {
        struct channel_job *job = list_entry(it, struct channel_job, node);
        for (uint32_t w = 0; w < job->n_words; w++)
            if (atomic_load_explicit(&job->bell->rung[w], memory_order_acquire) != 0)
                return true;
    }
    list_foreach(it, &tx->active) {
        struct up *up = list_entry(it, struct up, node);
        if (!up->blocked && !up->poisoned && ring_peek(&up->ring))
            return true;
    }
    list_foreach(it, &tx->quiet) {
        struct up *up = list_entry(it, struct up, node);
        if (!up->poisoned && ring_peek(&up->ring))
            return true;
    }
    return false;
}

void tx_forget(struct up *up)
{
    if (up->known)
        list_remove(&up->node);
    up->known = false;
    up->gone = true;
}

bool tx_is_drained(struct up *up)
{
    return up->gone || up->poisoned ||
           (up->job->n_waiting[up->local] == 0 && !ring_peek(&up->ring));
}
