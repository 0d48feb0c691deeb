/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpiexec's connection to the daemon: frames out of and into queues, so that the loop never waits
 * for the daemon. One thread.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

#include "launcher/cli/bytes.h"

struct frame_stream {
    int fd;
    struct bytes in, out;
    bool deaf; /* the other side reads no more; what is to be sent is dropped, and reading tells how
                * it ended
                */
    int error; /* 0, or -ENOMEM: something could not be sent; told by the next look at what has come
                */
    size_t taken; /* bytes of `in` that the last frame occupies */
};

/* Takes the descriptor over and makes it nonblocking. */
void frame_stream_init(struct frame_stream *s, int fd);
void frame_stream_close(struct frame_stream *s);

/* Queues a frame and writes what the socket takes. */
void frame_stream_send_raw(struct frame_stream *s, uint16_t type, const void *body, uint32_t n);
void frame_stream_send(struct frame_stream *s, uint16_t type, const ProtobufCMessage *message);
/* Writes more of the queue. */
void frame_stream_flush(struct frame_stream *s);
static inline bool frame_stream_has_output(const struct frame_stream *s)
{
    return s->out.n > 0;
}

/* Reads what is there, a bounded part. 0, or -ECONNRESET at the end, or another negative errno. */
int frame_stream_fill(struct frame_stream *s);
/* The next whole frame; its body stays valid until the next call. 1, 0 when there is none yet, or
 * -EPROTO. */
int frame_stream_next(struct frame_stream *s, uint16_t *ret_type, const uint8_t **ret_body,
                      uint32_t *ret_n);
