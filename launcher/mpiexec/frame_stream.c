/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/mpiexec/frame_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "proto/frame.h"

#define READ_BYTES (256u << 10)

void frame_stream_init(struct frame_stream *s, int fd)
{
    *s = (struct frame_stream){.fd = fd};
    fd_set_nonblock(fd, true);
}

void frame_stream_close(struct frame_stream *s)
{
    fd_closep(&s->fd);
    bytes_free(&s->in);
    bytes_free(&s->out);
}

/* Half a frame must not go out, and the daemon should know that no more comes. */
static void frame_stream_give_up(struct frame_stream *s)
{
    s->error = -ENOMEM;
    s->deaf = true;
    shutdown(s->fd, SHUT_RDWR);
}

void frame_stream_flush(struct frame_stream *s)
{
    if (s->out.failed)
        frame_stream_give_up(s);
    while (s->out.n > 0 && !s->deaf) {
        ssize_t put = send(s->fd, bytes_data(&s->out), s->out.n, MSG_NOSIGNAL);
        if (put < 0 && errno == EAGAIN)
            return;
        if (put >= 0)
            bytes_drop(&s->out, (size_t)put);
        else if (errno != EINTR)
            s->deaf = true;
    }
    if (s->deaf)
        bytes_free(&s->out);
}

void frame_stream_send_raw(struct frame_stream *s, uint16_t type, const void *body, uint32_t n)
{
    struct frame_header h = {.len = n, .type = type, .magic = FRAME_MAGIC};

    bytes_append(&s->out, &h, sizeof h);
    bytes_append(&s->out, body, n);
    frame_stream_flush(s);
}

void frame_stream_send(struct frame_stream *s, uint16_t type, const ProtobufCMessage *message)
{
    size_t n = protobuf_c_message_get_packed_size(message);
    uint8_t *body = malloc(n + 1);

    if (!body) {
        frame_stream_give_up(s);
        return;
    }
    protobuf_c_message_pack(message, body);
    frame_stream_send_raw(s, type, body, (uint32_t)n);
    free(body);
}

int frame_stream_fill(struct frame_stream *s)
{
    static char part[READ_BYTES];
    if (s->error)
        return s->error;
    ssize_t got = recv(s->fd, part, sizeof part, 0);

    if (got == 0)
        return -ECONNRESET;
    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    bytes_drop(&s->in, s->taken);
    s->taken = 0;
    bytes_append(&s->in, part, (size_t)got);
    return s->in.failed ? -ENOMEM : 0;
}

int frame_stream_next(struct frame_stream *s, uint16_t *ret_type, const uint8_t **ret_body,
                      uint32_t *ret_n)
{
    struct frame_header h;

    bytes_drop(&s->in, s->taken);
    s->taken = 0;
    if (s->in.n < sizeof h)
        return 0;
    memcpy(&h, bytes_data(&s->in), sizeof h);
    int rc = frame_check(&h);
    if (rc < 0)
        return rc;
    if (s->in.n < sizeof h + h.len)
        return 0;
    s->taken = sizeof h + h.len;
    *ret_type = h.type;
    *ret_body = (const uint8_t *)bytes_data(&s->in) + sizeof h;
    *ret_n = h.len;
    return 1;
}
