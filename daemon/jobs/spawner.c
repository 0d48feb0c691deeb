/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/jobs/spawner.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "daemon/cluster/stream.h"

#define SPAWNER_FD      3
#define MAX_FRAME_BYTES 65536u
#define MAX_QUEUE_BYTES (256u << 20) /* the environments of 256 ranks of several jobs */
#define RESTART_PAUSE_S 1
#define END_TIMEOUT_NS  (5 * CLOCK_NS_PER_S)

struct spawner {
    struct event_base *base;
    const char *path;
    pid_t pid;
    struct stream *stream;
    struct event *restart;
    uint64_t restarted_ns; /* 0: never */
    const struct spawner_ops *ops;
    void *ctx;
};

extern char **environ;

int spawner_start(const char *path, bool again, pid_t *ret_pid, int *ret_fd)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, all;
    int pair[2];
    char self[16];
    char *argv[] = {(char *)"motet-spawner", again ? (char *)"--again" : NULL, self, NULL};

    snprintf(self, sizeof self, "%d", (int)getpid());
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attr);
    posix_spawn_file_actions_adddup2(&actions, pair[1], SPAWNER_FD);
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    /* A process group of its own: Ctrl-C at a daemon in the foreground is the daemon's to
     * handle. */
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                        POSIX_SPAWN_SETPGROUP);
    int rc = -posix_spawn(ret_pid, path, &actions, &attr, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    close(pair[1]);
    if (rc < 0) {
        log_error("cannot start the spawner %s: %s", path, strerror(-rc));
        close(pair[0]);
        return rc;
    }
    *ret_fd = pair[0];
    return 0;
}

static int on_frame(void *ctx, uint16_t type, const uint8_t *body, uint32_t len)
{
    struct spawner *s = ctx;

    if (type == MOTET__FRAME_TYPE__SPAWNED) {
        Motet__Spawned *msg = motet__spawned__unpack(NULL, len, body);
        if (!msg)
            return -EPROTO;
        s->ops->spawned(s->ctx, msg->job, msg->rank, msg->pid, msg->error);
        motet__spawned__free_unpacked(msg, NULL);
    } else if (type == MOTET__FRAME_TYPE__EXITED) {
        Motet__Exited *msg = motet__exited__unpack(NULL, len, body);
        if (!msg)
            return -EPROTO;
        s->ops->exited(s->ctx, msg->job, msg->rank, msg->status);
        motet__exited__free_unpacked(msg, NULL);
    } else {
        return -EPROTO;
    }
    return 0;
}

static void on_closed(void *ctx, int error);
static const struct stream_ops stream_ops = {.frame = on_frame, .closed = on_closed};

/* Reaps a spawner that ended or is ending. */
static void spawner_reap(pid_t pid)
{
    uint64_t deadline_ns = clock_now_ns() + END_TIMEOUT_NS;

    while (waitpid(pid, NULL, WNOHANG) == 0) {
        if (clock_now_ns() > deadline_ns) {
            log_warn("spawner %d does not end, killing it", (int)pid);
            kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
            return;
        }
        usleep(2000);
    }
}

static int spawner_restart(struct spawner *s)
{
    int fd;
    int rc = spawner_start(s->path, true, &s->pid, &fd);

    s->restarted_ns = clock_now_ns();
    if (rc < 0)
        return rc;
    s->stream = stream_new(s->base, fd, &stream_ops, s, MAX_FRAME_BYTES, MAX_QUEUE_BYTES);
    if (!s->stream) {
        close(fd);
        spawner_reap(s->pid);
        s->pid = 0;
        return -ENOMEM;
    }
    return 0;
}

static void on_restart_timer(evutil_socket_t fd, short what, void *ctx)
{
    struct spawner *s = ctx;
    struct timeval pause = {.tv_sec = RESTART_PAUSE_S};

    (void)fd, (void)what;
    if (spawner_restart(s) < 0)
        evtimer_add(s->restart, &pause);
    else
        log_notice("spawner runs again as process %d", (int)s->pid);
}

static void on_closed(void *ctx, int error)
{
    struct spawner *s = ctx;
    struct timeval pause = {.tv_sec = RESTART_PAUSE_S};

    log_error("spawner %d died%s%s, every rank on this node is lost", (int)s->pid,
              error ? ": " : "", error ? strerror(error) : "");
    stream_free(s->stream);
    s->stream = NULL;
    spawner_reap(s->pid);
    s->pid = 0;
    s->ops->lost(s->ctx);
    /* At once, since the new one also ends what the ranks left behind; but not as fast as it can
     * die. */
    if (s->restarted_ns == 0 || clock_now_ns() - s->restarted_ns > RESTART_PAUSE_S * CLOCK_NS_PER_S)
        on_restart_timer(-1, 0, s);
    else
        evtimer_add(s->restart, &pause);
}

struct spawner *spawner_new(struct event_base *base, const char *path, pid_t pid, int fd,
                            const struct spawner_ops *ops, void *ctx)
{
    struct spawner *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->base = base;
    s->path = path;
    s->pid = pid;
    s->ops = ops;
    s->ctx = ctx;
    s->restart = evtimer_new(base, on_restart_timer, s);
    s->stream =
        s->restart ? stream_new(base, fd, &stream_ops, s, MAX_FRAME_BYTES, MAX_QUEUE_BYTES) : NULL;
    if (!s->stream) {
        if (s->restart)
            event_free(s->restart);
        free(s);
        return NULL;
    }
    return s;
}

void spawner_free(struct spawner *s)
{
    if (!s)
        return;
    stream_free(s->stream);
    event_free(s->restart);
    if (s->pid > 0)
        spawner_reap(s->pid);
    free(s);
}

int spawner_spawn(struct spawner *s, const Motet__Spawn *spawn, const int fds[3])
{
    if (!s->stream) {
        for (int i = 0; i < 3; i++)
            close(fds[i]);
        return -EPIPE;
    }
    return stream_send_msg_fds(s->stream, MOTET__FRAME_TYPE__SPAWN, &spawn->base, fds, 3);
}

int spawner_kill(struct spawner *s, uint64_t job, int64_t rank, int signal)
{
    Motet__SpawnKill msg = MOTET__SPAWN_KILL__INIT;

    if (!s->stream)
        return -EPIPE;
    msg.job = job;
    msg.has_rank = rank >= 0;
    msg.rank = rank >= 0 ? (uint32_t)rank : 0;
    msg.signal = signal;
    return stream_send_msg(s->stream, MOTET__FRAME_TYPE__SPAWN_KILL, &msg.base);
}
