/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/channel/backlog.h"

#include <assert.h>
#include <string.h>

/* Between two looks at the messages that were refused. */
#define RETRY_NS CLOCK_NS_PER_MS
/* Packets kept for a node to which there is no way now. */
#define STRANDED_MAX 32u
/* Neither class gets the last eighth of the blocks that flows may keep: it is the other one's. */
#define CLASS_KEEPS 8u

void backlog_init(struct backlog *b, struct sender *sender, uint32_t blocks_max)
{
    *b = (struct backlog){
        .port = sender->port, .sender = sender, .jobs = sender->jobs, .blocks_max = blocks_max};
}

/* By which number and rank their node speaks of this peer of a job. */
static uint32_t backlog_name(const struct channel_job *job, uint32_t peer, uint64_t *ret_number)
{
    const struct channel_foreign *f = job_table_foreign(job, peer);

    *ret_number = f ? f->out : job->config.job;
    return f ? peer - f->first : peer;
}

static struct backlog_queue *backlog_find(struct backlog *b, const struct channel_job *job,
                                          uint32_t rank)
{
    for (uint32_t i = 0; i < b->n_queues; i++)
        if (b->queues[i].rank == rank && b->queues[i].job == job)
            return &b->queues[i];
    return NULL;
}

/* The queue of this rank, made if there is none; NULL: the table is full. */
static struct backlog_queue *backlog_open(struct backlog *b, struct channel_job *job, uint32_t rank)
{
    struct backlog_queue *q = backlog_find(b, job, rank);

    if (q || b->n_queues == BACKLOG_QUEUES)
        return q;
    q = &b->queues[b->n_queues++];
    *q = (struct backlog_queue){.job = job, .rank = rank};
    return q;
}

static void backlog_set_closed(const struct backlog_queue *q, uint8_t closed)
{
    /* relaxed: a rank that sees it late sends a message more or waits a millisecond more. */
    atomic_store_explicit(&q->job->closed[q->rank], closed, memory_order_relaxed);
}

static void backlog_forget(struct backlog *b, struct backlog_queue *q)
{
    assert(record_queue_empty(&q->waiting) && record_queue_empty(&q->refused));
    backlog_set_closed(q, 0);
    *q = b->queues[--b->n_queues];
}

static uint32_t *backlog_count_of(const struct backlog_queue *q, const struct wire_header *h)
{
    return &q->job->n_waiting[q->job->world[h->src_rank].local];
}

/* As backlog_admit, whatever waits already. */
static int backlog_may_go(struct backlog *b, const struct channel_job *job, uint32_t rank,
                          enum wire_class cls, struct flow **ret_flow)
{
    const struct pool *pool = &b->port->pool;
    struct flow *f = send_flow(b->sender, job_table_slot(job, rank), cls);
    uint32_t blocks_max = 2 * b->blocks_max;

    /* A node that cannot be reached must not take the blocks that others need. */
    if (f->no_route_ns != 0 && flow_tx_pending(&f->tx) >= STRANDED_MAX)
        return BACKLOG_E_CLOSED;
    if (!send_has_room(b->sender, f) ||
        b->sender->n_pending[cls] >= blocks_max - blocks_max / CLASS_KEEPS ||
        pool->n_use[BLOCK_FLOW] + pool->n_use[BLOCK_ORPHAN] + b->n_waiting + b->n_refused >=
            blocks_max)
        return BACKLOG_E_BLOCKED;
    if (b->credit.n > 0) {
        uint64_t number;
        uint32_t theirs = backlog_name(job, rank, &number);
        if (!credit_take(&b->credit, number, theirs, b->port->now_ns))
            return BACKLOG_E_CLOSED;
    }
    *ret_flow = f;
    return 0;
}

int backlog_admit(struct backlog *b, const struct channel_job *job, uint32_t rank,
                  enum wire_class cls, struct flow **ret_flow)
{
    if (b->n_queues > 0 && backlog_find(b, job, rank))
        return BACKLOG_E_CLOSED;
    return backlog_may_go(b, job, rank, cls, ret_flow);
}

int backlog_add(struct backlog *b, struct channel_job *job, const struct wire_header *h,
                const void *payload)
{
    const struct arena *arena = b->port->arena;
    uint32_t n_before = b->n_queues, peer;
    const struct channel_job *sender = job_table_sender(b->jobs, h, &peer);
    struct backlog_queue *q = sender == job ? backlog_open(b, job, peer) : NULL;

    if (!q)
        return BACKLOG_E_FULL;
    if (!record_queue_append(&q->waiting, arena, h, payload)) {
        bool may = b->n_waiting < b->blocks_max && !port_is_short(b->port) &&
                   job_table_may_keep(b->jobs, job, JOB_BLOCKS_SENDING, b->blocks_max);
        uint32_t block = may ? pool_take(&b->port->pool, BLOCK_BACKLOG) : BLOCK_NONE;
        if (block == BLOCK_NONE) {
            if (b->n_queues > n_before)
                backlog_forget(b, q);
            return BACKLOG_E_FULL;
        }
        record_queue_append_block(&q->waiting, arena, block, h, payload);
        b->n_waiting++;
        job->n_blocks[JOB_BLOCKS_SENDING]++;
    }
    (*backlog_count_of(q, h))++;
    backlog_set_closed(q, 1);
    count_add(&b->port->count, COUNT_ASIDE, 1);
    return 0;
}

void backlog_on_word(struct backlog *b, const struct wire_header *h)
{
    if (h->job == 0)
        return;
    if (h->msg_context != 0) {
        credit_go(&b->credit, h->job, h->dst_rank);
        b->retry_ns = 0;
        return;
    }
    count_add(&b->port->count, COUNT_STOPS, 1);
    credit_stop(&b->credit, h->job, h->dst_rank, b->port->now_ns);
}

void backlog_on_refuse(struct backlog *b, uint32_t src_slot, const struct wire_header *h)
{
    const struct wire_header *message = send_refused(b->sender, src_slot, h);

    if (!message)
        return;
    uint32_t peer;
    struct channel_job *job = job_table_sender(b->jobs, message, &peer);
    if (!job) {
        /* Nobody waits for it any more. */
        uint32_t block = send_take_back(b->sender, src_slot, h);
        if (block != BLOCK_NONE)
            pool_give(&b->port->pool, block);
        return;
    }
    struct backlog_queue *q = backlog_open(b, job, peer);
    if (!q || !credit_refuse(&b->credit, h->job, h->dst_rank, b->port->now_ns))
        return;
    uint32_t block = send_take_back(b->sender, src_slot, h);
    if (block == BLOCK_NONE) {
        credit_drop_refused(&b->credit, h->job, h->dst_rank);
        return;
    }
    pool_change(&b->port->pool, block, BLOCK_BACKLOG);
    record_queue_keep_block(&q->refused, b->port->arena, block);
    b->n_refused++;
    job->n_blocks[JOB_BLOCKS_SENDING]++;
    backlog_set_closed(q, 1);
}

/* Sends the first refused message of the queue again; false: not now. */
static bool backlog_send_refused(struct backlog *b, struct backlog_queue *q)
{
    const struct wire_header *h = record_queue_first(&q->refused, b->port->arena);
    struct flow *f =
        send_flow(b->sender, job_table_slot(q->job, q->rank), port_class(b->port, h->len));

    if (f->no_route_ns != 0 || flow_tx_room(&f->tx) == 0 ||
        !credit_take_refused(&b->credit, h->job, h->dst_rank, b->port->now_ns))
        return false;
    uint32_t block = record_queue_advance(&q->refused, b->port->arena);
    assert(block != BLOCK_NONE && b->n_refused > 0);
    b->n_refused--;
    q->job->n_blocks[JOB_BLOCKS_SENDING]--;
    pool_change(&b->port->pool, block, BLOCK_FLOW);
    send_add(b->sender, f, block);
    return true;
}

/* Sends the first waiting message of the queue; false: not now. */
static bool backlog_send_waiting(struct backlog *b, struct backlog_queue *q)
{
    const struct arena *arena = b->port->arena;
    const struct wire_header *h = record_queue_first(&q->waiting, arena);
    struct flow *f;

    if (backlog_may_go(b, q->job, q->rank, port_class(b->port, h->len), &f) != 0)
        return false;
    uint32_t block = pool_take(&b->port->pool, BLOCK_FLOW);
    memcpy(arena_at(arena, block), h, sizeof *h + h->len);
    (*backlog_count_of(q, h))--;
    send_add(b->sender, f, block);
    uint32_t empty = record_queue_advance(&q->waiting, arena);
    if (empty != BLOCK_NONE) {
        assert(b->n_waiting > 0);
        b->n_waiting--;
        q->job->n_blocks[JOB_BLOCKS_SENDING]--;
        pool_give(&b->port->pool, empty);
    }
    return true;
}

uint32_t backlog_poll(struct backlog *b, uint32_t budget)
{
    uint64_t number;
    bool retry = b->n_refused > 0 && b->port->now_ns >= b->retry_ns;
    uint32_t n = 0;

    if (retry)
        b->retry_ns = b->port->now_ns + RETRY_NS;
    /* From the end: backlog_forget() puts the last one in the place of the one that goes. */
    for (uint32_t i = b->n_queues; i-- > 0;) {
        struct backlog_queue *q = &b->queues[i];
        while (retry && !record_queue_empty(&q->refused) && backlog_send_refused(b, q))
            ;
        while (!record_queue_empty(&q->waiting) && n < budget && backlog_send_waiting(b, q))
            n++;
        /* While it is stopped it stays closed: the next burst would come here again. */
        uint32_t theirs = backlog_name(q->job, q->rank, &number);
        if (record_queue_empty(&q->waiting) && record_queue_empty(&q->refused) &&
            !credit_is_stopped(&b->credit, number, theirs))
            backlog_forget(b, q);
    }
    return n;
}

void backlog_age(struct backlog *b)
{
    if (b->credit.n > 0)
        credit_age(&b->credit, b->port->now_ns);
}

void backlog_release(struct backlog *b, const struct channel_job *job)
{
    const struct arena *arena = b->port->arena;
    uint64_t number;
    uint32_t block;

    for (uint32_t i = b->n_queues; i-- > 0;) {
        struct backlog_queue *q = &b->queues[i];
        if (q->job != job)
            continue;
        uint32_t theirs = backlog_name(q->job, q->rank, &number);
        while ((block = record_queue_drop_block(&q->waiting, arena)) != BLOCK_NONE) {
            b->n_waiting--;
            q->job->n_blocks[JOB_BLOCKS_SENDING]--;
            pool_give(&b->port->pool, block);
        }
        while ((block = record_queue_drop_block(&q->refused, arena)) != BLOCK_NONE) {
            b->n_refused--;
            q->job->n_blocks[JOB_BLOCKS_SENDING]--;
            credit_drop_refused(&b->credit, number, theirs);
            pool_give(&b->port->pool, block);
        }
        backlog_forget(b, q);
    }
}

bool backlog_has_any(const struct backlog *b, const struct channel_job *job, uint32_t first,
                     uint32_t n)
{
    for (uint32_t i = 0; i < b->n_queues; i++)
        if (b->queues[i].job == job && b->queues[i].rank - first < n &&
            !(record_queue_empty(&b->queues[i].waiting) &&
              record_queue_empty(&b->queues[i].refused)))
            return true;
    return false;
}

void backlog_forget_peers(struct backlog *b, const struct channel_job *job, uint32_t first,
                          uint32_t n)
{
    for (uint32_t i = b->n_queues; i-- > 0;)
        if (b->queues[i].job == job && b->queues[i].rank - first < n)
            backlog_forget(b, &b->queues[i]);
}
