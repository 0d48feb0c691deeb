/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rings and bells under load: producers with a ring each, one consumer that finds the rings by the
 * bell, turns them quiet at random and sleeps as soon as it can. Messages have random sizes and
 * carry their number and a check sum over all of it.
 *
 * A producer works in bursts; after some it waits until the consumer has taken everything, so that
 * the consumer's next sleep can only be ended by a wake-up. A sleep that lasts its whole time
 * although a message lay there is a lost wake-up and fails the test.
 *
 * Producers are threads, or processes (membarrier(2) between processes is what the daemon and the
 * ranks use). Built with the race detector it runs with --fenced, since that cannot follow
 * membarrier.
 *
 * usage: stress [--processes] [--fenced] [--eventfd] [--producers N] [--messages N] [--seed N]
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/rand.h"
#include "base/thread.h"
#include "proto/ring.h"

#define MAX_PRODUCERS 64u
#define SLEEP_NS      (10 * CLOCK_NS_PER_S)
#define DEADLINE_NS   (240 * CLOCK_NS_PER_S)

/* The start of every payload that has room for it. */
struct message {
    uint32_t number;
    uint32_t sum; /* over number and everything behind this header */
};

struct shared {
    struct bell bell;
    _Alignas(64) _Atomic uint32_t failed;
    _Alignas(64) struct {
        _Alignas(64) _Atomic uint32_t taken; /* messages of this producer the consumer has seen */
    } progress[MAX_PRODUCERS];
};

static struct ring_shape shape = {.n_slots = 16, .data_bytes = 8192};
static struct shared *shared;
static char *rings;
static size_t ring_stride;
static int event_fd = -1;
static bool fenced, processes;
static uint32_t n_producers = 3, n_messages = 60000;
static uint64_t seed = 1, deadline_ns;

static _Noreturn void fail(const char *what, uint32_t who, uint32_t number)
{
    fprintf(stderr, "stress: %s (producer %u, message %u, seed %llu)\n", what, who, number,
            (unsigned long long)seed);
    _exit(1);
}

static void check_deadline(const char *what, uint32_t who, uint32_t number)
{
    if (clock_now_ns() > deadline_ns)
        fail(what, who, number);
    if (atomic_load_explicit(&shared->failed, memory_order_relaxed))
        _exit(1);
}

static uint32_t sum_of(uint32_t number, const uint8_t *rest, size_t n)
{
    return hash_fnv1a(&number, sizeof number) ^ hash_fnv1a(rest, n);
}

/* ---- producer ---- */

static void send_one(struct ring_producer *p, uint32_t me, uint32_t number, struct rand *r)
{
    uint32_t most = ring_max_payload(&shape);
    /* Empty ones (the line is still on its way from the consumer's cache when the turn is stored,
     * which is when the order of store and load matters), short ones, and up to the largest. */
    static const uint32_t below[] = {1, 1, 9, 48, 300, 0};
    uint32_t limit = below[rand_below(r, sizeof below / sizeof *below)];
    uint32_t len = (uint32_t)rand_below(r, limit ? limit : most + 1);
    struct ring_slot *slot;
    void *payload;

    while ((slot = ring_claim(p, len, &payload)) == NULL) {
        sched_yield();
        check_deadline("no room for long", me, number);
    }
    uint8_t *bytes = payload;
    for (uint32_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)(number + i * 13);
    if (len >= sizeof(struct message)) {
        struct message m = {.number = number};
        m.sum = sum_of(number, bytes + sizeof m, len - sizeof m);
        memcpy(bytes, &m, sizeof m);
    }
    slot->kind = MSG_EAGER;
    slot->flags = 0;
    slot->tag = (int32_t)number;
    slot->peer = me;
    ring_publish(p);
}

static void *produce(void *arg)
{
    uint32_t me = (uint32_t)(uintptr_t)arg;
    struct rand r = {seed * 1000 + me};
    uint32_t *data_end = calloc(shape.n_slots, sizeof *data_end);
    struct bell_ref ref = {
        .bell = &shared->bell, .bit = me * 5, .event_fd = event_fd, .fenced = fenced};
    struct ring_producer p;
    uint32_t spins = 0;

    if (!data_end || (!fenced && thread_barrier_register() < 0))
        fail("set-up", me, 0);
    ring_producer_init(&p, rings + ring_stride * me, &shape, data_end, &ref);
    for (uint32_t n = 0; n < n_messages;) {
        uint32_t burst = 1 + (uint32_t)rand_below(&r, rand_below(&r, 4) ? 3 : 60);
        for (; burst > 0 && n < n_messages; burst--)
            send_one(&p, me, n++, &r);
        if (rand_below(&r, 3) == 0)
            continue;
        while (atomic_load_explicit(&shared->progress[me].taken, memory_order_acquire) < n) {
            if (++spins % 1024 == 0) {
                sched_yield();
                check_deadline("the consumer does not come", me, n);
            }
        }
        /* Of every order of size up to some microseconds: the next message should meet the consumer
         * on its way to sleep. */
        for (uint64_t pause = rand_below(&r, 1ull << rand_below(&r, 8)); pause > 0; pause--)
            thread_pause();
    }
    free(data_end);
    return NULL;
}

/* ---- consumer ---- */

static struct {
    struct ring_consumer consumer;
    uint32_t taken;
    bool known, active;
} in[MAX_PRODUCERS];
static uint64_t n_sleeps, n_quieted, n_expired;

static uint32_t drain(uint32_t i, uint32_t most)
{
    struct ring_slot *slot;
    uint32_t n = 0;

    while (n < most && (slot = ring_peek(&in[i].consumer)) != NULL) {
        uint32_t len = slot->len;
        const uint8_t *bytes = ring_payload(&in[i].consumer, slot, len, slot->data_line);
        if (!bytes)
            fail("payload outside the ring", i, in[i].taken);
        if (slot->tag != (int32_t)in[i].taken || slot->peer != i)
            fail("wrong message", i, in[i].taken);
        struct message m;
        if (len >= sizeof m) {
            memcpy(&m, bytes, sizeof m);
            if (m.number != in[i].taken ||
                m.sum != sum_of(m.number, bytes + sizeof m, len - sizeof m))
                fail("check sum", i, in[i].taken);
        } else {
            for (uint32_t k = 0; k < len; k++)
                if (bytes[k] != (uint8_t)(in[i].taken + k * 13))
                    fail("bytes", i, in[i].taken);
        }
        ring_advance(&in[i].consumer, len);
        in[i].taken++;
        n++;
    }
    if (n > 0)
        atomic_store_explicit(&shared->progress[i].taken, in[i].taken, memory_order_release);
    return n;
}

static void activate(uint32_t i)
{
    in[i].known = in[i].active = true;
    atomic_store_explicit(&in[i].consumer.shared->active, 1, memory_order_relaxed);
}

static uint32_t collect(void)
{
    uint32_t n = 0;

    for (uint32_t w = 0; w < BELL_MAX_RINGS / 64; w++) {
        uint64_t bits = bell_collect(&shared->bell, w);
        for (; bits; bits &= bits - 1) {
            uint32_t i = (w * 64 + (uint32_t)__builtin_ctzll(bits)) / 5;
            if (!in[i].active)
                activate(i);
            n++;
        }
    }
    return n;
}

static bool news(void)
{
    if (collect() > 0)
        return true;
    for (uint32_t i = 0; i < n_producers; i++)
        if (in[i].known && ring_peek(&in[i].consumer))
            return true;
    return false;
}

static void sleep_once(void)
{
    bell_sleep_begin(&shared->bell, fenced);
    if (!news()) {
        uint64_t begin_ns = clock_now_ns();
        n_sleeps++;
        if (event_fd >= 0) {
            struct pollfd p = {.fd = event_fd, .events = POLLIN};
            uint64_t value;
            poll(&p, 1, (int)(SLEEP_NS / CLOCK_NS_PER_MS));
            ssize_t rc = read(event_fd, &value, sizeof value);
            (void)rc;
        } else {
            bell_sleep(&shared->bell, SLEEP_NS);
        }
        if (clock_now_ns() - begin_ns >= SLEEP_NS / 10 * 9) {
            n_expired++;
            for (uint32_t i = 0; i < n_producers; i++)
                if (ring_peek(&in[i].consumer))
                    fail("lost wake-up", i, in[i].taken);
        }
    }
    bell_sleep_end(&shared->bell);
}

static void consume(void)
{
    struct rand r = {seed};
    uint64_t missing = (uint64_t)n_producers * n_messages;
    uint32_t idle = 0, patience = 0;

    for (uint32_t i = 0; i < n_producers; i++)
        ring_consumer_init(&in[i].consumer, rings + ring_stride * i, &shape);
    while (missing > 0) {
        uint32_t got = 0;
        for (uint32_t i = 0; i < n_producers; i++) {
            if (!in[i].active)
                continue;
            got += drain(i, 1 + (uint32_t)rand_below(&r, 8));
            if (rand_below(&r, 50) == 0) {
                in[i].active = false;
                n_quieted++;
                atomic_store_explicit(&in[i].consumer.shared->active, 0, memory_order_relaxed);
            }
        }
        collect();
        uint32_t quiet = (uint32_t)rand_below(&r, n_producers);
        if (in[quiet].known && !in[quiet].active && ring_peek(&in[quiet].consumer))
            activate(quiet);
        missing -= got;
        if (got > 0) {
            idle = 0;
        } else if (++idle > patience && missing > 0) {
            sleep_once();
            check_deadline("messages are missing", 0, (uint32_t)missing);
            patience = (uint32_t)rand_below(&r, 30);
            idle = 0;
        }
    }
}

static void parse(int argc, char **argv)
{
    static const struct option options[] = {{"processes", no_argument, NULL, 'p'},
                                            {"fenced", no_argument, NULL, 'f'},
                                            {"eventfd", no_argument, NULL, 'e'},
                                            {"producers", required_argument, NULL, 'n'},
                                            {"messages", required_argument, NULL, 'm'},
                                            {"seed", required_argument, NULL, 's'},
                                            {NULL, 0, NULL, 0}};
    bool use_event = false;
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        switch (c) {
        case 'p':
            processes = true;
            break;
        case 'f':
            fenced = true;
            break;
        case 'e':
            use_event = true;
            break;
        case 'n':
            n_producers = (uint32_t)atoi(optarg);
            break;
        case 'm':
            n_messages = (uint32_t)atoi(optarg);
            break;
        case 's':
            seed = (uint64_t)atoll(optarg);
            break;
        default:
            exit(2);
        }
    }
    if (n_producers < 1 || n_producers > MAX_PRODUCERS)
        exit(2);
    if (use_event)
        event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

int main(int argc, char **argv)
{
    pthread_t threads[MAX_PRODUCERS];
    pid_t pids[MAX_PRODUCERS];
    void *map;

    parse(argc, argv);
    deadline_ns = clock_now_ns() + DEADLINE_NS;
    if (!fenced && thread_barrier_register() < 0) {
        printf("no membarrier here, skipping\n");
        return 77;
    }
    ring_stride = ring_size(&shape);
    FD_AUTO fd = fd_memory("motet-stress", sizeof *shared + ring_stride * n_producers, false, &map);
    if (fd < 0) {
        fprintf(stderr, "stress: no memory file: %s\n", strerror(-fd));
        return 1;
    }
    shared = map;
    rings = (char *)map + sizeof *shared;
    for (uint32_t i = 0; i < n_producers; i++) {
        if (!processes) {
            if (pthread_create(&threads[i], NULL, produce, (void *)(uintptr_t)i) != 0)
                fail("no thread", i, 0);
        } else if ((pids[i] = fork()) == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            produce((void *)(uintptr_t)i);
            _exit(0);
        } else if (pids[i] < 0) {
            fail("no process", i, 0);
        }
    }
    consume();
    int bad = 0;
    for (uint32_t i = 0; i < n_producers; i++) {
        int status = 0;
        if (processes)
            waitpid(pids[i], &status, 0);
        else
            pthread_join(threads[i], NULL);
        bad += status != 0;
    }
    printf("%s, %s, %s: %u x %u messages, %llu sleeps, %llu times quiet, %llu sleeps ran out, seed "
           "%llu\n",
           processes ? "processes" : "threads", fenced ? "fenced" : "membarrier",
           event_fd >= 0 ? "eventfd" : "futex", n_producers, n_messages,
           (unsigned long long)n_sleeps, (unsigned long long)n_quieted,
           (unsigned long long)n_expired, (unsigned long long)seed);
    return bad ? 1 : 0;
}
