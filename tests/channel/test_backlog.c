/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that wait: at their destination for room in a rank's ring (channel/delivery), at their
 * source for credit or a way (channel/backlog). Every limit is met and none is passed; nothing is
 * lost, doubled or reordered within a queue, and all blocks come home.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/channel/backlog.h"
#include "daemon/channel/delivery.h"
#include "tests/channel/parts.h"

#define RANKS       4u /* 0 and 1 here, 2 and 3 on the neighbour */
#define JOB         99u
#define RING_SLOTS  8u
#define CHANNEL_MAX 24u /* blocks in all backlogs of one kind */
#define RANK_MAX    4u

static struct parts *p;
static struct acks acks;
static struct delivery delivery;
static struct job_table jobs;
static struct sender sender;
static struct backlog backlog;
static struct channel_job job;
static struct segment_world world[RANKS] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
static struct segment_node nodes[2];
static _Atomic uint8_t closed[RANKS];
static uint32_t n_waiting[2];
static struct down downs[2];
static struct ring_consumer rings[2];
static void *ring_memory[2];
static uint32_t data_end[2][RING_SLOTS];
static struct bell *bell;

static void open_ring(uint32_t r)
{
    const struct ring_shape shape = {.n_slots = RING_SLOTS, .data_bytes = 8192};
    struct bell_ref ref = {.bell = bell, .bit = r, .event_fd = -1};
    size_t n = ring_size(&shape);

    ring_memory[r] = aligned_alloc(64, n);
    assert_non_null(ring_memory[r]);
    memset(ring_memory[r], 0, n);
    downs[r] = (struct down){.job = &job, .local = r, .world = r};
    ring_producer_init(&downs[r].ring, ring_memory[r], &shape, data_end[r], &ref);
    ring_consumer_init(&rings[r], ring_memory[r], &shape);
    list_init(&downs[r].node);
}

static int setup(void **state)
{
    const struct send_config sc = {.limits = {.rto_min_ns = 20 * CLOCK_NS_PER_MS,
                                              .rto_max_ns = CLOCK_NS_PER_S,
                                              .window_initial = 32,
                                              .window_max = 512},
                                   .unreachable_after_ns = 10 * CLOCK_NS_PER_S};

    (void)state;
    p = parts_new(true);
    parts_add_link(p);
    parts_set_ways(p, 1, hop_pack(1, 0, 1, 65535), 0, 0);
    bell = aligned_alloc(64, sizeof *bell);
    assert_non_null(bell);
    memset(bell, 0, sizeof *bell);
    for (uint32_t r = 0; r < 2; r++)
        open_ring(r);
    nodes[0] = (struct segment_node){.node_id = PARTS_NODE, .slot = 0};
    nodes[1] = (struct segment_node){.node_id = PARTS_NODE + 1, .slot = 1};
    memset(closed, 0, sizeof closed);
    memset(n_waiting, 0, sizeof n_waiting);
    job = (struct channel_job){.config = {.job = JOB},
                               .layout.shape.n_world = sizeof world / sizeof *world,
                               .world = world,
                               .nodes = nodes,
                               .closed = closed,
                               .n_waiting = n_waiting,
                               .backlog_max = RANK_MAX,
                               .downs = downs,
                               .n_local = 2};
    job_table_init(&jobs);
    job_table_add(&jobs, &job);
    assert_int_equal(ack_init(&acks, &p->links, CLOCK_NS_PER_MS), 0);
    delivery_init(&delivery, &acks, &jobs, CHANNEL_MAX, CLOCK_NS_PER_S);
    assert_int_equal(send_init(&sender, &p->links, &jobs, &sc), 0);
    backlog_init(&backlog, &sender, CHANNEL_MAX);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    /* Blocks that are counted are those that wait. */
    assert_int_equal(job.n_blocks[JOB_BLOCKS_DELIVERING], delivery.n_blocks);
    assert_int_equal(job.n_blocks[JOB_BLOCKS_SENDING], backlog.n_waiting + backlog.n_refused);
    send_deinit(&sender);
    ack_deinit(&acks);
    for (uint32_t r = 0; r < 2; r++)
        free(ring_memory[r]);
    free(bell);
    parts_free(p);
    return 0;
}

static struct wire_header header(uint32_t to, uint32_t number, uint32_t len)
{
    return (struct wire_header){.magic = WIRE_MAGIC,
                                .version = WIRE_VERSION,
                                .type = WIRE_DATA,
                                .src_node = PARTS_NODE,
                                .dst_node = nodes[world[to].node].node_id,
                                .src_epoch = PARTS_EPOCH,
                                .job = JOB,
                                .len = len,
                                .dst_rank = to,
                                .msg_tag = (int32_t)number};
}

static const uint8_t payload[PARTS_PACKET];

static int deliver(uint32_t rank, uint32_t number, uint32_t len)
{
    struct wire_header h = header(rank, number, len);
    bool kept = false;
    int rc = delivery_put(&delivery, &downs[rank], &h, payload, BLOCK_NONE, &kept);

    assert_false(kept);
    return rc;
}

/* The tag of the next message in the rank's ring; -1: none. */
static int32_t read_ring(uint32_t rank)
{
    struct ring_slot *slot = ring_peek(&rings[rank]);

    if (!slot)
        return -1;
    int32_t tag = slot->tag;
    ring_advance(&rings[rank], slot->len);
    return tag;
}

/* A rank that reads nothing gets what its ring and its limit hold, and no more; then it reads. */
static void test_limit_of_a_rank(void **state)
{
    uint32_t n = 0, read = 0;

    (void)state;
    while (deliver(0, n, PARTS_PACKET) == 0) {
        assert_true(++n < 100);
        assert_true(downs[0].backlog.blocks.n <= RANK_MAX);
    }
    assert_int_equal(downs[0].backlog.blocks.n, RANK_MAX);
    assert_int_equal(delivery.n_blocks, RANK_MAX);
    assert_int_equal(p->port.pool.n_use[BLOCK_BACKLOG], RANK_MAX);
    /* Another one is not concerned. */
    assert_int_equal(deliver(1, 7, 8), 0);
    assert_int_equal(read_ring(1), 7);
    assert_false(delivery_has_work(&delivery));
    while (read < n) {
        int32_t tag = read_ring(0);
        if (tag >= 0)
            assert_int_equal(tag, (int32_t)read++);
        else
            assert_true(delivery_has_work(&delivery) && delivery_poll(&delivery) > 0);
    }
    assert_int_equal(deliver(0, n, 8), 0);
    assert_int_equal(read_ring(0), (int32_t)n);
    assert_int_equal(p->port.pool.n_use[BLOCK_BACKLOG], 0);
    assert_true(list_empty(&delivery.waiting));
}

/* Where there is room in the ring again, a message still goes behind those that wait. */
static void test_behind_those_that_wait(void **state)
{
    uint32_t n = 0, read = 0;

    (void)state;
    while (record_queue_empty(&downs[0].backlog))
        assert_int_equal(deliver(0, n++, PARTS_PACKET), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(read_ring(0), (int32_t)read++);
    assert_int_equal(deliver(0, n++, 8), 0);
    for (int i = 0; i < 100 && read < n; i++) {
        int32_t tag = read_ring(0);
        if (tag >= 0)
            assert_int_equal(tag, (int32_t)read++);
        else
            delivery_poll(&delivery);
    }
    assert_int_equal(read, n);
}

/* Ranks with large limits do not take more together than the channel has for them. */
static void test_limit_of_a_channel(void **state)
{
    uint32_t n[2] = {0, 0};

    (void)state;
    job.backlog_max = CHANNEL_MAX - 4;
    for (uint32_t r = 0; r < 2; r++)
        while (deliver(r, n[r], PARTS_PACKET) == 0)
            assert_true(++n[r] < 100);
    assert_int_equal(downs[0].backlog.blocks.n, CHANNEL_MAX - 4);
    assert_int_equal(downs[1].backlog.blocks.n, 4);
    assert_int_equal(delivery.n_blocks, CHANNEL_MAX);
    delivery_release(&delivery, &downs[0]);
    assert_int_equal(delivery.n_blocks, 4);
    assert_int_equal(downs[0].backlog.n_bytes, 0);
    delivery_release(&delivery, &downs[1]);
    assert_int_equal(p->port.pool.n_use[BLOCK_BACKLOG], 0);
}

/* One user's ranks that take nothing leave a part of the channel's blocks to those of other users.
 */
static void test_share_of_a_user(void **state)
{
    uint32_t n[2] = {0, 0};
    struct channel_job other = {.config = {.job = JOB + 1, .uid = 1001}};

    (void)state;
    job_table_add(&jobs, &other);
    job.config.uid = 1000;
    job.backlog_max = CHANNEL_MAX;
    for (uint32_t r = 0; r < 2; r++)
        while (deliver(r, n[r], PARTS_PACKET) == 0)
            assert_true(++n[r] < 100);
    assert_int_equal(delivery.n_blocks, CHANNEL_MAX - CHANNEL_MAX / 4);
    assert_int_equal(job.n_blocks[JOB_BLOCKS_DELIVERING], delivery.n_blocks);
    assert_true(job_table_may_keep(&jobs, &other, JOB_BLOCKS_DELIVERING, CHANNEL_MAX));
    assert_true(job_table_may_keep(&jobs, &job, JOB_BLOCKS_SENDING, CHANNEL_MAX));
    /* Another job of the same user has no share of its own; root's needs none. */
    other.config.uid = 1000;
    assert_false(job_table_may_keep(&jobs, &other, JOB_BLOCKS_DELIVERING, CHANNEL_MAX));
    other.config.uid = 0;
    assert_true(job_table_may_keep(&jobs, &other, JOB_BLOCKS_DELIVERING, CHANNEL_MAX));
    for (uint32_t r = 0; r < 2; r++)
        delivery_release(&delivery, &downs[r]);
    assert_int_equal(job.n_blocks[JOB_BLOCKS_DELIVERING], 0);
    job_table_remove(&jobs, &other);
}

/* A received packet becomes part of the backlog where it lies. */
static void test_packet_is_kept(void **state)
{
    uint32_t n = 0;

    (void)state;
    while (downs[0].backlog.blocks.n == 0)
        assert_int_equal(deliver(0, n++, PARTS_PACKET), 0);
    uint32_t block = pool_take(&p->port.pool, BLOCK_RECEIVE);
    struct wire_header *h = port_header(&p->port, block);
    bool kept = false;
    *h = header(0, n, PARTS_PACKET);
    assert_int_equal(delivery_put(&delivery, &downs[0], h, h + 1, block, &kept), 0);
    assert_true(kept);
    for (uint32_t i = 0; i <= n;) {
        int32_t tag = read_ring(0);
        if (tag >= 0)
            assert_int_equal(tag, (int32_t)i++);
        delivery_poll(&delivery);
    }
    assert_int_equal(p->port.pool.n_use[BLOCK_RECEIVE], 0);
    /* Whoever is gone takes everything, and keeps nothing. */
    downs[0].gone = true;
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(deliver(0, i, PARTS_PACKET), 0);
    assert_int_equal(delivery.n_blocks, 0);
}

/* Sources are told to stop when the backlog is high, and to go when it is empty; a rank that
 * refuses for long is named, once in a while. */
static void test_stop_and_go(void **state)
{
    struct wire_header in_header = {.src_epoch = PARTS_EPOCH};
    struct flow_in *in = ack_flow(&acks, 1, &in_header);
    struct cmd_event event;
    struct wire_header h;

    (void)state;
    for (uint32_t i = 0; downs[0].backlog.blocks.n <= RANK_MAX / 2; i++) {
        delivery_check_high(&delivery, &downs[0], in, JOB);
        assert_int_equal(in->stop_job, 0);
        assert_int_equal(deliver(0, i, PARTS_PACKET), 0);
    }
    delivery_check_high(&delivery, &downs[0], in, JOB);
    assert_int_equal(ack_poll(&acks, false), 1);
    parts_step(p, 10000);
    assert_true(parts_far_receive(p, &h));
    assert_int_equal(h.type, WIRE_ACK);
    assert_int_equal(h.job, JOB);
    assert_int_equal(h.dst_rank, 0);
    assert_int_equal(h.msg_context, 0);
    while (deliver(0, 0, PARTS_PACKET) == 0)
        ;
    while (cmd_pop_event(&p->port.cmds, &event))
        ;
    parts_step(p, 2 * CLOCK_NS_PER_S);
    for (int i = 0; i < 5; i++)
        assert_int_equal(deliver(0, 0, PARTS_PACKET), DELIVERY_E_REFUSED);
    assert_true(cmd_pop_event(&p->port.cmds, &event));
    assert_int_equal(event.type, EVENT_BACKLOG_OVERFLOW);
    assert_int_equal(event.rank, 0);
    assert_false(cmd_pop_event(&p->port.cmds, &event));
    while (read_ring(0) >= 0)
        delivery_poll(&delivery);
    assert_int_equal(downs[0].n_told, 0);
    assert_int_equal(ack_poll(&acks, false), 1);
    parts_step(p, 10000);
    assert_true(parts_far_receive(p, &h));
    assert_int_equal(h.job, JOB);
    assert_int_equal(h.msg_context, 1);
}

/* The word that the neighbour says of a rank. */
static void hear(uint32_t rank, bool go)
{
    struct wire_header h = {.job = JOB, .dst_rank = rank, .msg_context = go};

    backlog_on_word(&backlog, &h);
}

static int add(uint32_t rank, uint32_t number, uint32_t len)
{
    struct wire_header h = header(rank, number, len);

    return backlog_add(&backlog, &job, &h, payload);
}

/* What the far end gets: tags in order of sending. Acknowledges nothing. */
static uint32_t arrived(int32_t *ret_tags, uint32_t max)
{
    struct wire_header h;
    uint32_t n = 0;

    send_pump(&sender);
    parts_step(p, 10000);
    while (parts_far_receive(p, &h))
        if (h.type == WIRE_DATA && n < max)
            ret_tags[n++] = h.msg_tag;
    return n;
}

static void test_closed_while_stopped(void **state)
{
    struct flow *f;
    int32_t tags[64];

    (void)state;
    assert_int_equal(backlog_admit(&backlog, &job, 2, WIRE_QUICK, &f), 0);
    hear(2, false);
    assert_int_equal(backlog_admit(&backlog, &job, 2, WIRE_QUICK, &f), BACKLOG_E_CLOSED);
    assert_int_equal(backlog_admit(&backlog, &job, 3, WIRE_QUICK, &f), 0);
    for (uint32_t i = 0; i < 20; i++)
        assert_int_equal(add(2, i, 100), 0);
    assert_int_equal(atomic_load(&closed[2]), 1);
    assert_int_equal(atomic_load(&closed[3]), 0);
    assert_int_equal(n_waiting[0], 20);
    assert_int_equal(backlog_poll(&backlog, 64), 0);
    hear(2, true);
    /* Others wait for it: it stays behind them. */
    assert_int_equal(backlog_admit(&backlog, &job, 2, WIRE_QUICK, &f), BACKLOG_E_CLOSED);
    assert_int_equal(backlog_poll(&backlog, 5), 5);
    assert_int_equal(backlog_poll(&backlog, 64), 15);
    assert_int_equal(n_waiting[0], 0);
    assert_int_equal(atomic_load(&closed[2]), 0);
    assert_int_equal(backlog_admit(&backlog, &job, 2, WIRE_QUICK, &f), 0);
    assert_int_equal(arrived(tags, 64), 20);
    for (int32_t i = 0; i < 20; i++)
        assert_int_equal(tags[i], i);
    assert_true(backlog_empty(&backlog));
    assert_false(backlog_needs_time(&backlog));
}

/* The room for messages that wait ends where it should, and their blocks come home with the job. */
static void test_limit_at_the_source(void **state)
{
    struct flow *f;
    uint32_t n = 0;

    (void)state;
    hear(2, false);
    for (; add(2, n, PARTS_PACKET) == 0; n++)
        assert_true(backlog.n_waiting <= CHANNEL_MAX);
    assert_int_equal(n, CHANNEL_MAX);
    assert_int_equal(backlog.n_waiting, CHANNEL_MAX);
    assert_int_equal(add(3, 0, 8), BACKLOG_E_FULL);
    assert_int_equal(atomic_load(&closed[3]), 0);
    assert_int_equal(backlog.n_queues, 1);
    /* What waits counts against the flows. */
    for (n = 0; backlog_admit(&backlog, &job, 3, WIRE_QUICK, &f) == 0; n++)
        pool_take(&p->port.pool, BLOCK_FLOW);
    assert_int_equal(n, CHANNEL_MAX);
    assert_int_equal(backlog_admit(&backlog, &job, 3, WIRE_QUICK, &f), BACKLOG_E_BLOCKED);
    backlog_release(&backlog, &job);
    assert_int_equal(p->port.pool.n_use[BLOCK_BACKLOG], 0);
    assert_int_equal(atomic_load(&closed[2]), 0);
    assert_true(backlog_empty(&backlog));
}

static uint32_t send_one(uint32_t rank, uint32_t number)
{
    struct flow *f;

    assert_int_equal(backlog_admit(&backlog, &job, rank, WIRE_QUICK, &f), 0);
    uint32_t block = pool_take(&p->port.pool, BLOCK_FLOW);
    *port_header(&p->port, block) = header(rank, number, 0);
    send_add(&sender, f, block);
    return port_header(&p->port, block)->seq;
}

static void refuse(uint32_t seq, uint32_t rank)
{
    struct wire_header note = {.src_epoch = PARTS_EPOCH, .seq = seq, .job = JOB, .dst_rank = rank};

    backlog_on_refuse(&backlog, 1, &note);
}

/* A refused message comes back, its number goes on empty, and it is sent again before new ones. */
static void test_refused(void **state)
{
    int32_t tags[8];
    struct flow *f;
    uint32_t seq = send_one(2, 41);

    (void)state;
    assert_int_equal(arrived(tags, 8), 1);
    refuse(seq + 1, 2);
    refuse(seq, 3);
    assert_int_equal(backlog.n_refused, 0);
    refuse(seq, 2);
    assert_int_equal(backlog.n_refused, 1);
    assert_int_equal(atomic_load(&closed[2]), 1);
    refuse(seq, 2); /* again: its number is empty already */
    assert_int_equal(backlog.n_refused, 1);
    assert_int_equal(backlog_admit(&backlog, &job, 2, WIRE_QUICK, &f), BACKLOG_E_CLOSED);
    assert_int_equal(add(2, 42, 0), 0);
    backlog_poll(&backlog, 64);
    assert_int_equal(arrived(tags, 8), 1); /* the empty one */
    assert_int_equal(tags[0], 41);
    hear(2, true);
    backlog_poll(&backlog, 64);
    assert_int_equal(arrived(tags, 8), 2);
    assert_int_equal(tags[0], 41);
    assert_int_equal(tags[1], 42);
    assert_true(backlog_empty(&backlog));
    assert_int_equal(p->port.pool.n_use[BLOCK_BACKLOG], 0);
    assert_int_equal(p->port.pool.n_use[BLOCK_FLOW], 3);
}

/* With its job, a refused message is thrown away. */
static void test_refused_and_over(void **state)
{
    int32_t tags[8];
    uint32_t first = send_one(2, 1), second = send_one(2, 2);

    (void)state;
    arrived(tags, 8);
    refuse(first, 2);
    assert_int_equal(backlog.n_refused, 1);
    backlog_release(&backlog, &job);
    job_table_remove(&jobs, &job);
    assert_int_equal(backlog.n_refused, 0);
    refuse(second, 2);
    assert_int_equal(backlog.n_refused, 0);
    assert_int_equal(p->port.pool.n_use[BLOCK_BACKLOG], 0);
    assert_int_equal(p->port.pool.n_use[BLOCK_FLOW], 2);
    hear(2, true);
    assert_int_equal(backlog.credit.n, 0);
}

/* What could not be sent goes again in the next turn, and not when its time is over. */
static void test_sending_fails(void **state)
{
    int32_t tags[8];
    uint32_t seq = send_one(2, 5);
    struct flow *f = send_flow(&sender, 1, WIRE_QUICK);

    (void)state;
    assert_true(send_has_work(&sender));
    assert_int_equal(arrived(tags, 8), 1);
    assert_false(send_has_work(&sender));
    port_block_done(&p->port, flow_tx_packet(&f->tx, seq)->block, -EIO);
    assert_true(send_has_work(&sender));
    assert_int_equal(arrived(tags, 8), 1);
    assert_int_equal(tags[0], 5);
    assert_false(send_has_work(&sender));
    assert_int_equal(arrived(tags, 8), 0);
    /* One that its flow has given up meanwhile is nobody's any more. */
    port_block_done(&p->port, flow_tx_packet(&f->tx, seq)->block, -EIO);
    struct wire_header ack = {.src_epoch = PARTS_EPOCH,
                              .len = offsetof(struct wire_ack, selective)};
    struct {
        struct wire_header h;
        struct wire_ack ack;
    } note = {.h = ack, .ack = {.cumulative = seq}};
    assert_true(send_on_ack(&sender, 1, &note.h));
    assert_int_equal(p->port.pool.n_use[BLOCK_FLOW], 0);
    assert_int_equal(arrived(tags, 8), 0);
    note.h.src_epoch++;
    assert_false(send_on_ack(&sender, 1, &note.h));
}

static uint32_t send_class(enum wire_class cls, uint32_t number)
{
    struct flow *f = send_flow(&sender, 1, cls);
    uint32_t block = pool_take(&p->port.pool, BLOCK_FLOW);

    *port_header(&p->port, block) = header(2, number, cls == WIRE_BULK ? PARTS_PACKET : 8);
    send_add(&sender, f, block);
    return port_header(&p->port, block)->seq;
}

static void acknowledge(enum wire_class cls, uint32_t cumulative)
{
    struct {
        struct wire_header h;
        struct wire_ack ack;
    } note = {.h = {.src_epoch = PARTS_EPOCH,
                    .flow_class = (uint8_t)cls,
                    .len = offsetof(struct wire_ack, selective)},
              .ack = {.cumulative = cumulative}};

    assert_true(send_on_ack(&sender, 1, &note.h));
}

/* The two classes count for themselves, what is said of one does not touch the other, and neither
 * keeps all the blocks. */
static void test_two_classes(void **state)
{
    int32_t tags[16];
    struct flow *f;

    (void)state;
    for (uint32_t i = 1; i <= 3; i++) {
        assert_int_equal(send_class(WIRE_BULK, 10 + i), i);
        assert_int_equal(send_class(WIRE_QUICK, 20 + i), i);
    }
    assert_int_equal(arrived(tags, 16), 6);
    assert_int_equal(sender.n_pending[WIRE_QUICK], 3);
    assert_int_equal(sender.n_pending[WIRE_BULK], 3);
    acknowledge(WIRE_QUICK, 2);
    assert_int_equal(sender.n_pending[WIRE_QUICK], 1);
    assert_int_equal(sender.n_pending[WIRE_BULK], 3);
    assert_int_equal(p->port.pool.n_use[BLOCK_FLOW], 4);
    /* Number 3 is open in both: only the quick one is refused. */
    refuse(3, 2);
    assert_int_equal(backlog.n_refused, 1);
    assert_int_equal(arrived(tags, 16), 1);
    assert_int_equal(tags[0], 23);
    acknowledge(WIRE_QUICK, 3);
    acknowledge(WIRE_BULK, 3);
    hear(2, true);
    backlog_poll(&backlog, 8);
    assert_int_equal(arrived(tags, 16), 1);
    assert_int_equal(tags[0], 23);
    assert_int_equal(send_flow(&sender, 1, WIRE_QUICK)->tx.next, 5);
    assert_int_equal(send_flow(&sender, 1, WIRE_BULK)->tx.next, 4);
    acknowledge(WIRE_QUICK, 4);
    assert_int_equal(sender.n_pending[WIRE_QUICK], 0);
    assert_int_equal(p->port.pool.n_use[BLOCK_FLOW], 0);

    sender.n_pending[WIRE_BULK] = 2 * CHANNEL_MAX - 2 * CHANNEL_MAX / 8;
    assert_int_equal(backlog_admit(&backlog, &job, 2, WIRE_BULK, &f), BACKLOG_E_BLOCKED);
    assert_int_equal(backlog_admit(&backlog, &job, 2, WIRE_QUICK, &f), 0);
    assert_ptr_equal(f, send_flow(&sender, 1, WIRE_QUICK));
}

/* A node without a way gets some packets to wait in its flow, then its ranks are closed. */
static void test_node_without_a_way(void **state)
{
    struct flow *f;
    uint32_t n = 0;

    (void)state;
    relay_remove_link(&p->relay, 1);
    while (backlog_admit(&backlog, &job, 2, WIRE_QUICK, &f) == 0) {
        assert_true(n < 60);
        send_one(2, n++);
        send_pump(&sender);
    }
    assert_int_equal(backlog_admit(&backlog, &job, 2, WIRE_QUICK, &f), BACKLOG_E_CLOSED);
    assert_int_equal(n, 32);
    p->port.now_ns += 11 * CLOCK_NS_PER_S;
    send_no_route(&sender);
    assert_int_equal(p->port.pool.n_use[BLOCK_FLOW], 0);
    struct cmd_event event;
    assert_true(cmd_pop_event(&p->port.cmds, &event));
    assert_int_equal(event.type, EVENT_UNREACHABLE);
    assert_int_equal(event.value, 32);
}

static void test_jobs_known_and_unknown(void **state)
{
    (void)state;
    assert_true(job_table_find(&jobs, JOB) == &job);
    assert_null(job_table_find(&jobs, JOB + 1));
    assert_true(job_table_may_come(&jobs, JOB + 1, CLOCK_NS_PER_S));
    assert_true(job_table_may_come(&jobs, JOB + 1, 10 * CLOCK_NS_PER_S));
    assert_false(job_table_may_come(&jobs, JOB + 1, 12 * CLOCK_NS_PER_S));
    job_table_remove(&jobs, &job);
    assert_null(job_table_find(&jobs, JOB));
    assert_false(job_table_may_come(&jobs, JOB, CLOCK_NS_PER_S));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_limit_of_a_rank, setup, teardown),
        cmocka_unit_test_setup_teardown(test_behind_those_that_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limit_of_a_channel, setup, teardown),
        cmocka_unit_test_setup_teardown(test_share_of_a_user, setup, teardown),
        cmocka_unit_test_setup_teardown(test_packet_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stop_and_go, setup, teardown),
        cmocka_unit_test_setup_teardown(test_closed_while_stopped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limit_at_the_source, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused_and_over, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sending_fails, setup, teardown),
        cmocka_unit_test_setup_teardown(test_two_classes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_node_without_a_way, setup, teardown),
        cmocka_unit_test_setup_teardown(test_jobs_known_and_unknown, setup, teardown),
    };

    log_set_level(LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
