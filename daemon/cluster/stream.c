/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/cluster/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/list.h"
#include "proto/frame.h"

/* Read at most so much per event, so that one busy stream does not hold up the others. */
#define READ_CHUNK_BYTES (128u << 10)
#define FINISH_TIMEOUT_S 2

struct stream_item {
    struct list link;
    size_t len, sent;
    int n_fds;
    int fds[FD_MAX_PASS];
    uint8_t bytes[];
};

struct stream {
    struct event *read_event, *write_event;
    const struct stream_ops *ops;
    void *ctx;
    int fd;
    uint32_t max_frame;
    size_t max_queue, queued, drain_mark;
    struct list out;
    uint8_t *in;
    size_t in_len, in_size;
    int busy;       /* depth of callbacks */
    bool freed;     /* stream_free was called inside a callback */
    bool failed;    /* no more sending */
    bool finishing; /* close when the queue is empty */
    bool above_mark;
    bool paused;
};

static void item_free(struct stream_item *item)
{
    for (int i = 0; i < item->n_fds; i++)
        close(item->fds[i]);
    free(item);
}

static void stream_destroy(struct stream *s)
{
    list_foreach_safe(it, &s->out) {
        list_remove(it);
        item_free(list_entry(it, struct stream_item, link));
    }
    if (s->read_event)
        event_free(s->read_event);
    if (s->write_event)
        event_free(s->write_event);
    if (s->fd >= 0)
        close(s->fd);
    free(s->in);
    free(s);
}

void stream_free(struct stream *s)
{
    if (!s)
        return;
    if (s->busy > 0) {
        s->freed = true;
        event_del(s->read_event);
        event_del(s->write_event);
        return;
    }
    stream_destroy(s);
}

/* Leaves a callback. True when the stream is gone. */
static bool stream_leave(struct stream *s)
{
    s->busy--;
    if (s->busy == 0 && s->freed) {
        stream_destroy(s);
        return true;
    }
    return s->freed;
}

static void stream_fail(struct stream *s, int error)
{
    if (s->failed)
        return;
    s->failed = true;
    event_del(s->read_event);
    event_del(s->write_event);
    if (s->finishing) {
        s->freed = true;
        return;
    }
    s->ops->closed(s->ctx, error);
}

/* Hands up the whole frames in the buffer. Returns 0 or -errno. */
static int stream_parse(struct stream *s)
{
    size_t at = 0;
    int rc = 0;

    while (!s->freed && !s->finishing && !s->paused &&
           s->in_len - at >= sizeof(struct frame_header)) {
        struct frame_header h;
        memcpy(&h, s->in + at, sizeof h);
        rc = frame_check(&h);
        if (rc < 0)
            break;
        if (h.len > s->max_frame) {
            rc = -EMSGSIZE;
            break;
        }
        size_t need = sizeof h + h.len;
        if (s->in_len - at < need) {
            if (need > s->in_size) {
                uint8_t *grown = realloc(s->in, need);
                if (!grown) {
                    rc = -ENOMEM;
                    break;
                }
                s->in = grown;
                s->in_size = need;
            }
            break;
        }
        rc = s->ops->frame(s->ctx, h.type, s->in + at + sizeof h, h.len);
        at += need;
        if (rc < 0)
            break;
    }
    if (s->freed || s->finishing)
        return 0;
    if (at > 0) {
        memmove(s->in, s->in + at, s->in_len - at);
        s->in_len -= at;
        if (s->in_len == 0 && s->in_size > READ_CHUNK_BYTES) {
            free(s->in);
            s->in = NULL;
            s->in_size = 0;
        }
    }
    return rc;
}

static void on_readable(evutil_socket_t fd, short what, void *ctx)
{
    struct stream *s = ctx;
    int error = 0;
    bool ended = false;

    (void)what;
    s->busy++;
    if (s->in_size - s->in_len < 4096) {
        size_t size =
            s->in_size < READ_CHUNK_BYTES ? READ_CHUNK_BYTES : s->in_len + READ_CHUNK_BYTES;
        uint8_t *grown = realloc(s->in, size);
        if (grown) {
            s->in = grown;
            s->in_size = size;
        } else if (s->in_size == s->in_len) {
            ended = true;
            error = ENOMEM;
        }
    }
    if (!ended) {
        ssize_t got = recv(fd, s->in + s->in_len, s->in_size - s->in_len, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            got = 0; /* nothing new, but after a pause whole frames may lie in the buffer */
        else if (got == 0)
            ended = true;
        if (got >= 0 && !ended) {
            s->in_len += (size_t)got;
            int rc = stream_parse(s);
            if (rc < 0) {
                ended = true;
                error = -rc;
            }
        } else if (!ended) {
            ended = true;
            error = errno;
        }
    }
    if (ended && !s->freed)
        stream_fail(s, error);
    stream_leave(s);
}

/* Writes one item's next bytes. 1: item complete, 0: socket full, negative errno. */
static int item_write(struct stream *s, struct stream_item *item)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int) * FD_MAX_PASS)];
        struct cmsghdr align;
    } control;
    struct iovec iov = {.iov_base = item->bytes + item->sent, .iov_len = item->len - item->sent};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

    if (item->n_fds > 0) {
        memset(&control, 0, sizeof control);
        msg.msg_control = control.bytes;
        msg.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)item->n_fds);
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)item->n_fds);
        memcpy(CMSG_DATA(c), item->fds, sizeof(int) * (size_t)item->n_fds);
    }
    ssize_t put = sendmsg(s->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0)
        return errno == EAGAIN || errno == EINTR || errno == ENOBUFS ? 0 : -errno;
    /* The descriptors left with the first byte. */
    for (int i = 0; i < item->n_fds; i++)
        close(item->fds[i]);
    item->n_fds = 0;
    item->sent += (size_t)put;
    s->queued -= (size_t)put;
    return item->sent == item->len ? 1 : 0;
}

/* Writes what the socket takes. Returns 0 or -errno. */
static int stream_write(struct stream *s)
{
    int rc = 1;

    while (rc == 1 && !list_empty(&s->out)) {
        struct stream_item *item = list_entry(list_first(&s->out), struct stream_item, link);
        rc = item_write(s, item);
        if (rc == 1) {
            list_remove(&item->link);
            item_free(item);
        }
    }
    return rc < 0 ? rc : 0;
}

static void on_writable(evutil_socket_t fd, short what, void *ctx)
{
    struct stream *s = ctx;

    (void)fd;
    s->busy++;
    int rc = (what & EV_TIMEOUT) && s->finishing ? -ETIMEDOUT : stream_write(s);
    if (rc < 0) {
        stream_fail(s, -rc);
    } else {
        if (list_empty(&s->out)) {
            event_del(s->write_event);
            if (s->finishing)
                s->freed = true;
        }
        if (s->above_mark && s->queued <= s->drain_mark) {
            s->above_mark = false;
            if (s->ops->drained && !s->finishing)
                s->ops->drained(s->ctx);
        }
    }
    stream_leave(s);
}

struct stream *stream_new(struct event_base *base, int fd, const struct stream_ops *ops, void *ctx,
                          uint32_t max_frame, size_t max_queue)
{
    struct stream *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    list_init(&s->out);
    s->fd = -1; /* taken only on success */
    s->ops = ops;
    s->ctx = ctx;
    s->max_frame = max_frame;
    s->max_queue = max_queue;
    s->read_event = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, s);
    s->write_event = event_new(base, fd, EV_WRITE | EV_PERSIST, on_writable, s);
    if (!s->read_event || !s->write_event || fd_set_nonblock(fd, true) < 0 ||
        event_add(s->read_event, NULL) < 0) {
        stream_destroy(s);
        return NULL;
    }
    s->fd = fd;
    return s;
}

void stream_finish(struct stream *s)
{
    if (!s)
        return;
    if (s->failed || list_empty(&s->out)) {
        stream_free(s);
        return;
    }
    struct timeval limit = {.tv_sec = FINISH_TIMEOUT_S};
    s->finishing = true;
    event_del(s->read_event);
    event_add(s->write_event, &limit);
}

void stream_set_max_frame(struct stream *s, uint32_t max_frame)
{
    s->max_frame = max_frame;
}

void stream_set_drain(struct stream *s, size_t mark)
{
    s->drain_mark = mark;
    s->above_mark = s->queued > mark;
}

void stream_pause(struct stream *s, bool paused)
{
    if (s->paused == paused || s->failed || s->finishing)
        return;
    s->paused = paused;
    if (paused) {
        event_del(s->read_event);
    } else {
        event_add(s->read_event, NULL);
        /* Whole frames may already lie in the buffer; the event makes them be looked at again. */
        event_active(s->read_event, EV_READ, 0);
    }
}

int stream_send_fds(struct stream *s, uint16_t type, const void *body, uint32_t len, const int *fds,
                    int n_fds)
{
    struct frame_header h = {.len = len, .type = type, .magic = FRAME_MAGIC};
    size_t total = sizeof h + len;
    struct stream_item *item = NULL;
    int rc = -EPIPE;

    if (s->failed || s->freed || s->finishing)
        goto fail;
    rc = -ENOBUFS;
    if (len > FRAME_MAX_BYTES || n_fds > FD_MAX_PASS || s->queued + total > s->max_queue)
        goto fail;
    rc = -ENOMEM;
    item = malloc(sizeof *item + total);
    if (!item)
        goto fail;
    item->len = total;
    item->sent = 0;
    item->n_fds = n_fds;
    if (n_fds > 0)
        memcpy(item->fds, fds, sizeof(int) * (size_t)n_fds);
    memcpy(item->bytes, &h, sizeof h);
    if (len > 0)
        memcpy(item->bytes + sizeof h, body, len);
    bool was_empty = list_empty(&s->out);
    list_append(&s->out, &item->link);
    s->queued += total;
    /* Try at once: most frames fit into the socket, and a turn of the loop costs more than the
     * call. Failures are reported from the loop, where the owner expects them. */
    if (was_empty && stream_write(s) < 0)
        event_active(s->write_event, EV_WRITE, 0);
    if (!list_empty(&s->out))
        event_add(s->write_event, NULL);
    if (s->queued > s->drain_mark)
        s->above_mark = true;
    return 0;
fail:
    for (int i = 0; i < n_fds; i++)
        close(fds[i]);
    return rc;
}

int stream_send(struct stream *s, uint16_t type, const void *body, uint32_t len)
{
    return stream_send_fds(s, type, body, len, NULL, 0);
}

int stream_send_msg_fds(struct stream *s, uint16_t type, const ProtobufCMessage *msg,
                        const int *fds, int n_fds)
{
    size_t len = protobuf_c_message_get_packed_size(msg);
    uint8_t *body = len <= FRAME_MAX_BYTES ? malloc(len + 1) : NULL;

    if (!body) {
        for (int i = 0; i < n_fds; i++)
            close(fds[i]);
        return len <= FRAME_MAX_BYTES ? -ENOMEM : -ENOBUFS;
    }
    protobuf_c_message_pack(msg, body);
    int rc = stream_send_fds(s, type, body, (uint32_t)len, fds, n_fds);
    free(body);
    return rc;
}

int stream_send_msg(struct stream *s, uint16_t type, const ProtobufCMessage *msg)
{
    return stream_send_msg_fds(s, type, msg, NULL, 0);
}

size_t stream_queued(const struct stream *s)
{
    return s->queued;
}

int stream_fd(const struct stream *s)
{
    return s->fd;
}
