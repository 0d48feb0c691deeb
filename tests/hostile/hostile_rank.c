/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that wants harm. Started by mpiexec like any other, it attaches as proto/attach.h says and
 * then does, for some seconds, what its first argument asks; whatever happens may hurt its own job
 * only.
 *
 *     hostile_rank MODE SECONDS [SEED]
 *
 * slots: publishes messages whose header and place are random in its up rings, with bells and
 * wake-ups. bits: rings every bell bit there is and writes the channels' event descriptors without
 * pause. heads: moves the heads of its down rings to random places, and sends messages to itself so
 * that they are written. flood: sends well-formed messages to its own job's ranks, none of which
 * reads. memory: writes random bytes anywhere in the job segment. board: fills its queue board with
 * random records. frames: sends random frames, each on a fresh connection to the client socket.
 * liar: changes a message's length between two values as fast as it can while the channel reads it.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/rand.h"
#include "proto/attach.h"
#include "proto/frame.h"

static struct rand dice;
static struct segment_layout layout;
static void *base;
static struct attach_reply reply;
static int event_fds[HOP_MAX_CHANNELS];
static uint64_t until_ns;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "hostile_rank: %s\n", what);
    exit(2);
}

static uint64_t now(void)
{
    return clock_now_ns();
}

static uint32_t random32(void)
{
    /* Small numbers, powers of two and their neighbours hit more limits than uniform ones. */
    switch (rand_below(&dice, 4)) {
    case 0:
        return (uint32_t)rand_below(&dice, 16);
    case 1:
        return (1u << rand_below(&dice, 32)) + (uint32_t)rand_below(&dice, 3) - 1;
    case 2:
        return (uint32_t)rand_below(&dice, 70000);
    default:
        return (uint32_t)rand_next(&dice);
    }
}

static int attach(void)
{
    struct attach_request req = {.version = ATTACH_VERSION, .pid = getpid()};
    struct frame_header h;
    uint64_t deadline_ns = now() + 10 * CLOCK_NS_PER_S;
    const char *key = getenv("MOTET_KEY"), *rank = getenv("MOTET_RANK"), *job = getenv("MOTET_JOB"),
               *path = getenv("MOTET_SOCKET");
    int fds[FD_MAX_PASS], n_fds = 0;

    if (!key || !rank || !job || !path || strlen(key) != 32)
        fail("not started by mpiexec");
    req.world_rank = (uint32_t)atoi(rank);
    req.job = strtoull(job, NULL, 16);
    for (int i = 0; i < 16; i++) {
        unsigned byte;
        sscanf(key + 2 * i, "%2x", &byte);
        req.key[i] = (uint8_t)byte;
    }
    int fd = fd_unix_connect(path);
    if (fd < 0 || frame_send(fd, ATTACH_REQUEST, &req, sizeof req, deadline_ns) < 0 ||
        fd_recv_fds(fd, &h, sizeof h, fds, FD_MAX_PASS, &n_fds, deadline_ns) < 0 ||
        h.type != ATTACH_REPLY || h.len != sizeof reply ||
        fd_read_full(fd, &reply, sizeof reply, deadline_ns) < 0 || reply.error != 0)
        fail("cannot attach");
    segment_layout(&reply.shape, &layout);
    base = mmap(NULL, layout.total, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
    if (base == MAP_FAILED)
        fail("cannot map the segment");
    for (uint32_t c = 0; c < reply.shape.n_channels; c++)
        event_fds[c] = fds[2 + c];
    return fd;
}

static void wake(uint32_t channel)
{
    uint64_t one = 1;
    ssize_t rc = write(event_fds[channel], &one, sizeof one);
    (void)rc;
}

static struct ring_producer up_ring(uint32_t channel)
{
    struct bell_ref bell = {.bell = segment_channel_bell(base, &layout, channel),
                            .bit = reply.local_rank,
                            .event_fd = event_fds[channel],
                            .fenced = reply.fenced != 0};
    uint32_t *data_end = calloc(layout.shape.up.n_slots, sizeof *data_end);
    struct ring_producer p;

    if (!data_end)
        fail("no memory");
    ring_producer_init(&p, segment_up_ring(base, &layout, reply.local_rank, channel),
                       &layout.shape.up, data_end, &bell);
    return p;
}

static void do_slots(void)
{
    for (uint32_t c = 0; now() < until_ns; c = (c + 1) % reply.shape.n_channels) {
        struct ring_producer p = up_ring(c);
        uint32_t at = atomic_load(&p.shared->head);
        for (int i = 0; i < 64; i++, at++) {
            struct ring_slot *slot = &p.slots[at & p.mask];
            slot->len = rand_below(&dice, 2) ? (uint32_t)rand_below(&dice, 40) : random32();
            slot->kind = (uint8_t)rand_next(&dice);
            slot->flags = (uint8_t)rand_next(&dice);
            slot->data_line = (uint16_t)random32();
            slot->context = random32();
            slot->source = (int32_t)random32();
            slot->tag = (int32_t)random32();
            slot->peer = rand_below(&dice, 2) ? (uint32_t)rand_below(&dice, layout.shape.n_world)
                                              : random32();
            slot->order = random32();
            atomic_store(&slot->turn, rand_below(&dice, 8) ? (at >> p.shift) + 1 : random32());
        }
        bell_notify(&p.bell, &p.shared->active);
        wake(c);
        free(p.data_end);
    }
}

static void do_bits(void)
{
    while (now() < until_ns) {
        for (uint32_t c = 0; c < reply.shape.n_channels; c++) {
            struct bell *bell = segment_channel_bell(base, &layout, c);
            for (uint32_t w = 0; w < BELL_MAX_RINGS / 64; w++)
                atomic_store(&bell->rung[w], rand_next(&dice));
            atomic_store(&bell->sleeping, random32());
            wake(c);
        }
    }
}

/* One message to `peer` by the rules. */
static bool send_to(struct ring_producer *p, uint32_t peer, uint32_t len)
{
    void *payload;
    struct ring_slot *slot = ring_claim(p, len, &payload);

    if (!slot)
        return false;
    memset(payload, 0x5a, len);
    slot->kind = MSG_EAGER;
    slot->flags = 0;
    slot->peer = peer;
    ring_publish(p);
    return true;
}

static void do_heads(void)
{
    struct ring_producer p = up_ring(0);

    while (now() < until_ns) {
        for (uint32_t c = 0; c < reply.shape.n_channels; c++) {
            struct ring_shared *down = segment_down_ring(base, &layout, reply.local_rank, c);
            atomic_store(&down->head, random32());
        }
        send_to(&p, (uint32_t)rand_below(&dice, layout.shape.n_world),
                (uint32_t)rand_below(&dice, 16384));
    }
    free(p.data_end);
}

static void do_flood(void)
{
    struct ring_producer p = up_ring(0);

    while (now() < until_ns)
        if (!send_to(&p, (uint32_t)rand_below(&dice, layout.shape.n_world), 16384))
            usleep(50);
    free(p.data_end);
}

static void do_memory(void)
{
    uint8_t *bytes = base;

    while (now() < until_ns) {
        for (int i = 0; i < 1000; i++) {
            /* Half of it where the control data lies: headers, tables, bells, ranks; the rest in
             * the rings' first pages. */
            size_t at = rand_below(&dice, 2)
                            ? rand_below(&dice, layout.ranks_off + layout.board_off + 65536)
                            : layout.up_off + rand_below(&dice, layout.total - layout.up_off);
            bytes[at] = (uint8_t)rand_next(&dice);
        }
        for (uint32_t c = 0; c < reply.shape.n_channels; c++)
            wake(c);
    }
}

static void do_board(void)
{
    struct queue_record *board = segment_board_at(base, &layout, reply.local_rank);
    struct segment_rank *me = segment_rank_at(base, &layout, reply.local_rank);

    while (now() < until_ns) {
        uint8_t *r = (uint8_t *)&board[rand_below(&dice, 256)];
        for (size_t i = 0; i < sizeof *board; i++)
            r[i] = (uint8_t)rand_next(&dice);
        atomic_store(&((struct queue_record *)(void *)r)->state, random32() % 9);
        atomic_store(&me->board_high, rand_below(&dice, 2) ? 256 : random32());
        atomic_store(&me->pid, (int32_t)random32());
        atomic_store(&me->state, random32());
        me->world_rank = random32();
    }
}

static void do_frames(void)
{
    uint8_t body[512];

    while (now() < until_ns) {
        int fd = fd_unix_connect(getenv("MOTET_SOCKET"));
        if (fd < 0) {
            usleep(1000);
            continue;
        }
        for (size_t i = 0; i < sizeof body; i++)
            body[i] = (uint8_t)rand_next(&dice);
        struct frame_header h = {
            .len = random32(), .type = (uint16_t)random32(), .magic = FRAME_MAGIC};
        if (rand_below(&dice, 2))
            h.len = (uint32_t)rand_below(&dice, sizeof body + 1);
        if (rand_below(&dice, 2))
            h.type = (uint16_t)(rand_below(&dice, 2) ? rand_below(&dice, 60)
                                                     : 0x100 + rand_below(&dice, 8));
        if (rand_below(&dice, 8) == 0)
            h.magic = (uint16_t)rand_next(&dice);
        uint64_t soon_ns = now() + 100 * CLOCK_NS_PER_MS;
        if (fd_write_full(fd, &h, sizeof h, soon_ns) == 0)
            fd_write_full(fd, body, h.len < sizeof body ? h.len : sizeof body, soon_ns);
        close(fd);
    }
}

static struct ring_slot *liar_slot;

static void *lie(void *arg)
{
    (void)arg;
    while (now() < until_ns) {
        for (int i = 0; i < 1000; i++) {
            __atomic_store_n(&liar_slot->len, 8, __ATOMIC_RELAXED);
            __atomic_store_n(&liar_slot->peer, 0, __ATOMIC_RELAXED);
            __atomic_store_n(&liar_slot->len, 0x7fffffff, __ATOMIC_RELAXED);
            __atomic_store_n(&liar_slot->peer, 0x7fffffff, __ATOMIC_RELAXED);
        }
    }
    return NULL;
}

static void do_liar(void)
{
    struct ring_producer p = up_ring(0);
    pthread_t thread;

    liar_slot = &p.slots[0];
    if (pthread_create(&thread, NULL, lie, NULL) != 0)
        fail("no thread");
    while (now() < until_ns)
        send_to(&p, (uint32_t)rand_below(&dice, layout.shape.n_world), 8);
    pthread_join(thread, NULL);
    free(p.data_end);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {{"slots", do_slots},   {"bits", do_bits},     {"heads", do_heads},
                 {"flood", do_flood},   {"memory", do_memory}, {"board", do_board},
                 {"frames", do_frames}, {"liar", do_liar}};
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;

    if (argc < 3)
        fail("usage: hostile_rank MODE SECONDS [SEED]");
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(argv[1], modes[i].name) != 0)
            continue;
        signal(SIGPIPE, SIG_IGN);
        attach();
        dice.state = seed * 1000003 + reply.local_rank;
        until_ns = now() + (uint64_t)(atof(argv[2]) * 1e9);
        printf("hostile %s attached\n", argv[1]);
        fflush(stdout);
        modes[i].run();
        /* No farewell: the connection just ends. */
        _exit(0);
    }
    fail("no such mode");
}
