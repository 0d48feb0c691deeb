/* SPDX-License-Identifier: BSD-3-Clause */
/* A stream socket's bytes, read as the blocking clients read them: header, check, body. */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "proto/frame.h"
#include "tests/fuzz/fuzz.h"

#define MAX_INPUT 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    int sv[2];
    struct frame_header h;
    size_t used = 0;

    if (n > MAX_INPUT || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
        return 0;
    uint64_t deadline_ns = clock_now_ns() + CLOCK_NS_PER_S;
    if (fd_write_full(sv[0], data, n, deadline_ns) < 0)
        abort();
    close(sv[0]);
    while (frame_recv_header(sv[1], &h, deadline_ns) == 0) {
        if (h.len > FRAME_MAX_BYTES || h.magic != FRAME_MAGIC)
            abort();
        used += sizeof h;
        /* What a careful reader does: no memory for more than it expects. */
        if (h.len > MAX_INPUT)
            break;
        uint8_t *body = malloc(h.len ? h.len : 1);
        int rc = body ? fd_read_full(sv[1], body, h.len, deadline_ns) : -1;
        free(body);
        if (rc < 0)
            break;
        used += h.len;
    }
    if (used > n)
        abort();
    close(sv[1]);
    return 0;
}
