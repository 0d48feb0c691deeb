/* SPDX-License-Identifier: BSD-3-Clause */
/* The port and what stands on it: slots, blocks on their way home, links, ways, relaying. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "daemon/port/way.h"
#include "tests/channel/parts.h"

static struct parts *p;

static int setup(void **state)
{
    (void)state;
    p = parts_new(true);
    return 0;
}

static int setup_stream(void **state)
{
    (void)state;
    p = parts_new(false);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    parts_free(p);
    return 0;
}

static uint64_t counted(enum count_id id)
{
    return count_get(&p->port.count, id);
}

static void test_slots(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < PARTS_NODES; i++)
        assert_int_equal(port_slot_of(&p->port, PARTS_NODE + i), i);
    assert_int_equal(port_slot_of(&p->port, 0), UINT32_MAX);
    assert_int_equal(port_slot_of(&p->port, 12345), UINT32_MAX);
    /* One that comes later, with the place of another one in the table. */
    atomic_store(&p->hops->entries[PARTS_NODES].node_id, PARTS_NODE + 2 * HOP_MAX_NODES);
    assert_int_equal(port_slot_of(&p->port, PARTS_NODE + 2 * HOP_MAX_NODES), UINT32_MAX);
    atomic_store(&p->hops->n_slots, PARTS_NODES + 1);
    assert_int_equal(port_slot_of(&p->port, PARTS_NODE + 2 * HOP_MAX_NODES), PARTS_NODES);
    assert_int_equal(port_slot_of(&p->port, PARTS_NODE), 0);
}

static void test_blocks_come_home(void **state)
{
    uint32_t note = pool_take(&p->port.pool, BLOCK_NOTE);
    uint32_t flow = pool_take(&p->port.pool, BLOCK_FLOW);
    uint32_t value;

    (void)state;
    p->port.arena->blocks[flow].out = true;
    port_block_done(&p->port, note, -EIO);
    assert_int_equal(p->port.pool.n_use[BLOCK_NOTE], 0);
    port_block_done(&p->port, flow, 0);
    assert_false(p->port.arena->blocks[flow].out);
    assert_int_equal(p->port.n_lost, 0);
    /* Lost twice before anybody looks: once in the list. */
    port_block_done(&p->port, flow, -EIO);
    port_block_done(&p->port, flow, -EIO);
    assert_int_equal(p->port.n_lost, 1);
    assert_int_equal(p->port.lost[0], flow);
    assert_int_equal(p->port.pool.n_use[BLOCK_FLOW], 1);
    /* One of the other channel's goes to it, with word of how it went. */
    port_block_done(&p->port, PARTS_BLOCKS + 3, -EIO);
    port_block_done(&p->port, PARTS_BLOCKS + 4, 0);
    assert_true(handover_pop(hub_back(p->hub, 0, 1), &value));
    assert_int_equal(value, (PARTS_BLOCKS + 3) | HANDOVER_BIT);
    assert_true(handover_pop(hub_back(p->hub, 0, 1), &value));
    assert_int_equal(value, PARTS_BLOCKS + 4);
    assert_false(handover_pop(hub_back(p->hub, 0, 1), &value));
}

static void test_receive_owner(void **state)
{
    struct wire_header one = {.flow_channel = 1}, zero = {.flow_channel = 0};

    (void)state;
    assert_int_equal(hub_rx_owner(p->hub, 3, &one, 1), 1);
    assert_int_equal(hub_rx_owner(p->hub, 3, &one, 0), 1);
    assert_int_equal(hub_rx_owner(p->hub, 3, &zero, 0), 0);
    one.flow_class = WIRE_BULK;
    assert_int_equal(hub_rx_owner(p->hub, 3, &one, 0), 0);
}

/* A way over a link that is not there, or not any more, is none. */
static void test_way_over_dead_link(void **state)
{
    hop_word here = hop_pack(1, 0, 1, 65535), other = hop_pack(2, 1, 1, 65535);
    uint32_t count = 0;

    (void)state;
    parts_set_ways(p, 3, here, here, 0);
    for (int own = 0; own < 2; own++)
        for (uint32_t len = 100; len < 100000; len *= 10)
            assert_int_equal(way_choose(&p->links, 3, len, &count, own), HOP_NONE);
    parts_add_link(p);
    for (int own = 0; own < 2; own++)
        for (uint32_t len = 100; len < 100000; len *= 10)
            assert_true(way_choose(&p->links, 3, len, &count, own) == here);
    /* Another channel's links are its own matter. */
    parts_set_ways(p, 4, here, here, other);
    relay_remove_link(&p->relay, 1);
    assert_int_equal(way_choose(&p->links, 3, 100, &count, true), HOP_NONE);
    assert_true(way_choose(&p->links, 4, 100, &count, true) == other);
    assert_true(way_choose(&p->links, 4, 10000, &count, false) == other);
    parts_add_link(p);
    p->port.net_lost = true;
    assert_int_equal(way_choose(&p->links, 3, 100, &count, true), HOP_NONE);
}

/* Words that lead nowhere are no way. */
static void test_way_over_nonsense(void **state)
{
    hop_word bad[] = {hop_pack(0, 0, 1, 1), hop_pack(HOP_MAX_NODES, 0, 1, 1), hop_pack(1, 2, 1, 1),
                      hop_pack(1, 254, 1, 1)};
    uint32_t count = 0;

    (void)state;
    parts_add_link(p);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        parts_set_ways(p, 3, bad[i], bad[i], 0);
        assert_int_equal(way_choose(&p->links, 3, 100, &count, false), HOP_NONE);
        assert_int_equal(way_choose(&p->links, 3, 100000, &count, true), HOP_NONE);
    }
}

/* Small packets take the quick way, large ones the wide ways by their shares, and a rank's packet
 * ways out of the channel that the rank chose. */
static void test_way_choice(void **state)
{
    hop_word quick = hop_pack(1, 0, 1, 65535), wide0 = hop_pack(1, 0, 1, 16383),
             wide1 = hop_pack(2, 1, 1, 49150);
    uint32_t count = 0, n = 0;

    (void)state;
    parts_add_link(p);
    parts_set_ways(p, 3, quick, wide0, wide1);
    assert_true(way_choose(&p->links, 3, 4096 + sizeof(struct wire_header), &count, false) ==
                quick);
    assert_int_equal(count, 0);
    for (int i = 0; i < 4000; i++)
        n += way_choose(&p->links, 3, 16384, &count, false) == wide1;
    assert_true(n > 2900 && n < 3100);
    for (int i = 0; i < 100; i++)
        assert_true(way_choose(&p->links, 3, 16384, &count, true) == wide0);
    /* Three of them: a quarter, a half, a quarter. */
    hop_word wide2 = hop_pack(3, 1, 1, 16383);
    uint32_t n_each[3] = {0};
    parts_set_ways(p, 4, quick, wide0, hop_pack(2, 1, 1, 32767));
    atomic_store(&p->hops->entries[4].wide[2], wide2);
    for (int i = 0; i < 4000; i++) {
        hop_word way = way_choose(&p->links, 4, 16384, &count, false);
        n_each[way == wide0 ? 0 : way == wide2 ? 2 : 1]++;
    }
    assert_true(n_each[0] > 900 && n_each[0] < 1100);
    assert_true(n_each[1] > 1900 && n_each[1] < 2100);
    parts_set_ways(p, 3, quick, 0, 0);
    assert_true(way_choose(&p->links, 3, 16384, &count, false) == quick);
}

static void test_relay(void **state)
{
    hop_word here = hop_pack(1, 0, 1, 65535);
    struct wire_header h;

    (void)state;
    parts_add_link(p);
    parts_set_ways(p, 3, here, 0, 0);
    uint32_t block = parts_packet(p, BLOCK_RECEIVE, 2, 3, 100);
    relay_forward(&p->relay, block, (uint32_t)sizeof h + 100);
    parts_step(p, 10000);
    assert_true(parts_far_receive(p, &h));
    assert_int_equal(wire_verify(&h, (uint32_t)sizeof h + 100), 0);
    assert_int_equal(h.hops_left, WIRE_MAX_HOPS - 1);
    assert_int_equal(counted(COUNT_FORWARDED), 1);
    /* Nodes that are not known, or without a way. */
    relay_forward(&p->relay, parts_packet(p, BLOCK_RECEIVE, 2, 77, 0), sizeof h);
    assert_int_equal(counted(COUNT_DROP_NODE), 1);
    relay_forward(&p->relay, parts_packet(p, BLOCK_RECEIVE, 2, 4, 0), sizeof h);
    assert_int_equal(counted(COUNT_DROP_ROUTE), 1);
    parts_step(p, 10000);
    assert_false(parts_far_receive(p, &h));
    assert_int_equal(p->port.pool.n_use[BLOCK_RECEIVE], 0);
}

/* A packet that goes round and round ends. */
static void test_relay_hops(void **state)
{
    struct wire_header h = {.hops_left = WIRE_MAX_HOPS};
    uint32_t n = 0;

    (void)state;
    parts_add_link(p);
    parts_set_ways(p, 3, hop_pack(1, 0, 1, 65535), 0, 0);
    for (bool alive = true; alive; n++) {
        uint32_t block = parts_packet(p, BLOCK_RECEIVE, 2, 3, 0);
        assert_true(n <= WIRE_MAX_HOPS);
        port_header(&p->port, block)->hops_left = h.hops_left;
        relay_forward(&p->relay, block, sizeof h);
        parts_step(p, 10000);
        alive = parts_far_receive(p, &h);
    }
    assert_int_equal(n, WIRE_MAX_HOPS);
    assert_int_equal(counted(COUNT_DROP_HOPS), 1);
    assert_int_equal(counted(COUNT_FORWARDED), WIRE_MAX_HOPS - 1);
}

/* Where a connection takes no more, packets queue; forwarded ones up to the limit, our own beyond
 * it. Long queues are marked. When the link goes, all come back. */
static void test_link_queue(void **state)
{
    uint32_t n = 0;

    (void)state;
    parts_add_link(p);
    parts_set_ways(p, 3, hop_pack(1, 0, 1, 65535), 0, 0);
    net_sim_cut(p->network, p->far_address, true);
    for (; counted(COUNT_DROP_QUEUE) == 0; n++) {
        assert_true(n < PARTS_BLOCKS);
        relay_forward(&p->relay, parts_packet(p, BLOCK_RECEIVE, 2, 3, 1000),
                      sizeof(struct wire_header) + 1000);
    }
    assert_int_equal(p->links.table[1].out[WIRE_BULK].queue.n, p->relay.queue_max);
    assert_int_equal(p->links.table[1].out[WIRE_BULK].n_driver + p->relay.queue_max + 1, n);
    uint32_t block = parts_packet(p, BLOCK_RECEIVE, 2, 3, 0);
    p->port.arena->held[block].slot = 1;
    relay_given(&p->relay, block);
    assert_int_equal(counted(COUNT_DROP_QUEUE), 2);
    for (n = p->relay.queue_max; n < 70 && p->port.pool.n_free > 0; n++) {
        block = parts_packet(p, BLOCK_NOTE, 0, 3, 0);
        p->port.arena->held[block].slot = 1;
        relay_given(&p->relay, block);
        assert_int_equal(port_header(&p->port, block)->flags & WIRE_F_CONGESTED,
                         n >= 64 ? WIRE_F_CONGESTED : 0);
        assert_int_equal(p->links.table[1].out[WIRE_BULK].queue.n, n + 1);
    }
    assert_true(n > 65);
    assert_int_equal(counted(COUNT_CONGESTED), n - 64);
    relay_remove_link(&p->relay, 1);
    assert_int_equal(p->links.table[1].out[WIRE_BULK].queue.n, 0);
    assert_true(list_empty(&p->links.busy));
    assert_int_equal(p->port.pool.n_use[BLOCK_NOTE], 0);
    parts_step(p, CLOCK_NS_PER_S);
    assert_int_equal(p->port.pool.n_use[BLOCK_RECEIVE], 0);
    block = parts_packet(p, BLOCK_NOTE, 0, 3, 0);
    p->port.arena->held[block].slot = 1;
    relay_given(&p->relay, block);
    assert_int_equal(p->port.pool.n_use[BLOCK_NOTE], 0);
}

/* Queued packets go in their order as soon as they can, and those without a driver's leave wait. */
static void test_link_order(void **state)
{
    struct wire_header h;
    uint32_t next = 0;

    (void)state;
    parts_add_link(p);
    for (uint32_t i = 0; i < 60; i++) {
        uint32_t block = parts_packet(p, BLOCK_NOTE, 0, 1, 500);
        port_header(&p->port, block)->seq = i;
        link_send(&p->links, &p->links.table[1], block);
    }
    assert_int_equal(
        p->links.table[1].out[WIRE_BULK].queue.n + p->links.table[1].out[WIRE_BULK].n_driver, 60);
    assert_true(p->links.table[1].out[WIRE_BULK].queue.n > 2);
    /* In vain: the connection is full. */
    for (int i = 0; i < 5; i++)
        assert_int_equal(link_flush(&p->links), 0);
    for (int i = 0; i < 100; i++) {
        parts_step(p, 10000);
        link_flush(&p->links);
        while (parts_far_receive(p, &h))
            assert_int_equal(h.seq, next++);
    }
    assert_int_equal(next, 60);
    assert_int_equal(p->port.pool.n_use[BLOCK_NOTE], 0);
    assert_int_equal(counted(COUNT_PACKETS_OUT), 60);
    assert_int_equal(link_snapshot(&p->links), 0);
}

static void send_to_neighbour(enum wire_class cls, uint32_t number)
{
    uint32_t block = parts_packet(p, BLOCK_NOTE, 0, 1, 500);

    port_header(&p->port, block)->flow_class = (uint8_t)cls;
    port_header(&p->port, block)->seq = number;
    link_send(&p->links, &p->links.table[1], block);
}

/* What waits for the driver goes quick ones first; what the driver has stays in front. */
static void test_quick_in_front(void **state)
{
    struct wire_header h;
    uint32_t next[WIRE_CLASSES] = {0};
    const struct link_out *out = p->links.table[1].out;

    (void)state;
    parts_add_link(p);
    for (uint32_t i = 0; i < 80; i++)
        send_to_neighbour(WIRE_BULK, i);
    uint32_t ahead = out[WIRE_BULK].n_driver;
    assert_true(ahead < 60);
    assert_int_equal(out[WIRE_BULK].driver_bytes, ahead * (500 + sizeof h));
    assert_int_equal(out[WIRE_BULK].queue_bytes, (80 - ahead) * (500 + sizeof h));
    for (uint32_t i = 0; i < 20; i++)
        send_to_neighbour(WIRE_QUICK, i);
    for (int i = 0; i < 200; i++) {
        link_flush(&p->links);
        while (parts_far_receive(p, &h)) {
            assert_int_equal(h.seq, next[h.flow_class]++);
            if (h.flow_class == WIRE_BULK && h.seq >= ahead)
                assert_int_equal(next[WIRE_QUICK], 20);
        }
        parts_step(p, 10000);
    }
    assert_int_equal(next[WIRE_QUICK], 20);
    assert_int_equal(next[WIRE_BULK], 80);
    assert_int_equal(out[WIRE_BULK].driver_bytes + out[WIRE_QUICK].driver_bytes, 0);
    assert_int_equal(out[WIRE_BULK].queue_bytes + out[WIRE_QUICK].queue_bytes, 0);
}

/* Quick packets without end leave bulk its share. */
static void test_bulk_is_not_starved(void **state)
{
    struct wire_header h;
    uint32_t n[WIRE_CLASSES] = {0}, sent[WIRE_CLASSES] = {0};
    const struct link_out *out = p->links.table[1].out;

    (void)state;
    parts_add_link(p);
    while (n[WIRE_QUICK] < 2000) {
        while (out[WIRE_BULK].queue.n < 10)
            send_to_neighbour(WIRE_BULK, sent[WIRE_BULK]++);
        while (out[WIRE_QUICK].queue.n < 50)
            send_to_neighbour(WIRE_QUICK, sent[WIRE_QUICK]++);
        parts_step(p, 10000);
        link_flush(&p->links);
        while (parts_far_receive(p, &h))
            assert_int_equal(h.seq, n[h.flow_class]++);
    }
    /* Some went before there was a queue. */
    uint32_t share = 2000 * (500 + (uint32_t)sizeof h) / (64 << 10);
    assert_in_range(n[WIRE_BULK], share, share + 60);
}

/* Bulk that the driver has not finished is bounded by bytes, too. */
static void test_driver_gets_little_bulk(void **state)
{
    (void)state;
    parts_add_link(p);
    p->links.table[1].out[WIRE_BULK].driver_bytes = 256 << 10;
    send_to_neighbour(WIRE_BULK, 0);
    send_to_neighbour(WIRE_QUICK, 0);
    assert_int_equal(p->links.table[1].out[WIRE_BULK].n_driver, 0);
    assert_int_equal(p->links.table[1].out[WIRE_BULK].queue.n, 1);
    assert_int_equal(p->links.table[1].out[WIRE_QUICK].queue.n, 0);
    p->links.table[1].out[WIRE_BULK].driver_bytes = (256 << 10) - 1;
    assert_int_equal(link_flush(&p->links), 1);
}

static bool next_event(enum event_type type, struct cmd_event *ret)
{
    while (cmd_pop_event(&p->port.cmds, ret))
        if (ret->type == (uint32_t)type)
            return true;
    return false;
}

/* A connection that is given up for a new one: what it had comes back, which is no error, and what
 * waited for a link that has fallen goes home. */
static void test_link_mend(void **state)
{
    struct link *link = &p->links.table[1];

    (void)state;
    parts_add_link(p);
    net_sim_cut(p->network, p->far_address, true);
    for (int i = 0; i < 60; i++)
        link_send(&p->links, link, parts_packet(p, BLOCK_NOTE, 0, 1, 500));
    assert_true(link->out[WIRE_BULK].n_driver > 0 && link->out[WIRE_BULK].queue.n > 0);
    uint32_t n_driver = link->out[WIRE_BULK].n_driver;
    link->pulse.verdict = LINK_SILENT;
    link->fell = link->renew = p->links.mend = true;
    relay_mend(&p->relay);
    assert_false(link->fell || link->renew || p->links.mend);
    assert_int_equal(link->out[WIRE_BULK].queue.n, 0);
    assert_true(list_empty(&p->links.busy));
    assert_int_equal(p->port.pool.n_use[BLOCK_NOTE], n_driver);
    link_send(&p->links, link, parts_packet(p, BLOCK_NOTE, 0, 1, 8));
    assert_int_equal(p->port.pool.n_use[BLOCK_NOTE], n_driver);
    net_sim_cut(p->network, p->far_address, false);
    parts_step(p, CLOCK_NS_PER_S);
    assert_int_equal(p->port.pool.n_use[BLOCK_NOTE], 0);
    assert_int_equal(link->errors, 0);
    assert_int_equal(link->out[WIRE_BULK].n_driver, 0);
}

static void add_at(uint32_t slot, const void *address, uint16_t len)
{
    struct cmd_link at = parts_link(p, slot, address, len);

    relay_add_link(&p->relay, &at);
}

static void test_link_addresses(void **state)
{
    struct cmd_event event;
    uint8_t odd[3] = {1, 2, 3};

    (void)state;
    add_at(0, &p->far_address, sizeof p->far_address);
    add_at(HOP_MAX_NODES, &p->far_address, sizeof p->far_address);
    assert_true(list_empty(&p->links.up));
    add_at(2, odd, sizeof odd);
    assert_true(next_event(EVENT_LINK_ERROR, &event));
    assert_int_equal(event.slot, 2);
    parts_add_link(p);
    uint32_t peer = p->links.table[1].peer;
    parts_add_link(p);
    assert_int_equal(p->links.table[1].peer, peer);
    uint32_t other = p->far_address + 1;
    add_at(1, &other, sizeof other);
    struct cmd_link at = parts_link(p, 1, &p->far_address, sizeof p->far_address);
    assert_false(link_is_at(&p->links, &at));
    at = parts_link(p, 1, &other, sizeof other);
    assert_true(link_is_at(&p->links, &at));
    /* The neighbour is another incarnation at the same address. */
    at.secret[0] = 1;
    assert_false(link_is_at(&p->links, &at));
    p->links.table[1].seal.number = 5;
    relay_add_link(&p->relay, &at);
    assert_true(link_is_at(&p->links, &at));
    assert_int_equal(p->links.table[1].seal.number, 0);
    /* Numbers go on where they were when the link comes back. */
    p->links.table[1].seal.number = 5;
    relay_remove_link(&p->relay, 1);
    relay_add_link(&p->relay, &at);
    assert_int_equal(p->links.table[1].seal.number, 5);
    relay_remove_link(&p->relay, 1);
    relay_remove_link(&p->relay, 1);
    assert_true(list_empty(&p->links.up));
}

static void answer(uint32_t n_bytes)
{
    uint32_t block = parts_packet(p, BLOCK_NOTE, 1, 0, (uint32_t)sizeof(struct wire_probe));
    struct wire_header *echo = port_header(&p->port, block);
    struct wire_probe probe = {.stamp_ns = p->now_ns - 3000, .n_bytes = n_bytes};

    memcpy(echo + 1, &probe, sizeof probe);
    link_on_echo(&p->links, echo);
    pool_give(&p->port.pool, block);
}

/* Lets time pass, and answers probes if told so. Returns how many came. */
static uint32_t run_probes(uint32_t n_ms, bool answering)
{
    struct wire_header h;
    uint32_t n = 0;

    for (uint32_t i = 0; i < n_ms; i++) {
        parts_step(p, CLOCK_NS_PER_MS);
        if (p->now_ns >= p->links.probe_due_ns)
            link_probes(&p->links, false);
        if (p->links.mend)
            relay_mend(&p->relay);
        for (parts_step(p, 5000); parts_far_receive(p, &h); n++)
            if (answering && h.type == WIRE_PROBE)
                answer((uint32_t)sizeof h + h.len);
    }
    return n;
}

static void use_probes(uint64_t every_ns)
{
    p->links.probe_every_ns = every_ns;
    parts_add_link(p);
}

/* Errors are counted each, nothing is sent for a moment, and the second in a row takes the link out
 * of use, which control is told with the reason. */
static void test_link_errors(void **state)
{
    struct cmd_event event;
    struct link *link = &p->links.table[1];

    (void)state;
    use_probes(CLOCK_NS_PER_S);
    run_probes(20, true);
    assert_true(next_event(EVENT_LINK, &event));
    assert_int_equal(event.verdict, LINK_ALIVE);
    link_on_peer_down(&p->links, link->peer, -ECONNRESET);
    link_on_peer_down(&p->links, link->peer + 1, -ECONNRESET);
    link_on_error(&p->links, link, -EPIPE);
    assert_int_equal(link->errors, 2);
    link_send(&p->links, link, parts_packet(p, BLOCK_NOTE, 0, 1, 8));
    assert_int_equal(link_flush(&p->links), 0);
    parts_step(p, 5 * CLOCK_NS_PER_MS);
    assert_int_equal(link_flush(&p->links), 1);
    link_on_error(&p->links, link, -ECONNREFUSED);
    run_probes(2, false);
    assert_true(next_event(EVENT_LINK, &event));
    assert_int_equal(event.verdict, LINK_BROKEN);
    assert_int_equal(event.error, -ECONNREFUSED);
    run_probes(1000, true);
    assert_true(next_event(EVENT_LINK, &event));
    assert_int_equal(event.verdict, LINK_ALIVE);
}

/* A link is in use once a small and a full probe are answered; probes go rarely while nobody needs
 * it, often while packets go. */
static void test_link_probes(void **state)
{
    struct link *link = &p->links.table[1];
    struct cmd_event event;

    (void)state;
    use_probes(CLOCK_NS_PER_S);
    assert_false(link_is_alive(link));
    uint32_t n = run_probes(20, true);
    assert_int_equal(n, 2);
    assert_true(link_is_alive(link));
    assert_true(next_event(EVENT_RTT, &event));
    assert_int_equal(event.value, 3000);
    assert_int_equal(link->rtt_us, 3);
    assert_int_equal(run_probes(48500, true), 2);
    for (n = 0; n < 100; n++)
        link_send(&p->links, link, parts_packet(p, BLOCK_NOTE, 0, 1, 8));
    /* The packets, a probe in 250 ms, and one more that says that they are over. */
    assert_in_range(run_probes(600, true), 100 + 1, 100 + 2);
    run_probes(1000, true);
    link_probe_soon(&p->links);
    assert_int_equal(run_probes(1100, true), 1);
}

/* What is no probe or echo of ours changes nothing. */
static void test_link_odd_probes(void **state)
{
    struct wire_header h;
    struct wire_probe probe = {.n_bytes = WIRE_PROBE_BYTES};

    (void)state;
    use_probes(CLOCK_NS_PER_S);
    probe.stamp_ns = p->now_ns + 1;
    uint32_t block = parts_packet(p, BLOCK_NOTE, 1, 0, (uint32_t)sizeof probe);
    struct wire_header *in = port_header(&p->port, block);
    memcpy(in + 1, &probe, sizeof probe);
    link_on_echo(&p->links, in); /* from the future */
    in->len = sizeof probe - 1;
    link_on_echo(&p->links, in);
    link_on_probe(&p->links, in);
    in->len = sizeof probe;
    probe.n_bytes++;
    memcpy(in + 1, &probe, sizeof probe);
    link_on_probe(&p->links, in); /* not as long as it says */
    in->src_node = PARTS_NODE + 3;
    link_on_probe(&p->links, in); /* no neighbour */
    assert_int_equal(p->links.table[1].pulse.answered_ns, 0);
    assert_int_equal(p->links.table[1].pulse.heard_ns, 0);
    parts_step(p, 10000);
    assert_false(parts_far_receive(p, &h));
    in->src_node = PARTS_NODE + 1;
    probe.n_bytes = WIRE_PROBE_BYTES;
    memcpy(in + 1, &probe, sizeof probe);
    link_on_probe(&p->links, in);
    parts_step(p, 10000);
    assert_true(parts_far_receive(p, &h));
    assert_int_equal(h.type, WIRE_ECHO);
    pool_give(&p->port.pool, block);
}

/* The ring of commands is bounded, and so is that of events; what is lost is counted. */
static void test_rings_of_control(void **state)
{
    struct cmd cmd = {.type = CMD_SET_WAIT};
    struct cmd_event event = {.type = EVENT_RTT};
    uint32_t n = 0;

    (void)state;
    assert_false(cmd_pending(&p->port.cmds));
    for (; cmd_push(&p->port.cmds, &cmd) == 0; n++)
        cmd.wait_mode = n + 1;
    assert_int_equal(n, CMD_RING);
    assert_int_equal(cmd_push(&p->port.cmds, &cmd), -EAGAIN);
    for (uint32_t i = 0; cmd_pop(&p->port.cmds, &cmd); i++)
        assert_int_equal(cmd.wait_mode, i);
    assert_false(cmd_pending(&p->port.cmds));
    for (n = 0; port_event(&p->port, &event); n++)
        ;
    assert_int_equal(n, EVENT_RING);
    assert_int_equal(counted(COUNT_EVENTS_LOST), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_slots, setup, teardown),
        cmocka_unit_test_setup_teardown(test_blocks_come_home, setup, teardown),
        cmocka_unit_test_setup_teardown(test_receive_owner, setup, teardown),
        cmocka_unit_test_setup_teardown(test_way_over_dead_link, setup, teardown),
        cmocka_unit_test_setup_teardown(test_way_over_nonsense, setup, teardown),
        cmocka_unit_test_setup_teardown(test_way_choice, setup, teardown),
        cmocka_unit_test_setup_teardown(test_relay, setup, teardown),
        cmocka_unit_test_setup_teardown(test_relay_hops, setup, teardown),
        cmocka_unit_test_setup_teardown(test_link_queue, setup_stream, teardown),
        cmocka_unit_test_setup_teardown(test_quick_in_front, setup_stream, teardown),
        cmocka_unit_test_setup_teardown(test_bulk_is_not_starved, setup_stream, teardown),
        cmocka_unit_test_setup_teardown(test_driver_gets_little_bulk, setup_stream, teardown),
        cmocka_unit_test_setup_teardown(test_link_order, setup_stream, teardown),
        cmocka_unit_test_setup_teardown(test_link_mend, setup_stream, teardown),
        cmocka_unit_test_setup_teardown(test_link_addresses, setup, teardown),
        cmocka_unit_test_setup_teardown(test_link_errors, setup, teardown),
        cmocka_unit_test_setup_teardown(test_link_probes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_link_odd_probes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rings_of_control, setup, teardown),
    };

    log_set_level(LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
