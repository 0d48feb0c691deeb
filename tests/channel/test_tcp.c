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
#include "daemon/net/tcp/tcp_proof.h"

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
static const uint8_t secret[SEAL_SECRET_BYTES] = "between the two";
static enum seal_mode protect = SEAL_INTEGRITY;

static void open_end(struct end *e)
{
    struct net_config config = {.n_blocks = BLOCKS,
                                .max_bytes = PACKET,
                                .address = "127.0.0.1",
                                .provider = "tcp",
                                .protect = protect};

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
    if (e->seal.made)
        seal_deinit(&e->seal);
}

static void introduce(struct end *e, const struct end *to)
{
    uint8_t address[NET_ADDRESS_BYTES];
    size_t len = sizeof address;

    assert_int_equal(net_tcp.address(to->net, address, &len), 0);
    if (!e->seal.made)
        assert_int_equal(seal_init(&e->seal, secret, e == &ends[0], protect), 0);
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
    protect = SEAL_ENCRYPT;
    stream_both_ways(32, 64, true, 2000);
    stream_both_ways(9, 3, false, 1500);
    protect = SEAL_NONE;
    stream_both_ways(32, 64, true, 2000);
    protect = SEAL_INTEGRITY;
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

/* A peer that nothing listens for, so that only its own connection counts. */
static struct sockaddr_in nowhere(void)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(1), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* The other side of a connection to an end, played by hand. */
struct hand {
    struct tcp_conn c;
    struct seal seal;
    uint8_t got[sizeof(struct tcp_hello) + sizeof(struct tcp_head) + TCP_PROOF_BYTES];
    size_t n_got;
};

/* Dials, and makes a hello as a peer that listens at `from` would. */
static void hand_dial(struct hand *h, const struct end *to, const struct sockaddr_in *from)
{
    static struct net own;

    memset(h, 0, sizeof *h);
    assert_int_equal(seal_init(&h->seal, secret, false, protect), 0);
    own.address_len = sizeof *from;
    memcpy(own.address, from, sizeof *from);
    h->c.initiated = true;
    h->c.fd = dial(to);
    tcp_proof_begin(&own, &h->c);
}

static void hand_close(struct hand *h)
{
    close(h->c.fd);
    seal_key_deinit(&h->c.in);
    seal_key_deinit(&h->c.out_key);
    seal_deinit(&h->seal);
}

static void hand_send(struct hand *h, const void *bytes, size_t n)
{
    assert_int_equal(send(h->c.fd, bytes, n, MSG_NOSIGNAL), n);
}

/* Waits for the end's hello and proof, and adds the own proof to what is to be sent. */
static void hand_answer(struct hand *h, struct end *to, bool large)
{
    uint64_t end_ns = clock_now_ns() + LIMIT_NS;

    while (h->n_got < sizeof h->got) {
        assert_true(clock_now_ns() < end_ns);
        turn(to, 64, large);
        ssize_t n = recv(h->c.fd, h->got + h->n_got, sizeof h->got - h->n_got, MSG_DONTWAIT);
        assert_true(n > 0 || (n < 0 && errno == EAGAIN));
        h->n_got += n > 0 ? (size_t)n : 0;
    }
    memcpy(&h->c.hello, h->got, sizeof h->c.hello);
    memcpy(h->c.proof, h->got + sizeof h->got - TCP_PROOF_BYTES, TCP_PROOF_BYTES);
    assert_int_equal(tcp_proof_answer(&h->c, &h->seal), 0);
    assert_int_equal(tcp_proof_check(&h->c, &h->seal), 0);
}

/* Hello, answer, proof: packets may follow. */
static void hand_shake(struct hand *h, struct end *to, const struct sockaddr_in *from)
{
    hand_dial(h, to, from);
    hand_send(h, h->c.out, h->c.out_len);
    size_t n = h->c.out_len;
    hand_answer(h, to, false);
    hand_send(h, h->c.out + n, h->c.out_len - n);
}

/* Packet k as it is to be sent. Returns the bytes of its frame. */
static size_t hand_frame(struct hand *h, uint8_t *to, uint64_t k, uint32_t len)
{
    struct tcp_head head = {.magic = TCP_FRAME_MAGIC, .len = len};

    fill(to + sizeof head, len, k);
    head.code = seal_key_wrap(&h->c.out_key, h->c.n_out++, NULL, 0, to + sizeof head, len,
                              to + sizeof head);
    memcpy(to, &head, sizeof head);
    return sizeof head + len;
}

static void know(struct end *e, const struct sockaddr_in *from)
{
    if (!e->seal.made)
        assert_int_equal(seal_init(&e->seal, secret, true, protect), 0);
    assert_int_equal(net_tcp.peer_add(e->net, from, sizeof *from, &e->seal, &e->peer), 0);
}

/* Frames that arrive byte by byte, in one piece, and in pieces of odd length. */
static void test_pieces(void **state)
{
    static uint8_t stream[600000];
    static const size_t pieces[] = {1,    7,     8,     15,    16,    17,
                                    1000, 16479, 16480, 16481, 70000, sizeof stream};
    struct sockaddr_in from = nowhere();

    (void)state;
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
        size_t n = 0, at = 0;
        uint32_t n_packets = 0;
        struct hand hand;
        protect = p % 2 ? SEAL_INTEGRITY : SEAL_ENCRYPT;
        start(12);
        know(&ends[0], &from);
        hand_dial(&hand, &ends[0], &from);
        for (size_t k; at < hand.c.out_len; at += k) {
            k = pieces[p] < hand.c.out_len - at ? pieces[p] : hand.c.out_len - at;
            hand_send(&hand, hand.c.out + at, k);
            turn(&ends[0], 64, true);
        }
        hand_answer(&hand, &ends[0], true);
        n = hand.c.out_len - at;
        memcpy(stream, hand.c.out + at, n);
        /* One byte a poll takes its time: a shorter stream then. */
        for (size_t limit = pieces[p] < 100 ? 60000 : sizeof stream - PACKET - 16; n < limit;
             n_packets++) {
            n += hand_frame(&hand, stream + n, n_packets, length_of(n_packets, true));
            if (pieces[p] < 100 && n > 40000)
                limit = 0;
        }
        uint64_t end_ns = clock_now_ns() + LIMIT_NS;
        at = 0;
        while (ends[0].n_received < n_packets) {
            assert_true(clock_now_ns() < end_ns);
            size_t k = pieces[p] < n - at ? pieces[p] : n - at;
            ssize_t rc = k ? send(hand.c.fd, stream + at, k, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
            at += rc > 0 ? (size_t)rc : 0;
            turn(&ends[0], 64, true);
        }
        hand_close(&hand);
        stop();
    }
    protect = SEAL_INTEGRITY;
}

/* Turns, with packets between the two ends, until the connection is closed by the other side. */
static void until_closed(int fd, uint64_t *sent)
{
    uint64_t end_ns = clock_now_ns() + LIMIT_NS;
    char bytes[256];
    ssize_t rc = -1;

    do {
        assert_true(clock_now_ns() < end_ns);
        *sent += send_packet(&ends[1], *sent, false);
        turn(&ends[0], 64, false);
        turn(&ends[1], 64, false);
        rc = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    } while (rc > 0 || (rc < 0 && errno == EAGAIN));
}

static void start_pair(void)
{
    start(16);
    introduce(&ends[0], &ends[1]);
    introduce(&ends[1], &ends[0]);
}

static void finish_pair(uint64_t sent)
{
    uint64_t end_ns = clock_now_ns() + LIMIT_NS;

    while (ends[0].n_received < sent) {
        assert_true(clock_now_ns() < end_ns);
        turn(&ends[0], 64, false);
        turn(&ends[1], 64, false);
    }
    assert_int_equal(ends[0].n_failed + ends[1].n_failed + ends[1].n_down, 0);
    stop();
}

/* Whoever sends rubbish is hung up on; others do not notice. */
static void test_rubbish(void **state)
{
    static const struct tcp_head heads[] = {
        {.magic = 0x12345678, .len = 8},
        {.magic = TCP_FRAME_MAGIC, .len = 0},
        {.magic = TCP_FRAME_MAGIC, .len = PACKET + 1},
        {.magic = TCP_FRAME_MAGIC, .len = UINT32_MAX},
        {.magic = TCP_HELLO_MAGIC, .len = (uint32_t)TCP_HELLO_BYTES},
    };
    struct sockaddr_in from = nowhere();
    struct hand hand;
    uint64_t sent = 0;
    (void)state;

    start_pair();
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        assert_int_equal(
            net_tcp.peer_add(ends[0].net, &from, sizeof from, &ends[0].seal, &(uint32_t){0}), 0);
        hand_shake(&hand, &ends[0], &from);
        hand_send(&hand, &heads[i], sizeof heads[i]);
        until_closed(hand.c.fd, &sent);
        hand_close(&hand);
        from.sin_port++;
    }
    for (int i = 0; i < 5; i++) {
        hand_dial(&hand, &ends[0], &from);
        struct tcp_hello hello = hand.c.own_hello;
        hello.version = i == 0 ? 99 : hello.version;
        hello.address_len = i == 1 ? NET_ADDRESS_BYTES + 1 : i == 2 ? 0 : hello.address_len;
        hello.cls = i == 4 ? WIRE_CLASSES : 0;
        hello.head.magic = i == 3 ? 0x47455420 : hello.head.magic; /* a web browser */
        hand_send(&hand, &hello, sizeof hello);
        until_closed(hand.c.fd, &sent);
        hand_close(&hand);
    }
    finish_pair(sent);
}

/* Somebody who names a peer's address and does not know the secret. */
static void test_impostor(void **state)
{
    struct sockaddr_in from = nowhere(), elsewhere = nowhere();
    uint8_t seen[sizeof(struct tcp_hello) + sizeof(struct tcp_head) + TCP_PROOF_BYTES];
    uint8_t frame[200];
    struct hand hand;
    struct net_guard guard;
    uint64_t sent = 0;
    (void)state;

    start_pair();
    assert_int_equal(
        net_tcp.peer_add(ends[0].net, &from, sizeof from, &ends[0].seal, &(uint32_t){0}), 0);
    /* A packet at once, and a packet in the place of the proof. */
    for (int i = 0; i < 2; i++) {
        hand_dial(&hand, &ends[0], &from);
        hand_send(&hand, hand.c.out, i == 0 ? 0 : hand.c.out_len);
        hand_send(&hand, frame, hand_frame(&hand, frame, 0, 100));
        until_closed(hand.c.fd, &sent);
        hand_close(&hand);
    }
    /* A proof that is wrong. */
    hand_dial(&hand, &ends[0], &from);
    hand_send(&hand, hand.c.out, hand.c.out_len);
    hand_answer(&hand, &ends[0], false);
    hand.c.out[hand.c.out_len - 1] ^= 1;
    hand_send(&hand, hand.c.out + sizeof(struct tcp_hello),
              hand.c.out_len - sizeof(struct tcp_hello));
    until_closed(hand.c.fd, &sent);
    hand_close(&hand);
    /* What a good connection was seen to send, once more; and the other side's own proof back. */
    hand_shake(&hand, &ends[0], &from);
    memcpy(seen, hand.c.out, sizeof seen);
    hand_close(&hand);
    for (int i = 0; i < 2; i++) {
        hand_dial(&hand, &ends[0], &from);
        if (i == 0)
            memcpy(&hand.c.own_hello, seen, sizeof hand.c.own_hello);
        hand_send(&hand, &hand.c.own_hello, sizeof hand.c.own_hello);
        hand_answer(&hand, &ends[0], false);
        hand_send(&hand, (i == 0 ? seen : hand.got) + sizeof(struct tcp_hello),
                  sizeof seen - sizeof(struct tcp_hello));
        until_closed(hand.c.fd, &sent);
        hand_close(&hand);
    }
    /* Another host's address. */
    elsewhere.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
    assert_int_equal(
        net_tcp.peer_add(ends[0].net, &elsewhere, sizeof elsewhere, &ends[0].seal, &(uint32_t){0}),
        0);
    hand_dial(&hand, &ends[0], &elsewhere);
    hand_send(&hand, hand.c.out, hand.c.out_len);
    until_closed(hand.c.fd, &sent);
    hand_close(&hand);
    net_tcp.guard(ends[0].net, &guard);
    assert_true(guard.strangers >= 4);
    assert_int_equal(guard.forged, 0);
    finish_pair(sent);
}

/* A packet that is damaged on the way is lost, and the next one comes. */
static void test_damage(void **state)
{
    struct sockaddr_in from = nowhere();
    uint8_t frame[20000];
    struct net_guard guard;
    struct hand hand;
    (void)state;

    for (int large = 0; large < 2; large++) {
        uint32_t len = large ? 10000 : 100;
        uint64_t end_ns = clock_now_ns() + LIMIT_NS;
        struct net_event event;
        start(16);
        know(&ends[0], &from);
        hand_shake(&hand, &ends[0], &from);
        for (uint32_t i = 0; i < 10; i++) {
            size_t n = hand_frame(&hand, frame, i, len);
            if (i % 3 == 1)
                frame[sizeof(struct tcp_head) + i * 5] ^= 0x10;
            hand_send(&hand, frame, n);
            while (i % 3 != 1) {
                assert_true(clock_now_ns() < end_ns);
                int got = net_tcp.poll(ends[0].net, &event, 1);
                assert_true(got >= 0);
                /* Nobody listens where the peer is, which is found when this takes long. */
                if (got == 0 || event.kind == NET_PEER_DOWN)
                    continue;
                assert_int_equal(event.kind, NET_RECEIVED);
                assert_int_equal(event.len, len);
                check(arena_at(&ends[0].arena, event.block), len, i);
                assert_int_equal(net_tcp.post(ends[0].net, event.block), 0);
                break;
            }
        }
        net_tcp.guard(ends[0].net, &guard);
        assert_int_equal(guard.forged, 3);
        hand_close(&hand);
        stop();
    }
}

/* Connections that say nothing hold no more than their share, and keep nobody out. */
static void test_idle_strangers(void **state)
{
    enum { N = 300 };
    static int fds[N];
    struct sockaddr_in from = nowhere();
    struct hand hand;
    struct net_guard guard;
    uint64_t sent = 0, n_open = 0;
    char byte;
    (void)state;

    start_pair();
    for (int i = 0; i < N; i++) {
        fds[i] = dial(&ends[0]);
        sent += send_packet(&ends[1], sent, false);
        turn(&ends[0], 64, false);
        turn(&ends[1], 64, false);
    }
    assert_int_equal(
        net_tcp.peer_add(ends[0].net, &from, sizeof from, &ends[0].seal, &(uint32_t){0}), 0);
    hand_shake(&hand, &ends[0], &from);
    for (int i = 0; i < 200; i++)
        turn(&ends[0], 64, false);
    for (int i = 0; i < N; i++) {
        n_open += recv(fds[i], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
        close(fds[i]);
    }
    assert_true(n_open <= 32);
    net_tcp.guard(ends[0].net, &guard);
    assert_true(guard.strangers >= N - 32);
    hand_close(&hand);
    finish_pair(sent);
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
        cmocka_unit_test(test_rubbish), cmocka_unit_test(test_impostor),
        cmocka_unit_test(test_damage),  cmocka_unit_test(test_idle_strangers),
        cmocka_unit_test(test_death),   cmocka_unit_test(test_early),
        cmocka_unit_test(test_classes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
