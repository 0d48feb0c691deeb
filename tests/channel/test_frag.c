/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets in fragments over a simulated datagram network: whole, lost, doubled, and rubbish between
 * them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/rand.h"
#include "daemon/net/block.h"
#include "daemon/net/net_frag.h"
#include "tests/sim/net_sim.h"

#define PACKET     16464u
#define BLOCKS     64u
#define FRAG_BYTES 1472u

static struct sim_network *nw;
static struct arena arenas[2];
static struct net *ends[2];
static uint32_t peer, far;
static struct seal seals[2];
static enum seal_mode protect = SEAL_INTEGRITY;
static uint64_t now_ns;

static void start(const struct sim_faults *faults)
{
    uint32_t address;
    size_t len = sizeof address;

    now_ns = 0;
    nw = net_sim_network_new(3, faults);
    assert_non_null(nw);
    for (int i = 0; i < 2; i++) {
        struct net_config config = {
            .n_blocks = BLOCKS, .max_bytes = PACKET, .protect = protect, .context = nw};
        const uint8_t secret[SEAL_SECRET_BYTES] = "of both";
        assert_int_equal(seal_init(&seals[i], secret, i == 0, protect), 0);
        assert_int_equal(arena_init(&arenas[i], BLOCKS, PACKET - 80), 0);
        assert_int_equal(net_frag_open(&net_sim, &config, &arenas[i], &ends[i]), 0);
        for (uint32_t b = BLOCKS / 2; b < BLOCKS; b++)
            assert_int_equal(net_frag.post(ends[i], b), 0);
    }
    assert_int_equal(net_frag.address(ends[0], &address, &len), 0);
    assert_int_equal(net_frag.peer_add(ends[1], &address, len, &seals[1], &far), 0);
    assert_int_equal(net_frag.address(ends[1], &address, &len), 0);
    assert_int_equal(net_frag.peer_add(ends[0], &address, len, &seals[0], &peer), 0);
}

static void stop(void)
{
    for (int i = 0; i < 2; i++) {
        net_frag.close(ends[i]);
        seal_deinit(&seals[i]);
        arena_deinit(&arenas[i]);
    }
    net_sim_network_free(nw);
}

/* A fragment as the other end would send it, but for what is in it. */
struct made {
    struct seal_mark mark;
    uint32_t
        words[9]; /* magic, sender, number (64 bits), total, offset, index and count, 0; a byte */
};

static struct made made_of(uint32_t total, uint32_t offset, uint32_t place, struct rand *r)
{
    struct made m = {.words = {0x4d4f5446u, (uint32_t)rand_next(r), (uint32_t)rand_next(r), 0,
                               total, offset, place}};

    m.mark.id = seals[0].out_id;
    return m;
}

static void fill(uint32_t n, uint32_t len)
{
    uint8_t *p = arena_at(&arenas[0], 0);

    memcpy(p, &n, 4);
    memcpy(p + 4, &len, 4);
    for (uint32_t i = 8; i < len; i++)
        p[i] = (uint8_t)(n * 31 + i);
}

/* Takes what has arrived; checks it; returns how many packets. */
static uint32_t drain(void)
{
    struct net_event events[16];
    uint32_t n_packets = 0;
    int n;

    now_ns += 100000;
    net_sim_run(nw, now_ns);
    while ((n = net_frag.poll(ends[1], events, 16)) > 0) {
        for (int i = 0; i < n; i++) {
            uint32_t id, len;
            if (events[i].kind != NET_RECEIVED)
                continue;
            const uint8_t *p = arena_at(&arenas[1], events[i].block);
            memcpy(&id, p, 4);
            memcpy(&len, p + 4, 4);
            assert_int_equal(len, events[i].len);
            for (uint32_t k = 8; k < len; k++)
                assert_int_equal(p[k], (uint8_t)(id * 31 + k));
            n_packets++;
            assert_int_equal(net_frag.post(ends[1], events[i].block), 0);
        }
    }
    net_frag.poll(ends[0], events, 16);
    return n_packets;
}

static void test_all_sizes(void **state)
{
    const struct sim_faults calm = {.datagram = true, .max_datagram = FRAG_BYTES};
    uint32_t id = 0;

    (void)state;
    start(&calm);
    for (uint32_t len = 8; len <= PACKET; len += len < 3000 ? 1 : 977) {
        fill(++id, len);
        assert_int_equal(net_frag.send(ends[0], peer, 0, len), NET_E_DONE);
        assert_int_equal(drain(), 1);
    }
    stop();
}

static void test_faults(void **state)
{
    const struct sim_faults faults = {.datagram = true,
                                      .max_datagram = FRAG_BYTES,
                                      .drop = 20000,
                                      .duplicate = 50000,
                                      .reorder = 200000,
                                      .delay_max_ns = 300000};
    uint32_t arrived = 0;

    (void)state;
    start(&faults);
    for (uint32_t id = 1; id <= 2000; id++) {
        fill(id, 8 + id * 7 % (PACKET - 8));
        assert_int_equal(net_frag.send(ends[0], peer, 0, 8 + id * 7 % (PACKET - 8)), NET_E_DONE);
        arrived += drain();
    }
    for (int i = 0; i < 100; i++)
        arrived += drain();
    assert_true(arrived > 1200 && arrived <= 2100);
    stop();
}

static void test_rubbish(void **state)
{
    const struct sim_faults calm = {.datagram = true, .max_datagram = FRAG_BYTES};
    struct rand r = {.state = 17};
    uint32_t address;
    size_t len = sizeof address;

    (void)state;
    protect = SEAL_NONE; /* so that what is in them is looked at */
    start(&calm);
    assert_int_equal(net_frag.address(ends[1], &address, &len), 0);
    for (uint32_t round = 0; round < 5000; round++) {
        for (uint32_t k = 0; k < 5; k++) {
            struct made m = made_of(0, 0, 0, &r);
            for (uint32_t i = 1; i < 9; i++)
                m.words[i] = (uint32_t)rand_below(&r, rand_below(&r, 2) ? UINT32_MAX : 70000);
            if (rand_below(&r, 2))
                m.words[6] = (uint32_t)(rand_below(&r, 12) | 12u << 16);
            net_sim_inject(nw, address, &m, 50 + (uint32_t)rand_below(&r, sizeof m - 49));
        }
        /* What comes out may be anything, as long as it stays inside of its block. */
        struct net_event events[16];
        now_ns += 1000;
        net_sim_run(nw, now_ns);
        int n = net_frag.poll(ends[1], events, 16);
        for (int i = 0; i < n; i++) {
            assert_true(events[i].kind == NET_RECEIVED && events[i].len <= PACKET &&
                        events[i].block < BLOCKS);
            assert_int_equal(net_frag.post(ends[1], events[i].block), 0);
        }
    }
    stop();
    protect = SEAL_INTEGRITY;
}

/* A connection that takes part of a packet only: the rest goes later, and no other packet before.
 */
static void test_held_back(void **state)
{
    const struct sim_faults stream = {.max_datagram = FRAG_BYTES};
    int rc = NET_E_DONE;
    uint32_t n = 0;

    (void)state;
    start(&stream);
    now_ns = 10000000; /* connected */
    net_sim_run(nw, now_ns);
    for (; rc == NET_E_DONE; n++) {
        assert_true(n < 100);
        fill(n + 1, 9000);
        rc = net_frag.send(ends[0], peer, 0, 9000);
    }
    assert_int_equal(rc, 0);
    assert_int_equal(net_frag.send(ends[0], peer, 1, 9000), -EAGAIN);
    for (uint32_t arrived = 0; arrived < n;) {
        assert_true(now_ns < 1000000000);
        arrived += drain();
    }
    stop();
}

/* Rubbish takes up places; what arrives whole between it is still delivered. */
static void test_good_among_rubbish(void **state)
{
    const struct sim_faults calm = {.datagram = true, .max_datagram = FRAG_BYTES};
    struct rand r = {.state = 18};
    uint32_t address, id = 0;
    size_t len = sizeof address;

    (void)state;
    protect = SEAL_NONE; /* so that what is in them is looked at */
    start(&calm);
    assert_int_equal(net_frag.address(ends[1], &address, &len), 0);
    for (uint32_t round = 0; round < 3000; round++) {
        for (uint32_t k = 0; k < 3; k++) {
            /* A fragment of a packet that never becomes whole. */
            struct made m = made_of(12000, 0, (uint32_t)rand_below(&r, 11) | 12u << 16, &r);
            net_sim_inject(nw, address, &m, sizeof m);
        }
        fill(++id, 9000);
        assert_int_equal(net_frag.send(ends[0], peer, 0, 9000), NET_E_DONE);
        assert_int_equal(drain(), 1);
    }
    stop();
    protect = SEAL_INTEGRITY;
}

/* What a stranger sends, a fragment changed on the way and one that was seen before are told apart
 * from what the peer sends, before anything else is believed of them. */
static void test_forged(void **state)
{
    const struct sim_faults faults = {
        .datagram = true, .max_datagram = FRAG_BYTES, .duplicate = 1000000};
    struct rand r = {.state = 19};
    struct net_guard guard;
    uint32_t address, id = 0;
    size_t len = sizeof address;

    (void)state;
    for (protect = SEAL_INTEGRITY; protect <= SEAL_ENCRYPT; protect++) {
        start(&faults);
        assert_int_equal(net_frag.address(ends[1], &address, &len), 0);
        for (uint32_t round = 1; round <= 200; round++) {
            struct made m = made_of(4, 0, 1u << 16, &r);
            m.mark.number = htole64(seals[0].number + round);
            m.mark.id ^= round % 2;
            net_sim_inject(nw, address, &m, sizeof m);
            fill(++id, 3000);
            assert_int_equal(net_frag.send(ends[0], peer, 0, 3000), NET_E_DONE);
            assert_int_equal(drain(), 1);
        }
        for (int i = 0; i < 20; i++)
            assert_int_equal(drain(), 0);
        net_frag.guard(ends[1], &guard);
        assert_int_equal(guard.forged, 200);
        assert_true(guard.replayed > 400);
        stop();
    }
    protect = SEAL_INTEGRITY;
}

/* What a peer sends before it is known here is dropped, and is no stranger's. */
static void test_early(void **state)
{
    const struct sim_faults calm = {.datagram = true, .max_datagram = FRAG_BYTES};
    struct net_guard guard;
    uint32_t address, known;
    size_t len = sizeof address;

    (void)state;
    start(&calm);
    assert_int_equal(net_frag.address(ends[0], &address, &len), 0);
    net_frag.peer_remove(ends[1], far);
    for (uint32_t id = 1; id <= 3; id++) {
        fill(id, 3000);
        assert_int_equal(net_frag.send(ends[0], peer, 0, 3000), NET_E_DONE);
        assert_int_equal(drain(), 0);
    }
    net_frag.guard(ends[1], &guard);
    assert_int_equal(guard.forged, 9);
    assert_int_equal(net_frag.peer_add(ends[1], &address, len, &seals[1], &known), 0);
    net_frag.guard(ends[1], &guard);
    assert_int_equal(guard.forged, 0);
    fill(4, 3000);
    assert_int_equal(net_frag.send(ends[0], peer, 0, 3000), NET_E_DONE);
    assert_int_equal(drain(), 1);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_sizes),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_rubbish),
        cmocka_unit_test(test_held_back),
        cmocka_unit_test(test_good_among_rubbish),
        cmocka_unit_test(test_forged),
        cmocka_unit_test(test_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
