/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpiexec's connection to the daemon: frames out of and into queues, so that the loop never waits
 * for the daemon. One thread.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

#include "launcher/bytes.h"

struct session {
    int fd;
    struct bytes in, out;
    bool deaf; /* the other side reads no more; what is to be sent is dropped, and reading tells how
                * it ended
                */
    size_t taken; /* bytes of `in` that the last frame occupies */
};

/* Takes the descriptor over and makes it nonblocking. */
void session_init(struct session *s, int fd);
void session_close(struct session *s);

/* Queues a frame and writes what the socket takes. */
void session_send_raw(struct session *s, uint16_t type, const void *body, uint32_t n);
void session_send(struct session *s, uint16_t type, const ProtobufCMessage *message);
/* Writes more of the queue. */
void session_flush(struct session *s);
static inline bool session_has_output(const struct session *s)
{
    return s->out.n > 0;
}

/* Reads what is there, a bounded part. 0, or -ECONNRESET at the end, or another negative errno. */
int session_fill(struct session *s);
/* The next whole frame; its body stays valid until the next call. 1, 0 when there is none yet, or
 * -EPROTO. */
int session_next(struct session *s, uint16_t *ret_type, const uint8_t **ret_body, uint32_t *ret_n);
