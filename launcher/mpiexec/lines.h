/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts the output of many ranks together so that lines stay whole: what a rank wrote after its last
 * newline waits until the line is complete. Called by mpiexec's loop; time is an argument.
 *
 * Without tags the wait is short (a prompt must show); with tags it lasts until the line ends, its
 * rank closes the stream, or it reaches LINES_MAX_BYTES and is cut. Memory: one buffer per stream
 * that has an unfinished line.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "launcher/cli/bytes.h"

#define LINES_MAX_BYTES (1u << 20)

struct partial_line {
    struct bytes text;
    uint64_t since_ns; /* of the first byte that waits */
};

struct lines {
    bool tags;
    uint32_t n_ranks;
    uint32_t n_waiting;           /* partial lines with text */
    struct partial_line *partial; /* [rank]; one struct lines per stream */
};

/* What cannot be held for want of memory makes the queue that it should come to fail (bytes.h). */

/* 0 or -ENOMEM. */
int lines_init(struct lines *l, uint32_t n_ranks, bool tags);
void lines_free(struct lines *l);

/* Takes n bytes of a rank below n_ranks; appends what is ready to `out`. */
void lines_add(struct lines *l, uint32_t rank, const char *data, size_t n, uint64_t now_ns,
               struct bytes *out);
/* The rank has closed the stream: an unfinished line goes out, with tags with a newline. */
void lines_end(struct lines *l, uint32_t rank, struct bytes *out);
/* Puts out untagged partial lines whose time has come. Returns when the next one's is, UINT64_MAX:
 * none waits. */
uint64_t lines_timer(struct lines *l, uint64_t now_ns, struct bytes *out);
