/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The steps of a recorded schedule and what carries them out, for the files of the engine:
 * schedule.c (messages, copies, reductions), schedule_node.c (the memory of the node) and
 * schedule_run.c, which runs what was recorded.
 */
#ifndef MOTET_CLIENT_COLL_SCHEDULE_SCHEDULE_STEP_H
#define MOTET_CLIENT_COLL_SCHEDULE_SCHEDULE_STEP_H

#include "client/coll/schedule/schedule.h"

#include <string.h>

enum step_kind {
    STEP_SEND,
    STEP_RECV,
    STEP_WAIT,
    STEP_WAIT_ONE,
    STEP_COPY,
    STEP_REDUCE,
    STEP_CLAIM,
    STEP_FILL,
    STEP_PUBLISH,
    STEP_GET,
    STEP_GET_REDUCE,
    STEP_AWAIT,
    STEP_FINISH,
    STEP_CALL,
    STEP_JUDGE
};

struct schedule_step {
    enum step_kind kind;
    int peer; /* communicator rank; number of the post for STEP_WAIT_ONE; label for STEP_CALL;
                 member of the row of cells */
    int tag;
    struct comm *comm;
    struct buffer in, out;
    const void *operand; /* of STEP_REDUCE, the left one; it is like `out` */
    struct op *op;
    int (*fn)(void *arg);
    void *arg;
    struct node_step at; /* of the node's memory */
    int self;            /* own place, for tables of offsets */
    MPI_Count off;       /* in a publication; its bytes for STEP_CLAIM */
};

/* Keeps the first error. */
void schedule_note(struct schedule *s, int err);
/* A new step; NULL: no memory, and s says so. */
struct schedule_step *schedule_record(struct schedule *s, enum step_kind kind);

/* What a step keeps beyond the call. */
static inline struct buffer schedule_hold(struct buffer buf)
{
    type_ref(buf.type);
    return buf;
}

/* dst = src, now. */
static inline void schedule_carry_copy(struct buffer src, struct buffer dst)
{
    MPI_Count n_bytes = buffer_size(src);
    /* One address with two types is two places when displacements are addresses (MPI_BOTTOM). */
    if ((src.base == dst.base && src.type == dst.type) || n_bytes == 0)
        return;
    if (datatype_is_run(src.type, src.count) && datatype_is_run(dst.type, dst.count) &&
        n_bytes <= buffer_size(dst))
        memcpy(datatype_run_start(dst.type, dst.base), datatype_run_start(src.type, src.base),
               (size_t)n_bytes);
    else
        datatype_copy(src.base, src.count, src.type, dst.base, dst.count, dst.type);
}

/* Starts a transfer with a rank of the communicator. */
void schedule_post_send(struct schedule *s, struct comm *comm, struct buffer buf, int peer,
                        int tag);
void schedule_post_recv(struct schedule *s, struct comm *comm, struct buffer buf, int peer,
                        int tag);
/* Waits for one transfer, and for all that are pending. */
void schedule_finish_one(struct schedule *s, int id);
void schedule_finish_all(struct schedule *s);

/* Room for the publication; false: not yet. */
bool schedule_try_claim(struct schedule *s, const struct node_step *at, MPI_Count n_bytes);
void schedule_carry_fill(struct schedule *s, MPI_Count off, struct buffer buf);
/* Carries out a step that looks at another member's publication; false: it is not there yet. */
bool schedule_run_node_step(struct schedule *s, const struct schedule_step *step);

#endif
