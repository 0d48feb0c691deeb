/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One of mpiexec's own output streams. It belongs to others as well (the shell, a pipe's other
 * writers), so it stays blocking; to never hang in it, a write follows only a poll and is no longer
 * than a pipe always takes. One thread.
 */
#pragma once

#include <stdbool.h>

#include "launcher/cli/bytes.h"

struct output {
    int fd;
    bool is_file; /* never makes a writer wait */
    bool gone;    /* the reader closed it, or writing failed: what comes is dropped */
    struct bytes queue;
};

void output_init(struct output *o, int fd);
/* Writes what can be written now. 0, or the negative errno with which the stream went (once);
 * -ENOMEM: something is missing in the queue. */
int output_flush(struct output *o);
static inline bool output_waits(const struct output *o)
{
    return o->queue.n > 0 || o->queue.failed;
}
