/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Standard input on its way to rank 0. No more is read than the daemon has room for; of a terminal
 * nothing while mpiexec is in the background, where reading would stop it. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Beyond what rank 0's pipe has taken (StdioWindow in proto/control.proto). */
#define INPUT_WINDOW_BYTES (256u << 10)

struct input {
    int fd; /* -1: nothing (more) to read */
    bool is_terminal;
    uint64_t sent, taken;
};

/* fd -1: no input at all. */
void input_init(struct input *in, int fd);
/* Reads no more (rank 0 has gone). */
void input_close(struct input *in);
/* Rank 0 has taken so many bytes in all. */
void input_taken(struct input *in, uint64_t total);
/* Whether to poll for input now. Lowers *until_ns when the question should be asked again later. */
bool input_wanted(const struct input *in, uint64_t now_ns, uint64_t *until_ns);
/* Reads a piece, valid until the next call. Its length; 0 at the end of file (once; to be sent on);
 * -1: nothing now. */
ssize_t input_read(struct input *in, const char **ret_data);
