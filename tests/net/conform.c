/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a channel relies on in every network driver, asked of any: addresses, whose a block is at
 * any moment, posted receives, backpressure, bytes, peers that go, the descriptor to sleep on.
 *
 *   conform NAME [--list]        (one of the table at the end)
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rand.h"
#include "daemon/net/block.h"
#include "daemon/net/net_drivers.h"
#include "tests/net/net_skeleton.h"
#include "tests/sim/net_sim.h"

#define BLOCKS   96u
#define SENDS    48u /* blocks from 0 on are for sending, the others for receiving */
#define PACKET   16464u
#define LIMIT_NS (30 * CLOCK_NS_PER_S)

struct subject {
    const char *name;
    const char *driver; /* in the table of drivers; NULL: `own` */
    const struct net_driver *own;
    const char *provider;
    const char *fault;
    const struct sim_faults *sim; /* the network that it needs */
    bool loses;                   /* though its network does not */
    bool reorders;                /* packets may overtake one another */
    enum seal_mode protect;
};

/* Whose a block is. */
enum owner { MINE, SENDING, POSTED };

struct end {
    struct arena arena;
    struct net_endpoint e;
    uint32_t peer;
    struct seal seal;
    enum owner owner[BLOCKS];
    uint32_t n_received, n_sent, n_failed, n_down;
    bool seen[1u << 16]; /* numbers of packets that arrived */
    uint32_t n_twice, last;
    bool ordered; /* they came in order so far */
};

static const struct subject *subject;
static struct sim_network *network;
static uint64_t sim_now_ns;
static struct end ends[2];
static const char *step_name;
/* Of the two ends: another one as soon as one of them is opened anew. */
static uint8_t secret[SEAL_SECRET_BYTES];

static void check(bool ok, const char *what, int line)
{
    if (ok)
        return;
    fprintf(stderr, "conform %s: %s: line %d: %s\n", subject->name, step_name, line, what);
    exit(1);
}
#define CHECK(condition) check(condition, #condition, __LINE__)

static bool is_datagram(void)
{
    return (ends[0].e.info.caps & NET_CAP_DATAGRAM) != 0;
}

static bool may_lose(void)
{
    return is_datagram() || subject->fault || subject->loses;
}

static void open_end(struct end *end)
{
    struct net_config config = {.n_blocks = BLOCKS,
                                .max_bytes = PACKET,
                                .protect = subject->protect,
                                .address = "127.0.0.1",
                                .provider = subject->provider,
                                .context = network};
    const struct net_driver *driver =
        subject->driver ? net_drivers_find(subject->driver) : subject->own;

    CHECK(driver != NULL);
    memset(end, 0, sizeof *end);
    secret[0]++;
    end->ordered = true;
    CHECK(arena_init(&end->arena, BLOCKS, PACKET - (uint32_t)sizeof(struct wire_header)) == 0);
    CHECK(net_drivers_open(driver, &config, subject->fault, &end->arena, &end->e) == 0);
    CHECK(end->e.info.max_datagram >= PACKET);
    CHECK(end->e.info.n_receives > 0);
    CHECK(end->e.info.driver != NULL && end->e.info.provider[0] != '\0');
}

static void close_end(struct end *end)
{
    if (end->e.net)
        end->e.driver->close(end->e.net);
    arena_deinit(&end->arena);
    if (end->seal.made)
        seal_deinit(&end->seal);
    end->e.net = NULL;
}

static void introduce(struct end *end, const struct end *to)
{
    uint8_t address[NET_ADDRESS_BYTES];
    size_t len = sizeof address;

    CHECK(to->e.driver->address(to->e.net, address, &len) == 0);
    CHECK(len > 0 && len <= sizeof address);
    if (!seal_is_of(&end->seal, secret)) {
        if (end->seal.made)
            seal_deinit(&end->seal);
        CHECK(seal_init(&end->seal, secret, end == &ends[0], subject->protect) == 0);
    }
    CHECK(end->e.driver->peer_add(end->e.net, address, len, &end->seal, &end->peer) == 0);
}

/* Posts receive blocks until there are none, the driver has enough, or there are n. */
static void post(struct end *end, uint32_t n)
{
    for (uint32_t b = SENDS; b < BLOCKS && n > 0; b++) {
        if (end->owner[b] != MINE)
            continue;
        int rc = end->e.driver->post(end->e.net, b);
        CHECK(rc == 0 || rc == -EAGAIN);
        if (rc == -EAGAIN)
            return;
        end->owner[b] = POSTED;
        n--;
    }
}

static void start(void)
{
    sim_now_ns = CLOCK_NS_PER_S;
    network = subject->sim ? net_sim_network_new(21, subject->sim) : NULL;
    if (network)
        net_sim_run(network, sim_now_ns);
    for (int i = 0; i < 2; i++)
        open_end(&ends[i]);
    for (int i = 0; i < 2; i++)
        introduce(&ends[i], &ends[1 - i]);
}

static void stop(void)
{
    for (int i = 0; i < 2; i++)
        close_end(&ends[i]);
    net_sim_network_free(network);
    network = NULL;
}

static uint8_t byte_of(uint32_t number, uint32_t i)
{
    return (uint8_t)(number * 31 + i * 7 + (i >> 8));
}

/* Packet `number`: it and its length first, as far as there is room. */
static void fill(struct end *end, uint32_t block, uint32_t number, uint32_t len)
{
    uint8_t *p = arena_at(&end->arena, block);

    for (uint32_t i = 0; i < len; i++)
        p[i] = byte_of(number, i);
    memcpy(p, &number, sizeof number);
    memcpy(p + 4, &len, sizeof len);
}

static void check_packet(struct end *end, uint32_t block, uint32_t len)
{
    const uint8_t *p = arena_at(&end->arena, block);
    uint32_t number, length;

    CHECK(len >= 8 && len <= PACKET);
    memcpy(&number, p, sizeof number);
    memcpy(&length, p + 4, sizeof length);
    CHECK(length == len);
    for (uint32_t i = 8; i < len; i++)
        CHECK(p[i] == byte_of(number, i));
    CHECK(number < sizeof end->seen);
    end->n_twice += end->seen[number];
    end->seen[number] = true;
    end->ordered &= number >= end->last;
    end->last = number;
}

/* One poll of at most `max` events. Received blocks are posted again if there is `again`. */
static int turn(struct end *end, int max, bool again)
{
    struct net_event events[64];

    if (!end->e.net)
        return 0;
    if (network) {
        sim_now_ns += 100 * CLOCK_NS_PER_US;
        net_sim_run(network, sim_now_ns);
    }
    memset(events, 0xee, sizeof events);
    int n = end->e.driver->poll(end->e.net, events, max);
    CHECK(n >= 0 && n <= max);
    for (int i = 0; i < n; i++) {
        const struct net_event *e = &events[i];
        switch ((enum net_event_kind)e->kind) {
        case NET_RECEIVED:
            CHECK(e->block < BLOCKS && end->owner[e->block] == POSTED);
            end->owner[e->block] = MINE;
            check_packet(end, e->block, e->len);
            end->n_received++;
            break;
        case NET_SENT:
        case NET_FAILED:
            CHECK(e->block < BLOCKS && end->owner[e->block] == SENDING);
            CHECK(e->kind == NET_SENT || (e->peer == end->peer && e->error < 0));
            end->owner[e->block] = MINE;
            end->n_sent += e->kind == NET_SENT;
            end->n_failed += e->kind == NET_FAILED;
            break;
        case NET_PEER_DOWN:
            CHECK(e->peer == end->peer && e->error < 0);
            end->n_down++;
            break;
        default:
            CHECK(!"an event that is none");
        }
    }
    if (again)
        post(end, BLOCKS);
    return n;
}

/* Sends a packet from a block that is ours. 0, -EAGAIN (or no block), or the driver's error. */
static int send_packet(struct end *end, uint32_t number, uint32_t len)
{
    uint32_t block = 0;

    while (block < SENDS && end->owner[block] != MINE)
        block++;
    if (block == SENDS)
        return -EAGAIN;
    fill(end, block, number, len);
    int rc = end->e.driver->send(end->e.net, end->peer, block, len);
    CHECK(rc <= 0 || rc == NET_E_DONE);
    if (rc == 0)
        end->owner[block] = SENDING;
    if (rc == NET_E_DONE)
        /* It is ours: what is written into it now must not travel. */
        memset(arena_at(&end->arena, block), 0xaa, len);
    return rc == NET_E_DONE ? 0 : rc;
}

static uint32_t n_owned(const struct end *end, enum owner owner)
{
    uint32_t n = 0;

    for (uint32_t b = 0; b < BLOCKS; b++)
        n += end->owner[b] == owner;
    return n;
}

static void test_addresses(void)
{
    uint8_t a[2][NET_ADDRESS_BYTES];
    size_t len[2] = {sizeof a[0], sizeof a[1]}, small = 1;
    uint32_t peer;

    start();
    for (int i = 0; i < 2; i++)
        CHECK(ends[i].e.driver->address(ends[i].e.net, a[i], &len[i]) == 0);
    CHECK(len[0] != len[1] || memcmp(a[0], a[1], len[0]) != 0);
    CHECK(ends[0].e.driver->address(ends[0].e.net, a[0], &small) < 0);
    /* What another node says its address is may be anything. */
    memset(a[0], 0xff, sizeof a[0]);
    CHECK(ends[0].e.driver->peer_add(ends[0].e.net, a[0], 1, &ends[0].seal, &peer) < 0);
    CHECK(ends[0].e.driver->peer_add(ends[0].e.net, a[0], 3, &ends[0].seal, &peer) < 0);
    stop();
}

/* Packets of many sizes both ways, with few events at a time: whole, and as often as they may
 * come. */
static void test_bytes(void)
{
    const uint32_t n_packets = 600;
    uint32_t sent[2] = {0, 0};
    struct rand r = {.state = 3};
    uint64_t end_ns = clock_now_ns() + LIMIT_NS, quiet_ns = 0;

    start();
    for (int i = 0; i < 2; i++)
        post(&ends[i], BLOCKS);
    for (;;) {
        bool all = true, any = false;
        CHECK(clock_now_ns() < end_ns);
        for (int i = 0; i < 2; i++) {
            uint32_t n = sent[i], len = n % 3 == 0   ? 8 + n % 120
                                        : n % 3 == 1 ? PACKET
                                                     : 8 + (n * 97) % (PACKET - 7);
            int rc = n < n_packets ? send_packet(&ends[i], n, len) : 0;
            CHECK(rc == 0 || rc == -EAGAIN);
            any |= rc == 0 && n < n_packets;
            sent[i] += rc == 0 && n < n_packets;
            any |= turn(&ends[i], 1 + (int)rand_below(&r, 64), true) > 0;
            all &= sent[i] == n_packets && ends[1 - i].n_received >= n_packets;
            all &= n_owned(&ends[i], SENDING) == 0;
        }
        /* Where packets may be lost, some silence is the end. */
        quiet_ns = any ? 0 : quiet_ns ? quiet_ns : clock_now_ns();
        if (all || (may_lose() && quiet_ns && clock_now_ns() - quiet_ns > CLOCK_NS_PER_S / 2))
            break;
    }
    for (int i = 0; i < 2; i++) {
        CHECK(ends[i].n_failed == 0 && ends[i].n_down == 0);
        CHECK(n_owned(&ends[i], SENDING) == 0);
        CHECK(ends[i].n_received > n_packets / 2);
        CHECK(may_lose() || (ends[i].n_received == n_packets && ends[i].n_twice == 0));
        CHECK(may_lose() || subject->reorders || ends[i].ordered);
    }
    stop();
}

/* Nobody receives: the sender is held back, or its packets are lost on the way; it never runs
 * over. Then they are received, no more than there are blocks for at any moment. */
static void test_backpressure(void)
{
    uint64_t end_ns = clock_now_ns() + LIMIT_NS;
    uint32_t n = 0, n_later = 0;

    start();
    while (n < 2000 && n_later < 2000) {
        int rc = send_packet(&ends[0], n, 4000);
        CHECK(rc == 0 || rc == -EAGAIN);
        n += rc == 0;
        n_later += rc == -EAGAIN;
        turn(&ends[0], 64, false);
        turn(&ends[1], 64, false);
    }
    CHECK(ends[1].n_received == 0);
    CHECK(may_lose() || n < 2000);
    while (!may_lose() && ends[1].n_received < n) {
        CHECK(clock_now_ns() < end_ns);
        if (n_owned(&ends[1], POSTED) == 0)
            post(&ends[1], 2);
        turn(&ends[0], 64, false);
        turn(&ends[1], 64, false);
    }
    CHECK(may_lose() || ends[1].n_twice == 0);
    stop();
}

/* The driver takes as many receive blocks as it says, and closing gives all back without a word. */
static void test_receives(void)
{
    start();
    uint32_t want =
        ends[0].e.info.n_receives < BLOCKS - SENDS ? ends[0].e.info.n_receives : BLOCKS - SENDS;
    post(&ends[0], BLOCKS);
    CHECK(n_owned(&ends[0], POSTED) >= want);
    for (int i = 0; i < 20; i++)
        CHECK(turn(&ends[0], 64, false) == 0);
    send_packet(&ends[1], 1, PACKET);
    stop();
}

/* The far end goes, in the middle. Everything that was given for sending comes back, and removing
 * the peer leaves nothing behind. */
static void test_peer_gone(void)
{
    uint64_t end_ns = clock_now_ns() + LIMIT_NS;
    uint32_t n = 0;
    bool refused = false;

    start();
    post(&ends[1], 8);
    while (ends[1].n_received < 4) {
        CHECK(clock_now_ns() < end_ns);
        n += send_packet(&ends[0], n, PACKET) == 0;
        turn(&ends[0], 64, false);
        turn(&ends[1], 64, true);
    }
    for (int i = 0; i < 200; i++)
        n += send_packet(&ends[0], n, PACKET) == 0;
    ends[1].e.driver->close(ends[1].e.net);
    ends[1].e.net = NULL;
    for (int i = 0; i < 50; i++) {
        int rc = send_packet(&ends[0], n++, PACKET);
        refused |= rc < 0 && rc != -EAGAIN;
        turn(&ends[0], 64, false);
    }
    ends[0].e.driver->peer_remove(ends[0].e.net, ends[0].peer);
    while (n_owned(&ends[0], SENDING) > 0) {
        CHECK(clock_now_ns() < end_ns);
        turn(&ends[0], 64, false);
    }
    /* Another one can take its place. */
    close_end(&ends[1]);
    open_end(&ends[1]);
    for (int i = 0; i < 2; i++)
        introduce(&ends[i], &ends[1 - i]);
    post(&ends[1], BLOCKS);
    memset(ends[0].seen, 0, sizeof ends[0].seen);
    for (n = 0; ends[1].n_received == 0; n++) {
        CHECK(clock_now_ns() < end_ns);
        int rc = send_packet(&ends[0], n % 60000, 100);
        refused |= rc < 0 && rc != -EAGAIN;
        turn(&ends[0], 64, false);
        turn(&ends[1], 64, true);
    }
    stop();
}

/* Whoever sleeps on the descriptor is woken by a packet. */
static void test_wait(void)
{
    uint64_t end_ns = clock_now_ns() + LIMIT_NS;
    uint32_t n = 0;

    start();
    if (!(ends[0].e.info.caps & NET_CAP_WAIT)) {
        stop();
        return;
    }
    for (int i = 0; i < 2; i++)
        post(&ends[i], BLOCKS);
    /* Connecting needs both, awake. */
    while (ends[1].n_received == 0) {
        CHECK(clock_now_ns() < end_ns);
        n += send_packet(&ends[0], n, 100) == 0;
        turn(&ends[0], 64, true);
        turn(&ends[1], 64, true);
    }
    for (uint32_t round = 0; round < 20; round++) {
        struct pollfd fd = {.events = POLLIN};
        uint32_t before = ends[1].n_received;
        /* Up to here everything is done. */
        for (int i = 0; i < 30; i++) {
            turn(&ends[0], 64, true);
            turn(&ends[1], 64, true);
        }
        before = ends[1].n_received;
        fd.fd = ends[1].e.driver->wait_fd(ends[1].e.net);
        CHECK(fd.fd >= 0);
        while (ends[1].e.driver->wait_ready(ends[1].e.net) != 0) {
            CHECK(clock_now_ns() < end_ns);
            turn(&ends[1], 64, true);
        }
        while (send_packet(&ends[0], n, 100) != 0) {
            CHECK(clock_now_ns() < end_ns);
            turn(&ends[0], 64, true);
        }
        n++;
        turn(&ends[0], 64, true);
        do {
            CHECK(clock_now_ns() < end_ns);
            int woken = poll(&fd, 1, 5000);
            CHECK(woken == 1 || may_lose());
            turn(&ends[1], 64, true);
            turn(&ends[0], 64, true);
        } while (ends[1].n_received == before && !may_lose());
    }
    stop();
}

static const struct sim_faults stream = {.delay_min_ns = 5000, .delay_max_ns = 50000};
static const struct sim_faults calm = {
    .datagram = true, .delay_min_ns = 5000, .delay_max_ns = 6000};
static const struct sim_faults rough = {.datagram = true,
                                        .delay_min_ns = 5000,
                                        .delay_max_ns = 500000,
                                        .drop = 20000,
                                        .duplicate = 20000,
                                        .reorder = 20000};
static const struct sim_faults small = {
    .datagram = true, .max_datagram = 1472, .delay_min_ns = 5000, .delay_max_ns = 6000};
/* Of fragments for which there is no block the rest is in vain, on any network. */
static const struct sim_faults small_stream = {
    .max_datagram = 1472, .delay_min_ns = 5000, .delay_max_ns = 6000};

static const struct subject subjects[] = {
    {.name = "skeleton", .own = &net_skeleton},
    {.name = "tcp", .protect = SEAL_INTEGRITY, .driver = "tcp", .provider = "tcp"},
    {.name = "tcp-encrypt", .protect = SEAL_ENCRYPT, .driver = "tcp", .provider = "tcp"},
    {.name = "tcp-none", .driver = "tcp", .provider = "tcp"},
    {.name = "udp",
     .driver = "udp",
     .provider = "udp",
     .protect = SEAL_INTEGRITY,
     .reorders = true},
    {.name = "udp-encrypt",
     .driver = "udp",
     .provider = "udp",
     .protect = SEAL_ENCRYPT,
     .reorders = true},
    {.name = "udp-none", .driver = "udp", .provider = "udp", .reorders = true},
    {.name = "udp-fault",
     .driver = "udp",
     .provider = "udp",
     .protect = SEAL_INTEGRITY,
     .fault = "drop=0.05,duplicate=0.05,reorder=0.05,seed=5"},
    {.name = "udp-lossy",
     .driver = "udp",
     .provider = "udp",
     .protect = SEAL_INTEGRITY,
     .fault = "lose=0.1,seed=6"},
    {.name = "ofi-tcp",
     .loses = true,
     .protect = SEAL_INTEGRITY,
     .driver = "ofi",
     .provider = "ofi-tcp"},
    {.name = "ofi-udp", .protect = SEAL_INTEGRITY, .driver = "ofi", .provider = "ofi-udp"},
    {.name = "sim-stream", .own = &net_sim, .sim = &stream},
    {.name = "sim-datagram", .own = &net_sim, .sim = &calm},
    {.name = "sim-rough", .own = &net_sim, .sim = &rough},
    {.name = "frag", .protect = SEAL_INTEGRITY, .own = &net_sim, .sim = &small},
    {.name = "frag-stream", .own = &net_sim, .sim = &small_stream, .loses = true},
    {.name = "fault",
     .driver = "tcp",
     .provider = "tcp",
     .fault = "drop=0.05,duplicate=0.05,reorder=0.05,delay_us=200,seed=3"},
    {.name = "frag-fault",
     .own = &net_sim,
     .sim = &small,
     .fault = "drop=0.05,duplicate=0.05,reorder=0.05,seed=4"},
};

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } steps[] = {{"addresses", test_addresses},       {"bytes", test_bytes},
                 {"backpressure", test_backpressure}, {"receives", test_receives},
                 {"peer gone", test_peer_gone},       {"wait", test_wait}};

    log_set_level(LOG_ERROR);
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        if (argc == 2 && strcmp(argv[1], subjects[i].name) == 0)
            subject = &subjects[i];
        if (argc == 2 && strcmp(argv[1], "--list") == 0)
            printf("%s\n", subjects[i].name);
    }
    if (!subject)
        return argc == 2 && strcmp(argv[1], "--list") == 0 ? 0 : 2;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        step_name = steps[i].name;
        uint64_t start_ns = clock_now_ns();
        steps[i].run();
        printf("%s: %s: %.1f ms\n", subject->name, step_name,
               (double)(clock_now_ns() - start_ns) / 1e6);
    }
    return 0;
}
