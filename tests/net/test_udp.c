/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two endpoints of the native UDP driver and a link between them, under a clock and a seed of the
 * test: the link has a rate, a queue, a delay, a path MTU, and loses, doubles and reorders. What
 * must arrive arrives once, however bad the link is; how fast, and how long nothing comes, is
 * measured where a network would be too noisy for it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/net/block.h"
#include "daemon/net/udp/udp_end.h"
#include "daemon/net/udp/udp_tx.h"

#define PACKET  16464u
#define BLOCKS  512u
#define SENDS   128u /* blocks from 0 on are for sending */
#define OUTS    256u
#define WIRE    16384u
#define NUMBERS (1u << 16)
#define STEP_NS (20 * CLOCK_NS_PER_US)

struct link {
    uint64_t bytes_per_s; /* 0: no limit */
    uint32_t queue_bytes;
    uint64_t delay_ns;
    uint32_t lose, twice, late; /* per million */
    uint32_t mtu;
    bool cut;
};

struct gram {
    uint64_t due_ns;
    uint32_t to, n;
    uint8_t *data;
};

struct side {
    struct arena arena;
    struct udp_end *end;
    struct seal seal;
    uint32_t peer;
    bool sending[BLOCKS];
    bool seen[NUMBERS];
    uint32_t n_received, n_twice, n_failed, n_down;
    uint64_t got_ns, pause_ns; /* last arrival, longest time without one */
    uint64_t busy_ns;          /* the link's sender is busy up to here */
};

struct world {
    struct link link;
    struct rand rand;
    uint64_t now_ns;
    struct side sides[2];
    struct gram wire[WIRE];
    uint32_t n_wire;
    uint64_t n_sent, n_dropped; /* by the queue */
    uint8_t *kept;              /* one datagram, for a replay */
    uint32_t n_kept;
};

static const uint8_t secret[SEAL_SECRET_BYTES] = "two ends of a simulated link";
static const uint8_t names[2] = {'a', 'b'};

static void introduce(struct world *w, uint32_t i)
{
    assert_int_equal(udp_end_peer_add(w->sides[i].end, &names[1 - i], 1, &w->sides[i].seal,
                                      w->now_ns, &w->sides[i].peer),
                     0);
}

static struct world *world_new(uint64_t seed, const struct link *link, enum seal_mode mode,
                               uint32_t mtu_most)
{
    struct world *w = calloc(1, sizeof *w);

    assert_non_null(w);
    w->link = *link;
    w->rand.state = seed;
    w->now_ns = CLOCK_NS_PER_S;
    for (uint32_t i = 0; i < 2; i++) {
        struct side *s = &w->sides[i];
        struct udp_end_config config = {.arena = &s->arena,
                                        .max_bytes = PACKET,
                                        .mtu_least = udp_end_mtu_least(PACKET),
                                        .mtu_most = mtu_most,
                                        .room = 2 << 20,
                                        .encrypts = mode == SEAL_ENCRYPT,
                                        .seed = seed * 2 + i};
        assert_int_equal(arena_init(&s->arena, BLOCKS, PACKET), 0);
        assert_int_equal(udp_end_new(&config, &s->end), 0);
        assert_int_equal(seal_init(&s->seal, secret, i == 0, mode), 0);
        for (uint32_t b = SENDS; b < BLOCKS; b++)
            assert_int_equal(udp_end_post(s->end, b), 0);
    }
    for (uint32_t i = 0; i < 2; i++)
        introduce(w, i);
    return w;
}

static void world_free(struct world *w)
{
    for (uint32_t i = 0; i < 2; i++) {
        udp_end_free(w->sides[i].end);
        arena_deinit(&w->sides[i].arena);
        seal_deinit(&w->sides[i].seal);
    }
    for (uint32_t i = 0; i < w->n_wire; i++)
        free(w->wire[i].data);
    free(w->kept);
    free(w);
}

static bool chance(struct world *w, uint32_t per_million)
{
    return rand_below(&w->rand, 1000000) < per_million;
}

static void put(struct world *w, uint32_t to, const uint8_t *data, uint32_t n, uint64_t due_ns)
{
    assert_true(w->n_wire < WIRE);
    struct gram *g = &w->wire[w->n_wire++];
    *g = (struct gram){.due_ns = due_ns, .to = to, .n = n, .data = malloc(n)};
    assert_non_null(g->data);
    memcpy(g->data, data, n);
}

/* A datagram comes to the link: it waits for those before it, unless the queue is full. */
static void carry(struct world *w, uint32_t from, const uint8_t *data, uint32_t n)
{
    const struct link *l = &w->link;
    struct side *s = &w->sides[from];
    uint64_t leaves_ns = w->now_ns;

    w->n_sent++;
    if (l->bytes_per_s != 0) {
        uint64_t queued_ns = s->busy_ns > w->now_ns ? s->busy_ns - w->now_ns : 0;
        if (queued_ns * l->bytes_per_s / CLOCK_NS_PER_S + n > l->queue_bytes) {
            w->n_dropped++;
            return;
        }
        s->busy_ns = w->now_ns + queued_ns + n * CLOCK_NS_PER_S / l->bytes_per_s;
        leaves_ns = s->busy_ns;
    }
    if (l->cut || n > l->mtu || chance(w, l->lose))
        return;
    put(w, 1 - from, data, n,
        leaves_ns + l->delay_ns + (chance(w, l->late) ? rand_below(&w->rand, 2000000) : 0));
    if (chance(w, l->twice))
        put(w, 1 - from, data, n, leaves_ns + l->delay_ns + rand_below(&w->rand, 3000000));
}

static void output(struct world *w, uint32_t i)
{
    struct side *s = &w->sides[i];
    static struct udp_out outs[OUTS];
    static uint8_t data[65536];
    uint32_t n = udp_end_output(s->end, UINT32_MAX, w->now_ns, outs, OUTS);

    for (uint32_t k = 0; k < n; k++) {
        const struct udp_out *o = &outs[k];
        uint32_t n_front = o->n_mark + o->n_head;
        memcpy(data, o->head - o->n_mark, n_front);
        if (o->n_data > 0)
            memcpy(data + n_front,
                   (o->copy ? o->copy : (const uint8_t *)arena_at(&s->arena, o->block)) + o->offset,
                   o->n_data);
        carry(w, i, data, n_front + o->n_data);
    }
}

static void received(struct world *w, struct side *s, const struct net_event *e)
{
    const uint8_t *p = arena_at(&s->arena, e->block);
    uint32_t number, len;

    memcpy(&number, p, sizeof number);
    memcpy(&len, p + 4, sizeof len);
    assert_int_equal(len, e->len);
    assert_true(number < NUMBERS);
    for (uint32_t i = 8; i < len; i += 61)
        assert_int_equal(p[i], (uint8_t)(number * 31 + i * 7));
    s->n_twice += s->seen[number];
    s->seen[number] = true;
    s->n_received++;
    if (s->got_ns != 0 && w->now_ns - s->got_ns > s->pause_ns)
        s->pause_ns = w->now_ns - s->got_ns;
    s->got_ns = w->now_ns;
    assert_int_equal(udp_end_post(s->end, e->block), 0);
}

static void report(struct side *s)
{
    struct net_event events[64];
    int n = udp_end_report(s->end, events, 64);

    for (int i = 0; i < n; i++) {
        const struct net_event *e = &events[i];
        if (e->kind == NET_PEER_DOWN) {
            s->n_down++;
            continue;
        }
        assert_true(e->block < SENDS && s->sending[e->block]);
        s->sending[e->block] = false;
        s->n_failed += e->kind == NET_FAILED;
    }
}

static void step(struct world *w)
{
    w->now_ns += STEP_NS;
    for (uint32_t i = 0; i < w->n_wire;) {
        struct gram g = w->wire[i];
        struct side *s = &w->sides[g.to];
        struct net_event e;
        if (g.due_ns > w->now_ns) {
            i++;
            continue;
        }
        /* In order, for those that are due together. */
        memmove(&w->wire[i], &w->wire[i + 1], (--w->n_wire - i) * sizeof *w->wire);
        if (udp_end_input(s->end, &names[1 - g.to], 1, g.data, g.n, w->now_ns, &e))
            received(w, s, &e);
        free(g.data);
    }
    for (uint32_t i = 0; i < 2; i++) {
        output(w, i);
        report(&w->sides[i]);
    }
}

/* Sends packet `number`. False: not now. */
static bool send_packet(struct world *w, uint32_t from, uint32_t number, uint32_t len)
{
    struct side *s = &w->sides[from];
    uint32_t b = 0;

    while (b < SENDS && s->sending[b])
        b++;
    if (b == SENDS)
        return false;
    uint8_t *p = arena_at(&s->arena, b);
    for (uint32_t i = 8; i < len; i += 61)
        p[i] = (uint8_t)(number * 31 + i * 7);
    memcpy(p, &number, sizeof number);
    memcpy(p + 4, &len, sizeof len);
    int rc = udp_end_send(s->end, s->peer, b, len, w->now_ns);
    assert_true(rc == 0 || rc == NET_E_DONE || rc == -EAGAIN);
    s->sending[b] = rc == 0;
    return rc >= 0;
}

/* A stream of n packets from one side; returns the time it takes. */
static uint64_t stream(struct world *w, uint32_t first, uint32_t n, uint64_t limit_ns)
{
    uint64_t start_ns = w->now_ns;
    uint32_t sent = 0, before = w->sides[1].n_received;

    w->sides[1].got_ns = w->now_ns;
    while (w->sides[1].n_received - before < n) {
        for (uint32_t k = 0; k < 8 && sent < n && send_packet(w, 0, first + sent, PACKET); k++)
            sent++;
        step(w);
        if (w->now_ns - start_ns > limit_ns)
            fail_msg("%u of %u packets after %.1f s", w->sides[1].n_received - before, n,
                     (double)(w->now_ns - start_ns) / 1e9);
    }
    return w->now_ns - start_ns;
}

static const struct link good = {
    .bytes_per_s = 125000000, .queue_bytes = 300000, .delay_ns = 50000, .mtu = 1472};

/* Whatever is lost, doubled and overtaken: both ways, every packet once, and blocks come back. */
static void test_once(void **state)
{
    static const uint32_t losses[] = {0, 10000, 50000, 100000, 300000};

    (void)state;
    for (uint64_t seed = 1; seed <= 15; seed++) {
        struct link link = good;
        uint32_t sent[2] = {0, 0}, n = 500;
        link.lose = losses[seed % 5];
        link.twice = seed % 3 == 0 ? 50000 : 0;
        link.late = seed % 2 == 0 ? 50000 : 0;
        struct world *w = world_new(seed, &link, (enum seal_mode)(seed % 3), 1472);
        uint64_t end_ns = w->now_ns + 60 * CLOCK_NS_PER_S;
        while (w->sides[0].n_received < n || w->sides[1].n_received < n) {
            assert_true(w->now_ns < end_ns);
            for (uint32_t i = 0; i < 2; i++)
                if (sent[i] < n)
                    sent[i] += send_packet(w, i, sent[i],
                                           sent[i] % 4 == 0 ? PACKET : 8 + sent[i] * 97 % 3000);
            step(w);
        }
        for (uint32_t k = 0; k < 50000; k++)
            step(w);
        for (uint32_t i = 0; i < 2; i++) {
            const struct side *s = &w->sides[i];
            assert_int_equal(s->n_received, n);
            assert_int_equal(s->n_twice + s->n_failed + s->n_down, 0);
            assert_int_equal(udp_end_posted(s->end), BLOCKS - SENDS);
            for (uint32_t b = 0; b < SENDS; b++)
                assert_false(s->sending[b]);
            /* At rest nobody is woken. */
            assert_true(udp_end_due(s->end) == UINT64_MAX);
        }
        world_free(w);
    }
}

/* Goodput and longest pause by the share that is lost. */
static void test_goodput(void **state)
{
    static const struct {
        uint32_t lose;
        double least; /* of the link */
    } rows[] = {{0, 0.93}, {10000, 0.85}, {50000, 0.7}, {100000, 0.6}, {300000, 0.25}};

    (void)state;
    for (uint32_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        struct link link = good;
        link.lose = rows[r].lose;
        struct world *w = world_new(7 + r, &link, SEAL_INTEGRITY, 1472);
        uint64_t ns = stream(w, 0, 6000, 60 * CLOCK_NS_PER_S);
        double share = 6000.0 * PACKET / (double)ns / 0.125;
        printf("%4.0f%% lost: %.2f of the link, longest pause %.1f ms, window %u\n",
               rows[r].lose / 1e4, share, (double)w->sides[1].pause_ns / 1e6,
               udp_end_peer(w->sides[0].end, 0)->tx.rate.window);
        assert_true(share >= rows[r].least);
        assert_true(w->sides[1].pause_ns < CLOCK_NS_PER_S / 4);
        world_free(w);
    }
}

/* A short queue is not flooded. */
static void test_short_queue(void **state)
{
    (void)state;
    for (uint32_t queue = 20000; queue <= 160000; queue *= 2) {
        struct link link = good;
        link.queue_bytes = queue;
        struct world *w = world_new(3, &link, SEAL_NONE, 1472);
        uint64_t ns = stream(w, 0, 6000, 60 * CLOCK_NS_PER_S);
        double share = 6000.0 * PACKET / (double)ns / 0.125;
        double dropped = (double)w->n_dropped / (double)w->n_sent;
        printf("queue of %u: %.2f of the link, %.2f%% dropped\n", queue, share, 100 * dropped);
        assert_true(share > 0.85 && dropped < 0.10);
        world_free(w);
    }
}

static uint32_t mtu_of(struct world *w)
{
    return udp_end_peer(w->sides[0].end, w->sides[0].peer)->tx.mtu.now;
}

static void test_mtu(void **state)
{
    static const uint32_t paths[][2] = {{8972, 8972}, {1472, 1472}, {1400, 1380},
                                        {4200, 1480}, {600, 548},   {5000, 4324}};

    (void)state;
    for (uint32_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct link link = good;
        link.mtu = paths[i][0];
        struct world *w = world_new(i + 1, &link, SEAL_INTEGRITY, 8972);
        stream(w, 0, 500, 20 * CLOCK_NS_PER_S);
        for (uint32_t k = 0; k < 50000; k++)
            step(w);
        assert_true(mtu_of(w) <= paths[i][0]);
        assert_true(mtu_of(w) + 64 >= paths[i][1]);
        world_free(w);
    }
}

/* Large datagrams vanish in the middle of a stream, in silence; later they pass again. */
static void test_black_hole(void **state)
{
    (void)state;
    for (uint32_t lose = 0; lose <= 100000; lose += 100000) {
        struct link link = good;
        link.mtu = 8972;
        link.lose = lose;
        struct world *w = world_new(5, &link, SEAL_INTEGRITY, 8972);
        stream(w, 0, 1000, 20 * CLOCK_NS_PER_S);
        assert_int_equal(mtu_of(w), 8972);
        w->link.mtu = 1472;
        w->sides[1].pause_ns = 0;
        stream(w, 1000, 20000, 60 * CLOCK_NS_PER_S);
        printf("black hole: pause of %.0f ms\n", (double)w->sides[1].pause_ns / 1e6);
        assert_true(w->sides[1].pause_ns < CLOCK_NS_PER_S);
        assert_true(mtu_of(w) <= 1472 && mtu_of(w) > 1300);
        world_free(w);
    }
}

/* The wire is cut: everything comes back in two seconds and a little; mended, a new session
 * begins. */
static void test_cut(void **state)
{
    (void)state;
    struct world *w = world_new(9, &good, SEAL_INTEGRITY, 1472);
    stream(w, 0, 100, 10 * CLOCK_NS_PER_S);
    w->link.cut = true;
    uint64_t cut_ns = w->now_ns;
    uint32_t sent = 0;
    while (w->sides[0].n_down == 0) {
        sent += send_packet(w, 0, 1000 + sent, PACKET);
        step(w);
        assert_true(w->now_ns - cut_ns < 3 * CLOCK_NS_PER_S);
    }
    assert_true(w->sides[0].n_failed > 0);
    w->link.cut = false;
    stream(w, 40000, 500, 10 * CLOCK_NS_PER_S);
    assert_int_equal(w->sides[1].n_twice, 0);
    world_free(w);
}

/* One side forgets the other and names it again, while packets are on their way: the session begins
 * anew without waiting for a time-out. */
static void test_renamed(void **state)
{
    (void)state;
    struct world *w = world_new(11, &good, SEAL_INTEGRITY, 1472);
    stream(w, 0, 200, 10 * CLOCK_NS_PER_S);
    for (uint32_t i = 0; i < 4; i++) {
        struct side *s = &w->sides[i % 2];
        for (uint32_t k = 0; k < 30; k++)
            send_packet(w, i % 2, 20000 + 100 * i + k, PACKET);
        udp_end_peer_remove(s->end, s->peer);
        report(s);
        report(s);
        introduce(w, i % 2);
        stream(w, 1000 + 1000 * i, 300, CLOCK_NS_PER_S);
        assert_int_equal(udp_end_posted(s->end) + 0u, BLOCKS - SENDS);
    }
    world_free(w);
}

/* Somebody sends what he likes from the peer's address: bytes at random, what he has recorded, and
 * what he has changed. Nothing is taken, nothing held. */
static void test_forged(void **state)
{
    uint8_t data[2000];

    (void)state;
    for (uint32_t mode = SEAL_NONE; mode <= SEAL_ENCRYPT; mode++) {
        struct world *w = world_new(13, &good, (enum seal_mode)mode, 1472);
        struct udp_end_count before, after;
        uint32_t sent = 0;
        udp_end_count(w->sides[1].end, &before);
        while (sent < 2000) {
            sent += send_packet(w, 0, sent, PACKET);
            if (w->n_wire > 0) {
                struct gram g = w->wire[rand_below(&w->rand, w->n_wire)];
                uint32_t at = (uint32_t)rand_below(&w->rand, g.n);
                put(w, g.to, g.data, g.n, w->now_ns + rand_below(&w->rand, 5 * CLOCK_NS_PER_MS));
                if (mode != SEAL_NONE) {
                    memcpy(data, g.data, g.n);
                    data[at] ^= (uint8_t)(1 + rand_below(&w->rand, 255));
                    put(w, g.to, data, g.n, w->now_ns + STEP_NS);
                }
            }
            for (uint32_t i = 0; i < sizeof data; i++)
                data[i] = (uint8_t)rand_next(&w->rand);
            /* The best that one can do without having read anything. */
            struct udp_head h = {.magic = UDP_MAGIC,
                                 .kind = (uint8_t)(1 + rand_below(&w->rand, 4)),
                                 .from = (uint32_t)rand_next(&w->rand),
                                 .to = (uint32_t)rand_next(&w->rand)};
            memcpy(data, &h, sizeof h);
            put(w, 1, data, (uint32_t)rand_below(&w->rand, 1472), w->now_ns);
            step(w);
        }
        while (w->sides[1].n_received < sent)
            step(w);
        udp_end_count(w->sides[1].end, &after);
        assert_true(after.guard.forged + after.guard.replayed + after.n_ignored >
                    before.guard.forged + before.guard.replayed + before.n_ignored);
        assert_int_equal(w->sides[1].n_received, sent);
        assert_int_equal(w->sides[1].n_twice + w->sides[0].n_failed + w->sides[0].n_down, 0);
        assert_int_equal(udp_end_posted(w->sides[1].end), BLOCKS - SENDS);
        world_free(w);
    }
}

/* Nobody posts a block for a while: the sender waits, and goes on when they do. */
static void test_starved(void **state)
{
    struct net_event e;

    (void)state;
    struct world *w = world_new(17, &good, SEAL_NONE, 1472);
    struct side *s = &w->sides[1];
    /* Take all blocks away: those of packets that arrive are not posted again. */
    uint32_t kept[BLOCKS], n_kept = 0, sent = 0;
    while (w->now_ns < 3 * CLOCK_NS_PER_S) {
        w->now_ns += STEP_NS;
        for (uint32_t i = 0; i < w->n_wire;) {
            struct gram g = w->wire[i];
            if (g.due_ns > w->now_ns) {
                i++;
                continue;
            }
            memmove(&w->wire[i], &w->wire[i + 1], (--w->n_wire - i) * sizeof *w->wire);
            if (udp_end_input(w->sides[g.to].end, &names[1 - g.to], 1, g.data, g.n, w->now_ns, &e))
                kept[n_kept++] = e.block;
            free(g.data);
        }
        sent += send_packet(w, 0, sent, PACKET);
        output(w, 0);
        output(w, 1);
        report(&w->sides[0]);
    }
    assert_int_equal(n_kept, BLOCKS - SENDS);
    uint64_t n_sent = w->n_sent;
    assert_true(n_sent < 100000); /* it did not pour into nothing */
    for (uint32_t i = 0; i < n_kept; i++)
        assert_int_equal(udp_end_post(s->end, kept[i]), 0);
    uint64_t start_ns = w->now_ns;
    while (s->n_received < sent - n_kept) {
        step(w);
        assert_true(w->now_ns - start_ns < CLOCK_NS_PER_S);
    }
    assert_int_equal(w->sides[0].n_failed, 0);
    world_free(w);
}

/* A quick packet leaves before the bulk that waits, and bulk goes on beside quick ones without
 * end. */
static void test_quick(void **state)
{
    uint32_t n = 0;

    (void)state;
    struct world *w = world_new(19, &good, SEAL_INTEGRITY, 1472);
    stream(w, 0, 500, 10 * CLOCK_NS_PER_S);
    for (uint32_t b = 0; b < 60; b++)
        w->sides[0].arena.held[b].cls = WIRE_BULK;
    while (n < 60 && send_packet(w, 0, 1000 + n, PACKET))
        n++;
    assert_int_equal(n, 60);
    assert_true(send_packet(w, 0, 2000, 500));
    uint64_t start_ns = w->now_ns;
    while (!w->sides[1].seen[2000])
        step(w);
    /* All of it takes 8 ms; what the network had already is before it. */
    assert_true(w->now_ns - start_ns < 4 * CLOCK_NS_PER_MS);
    assert_false(w->sides[1].seen[1059]);
    for (n = 0; !w->sides[1].seen[1059]; step(w)) {
        for (uint32_t k = 0; k < 8 && send_packet(w, 0, 3000 + n, 1000); k++)
            n++;
        assert_true(w->now_ns - start_ns < CLOCK_NS_PER_S);
    }
    world_free(w);
}

/* The queue alone: while quick packets come without end, a bulk one waits for a limited number of
 * bytes, though the window is always open. */
static void test_turns(void **state)
{
    static const uint8_t data[1000];
    struct udp_tx *tx = calloc(1, sizeof *tx);
    struct udp_tx_piece piece;
    uint32_t n_quick = 0;

    (void)state;
    assert_non_null(tx);
    udp_tx_init(tx, 1, 1400, 1400, 0);
    assert_true(udp_tx_add(tx, 0, WIRE_BULK, data, sizeof data) >= 0);
    for (;; n_quick++) {
        int rc = udp_tx_add(tx, 1 + n_quick, WIRE_QUICK, data, sizeof data);
        assert_true(rc == 0 || n_quick >= 100);
        tx->n_free = 1;
        assert_true(udp_tx_next(tx, 50, 0, &piece));
        udp_tx_sent(tx, UDP_DATA, &piece, piece.len + 50, 0);
        if (piece.block == 0)
            break;
    }
    assert_in_range(n_quick, 40, 90);
    free(tx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_once),    cmocka_unit_test(test_goodput),
        cmocka_unit_test(test_mtu),     cmocka_unit_test(test_short_queue),
        cmocka_unit_test(test_renamed), cmocka_unit_test(test_black_hole),
        cmocka_unit_test(test_cut),     cmocka_unit_test(test_forged),
        cmocka_unit_test(test_starved), cmocka_unit_test(test_quick),
        cmocka_unit_test(test_turns),
    };

    return cmocka_run_group_tests_name("udp", tests, NULL, NULL);
}
