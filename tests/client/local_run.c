/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * local_run N PROGRAM [ARGS...]: runs N ranks of an MPI program on this machine with nothing but a
 * job segment: no daemon, no spawner. For tests of the library alone (sanitizers, profilers) and
 * for telling its cost from the daemon's. Ends with the highest exit code of its ranks; kills them
 * all when one dies by a signal, after MOTET_TEST_TIMEOUT seconds (default 120), or when it dies
 * itself. MOTET_TEST_FENCED=1: as on a kernel without membarrier. MOTET_TEST_NO_READV=1: as in a
 * container that forbids reading other processes' memory.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/thread.h"
#include "proto/attach.h"
#include "proto/frame.h"

#define MAX_RANKS 64
#define TEST_JOB  0x7e57u

static void *base;
static struct segment_layout layout;
static int segment_fd, node_fd;
static pid_t pids[MAX_RANKS];
static int conns[MAX_RANKS];

static int fail(const char *what, int rc)
{
    fprintf(stderr, "local_run: %s: %s\n", what, strerror(rc < 0 ? -rc : errno));
    return 1;
}

static int make_segments(int n)
{
    struct segment_shape shape = {.n_world = (uint32_t)n, .n_nodes = 1, .n_local = (uint32_t)n};
    void *node;

    segment_shape_defaults(&shape);
    segment_layout(&shape, &layout);
    if ((segment_fd = fd_memory("motet-test-job", layout.total, false, &base)) < 0)
        return segment_fd;
    if ((node_fd = fd_memory("motet-test-node", sizeof(struct hop_table), true, &node)) < 0)
        return node_fd;
    struct hop_table *hops = node;
    hops->magic = HOP_MAGIC;
    hops->version = HOP_VERSION;
    hops->packet_bytes = 16384;
    atomic_store(&hops->crowded, n > thread_n_cores());
    struct segment_header *header = base;
    header->magic = SEGMENT_MAGIC;
    header->job = TEST_JOB;
    header->shape = shape;
    for (uint32_t r = 0; r < (uint32_t)n; r++) {
        *segment_world_at(base, &layout, r) = (struct segment_world){.node = 0, .local = r};
        segment_rank_at(base, &layout, r)->world_rank = r;
    }
    snprintf(segment_node_at(base, &layout, 0)->name,
             sizeof segment_node_at(base, &layout, 0)->name, "local");
    atomic_store_explicit(&header->version, SEGMENT_VERSION, memory_order_release);
    return 0;
}

/* What a container does to the ranks: reading another process's memory is refused. */
static void forbid_readv(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof code / sizeof *code, .filter = code};

    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
        fprintf(stderr, "local_run: seccomp: %s\n", strerror(errno));
}

static pid_t start_rank(int rank, int n, const char *socket_path, char **argv)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    char text[32];

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    setenv("MOTET_SOCKET", socket_path, 1);
    snprintf(text, sizeof text, "%x", TEST_JOB);
    setenv("MOTET_JOB", text, 1);
    snprintf(text, sizeof text, "%d", rank);
    setenv("MOTET_RANK", text, 1);
    snprintf(text, sizeof text, "%d", n);
    setenv("MOTET_SIZE", text, 1);
    setenv("MOTET_KEY", "00000000000000000000000000000000", 1);
    if (getenv("MOTET_TEST_NO_READV"))
        forbid_readv();
    execvp(argv[0], argv);
    fprintf(stderr, "local_run: %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

/* Answers one attach request. */
static int serve_attach(int conn, int n)
{
    struct frame_header h;
    struct attach_request request;
    struct {
        struct frame_header header;
        struct attach_reply reply;
    } out = {.header = {.len = sizeof out.reply, .type = ATTACH_REPLY, .magic = FRAME_MAGIC},
             .reply = {.version = ATTACH_VERSION,
                       .shape = layout.shape,
                       .fenced = getenv("MOTET_TEST_FENCED") != NULL}};
    int fds[2] = {segment_fd, node_fd};
    uint64_t deadline_ns = clock_now_ns() + 5 * CLOCK_NS_PER_S;

    int rc = frame_recv_header(conn, &h, deadline_ns);
    if (rc == 0)
        rc = fd_read_full(conn, &request, sizeof request, deadline_ns);
    if (rc < 0 || request.world_rank >= (uint32_t)n)
        return -EPROTO;
    out.reply.local_rank = request.world_rank;
    atomic_store(&segment_rank_at(base, &layout, request.world_rank)->pid, request.pid);
    return fd_send_fds(conn, &out, sizeof out, fds, 2);
}

/* Reads what an attached rank says: detach is answered, abort gives the exit code. -1: it is
 * gone. */
static int serve_rank(int conn, int *code)
{
    struct frame_header h;
    struct attach_abort body;
    uint64_t deadline_ns = clock_now_ns() + 5 * CLOCK_NS_PER_S;

    if (frame_recv_header(conn, &h, deadline_ns) < 0)
        return -1;
    if (h.type == ATTACH_DETACH) {
        frame_send(conn, ATTACH_DETACHED, NULL, 0, deadline_ns);
    } else if (h.type == ATTACH_ABORT && fd_read_full(conn, &body, sizeof body, deadline_ns) == 0) {
        *code = body.code ? body.code : 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    int n = argc > 2 ? atoi(argv[1]) : 0;
    const char *limit = getenv("MOTET_TEST_TIMEOUT");
    uint64_t end_ns = clock_now_ns() + (uint64_t)(limit ? atoi(limit) : 120) * CLOCK_NS_PER_S;
    char path[64];
    int code = 0, n_conns = 0, n_alive = n, abort_code = 0;

    if (n < 1 || n > MAX_RANKS) {
        fprintf(stderr, "usage: local_run N PROGRAM [ARGS...] with 1 <= N <= %d\n", MAX_RANKS);
        return 2;
    }
    int rc = make_segments(n);
    if (rc < 0)
        return fail("segments", rc);
    snprintf(path, sizeof path, "@motet-test-%d", (int)getpid());
    int listener = fd_unix_listen(path, 0600);
    if (listener < 0)
        return fail(path, listener);
    for (int r = 0; r < n; r++)
        pids[r] = start_rank(r, n, path, argv + 2);

    while (n_alive > 0 && !abort_code && clock_now_ns() < end_ns) {
        struct pollfd polls[MAX_RANKS + 1] = {{.fd = listener, .events = POLLIN}};
        for (int i = 0; i < n_conns; i++)
            polls[i + 1] = (struct pollfd){.fd = conns[i], .events = POLLIN};
        int n_polls = n_conns + 1;
        poll(polls, (nfds_t)n_polls, 20);
        if (polls[0].revents && n_conns < MAX_RANKS) {
            int conn = accept(listener, NULL, NULL);
            if (conn >= 0 && serve_attach(conn, n) == 0)
                conns[n_conns++] = conn;
        }
        for (int i = 1; i < n_polls; i++) {
            if (polls[i].revents && serve_rank(conns[i - 1], &abort_code) < 0) {
                close(conns[i - 1]);
                conns[i - 1] = -1; /* poll skips negative descriptors */
            }
        }
        int status;
        pid_t gone;
        while ((gone = waitpid(-1, &status, WNOHANG)) > 0) {
            n_alive--;
            int own = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            if (WIFSIGNALED(status)) {
                for (int r = 0; r < n; r++)
                    if (pids[r] == gone)
                        fprintf(stderr, "local_run: rank %d died by signal %d\n", r,
                                WTERMSIG(status));
                abort_code = own;
            }
            code = own > code ? own : code;
        }
    }
    if (n_alive > 0) {
        if (!abort_code)
            fprintf(stderr, "local_run: time is over, killing %d ranks\n", n_alive);
        for (int r = 0; r < n; r++)
            kill(pids[r], SIGKILL);
        return abort_code ? abort_code : 124;
    }
    return code;
}
