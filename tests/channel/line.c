/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Real channels over real networks: a line of nodes, each a process with its hub and channel
 * threads, one rank on the first and one on the last. The ranks play ping-pong, then stream,
 * through all gateways between them. A test and a stopwatch.
 *
 *   line [--providers tcp,udp,...] [--pings N] [--bytes N] [--stream MIB]
 *        [--mode adaptive|spin|event] [--namespaces PREFIX] [--fault OPTIONS]
 *        [--crowded 0|1] [--idle SECONDS] [--flaps N]        (crowded: found out by default)
 *
 * One provider per network; n networks make n + 1 nodes. Without --namespaces everything runs on
 * 127.0.0.1; with it node i runs in the network namespace PREFIXi, where network k has the
 * addresses 10.77.k.1 (node k) and 10.77.k.2 (node k + 1). --flaps: so many times every node takes
 * its links away and adds them again, as control does when a wire is cut and mended.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "daemon/channel/channel.h"
#include "proto/segment.h"

#define NODES_MAX   5u
#define PACKET      16384u
#define DEADLINE_NS (60 * CLOCK_NS_PER_S)
#define JOB         77u

struct options {
    const char *providers[NODES_MAX];
    uint32_t n_nodes;
    uint32_t pings, bytes, stream_mib, idle_s, flaps;
    enum wait_mode mode;
    const char *namespaces, *fault;
    uint32_t crowded;
};

/* Shared by all processes. */
struct board {
    _Atomic uint32_t ready[2]; /* processes that passed each stage */
    _Atomic uint32_t over;
    struct {
        uint8_t address[NET_ADDRESS_BYTES];
        size_t len;
    } ends[NODES_MAX][2]; /* of a node's channel to the left and to the right */
};

static struct options opt = {
    .providers = {"tcp"}, .n_nodes = 2, .pings = 1000, .bytes = 8, .stream_mib = 64, .crowded = 2};
static struct board *board;

static void die(const char *what, int rc)
{
    fprintf(stderr, "line: %s: %s\n", what, strerror(-rc));
    exit(1);
}

static void barrier(uint32_t stage)
{
    uint64_t deadline = clock_now_ns() + DEADLINE_NS;

    atomic_fetch_add(&board->ready[stage], 1);
    while (atomic_load(&board->ready[stage]) < opt.n_nodes) {
        if (clock_now_ns() > deadline)
            die("others did not come", -ETIMEDOUT);
        usleep(1000);
    }
}

struct rank {
    struct ring_producer up;
    struct ring_consumer down;
    uint32_t *data_end;
    uint32_t peer;
    uint64_t n_sent, n_received;
};

static void pause_a_little(void)
{
    if (opt.crowded)
        sched_yield();
    else
        thread_pause();
}

static void rank_send(struct rank *r, const void *data, uint32_t len, uint32_t tag)
{
    void *payload;
    struct ring_slot *slot;
    uint64_t deadline = 0;

    while (!(slot = ring_claim(&r->up, len, &payload))) {
        if (deadline == 0)
            deadline = clock_now_ns() + DEADLINE_NS;
        else if (clock_now_ns() > deadline)
            die("up ring stays full", -ETIMEDOUT);
        pause_a_little();
    }
    memcpy(payload, data, len);
    slot->kind = MSG_EAGER;
    slot->flags = 0;
    slot->context = 0;
    slot->source = 0;
    slot->tag = (int32_t)tag;
    slot->peer = r->peer;
    slot->order = (uint32_t)r->n_sent++;
    ring_publish(&r->up);
}

/* Copies the next message out; returns its tag. */
static uint32_t rank_receive(struct rank *r, void *data, uint32_t *ret_len)
{
    struct ring_slot *slot;
    uint64_t deadline = 0, n = 0;

    while (!(slot = ring_peek(&r->down))) {
        if (++n % 1024 == 0) {
            uint64_t now = clock_now_ns();
            if (deadline == 0)
                deadline = now + DEADLINE_NS;
            else if (now > deadline)
                die("nothing arrives", -ETIMEDOUT);
        }
        pause_a_little();
    }
    uint32_t len = slot->len, tag = (uint32_t)slot->tag;
    memcpy(data, ring_payload(&r->down, slot, len, slot->data_line), len);
    ring_advance(&r->down, len);
    r->n_received++;
    *ret_len = len;
    return tag;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void play(struct rank *r, bool first)
{
    static uint8_t out[PACKET], in[PACKET];
    uint64_t *took = calloc(opt.pings + 1, sizeof *took);
    uint32_t len;

    for (uint32_t i = 0; i < opt.pings; i++) {
        uint64_t start = clock_now_ns();
        memset(out, (int)(i & 255), opt.bytes);
        if (first)
            rank_send(r, out, opt.bytes, i);
        uint32_t tag = rank_receive(r, in, &len);
        if (tag != i || len != opt.bytes ||
            (len > 0 && (in[0] != (uint8_t)i || in[len - 1] != (uint8_t)i)))
            die("ping-pong: wrong message", -EBADMSG);
        if (!first)
            rank_send(r, out, opt.bytes, i);
        took[i] = clock_now_ns() - start;
    }
    qsort(took, opt.pings, sizeof *took, compare);
    if (first && opt.pings)
        printf("%u bytes: half round trip median %.2f us, 1%% %.2f, 99%% %.2f\n", opt.bytes,
               (double)took[opt.pings / 2] / 2000, (double)took[opt.pings / 100] / 2000,
               (double)took[opt.pings - 1 - opt.pings / 100] / 2000);
    free(took);

    uint32_t n = opt.stream_mib * ((1u << 20) / PACKET);
    uint64_t start = clock_now_ns();
    if (first) {
        for (uint32_t i = 0; i < n; i++) {
            memcpy(out, &i, sizeof i);
            rank_send(r, out, PACKET, i);
        }
        rank_receive(r, in, &len);
        double s = (double)(clock_now_ns() - start) / 1e9;
        if (n)
            printf("stream of %u MiB: %.1f MB/s\n", opt.stream_mib, (double)n * PACKET / s / 1e6);
    } else {
        uint8_t *seen = calloc(n + 1, 1);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t id, tag = rank_receive(r, in, &len);
            memcpy(&id, in, sizeof id);
            if (len != PACKET || id != tag || id >= n || seen[id]++)
                die("stream: wrong message", -EBADMSG);
        }
        free(seen);
        rank_send(r, out, 1, n);
    }
}

static void enter_namespace(uint32_t i)
{
    char path[256];

    if (!opt.namespaces)
        return;
    snprintf(path, sizeof path, "/run/netns/%s%u", opt.namespaces, i);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET) < 0)
        die(path, -errno);
    close(fd);
}

static void make_segment(uint32_t node, uint32_t n_channels, struct cmd_job *ret_job)
{
    static struct segment_layout layout;
    static struct segment_world world[2];
    static struct segment_node nodes[2];
    struct segment_shape shape = {
        .n_world = 2, .n_nodes = 2, .n_local = 1, .n_channels = n_channels};

    segment_shape_defaults(&shape);
    segment_layout(&shape, &layout);
    void *segment = mmap(NULL, layout.total, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (segment == MAP_FAILED)
        die("mmap", -errno);
    uint32_t other = node == 0 ? opt.n_nodes - 1 : 0;
    world[0] = (struct segment_world){.node = 0};
    world[1] = (struct segment_world){.node = 1};
    nodes[node != 0] = (struct segment_node){.node_id = 100 + node, .slot = 0};
    nodes[node == 0] =
        (struct segment_node){.node_id = 100 + other, .slot = other == 0 ? 1 : other};
    *ret_job = (struct cmd_job){.job = JOB,
                                .segment = segment,
                                .layout = &layout,
                                .world = world,
                                .nodes = nodes,
                                .event_fd = -1};
}

/* Slot of node j on node i: itself 0, the others in order. */
static uint32_t slot_of(uint32_t i, uint32_t j)
{
    return j == i ? 0 : j < i ? j + 1 : j;
}

static void await_event(struct channel *ch, uint32_t type)
{
    uint64_t deadline = clock_now_ns() + DEADLINE_NS;
    struct cmd_event e;

    for (;;) {
        while (channel_next_event(ch, &e))
            if (e.type == type)
                return;
        if (clock_now_ns() > deadline)
            die("channel does not answer", -ETIMEDOUT);
        usleep(200);
    }
}

/* The links of this node, for the thread that takes them away and adds them again. */
static struct {
    struct channel *ch;
    struct cmd add;
} links[2];
static uint32_t n_links;

static void send_command(struct channel *ch, const struct cmd *cmd)
{
    while (channel_command(ch, cmd) == -EAGAIN)
        usleep(100);
}

static void *flap(void *arg)
{
    for (uint32_t k = 0; k < opt.flaps; k++) {
        usleep(30000);
        for (uint32_t l = 0; l < n_links; l++) {
            struct cmd cmd = {.type = CMD_REMOVE_LINK,
                              .remove_link.slot = links[l].add.add_link.slot};
            send_command(links[l].ch, &cmd);
        }
        usleep(20000);
        for (uint32_t l = 0; l < n_links; l++)
            send_command(links[l].ch, &links[l].add);
    }
    return arg;
}

static void run_node(uint32_t i)
{
    bool left = i > 0, right = i + 1 < opt.n_nodes;
    uint32_t n_channels = (uint32_t)left + (uint32_t)right;
    struct hop_table *hops =
        mmap(NULL, sizeof *hops, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct channel *channels[2] = {NULL};
    struct hub *hub;
    bool fenced = thread_barrier_register() < 0;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    enter_namespace(i);
    hops->packet_bytes = PACKET;
    hops->n_channels = n_channels;
    hops->crowded = opt.crowded;
    for (uint32_t j = 0; j < opt.n_nodes; j++) {
        struct hop_entry *e = &hops->entries[slot_of(i, j)];
        e->node_id = 100 + j;
        e->epoch = 1000 + j;
        if (j == i)
            continue;
        uint8_t channel = (uint8_t)(j > i && left ? 1 : 0);
        uint32_t next = j > i ? i + 1 : i - 1;
        e->quick = e->wide[0] =
            hop_pack((uint16_t)slot_of(i, next), channel, (uint8_t)(j > i ? j - i : i - j), 65535);
    }
    hops->n_slots = opt.n_nodes;
    hops->generation = 1;

    struct hub_config hc = {.node_id = 100 + i,
                            .epoch = 1000 + i,
                            .n_channels = n_channels,
                            .fenced = fenced,
                            .hops = hops};
    int rc = hub_new(&hc, &hub);
    if (rc < 0)
        die("hub_new", rc);
    for (uint32_t c = 0; c < n_channels; c++) {
        bool to_left = c == 0 && left;
        uint32_t network = to_left ? i - 1 : i;
        char address[32] = "127.0.0.1", name[32];
        if (opt.namespaces)
            snprintf(address, sizeof address, "10.77.%u.%u", network, to_left ? 2 : 1);
        snprintf(name, sizeof name, "ch%u-%u", i, c);
        struct channel_config cc = {.idx = c,
                                    .name = name,
                                    .net = {.address = address, .provider = opt.providers[network]},
                                    .fault = opt.fault,
                                    .wait_mode = opt.mode};
        rc = channel_new(hub, &cc, &channels[c]);
        if (rc < 0)
            die("channel_new", rc);
        board->ends[i][!to_left].len = NET_ADDRESS_BYTES;
        rc = channel_address(channels[c], board->ends[i][!to_left].address,
                             &board->ends[i][!to_left].len);
        if (rc < 0)
            die("channel_address", rc);
    }
    barrier(0);
    for (uint32_t c = 0; c < n_channels; c++) {
        bool to_left = c == 0 && left;
        uint32_t j = to_left ? i - 1 : i + 1;
        struct cmd cmd = {.type = CMD_ADD_LINK};
        cmd.add_link.slot = (uint16_t)slot_of(i, j);
        cmd.add_link.len = (uint16_t)board->ends[j][to_left].len;
        memcpy(cmd.add_link.address, board->ends[j][to_left].address, cmd.add_link.len);
        channel_start(channels[c]);
        channel_command(channels[c], &cmd);
        links[n_links].ch = channels[c];
        links[n_links++].add = cmd;
    }

    bool has_rank = i == 0 || i + 1 == opt.n_nodes;
    struct cmd_job job;
    struct channel_job *view = NULL;
    struct rank rank = {.peer = i == 0};
    if (has_rank) {
        make_segment(i, 1, &job);
        job.fenced = fenced;
        /* Rank and channel are in one process: one descriptor serves both. */
        job.event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (job.event_fd < 0)
            die("eventfd", -errno);
        rc = channel_job_new(channels[0], &job, &view);
        if (rc < 0)
            die("channel_job_new", rc);
        struct cmd cmd = {.type = CMD_ATTACH_JOB, .job = view};
        channel_command(channels[0], &cmd);
        rank.data_end = calloc(job.layout->shape.up.n_slots, sizeof *rank.data_end);
        struct bell_ref bell = {.bell = segment_channel_bell(job.segment, job.layout, 0),
                                .event_fd = job.event_fd,
                                .fenced = fenced};
        ring_producer_init(&rank.up, segment_up_ring(job.segment, job.layout, 0, 0),
                           &job.layout->shape.up, rank.data_end, &bell);
        ring_consumer_init(&rank.down, segment_down_ring(job.segment, job.layout, 0, 0),
                           &job.layout->shape.down);
    }
    barrier(1);
    pthread_t flapper;
    bool flaps = opt.flaps > 0 && pthread_create(&flapper, NULL, flap, NULL) == 0;
    if (has_rank)
        play(&rank, i == 0);
    if (flaps)
        pthread_join(flapper, NULL);
    if (opt.idle_s > 0) {
        struct rusage before, after;
        sleep(2); /* let the thread fall asleep */
        getrusage(RUSAGE_SELF, &before);
        sleep(opt.idle_s);
        getrusage(RUSAGE_SELF, &after);
        double used = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec +
                               after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
                      (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec +
                               after.ru_stime.tv_usec - before.ru_stime.tv_usec) /
                          1e6;
        printf("node %u idle: %.3f %% of a core\n", i, used / opt.idle_s * 100);
    }
    if (has_rank) {
        struct cmd cmd = {.type = CMD_DETACH_RANK, .detach_rank = {.job = view}};
        send_command(channels[0], &cmd);
        await_event(channels[0], EVENT_RANK_DETACHED);
        cmd = (struct cmd){.type = CMD_DRAIN, .timeout_ns = 5 * CLOCK_NS_PER_S};
        channel_command(channels[0], &cmd);
        await_event(channels[0], EVENT_DRAINED);
        cmd = (struct cmd){.type = CMD_DETACH_JOB, .job = view};
        channel_command(channels[0], &cmd);
        await_event(channels[0], EVENT_JOB_DETACHED);
        channel_job_free(view);
    }
    /* Gateways stay until the ends are done. */
    atomic_fetch_add(&board->over, has_rank);
    for (int k = 0; k < 600 && atomic_load(&board->over) < 2; k++)
        usleep(100000);
    for (uint32_t c = 0; c < n_channels; c++)
        channel_stop(channels[c]);
    if (getenv("LINE_COUNTERS")) {
        for (uint32_t c = 0; c < n_channels; c++) {
            struct net_info info;
            channel_info(channels[c], &info);
            fprintf(stderr, "node %u channel %u (%s):", i, c, info.provider);
            for (int id = 0; id < COUNT_N; id++)
                if (count_get(channel_counters(channels[c]), (enum count_id)id))
                    fprintf(stderr, " %s %llu", count_name((enum count_id)id),
                            (unsigned long long)count_get(channel_counters(channels[c]),
                                                          (enum count_id)id));
            fprintf(stderr, "\n");
        }
    }
    for (uint32_t c = 0; c < n_channels; c++)
        channel_free(channels[c]);
    hub_free(hub);
    free(rank.data_end);
}

static void parse(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        char *value = argv[i + 1];
        if (strcmp(argv[i], "--providers") == 0) {
            char *item;
            opt.n_nodes = 1;
            while ((item = strsep(&value, ",")) != NULL && opt.n_nodes < NODES_MAX)
                opt.providers[opt.n_nodes++ - 1] = item;
        } else if (strcmp(argv[i], "--pings") == 0) {
            opt.pings = (uint32_t)atoi(value);
        } else if (strcmp(argv[i], "--bytes") == 0) {
            opt.bytes = (uint32_t)atoi(value) <= PACKET ? (uint32_t)atoi(value) : PACKET;
        } else if (strcmp(argv[i], "--stream") == 0) {
            opt.stream_mib = (uint32_t)atoi(value);
        } else if (strcmp(argv[i], "--idle") == 0) {
            opt.idle_s = (uint32_t)atoi(value);
        } else if (strcmp(argv[i], "--flaps") == 0) {
            opt.flaps = (uint32_t)atoi(value);
        } else if (strcmp(argv[i], "--crowded") == 0) {
            opt.crowded = (uint32_t)atoi(value);
        } else if (strcmp(argv[i], "--mode") == 0) {
            opt.mode = strcmp(value, "spin") == 0    ? WAIT_SPIN
                       : strcmp(value, "event") == 0 ? WAIT_EVENT
                                                     : WAIT_ADAPTIVE;
        } else if (strcmp(argv[i], "--namespaces") == 0) {
            opt.namespaces = value;
        } else if (strcmp(argv[i], "--fault") == 0) {
            opt.fault = value;
        } else {
            fprintf(stderr, "line: unknown option %s\n", argv[i]);
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    pid_t pids[NODES_MAX];
    int failed = 0;

    parse(argc, argv);
    if (opt.crowded > 1)
        opt.crowded = opt.n_nodes * 2 > (uint32_t)thread_n_cores();
    log_init("line");
    setvbuf(stdout, NULL, _IOLBF, 0);
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        die("mmap", -errno);
    for (uint32_t i = 0; i < opt.n_nodes; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            run_node(i);
            exit(0);
        }
        if (pids[i] < 0)
            die("fork", -errno);
    }
    for (uint32_t i = 0; i < opt.n_nodes; i++) {
        int status;
        pid_t pid = wait(&status);
        if (pid > 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0) && failed++ == 0)
            /* One is lost: the others would only wait. */
            for (uint32_t k = 0; k < opt.n_nodes; k++)
                if (pids[k] != pid)
                    kill(pids[k], SIGKILL);
    }
    return failed ? 1 : 0;
}
