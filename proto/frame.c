/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/frame.h"

#include <errno.h>

#include "base/fd.h"

int frame_send(int fd, uint16_t type, const void *body, uint32_t len, uint64_t deadline_ns)
{
    struct frame_header h = {.len = len, .type = type, .magic = FRAME_MAGIC};
    int rc = fd_write_full(fd, &h, sizeof h, deadline_ns);

    return rc < 0 || len == 0 ? rc : fd_write_full(fd, body, len, deadline_ns);
}

int frame_check(const struct frame_header *h)
{
    return h->magic == FRAME_MAGIC && h->len <= FRAME_MAX_BYTES ? 0 : -EPROTO;
}

int frame_recv_header(int fd, struct frame_header *ret_header, uint64_t deadline_ns)
{
    int rc = fd_read_full(fd, ret_header, sizeof *ret_header, deadline_ns);

    return rc < 0 ? rc : frame_check(ret_header);
}
