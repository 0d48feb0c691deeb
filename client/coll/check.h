/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checking mode of collectives, MOTET_CHECK=collectives: do all ranks of an intracommunicator
 * call the same operation with arguments that fit together?
 *
 * Before an operation moves anything, its ranks tell one another what they were called with (a
 * record each, by messages under tags of their own, so that even different operations meet) and
 * compare: kind and form, root, operation, in place, bytes and type signature. All ranks see the
 * same records and come to the same verdict, so none is left waiting: every one of them raises an
 * error that names two ranks and what differs. The v and w forms compare what two ranks say of the
 * block between them. A rank that calls nothing at all is not noticed here (`motetctl waits` shows
 * it). Costs p messages per rank and call; for finding mistakes, not for production.
 *
 * Called by the entries (entry.c) with the library lock held; false: the operation must not go
 * on, the error is in the schedule.
 */
#ifndef MOTET_CLIENT_COLL_CHECK_H
#define MOTET_CLIENT_COLL_CHECK_H

#include "client/coll/schedule/blocks.h"
#include "client/coll/schedule/schedule.h"
#include "client/process/phase.h"

enum check_kind {
    CHECK_BARRIER,
    CHECK_BCAST,
    CHECK_GATHER,
    CHECK_GATHERV,
    CHECK_SCATTER,
    CHECK_SCATTERV,
    CHECK_ALLGATHER,
    CHECK_ALLGATHERV,
    CHECK_ALLTOALL,
    CHECK_ALLTOALLV,
    CHECK_ALLTOALLW,
    CHECK_REDUCE,
    CHECK_ALLREDUCE,
    CHECK_REDUCE_SCATTER,
    CHECK_REDUCE_SCATTER_BLOCK,
    CHECK_SCAN,
    CHECK_EXSCAN,
    CHECK_KINDS
};

/* What a rank was called with, as far as the others can judge it. */
struct check_call {
    enum check_kind kind;
    int root;        /* -1: none */
    struct op *op;   /* or NULL */
    bool in_place;   /* matters for operations without a root, where it is for all ranks or none */
    MPI_Count count; /* elements of `type` that must agree on all ranks (v and w forms: none) */
    struct datatype *type;
    /* v and w forms, and MPI_Alltoall: blocks sent to and received from each rank, NULL where this
     * rank has none of that side, and the own single block. */
    const struct blocks *to, *from;
    MPI_Count own_bytes;
};

bool check_calls(struct schedule *s, const struct check_call *call);

static inline bool check_is_on(const struct schedule *s)
{
    return __builtin_expect(phase_here->check_collectives, 0) && !comm_is_inter(s->view.comm) &&
           s->view.size > 1;
}

#endif
