/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Standard input and output of a job's ranks on this node: pipes on one side, Stdio messages of the
 * job on the other, with a window between node and home so that a reader that stops stops the
 * writers and no memory grows. Control thread.
 *
 *      OPEN -- end of file ----------------------------> ENDED (an empty message tells home)
 *        `---- rank exited --> CLOSING -- empty, or grace over -^
 *
 * CLOSING exists because a rank may leave children behind that keep its pipes open.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

/* Output read ahead of what home has acknowledged. */
#define PIPES_WINDOW_BYTES (1u << 20)
/* Input that may wait for rank 0. */
#define PIPES_INPUT_BYTES (256u << 10)

struct pipes;

struct pipes_ops {
    /* Output of a rank; len 0: end of this stream. */
    void (*output)(void *ctx, uint32_t world_rank, uint32_t stream, const void *data, uint32_t len);
    /* So many bytes of input in all have been taken by the rank's pipe. */
    void (*taken)(void *ctx, uint64_t total);
};

struct pipes *pipes_new(struct event_base *base, uint32_t n_local, const struct pipes_ops *ops,
                        void *ctx);
void pipes_free(struct pipes *s);

/* Makes the pipes of a rank; the child's ends go to the caller. with_input: a pipe for stdin, else
 * /dev/null. 0 or -errno. */
int pipes_open(struct pipes *s, uint32_t local, uint32_t world_rank, bool with_input,
               int ret_child_fds[3]);
/* The rank has ended (or never began): what is left in its pipes is read, then they end. */
void pipes_exited(struct pipes *s, uint32_t local);
/* Home has consumed so many bytes of output in all. */
void pipes_consumed(struct pipes *s, uint64_t total);
/* Input for the rank that was opened with_input; len 0: end of file. 0, or -ENOBUFS when more came
 * than the window allows. */
int pipes_input(struct pipes *s, const void *data, uint32_t len);
