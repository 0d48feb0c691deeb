/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/jobs/pipes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

#define CHUNK_BYTES 65536u
/* Most that is still read from a pipe after its rank ended: an orphan that writes for ever does not
 * keep the job. */
#define CLOSING_BYTES (4u << 20)
/* How long an orphan that holds a rank's pipe may still write. */
static const struct timeval close_grace = {.tv_usec = 500000};

struct pipes_end {
    struct pipes *pipes;
    struct event *readable;
    int fd;
    uint32_t world_rank, stream;
    bool open, closing;
    uint64_t closing_bytes;
};

struct pipes {
    struct event_base *base;
    const struct pipes_ops *ops;
    void *ctx;
    uint32_t n_local;
    struct pipes_end *pipes; /* two per rank: stdout, stderr */
    uint64_t sent, consumed; /* bytes of output */
    bool blocked;            /* window closed */
    uint8_t *buffer;
    /* Input. */
    int input_fd;
    struct event *writable;
    uint8_t *input;
    size_t input_len, input_off;
    bool input_ended;
    uint64_t input_taken;
};

struct pipes *pipes_new(struct event_base *base, uint32_t n_local, const struct pipes_ops *ops,
                        void *ctx)
{
    struct pipes *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->base = base;
    s->ops = ops;
    s->ctx = ctx;
    s->n_local = n_local;
    s->input_fd = -1;
    s->pipes = calloc(2 * (size_t)n_local, sizeof *s->pipes);
    s->buffer = malloc(CHUNK_BYTES);
    if (!s->pipes || !s->buffer) {
        pipes_free(s);
        return NULL;
    }
    return s;
}

static void pipe_close(struct pipes_end *p)
{
    if (p->readable)
        event_free(p->readable);
    p->readable = NULL;
    fd_closep(&p->fd);
    p->open = false;
}

static void input_close(struct pipes *s)
{
    if (s->writable)
        event_free(s->writable);
    s->writable = NULL;
    fd_closep(&s->input_fd);
    free(s->input);
    s->input = NULL;
    s->input_len = s->input_off = 0;
}

void pipes_free(struct pipes *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; s->pipes && i < 2 * s->n_local; i++)
        if (s->pipes[i].open)
            pipe_close(&s->pipes[i]);
    input_close(s);
    free(s->pipes);
    free(s->buffer);
    free(s);
}

static void pipe_listen(struct pipes_end *p)
{
    event_add(p->readable, p->closing ? &close_grace : NULL);
}

static void pipe_end(struct pipes_end *p)
{
    struct pipes *s = p->pipes;
    uint32_t rank = p->world_rank, stream = p->stream;

    pipe_close(p);
    s->ops->output(s->ctx, rank, stream, NULL, 0);
}

static void window_check(struct pipes *s)
{
    bool blocked = s->sent - s->consumed >= PIPES_WINDOW_BYTES;

    if (blocked == s->blocked)
        return;
    s->blocked = blocked;
    for (uint32_t i = 0; i < 2 * s->n_local; i++) {
        struct pipes_end *p = &s->pipes[i];
        if (!p->open)
            continue;
        if (blocked)
            event_del(p->readable);
        else
            pipe_listen(p);
    }
}

static void on_readable(evutil_socket_t fd, short what, void *ctx)
{
    struct pipes_end *p = ctx;
    struct pipes *s = p->pipes;
    ssize_t got = read(fd, s->buffer, CHUNK_BYTES);

    (void)what;
    if (got > 0) {
        s->sent += (uint64_t)got;
        s->ops->output(s->ctx, p->world_rank, p->stream, s->buffer, (uint32_t)got);
        p->closing_bytes += p->closing ? (uint64_t)got : 0;
        if (p->closing_bytes > CLOSING_BYTES) {
            pipe_end(p);
            return;
        }
        if (p->closing && s->sent - s->consumed < PIPES_WINDOW_BYTES)
            pipe_listen(p);
        window_check(s);
        return;
    }
    /* With `closing` the time-out comes here too: nothing more within the grace means the end. */
    if (got == 0 || (errno != EAGAIN && errno != EINTR) || (p->closing && (what & EV_TIMEOUT)))
        pipe_end(p);
}

static int pipe_open(struct pipes *s, struct pipes_end *p, uint32_t world_rank, uint32_t stream,
                     int *ret_child_fd)
{
    int pair[2];

    if (pipe2(pair, O_CLOEXEC) < 0)
        return -errno;
    fd_set_nonblock(pair[0], true);
    *p = (struct pipes_end){
        .pipes = s, .fd = pair[0], .world_rank = world_rank, .stream = stream, .open = true};
    p->readable = event_new(s->base, pair[0], EV_READ | EV_PERSIST, on_readable, p);
    if (!p->readable) {
        pipe_close(p);
        close(pair[1]);
        return -ENOMEM;
    }
    if (!s->blocked)
        pipe_listen(p);
    *ret_child_fd = pair[1];
    return 0;
}

static void on_writable(evutil_socket_t fd, short what, void *ctx);

static int input_open(struct pipes *s, int *ret_child_fd)
{
    int pair[2];

    if (pipe2(pair, O_CLOEXEC) < 0)
        return -errno;
    fd_set_nonblock(pair[1], true);
    s->input_fd = pair[1];
    s->input = malloc(PIPES_INPUT_BYTES);
    s->writable = event_new(s->base, pair[1], EV_WRITE | EV_PERSIST, on_writable, s);
    if (!s->writable || !s->input) {
        input_close(s);
        close(pair[0]);
        return -ENOMEM;
    }
    *ret_child_fd = pair[0];
    return 0;
}

int pipes_open(struct pipes *s, uint32_t local, uint32_t world_rank, bool with_input,
               int ret_child_fds[3])
{
    struct pipes_end *out = &s->pipes[2 * local], *err = out + 1;
    FD_AUTO in_fd = -1;
    FD_AUTO out_fd = -1;
    FD_AUTO err_fd = -1;
    int rc = 0;

    if (with_input) {
        rc = input_open(s, &in_fd);
    } else {
        in_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        rc = in_fd < 0 ? -errno : 0;
    }
    if (rc == 0)
        rc = pipe_open(s, out, world_rank, 1, &out_fd);
    if (rc == 0)
        rc = pipe_open(s, err, world_rank, 2, &err_fd);
    if (rc < 0) {
        if (out->open)
            pipe_close(out);
        if (with_input)
            input_close(s);
        return rc;
    }
    ret_child_fds[0] = fd_steal(&in_fd);
    ret_child_fds[1] = fd_steal(&out_fd);
    ret_child_fds[2] = fd_steal(&err_fd);
    return 0;
}

void pipes_exited(struct pipes *s, uint32_t local)
{
    for (uint32_t i = 2 * local; i < 2 * local + 2; i++) {
        struct pipes_end *p = &s->pipes[i];
        if (!p->open || p->closing)
            continue;
        p->closing = true;
        if (!s->blocked)
            pipe_listen(p);
    }
}

void pipes_consumed(struct pipes *s, uint64_t total)
{
    if (total > s->sent || total <= s->consumed)
        return;
    s->consumed = total;
    window_check(s);
}

/* Writes what waits. False when the reader is gone. */
static bool input_push(struct pipes *s)
{
    while (s->input_off < s->input_len) {
        ssize_t put = write(s->input_fd, s->input + s->input_off, s->input_len - s->input_off);
        if (put < 0)
            return errno == EAGAIN || errno == EINTR;
        s->input_off += (size_t)put;
        s->input_taken += (uint64_t)put;
    }
    return true;
}

static void input_run(struct pipes *s)
{
    uint64_t before = s->input_taken;
    bool alive = input_push(s);

    if (!alive) {
        /* Nobody reads: the rest counts as taken, so that mpiexec does not wait with it. */
        s->input_taken += s->input_len - s->input_off;
        input_close(s);
    } else if (s->input_off == s->input_len) {
        s->input_off = s->input_len = 0;
        event_del(s->writable);
        if (s->input_ended)
            input_close(s);
    } else {
        event_add(s->writable, NULL);
    }
    if (s->input_taken != before)
        s->ops->taken(s->ctx, s->input_taken);
}

static void on_writable(evutil_socket_t fd, short what, void *ctx)
{
    (void)fd, (void)what;
    input_run(ctx);
}

int pipes_input(struct pipes *s, const void *data, uint32_t len)
{
    if (s->input_fd < 0) {
        s->input_taken += len;
        if (len > 0)
            s->ops->taken(s->ctx, s->input_taken);
        return 0;
    }
    if (len == 0) {
        s->input_ended = true;
    } else {
        if (s->input_len - s->input_off + len > PIPES_INPUT_BYTES)
            return -ENOBUFS;
        memmove(s->input, s->input + s->input_off, s->input_len - s->input_off);
        s->input_len -= s->input_off;
        s->input_off = 0;
        memcpy(s->input + s->input_len, data, len);
        s->input_len += len;
    }
    input_run(s);
    return 0;
}
