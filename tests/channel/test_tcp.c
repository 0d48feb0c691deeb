/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The native TCP driver over the loopback interface: packets of all sizes both ways with few blocks
 * and few events, a stream cut at every byte, connections that break, peers that nobody knows, and
 * rubbish.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rand.h"
#include "daemon/net/block.h"
#include "daemon/net/net_tcp.h"
#include "daemon/net/tcp.h"

#define PACKET   16464u
#define BLOCKS   64u
#define LIMIT_NS (100 * CLOCK_NS_PER_S)

struct end {
    struct arena arena;
    struct net *net;
    uint32_t peer;
    struct seal seal;
    uint32_t free[BLOCKS], n_free; /* blocks to send from */
    uint32_t n_received, n_failed, n_down;
    uint64_t next_seed; /* what the next packet contains */
    int last_error;
};

static struct end ends[2];

static void open_end(struct end *e)
{
    struct net_config config = {
        .n_blocks = BLOCKS, .max_bytes = PACKET, .address = "127.0.0.1", .provider = "tcp"};

    memset(e, 0, sizeof *e);
    assert_int_equal(arena_init(&e->arena, BLOCKS, PACKET - 80), 0);
    assert_int_equal(net_tcp.open(&config, &e->arena, &e->net), 0);
    for (uint32_t b = 0; b < BLOCKS / 2; b++)
        e->free[e->n_free++] = b;
}

static void close_end(struct end *e)
{
    net_tcp.close(e->net);
    arena_deinit(&e->arena);
}

static void introduce(struct end *e, const struct end *to)
{
    uint8_t address[NET_ADDRESS_BYTES];
    size_t len = sizeof address;

    assert_int_equal(net_tcp.address(to->net, address, &len), 0);
    assert_int_equal(net_tcp.peer_add(e->net, address, len, &e->seal, &e->peer), 0);
}

static void start(uint32_t n_posted)
{
    for (int i = 0; i < 2; i++) {
        open_end(&ends[i]);
        for (uint32_t b = 0; b < n_posted; b++)
            assert_int_equal(net_tcp.post(ends[i].net, BLOCKS / 2 + b), 0);
    }
}

static void stop(void)
{
    close_end(&ends[0]);
    close_end(&ends[1]);
}

/* Packet number k of a direction: its length and its bytes follow from k. */
static uint32_t length_of(uint64_t k, bool large)
{
    struct rand r;

    r.state = k * 7 + 1;
    uint32_t n = (uint32_t)rand_next(&r);
    return large && n % 8 != 0 ? PACKET : 1 + n % (n % 3 == 0 ? 64 : PACKET);
}

static void fill(uint8_t *p, uint32_t len, uint64_t k)
{
    for (uint32_t i = 0; i < len; i++)
        p[i] = (uint8_t)(k * 31 + i);
}

static void check(const uint8_t *p, uint32_t len, uint64_t k)
{
    for (uint32_t i = 0; i < len; i++)
        assert_int_equal(p[i], (uint8_t)(k * 31 + i));
}

/* One poll; received packets are checked against the stream and posted again. */
static void turn(struct end *e, int max, bool large)
{
    struct net_event events[64];
    int n = net_tcp.poll(e->net, events, max);

    assert_true(n >= 0 && n <= max);
    for (int i = 0; i < n; i++) {
        switch (events[i].kind) {
        case NET_RECEIVED:
            assert_int_equal(events[i].len, length_of(e->next_seed, large));
            check(arena_at(&e->arena, events[i].block), events[i].len, e->next_seed++);
            e->n_received++;
            assert_int_equal(net_tcp.post(e->net, events[i].block), 0);
            break;
        case NET_FAILED:
            e->n_failed++;
            e->last_error = events[i].error;
            e->free[e->n_free++] = events[i].block;
            break;
        case NET_SENT:
            e->free[e->n_free++] = events[i].block;
            break;
        case NET_PEER_DOWN:
            e->n_down++;
            e->last_error = events[i].error;
            break;
        default:
            fail();
        }
    }
}

static bool send_packet(struct end *e, uint64_t k, bool large)
{
    if (e->n_free == 0)
        return false;
    uint32_t block = e->free[--e->n_free], len = length_of(k, large);
    fill(arena_at(&e->arena, block), len, k);
    int rc = net_tcp.send(e->net, e->peer, block, len);
    assert_true(rc == 0 || rc == NET_E_DONE);
    if (rc == NET_E_DONE)
        e->free[e->n_free++] = block;
    return true;
}

static void stream_both_ways(uint32_t n_posted, int max_events, bool large, uint32_t n_packets)
{
    uint64_t sent[2] = {0, 0}, end_ns = clock_now_ns() + LIMIT_NS;
    struct rand r;

    start(n_posted);
    introduce(&ends[0], &ends[1]);
    introduce(&ends[1], &ends[0]);
    r.state = n_posted * 1000 + (uint32_t)max_events;
    while (ends[0].n_received < n_packets || ends[1].n_received < n_packets) {
        assert_true(clock_now_ns() < end_ns);
        for (int i = 0; i < 2; i++) {
            for (uint64_t burst = rand_next(&r) % 6; burst > 0 && sent[i] < n_packets; burst--)
                sent[i] += send_packet(&ends[i], sent[i], large);
            turn(&ends[i], max_events, large);
        }
    }
    assert_int_equal(ends[0].n_failed + ends[1].n_failed + ends[0].n_down + ends[1].n_down, 0);
    assert_true(net_tcp.wait_ready(ends[0].net) == 0 || ends[0].n_free < BLOCKS / 2);
    stop();
}

static void test_streams(void **state)
{
    (void)state;
    stream_both_ways(32, 64, false, 4000);
    stream_both_ways(32, 64, true, 4000);
    stream_both_ways(1, 64, false, 1500);
    stream_both_ways(2, 1, true, 1500);
    stream_both_ways(9, 3, false, 3000);
}

static int dial(const struct end *to)
{
    uint8_t address[NET_ADDRESS_BYTES];
    size_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(net_tcp.address(to->net, address, &len), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)(void *)address, (socklen_t)len), 0);
    return fd;
}

static struct tcp_hello hello_of(const struct sockaddr_in *from)
{
    struct tcp_hello h = {.head = {TCP_HELLO_MAGIC, (uint32_t)TCP_HELLO_BYTES},
                          .version = TCP_VERSION,
                          .address_len = sizeof *from};

    memcpy(h.address, from, sizeof *from);
    return h;
}

/* A peer that nothing listens for, so that only its own connection counts. */
static struct sockaddr_in nowhere(void)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(1), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* Frames that arrive byte by byte, in one piece, and in pieces of odd length. */
static void test_pieces(void **state)
{
    static uint8_t stream[600000];
    static const size_t pieces[] = {1, 7, 8, 9, 1000, 16471, 16472, 16473, 70000, sizeof stream};
    struct sockaddr_in from = nowhere();

    (void)state;
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
        struct tcp_hello hello = hello_of(&from);
        size_t n = sizeof hello, at = 0;
        uint32_t n_packets = 0;
        start(12);
        assert_int_equal(
            net_tcp.peer_add(ends[0].net, &from, sizeof from, &ends[0].seal, &ends[0].peer), 0);
        memcpy(stream, &hello, n);
        /* One byte a poll takes its time: a shorter stream then. */
        for (size_t limit = pieces[p] < 100 ? 60000 : sizeof stream - PACKET - 8; n < limit;
             n_packets++) {
            uint32_t len = length_of(n_packets, true);
            struct tcp_head head = {TCP_FRAME_MAGIC, len};
            memcpy(stream + n, &head, sizeof head);
            fill(stream + n + sizeof head, len, n_packets);
            n += sizeof head + len;
            if (pieces[p] < 100 && n > 40000)
                limit = 0;
        }
        int fd = dial(&ends[0]);
        uint64_t end_ns = clock_now_ns() + LIMIT_NS;
        while (ends[0].n_received < n_packets) {
            assert_true(clock_now_ns() < end_ns);
            size_t k = pieces[p] < n - at ? pieces[p] : n - at;
            ssize_t rc = k ? send(fd, stream + at, k, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
            at += rc > 0 ? (size_t)rc : 0;
            turn(&ends[0], 64, true);
        }
        close(fd);
        stop();
    }
}

/* Whoever sends rubbish is hung up on; others do not notice. */
static void test_rubbish(void **state)
{
    struct sockaddr_in from = nowhere();
    struct tcp_hello good = hello_of(&from);
    struct {
        struct tcp_hello hello;
        struct tcp_head head;
    } all[] = {
        {good, {0x12345678, 8}},
        {good, {TCP_FRAME_MAGIC, 0}},
        {good, {TCP_FRAME_MAGIC, PACKET + 1}},
        {good, {TCP_FRAME_MAGIC, UINT32_MAX}},
        {good, {TCP_HELLO_MAGIC, (uint32_t)TCP_HELLO_BYTES}},
        {good, {TCP_FRAME_MAGIC, 8}},
        {good, {TCP_FRAME_MAGIC, 8}},
        {good, {TCP_FRAME_MAGIC, 8}},
        {good, {TCP_FRAME_MAGIC, 8}},
        {good, {TCP_FRAME_MAGIC, 8}},
    };
    (void)state;
    all[5].hello.version = 99;
    all[6].hello.address_len = NET_ADDRESS_BYTES + 1;
    all[7].hello.address_len = 0;
    all[8].hello.head.magic = 0x47455420; /* a web browser */
    all[9].hello.cls = WIRE_CLASSES;
    start(16);
    introduce(&ends[0], &ends[1]);
    introduce(&ends[1], &ends[0]);
    assert_int_equal(
        net_tcp.peer_add(ends[0].net, &from, sizeof from, &ends[0].seal, &(uint32_t){0}), 0);
    uint64_t sent = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int fd = dial(&ends[0]);
        assert_int_equal(send(fd, &all[i], sizeof all[i], MSG_NOSIGNAL), sizeof all[i]);
        uint64_t end_ns = clock_now_ns() + LIMIT_NS;
        char byte;
        ssize_t rc = -1;
        do {
            assert_true(clock_now_ns() < end_ns);
            sent += send_packet(&ends[1], sent, false);
            turn(&ends[0], 64, false);
            turn(&ends[1], 64, false);
            rc = recv(fd, &byte, 1, MSG_DONTWAIT);
        } while (rc > 0 || (rc < 0 && errno == EAGAIN));
        close(fd);
    }
    uint64_t end_ns = clock_now_ns() + LIMIT_NS;
    while (ends[0].n_received < sent) {
        assert_true(clock_now_ns() < end_ns);
        turn(&ends[0], 64, false);
        turn(&ends[1], 64, false);
    }
    stop();
}

/* The peer dies with packets queued: they come back as failed, the peer is reported, and a new one
 * at the same place is found. */
static void test_death(void **state)
{
    uint8_t address[NET_ADDRESS_BYTES];
    size_t len = sizeof address;
    uint64_t sent = 0, end_ns = clock_now_ns() + LIMIT_NS;

    (void)state;
    start(0); /* the receiver takes nothing: queues fill */
    introduce(&ends[0], &ends[1]);
    introduce(&ends[1], &ends[0]);
    while (ends[0].n_free > 0) {
        assert_true(clock_now_ns() < end_ns);
        sent += send_packet(&ends[0], PACKET, true);
        turn(&ends[0], 64, true);
        turn(&ends[1], 64, true);
    }
    assert_int_equal(net_tcp.address(ends[1].net, address, &len), 0);
    close_end(&ends[1]);
    while (ends[0].n_down == 0 || ends[0].n_free < BLOCKS / 2) {
        assert_true(clock_now_ns() < end_ns);
        turn(&ends[0], 64, true);
    }
    assert_true(ends[0].n_failed > 0);
    assert_true(ends[0].last_error < 0);
    net_tcp.peer_remove(ends[0].net, ends[0].peer);
    open_end(&ends[1]);
    assert_int_equal(net_tcp.post(ends[1].net, BLOCKS - 1), 0);
    introduce(&ends[0], &ends[1]);
    introduce(&ends[1], &ends[0]);
    send_packet(&ends[0], 0, false);
    while (ends[1].n_received == 0) {
        assert_true(clock_now_ns() < end_ns);
        turn(&ends[0], 64, false);
        turn(&ends[1], 64, false);
    }
    stop();
}

/* Packets from somebody who is not known yet wait for it. */
static void test_early(void **state)
{
    uint64_t end_ns = clock_now_ns() + LIMIT_NS, until_ns;

    (void)state;
    start(8);
    introduce(&ends[0], &ends[1]);
    for (uint64_t k = 0; k < 5; k++)
        send_packet(&ends[0], k, false);
    /* Longer than courtesy: also the higher address connects. */
    for (until_ns = clock_now_ns() + 200 * CLOCK_NS_PER_MS; clock_now_ns() < until_ns;) {
        turn(&ends[0], 64, false);
        turn(&ends[1], 64, false);
    }
    assert_int_equal(ends[1].n_received, 0);
    introduce(&ends[1], &ends[0]);
    while (ends[1].n_received < 5) {
        assert_true(clock_now_ns() < end_ns);
        turn(&ends[0], 64, false);
        turn(&ends[1], 64, false);
    }
    stop();
}

/* Counts what the far end receives in one poll: quick packets here have at most 100 bytes. */
static void receive_classes(uint32_t n_of[WIRE_CLASSES])
{
    struct net_event events[64];
    int n = net_tcp.poll(ends[1].net, events, 64);

    for (int i = 0; i < n; i++) {
        if (events[i].kind != NET_RECEIVED)
            continue;
        n_of[events[i].len > 100]++;
        assert_int_equal(net_tcp.post(ends[1].net, events[i].block), 0);
    }
}

static void send_class(enum wire_class cls, uint32_t len)
{
    struct net_event events[64];
    uint32_t block = ends[0].free[--ends[0].n_free];

    ends[0].arena.held[block].cls = (uint8_t)cls;
    int rc = net_tcp.send(ends[0].net, ends[0].peer, block, len);
    assert_true(rc == 0 || rc == NET_E_DONE);
    if (rc == NET_E_DONE)
        ends[0].free[ends[0].n_free++] = block;
    int n = net_tcp.poll(ends[0].net, events, 64);
    for (int i = 0; i < n; i++)
        if (events[i].kind == NET_SENT)
            ends[0].free[ends[0].n_free++] = events[i].block;
}

/* A quick packet does not stand behind the bulk ones that the sockets hold, and neither class
 * keeps the other from being read. */
static void test_classes(void **state)
{
    uint64_t end_ns = clock_now_ns() + LIMIT_NS;
    uint32_t n_of[WIRE_CLASSES] = {0}, n_bulk = 1;

    (void)state;
    start(8);
    introduce(&ends[0], &ends[1]);
    introduce(&ends[1], &ends[0]);
    send_class(WIRE_QUICK, 8);
    send_class(WIRE_BULK, 1000);
    while (n_of[WIRE_QUICK] + n_of[WIRE_BULK] < 2) {
        assert_true(clock_now_ns() < end_ns);
        receive_classes(n_of);
        turn(&ends[0], 64, false);
    }
    for (; ends[0].n_free > 1; n_bulk++)
        send_class(WIRE_BULK, PACKET);
    assert_true(n_bulk >= BLOCKS / 2);
    send_class(WIRE_QUICK, 100);
    /* Over the loopback interface it is there at once; a poll takes at most what is posted. */
    receive_classes(n_of);
    assert_int_equal(n_of[WIRE_QUICK], 2);
    assert_true(n_of[WIRE_BULK] < n_bulk);
    while (n_of[WIRE_BULK] < n_bulk) {
        assert_true(clock_now_ns() < end_ns);
        send_class(WIRE_QUICK, 100);
        receive_classes(n_of);
        turn(&ends[0], 64, false);
    }
    assert_int_equal(ends[0].n_failed + ends[0].n_down, 0);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams), cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_rubbish), cmocka_unit_test(test_death),
        cmocka_unit_test(test_early),   cmocka_unit_test(test_classes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
