/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames of every stream socket (client socket, control mesh, spawner): an 8-byte header and a
 * body. The body is a protobuf message of proto/control.proto or, for the types of proto/attach.h,
 * a fixed structure.
 */
#pragma once

#include <assert.h>
#include <stdint.h>

struct frame_header {
    uint32_t len;   /* bytes of body, at most FRAME_MAX_BYTES; checked by the receiver */
    uint16_t type;  /* checked by the receiver */
    uint16_t magic; /* FRAME_MAGIC; a stranger on the port is told apart at once */
};
static_assert(sizeof(struct frame_header) == 8, "frame header");

#define FRAME_MAGIC     0x4d46u
#define FRAME_MAX_BYTES (8u << 20)

/* Writes header and body to a blocking or nonblocking socket before the deadline. 0 or negative
 * errno. */
int frame_send(int fd, uint16_t type, const void *body, uint32_t len, uint64_t deadline_ns);
/* Reads a header and checks it. 0, -EPROTO, or what fd_read_full returns. */
int frame_recv_header(int fd, struct frame_header *ret_header, uint64_t deadline_ns);
/* 0, or -EPROTO if magic or length cannot be. */
int frame_check(const struct frame_header *h);
