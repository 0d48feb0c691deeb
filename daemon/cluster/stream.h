/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A framed, nonblocking stream socket in the control loop: ranks, mpiexec, the spawner and the
 * neighbours' daemons all speak frames (proto/frame.h) through one of these. Control thread only.
 *
 * Idea: the stream collects whole frames and hands them up; it queues what it is given and writes
 * when the socket takes it. Both directions have a limit, so that a peer that sends rubbish or
 * never reads costs a bounded amount of memory and then its own connection.
 */
#pragma once

#include <event2/event.h>
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stream;

struct stream_ops {
    /* A whole frame. A negative return ends the stream with that errno (`closed` is called). The
     * stream may be freed inside. */
    int (*frame)(void *ctx, uint16_t type, const uint8_t *body, uint32_t len);
    /* End of file (error 0) or failure (positive errno). Called once, never from within stream_send
     * or stream_free; the owner frees the stream. */
    void (*closed)(void *ctx, int error);
    /* May be NULL: the output queue fell below the mark given to stream_set_drain. */
    void (*drained)(void *ctx);
};

/* Takes fd (set nonblocking). max_frame: largest accepted body; max_queue: most bytes waiting for
 * output. NULL: no memory. */
struct stream *stream_new(struct event_base *base, int fd, const struct stream_ops *ops, void *ctx,
                          uint32_t max_frame, size_t max_queue);
/* Closes at once; queued output is lost. NULL is fine. May be called from within the callbacks. */
void stream_free(struct stream *s);
/* Writes what is queued, for at most two seconds, then closes; no callback follows. The owner
 * forgets the stream. */
void stream_finish(struct stream *s);

/* Changes the limit of received frames, for instance once the other side has proved who it is. */
void stream_set_max_frame(struct stream *s, uint32_t max_frame);
/* `drained` is called when the queue falls to `mark` bytes or below after it was above. */
void stream_set_drain(struct stream *s, size_t mark);
/* Stops or resumes reading. */
void stream_pause(struct stream *s, bool paused);

/* Queues one frame (copied). 0, -ENOBUFS beyond the limit, -ENOMEM, -EPIPE after a failure. */
int stream_send(struct stream *s, uint16_t type, const void *body, uint32_t len);
/* The same with descriptors, which are taken over (closed after sending or on failure). */
int stream_send_fds(struct stream *s, uint16_t type, const void *body, uint32_t len, const int *fds,
                    int n_fds);
int stream_send_msg(struct stream *s, uint16_t type, const ProtobufCMessage *msg);
int stream_send_msg_fds(struct stream *s, uint16_t type, const ProtobufCMessage *msg,
                        const int *fds, int n_fds);

size_t stream_queued(const struct stream *s);
int stream_fd(const struct stream *s);
