/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank without an MPI library, for tests of the daemon: attaches as proto/attach.h says and then
 * does what its argument asks.
 *
 *     rank finalize | leave | abort | board | wrongkey | twice | rubbish | cut
 *
 * board: writes one posted and one unexpected record on its board and waits for ever. leave: exits
 * without detaching. rubbish: sends a frame that cannot be. cut: closes its connection without
 * ending.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "proto/attach.h"
#include "proto/frame.h"
#include "proto/hop.h"

static int fail(const char *what)
{
    fprintf(stderr, "rank: %s\n", what);
    return 1;
}

static int attach(bool wrong_key, struct attach_reply *reply, int *fds, int *ret_n_fds)
{
    struct attach_request req = {.version = ATTACH_VERSION, .pid = getpid()};
    struct frame_header h;
    uint64_t deadline_ns = clock_now_ns() + 5 * CLOCK_NS_PER_S;
    const char *key = getenv("MOTET_KEY");

    req.world_rank = (uint32_t)atoi(getenv("MOTET_RANK"));
    req.job = strtoull(getenv("MOTET_JOB"), NULL, 16);
    for (int i = 0; i < 16; i++) {
        unsigned byte;
        sscanf(key + 2 * i, "%2x", &byte);
        req.key[i] = (uint8_t)(byte ^ wrong_key);
    }
    int fd = fd_unix_connect(getenv("MOTET_SOCKET"));
    if (fd < 0)
        return fd;
    *ret_n_fds = 0;
    if (frame_send(fd, ATTACH_REQUEST, &req, sizeof req, deadline_ns) < 0 ||
        fd_recv_fds(fd, &h, sizeof h, fds, FD_MAX_PASS, ret_n_fds, deadline_ns) < 0 ||
        frame_check(&h) < 0 || h.type != ATTACH_REPLY || h.len != sizeof *reply ||
        fd_read_full(fd, reply, sizeof *reply, deadline_ns) < 0)
        return -1;
    return fd;
}

static void *map_fd(int fd, size_t n, int prot)
{
    void *p = mmap(NULL, n, prot, MAP_SHARED, fd, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void write_board(void *base, const struct segment_layout *l, uint32_t local)
{
    struct queue_record *r = segment_board_at(base, l, local);
    struct segment_rank *rank = segment_rank_at(base, l, local);
    uint64_t now_ns = clock_now_ns();

    r[0].context = 4;
    r[0].peer = QUEUE_ANY_SOURCE;
    r[0].tag = 77;
    r[0].bytes = 1024;
    r[0].since_ns = now_ns;
    r[0].peer_world = -1;
    r[1].context = 4;
    r[1].peer = 0;
    r[1].tag = 78;
    r[1].bytes = 8;
    r[1].since_ns = now_ns;
    r[1].peer_world = 0;
    atomic_store_explicit(&r[0].state, QUEUE_POSTED, memory_order_release);
    atomic_store_explicit(&r[1].state, QUEUE_UNEXPECTED, memory_order_release);
    atomic_store_explicit(&rank->board_high, 2, memory_order_release);
    atomic_store_explicit(&rank->waiting_since_ns, now_ns, memory_order_relaxed);
    atomic_store_explicit(&rank->waiting, 1, memory_order_relaxed);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "finalize";
    struct attach_reply reply;
    struct segment_layout layout;
    int fds[FD_MAX_PASS], n_fds;
    struct frame_header h;
    uint64_t deadline_ns = clock_now_ns() + 10 * CLOCK_NS_PER_S;

    int sock = attach(strcmp(what, "wrongkey") == 0, &reply, fds, &n_fds);
    if (sock < 0)
        return fail("no reply");
    if (reply.error != 0) {
        fprintf(stderr, "rank: refused: %s\n", reply.text);
        return strcmp(what, "wrongkey") == 0 ? 0 : 1;
    }
    if (segment_shape_check(&reply.shape) < 0 || n_fds != (int)reply.shape.n_channels + 2)
        return fail("shape or descriptors are wrong");
    segment_layout(&reply.shape, &layout);
    void *base = map_fd(fds[0], layout.total, PROT_READ | PROT_WRITE);
    struct hop_table *hops = map_fd(fds[1], sizeof *hops, PROT_READ);
    if (!base || !hops)
        return fail("cannot map");
    if (map_fd(fds[1], sizeof *hops, PROT_READ | PROT_WRITE))
        return fail("the hop table can be written");
    struct segment_header *header = base;
    if (header->magic != SEGMENT_MAGIC || header->version != SEGMENT_VERSION ||
        hops->magic != HOP_MAGIC ||
        segment_rank_at(base, &layout, reply.local_rank)->world_rank !=
            (uint32_t)atoi(getenv("MOTET_RANK")))
        return fail("contents are wrong");
    atomic_store(&segment_rank_at(base, &layout, reply.local_rank)->state, RANK_ATTACHED);

    if (strcmp(what, "twice") == 0) {
        struct attach_reply second;
        int n_second;
        if (attach(false, &second, fds, &n_second) < 0 || second.error == 0)
            return fail("a second attach was taken");
    } else if (strcmp(what, "leave") == 0) {
        return 0;
    } else if (strcmp(what, "abort") == 0) {
        struct attach_abort a = {.code = 42, .text = "MPI_Abort(MPI_COMM_WORLD, 42)"};
        frame_send(sock, ATTACH_ABORT, &a, sizeof a, deadline_ns);
        pause();
    } else if (strcmp(what, "board") == 0) {
        write_board(base, &layout, reply.local_rank);
        printf("board written\n");
        fflush(stdout);
        for (;;)
            pause();
    } else if (strcmp(what, "rubbish") == 0) {
        memset(&h, 0x55, sizeof h);
        fd_write_full(sock, &h, sizeof h, deadline_ns);
        pause();
    } else if (strcmp(what, "cut") == 0) {
        close(sock);
        pause();
    }
    if (frame_send(sock, ATTACH_DETACH, NULL, 0, deadline_ns) < 0 ||
        frame_recv_header(sock, &h, deadline_ns) < 0 || h.type != ATTACH_DETACHED)
        return fail("detach was not answered");
    atomic_store(&segment_rank_at(base, &layout, reply.local_rank)->state, RANK_FINALIZED);
    printf("rank %s local %u of %u on %s done, crowded %u\n", getenv("MOTET_RANK"),
           reply.local_rank, reply.shape.n_local, getenv("MOTET_NODE"), hops->crowded);
    return 0;
}
