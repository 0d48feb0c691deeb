/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ring alone, between two processes on two cores: half round trip, and time per message
 * streamed. What the library adds to this is the library's.
 *
 *     ring [SIZE...]
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/thread.h"
#include "proto/ring.h"

#define BATCHES     11
#define ROUND_TRIPS 20000u
#define STREAMED    100000u

static struct ring_shape shape = {.n_slots = 256, .data_bytes = 262144};

/* One process's view: a ring out and a ring in. */
struct side {
    struct ring_producer out;
    struct ring_consumer in;
};

static void side_open(struct side *s, char *rings, struct bell *bells, unsigned me)
{
    size_t stride = ring_size(&shape);
    struct bell_ref bell = {.bell = &bells[1 - me], .bit = 0, .event_fd = -1};
    uint32_t *data_end = calloc(shape.n_slots, sizeof *data_end);

    if (!data_end)
        exit(1);
    ring_producer_init(&s->out, rings + stride * me, &shape, data_end, &bell);
    ring_consumer_init(&s->in, rings + stride * (1 - me), &shape);
    atomic_store_explicit(&s->in.shared->active, 1, memory_order_relaxed);
}

static inline void put(struct side *s, const char *from, uint32_t len)
{
    void *payload;
    struct ring_slot *slot;

    while ((slot = ring_claim(&s->out, len, &payload)) == NULL)
        thread_pause();
    memcpy(payload, from, len);
    slot->kind = MSG_EAGER;
    ring_publish(&s->out);
}

static inline void get(struct side *s, char *to)
{
    struct ring_slot *slot;

    while ((slot = ring_peek(&s->in)) == NULL)
        thread_pause();
    uint32_t len = slot->len;
    const void *payload = ring_payload(&s->in, slot, len, slot->data_line);
    if (!payload)
        exit(1);
    memcpy(to, payload, len);
    ring_advance(&s->in, len);
}

static void ping_pong(struct side *s, unsigned me, char *buf, uint32_t len)
{
    for (unsigned i = 0; i < ROUND_TRIPS; i++) {
        if (me == 0)
            put(s, buf, len);
        get(s, buf);
        if (me == 1)
            put(s, buf, len);
    }
}

static void stream(struct side *s, unsigned me, char *buf, uint32_t len)
{
    for (unsigned i = 0; i < STREAMED; i++) {
        if (me == 0)
            put(s, buf, len);
        else
            get(s, buf);
    }
    if (me == 0)
        get(s, buf);
    else
        put(s, buf, 0);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(struct side *s, unsigned me, uint32_t len)
{
    static char buf[131072];
    double latency[BATCHES], rate[BATCHES];

    for (int b = -1; b < BATCHES; b++) {
        uint64_t begin_ns = clock_now_ns();
        ping_pong(s, me, buf, len);
        uint64_t middle_ns = clock_now_ns();
        stream(s, me, buf, len);
        if (b >= 0) { /* the first one warms up */
            latency[b] = (double)(middle_ns - begin_ns) / ROUND_TRIPS / 2;
            rate[b] = (double)(clock_now_ns() - middle_ns) / STREAMED;
        }
    }
    if (me == 0) {
        qsort(latency, BATCHES, sizeof *latency, by_value);
        qsort(rate, BATCHES, sizeof *rate, by_value);
        printf("RESULT ring_latency %u %.4g ns\nRESULT ring_stream %u %.4g ns\n", len,
               latency[BATCHES / 2], len, rate[BATCHES / 2]);
        fflush(stdout);
    }
}

static void pin(unsigned nth)
{
    cpu_set_t all, one;

    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &all) && nth-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof one, &one);
            return;
        }
    }
}

int main(int argc, char **argv)
{
    static const uint32_t usual[] = {0, 8, 32, 64, 256, 1024, 4096, 16384};
    int n = argc > 1 ? argc - 1 : (int)(sizeof usual / sizeof *usual);
    size_t rings_bytes = 2 * ring_size(&shape);
    struct side side;
    void *map;

    if (thread_n_cores() < 2) {
        printf("one core only: two spinning processes would wait for each other's time slices\n");
        return 77;
    }
    FD_AUTO fd = fd_memory("motet-bench-ring", rings_bytes + 2 * sizeof(struct bell), false, &map);
    if (fd < 0)
        return 1;
    pid_t child = fork();
    if (child < 0)
        return 1;
    unsigned me = child == 0;
    if (child == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin(me);
    side_open(&side, map, (struct bell *)(void *)((char *)map + rings_bytes), me);
    for (int i = 0; i < n; i++) {
        uint32_t len = argc > 1 ? (uint32_t)atoi(argv[i + 1]) : usual[i];
        if (len <= ring_max_payload(&shape))
            measure(&side, me, len);
    }
    if (child == 0)
        _exit(0);
    int status = 0;
    waitpid(child, &status, 0);
    return status ? 1 : 0;
}
