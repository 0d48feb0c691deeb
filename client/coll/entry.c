/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The collectives as the MPI functions have them, in all forms: each writes the steps of its
 * operation, for either kind of communicator. What carries them out at once, starts them, or makes
 * a persistent request of them is generated (client/abi/entries.py).
 */
#include "client/abi/entries.h"
#include "client/coll/check.h"
#include "client/coll/family/coll.h"
#include "client/coll/inter/inter.h"
#include "client/object/err.h"

static bool entry_is_inter(const struct schedule *s)
{
    return comm_is_inter(s->view.comm);
}

/* Do all ranks call alike? False: the operation must not go on. */
static inline bool entry_checks(struct schedule *s, const struct check_call *call)
{
    return !check_is_on(s) || check_calls(s, call);
}

void entry_barrier(struct schedule *s)
{
    if (!entry_checks(s, &(struct check_call){.kind = CHECK_BARRIER, .root = -1}))
        return;
    if (entry_is_inter(s))
        inter_barrier(s);
    else
        coll_barrier(s);
}

void entry_bcast(struct schedule *s, struct buffer buffer, int root)
{
    if (!entry_checks(
            s, &(struct check_call){
                   .kind = CHECK_BCAST, .root = root, .count = buffer.count, .type = buffer.type}))
        return;
    if (entry_is_inter(s))
        inter_bcast(s, buffer, root);
    else
        coll_bcast(s, buffer, root);
}

static void entry_gather_of(struct schedule *s, struct buffer sendbuf, const struct blocks *recvbuf,
                            int root)
{
    if (entry_is_inter(s))
        inter_gather(s, sendbuf, recvbuf, root);
    else
        coll_gather(s, sendbuf, recvbuf, root);
}

/* What the root takes of each is what each gives. */
void entry_gather(struct schedule *s, struct buffer sendbuf, const struct blocks *recvbuf, int root)
{
    bool is_root = s->view.rank == root;
    if (entry_checks(s, &(struct check_call){.kind = CHECK_GATHER,
                                             .root = root,
                                             .count = is_root ? recvbuf->count : sendbuf.count,
                                             .type = is_root ? recvbuf->type : sendbuf.type}))
        entry_gather_of(s, sendbuf, recvbuf, root);
}

void entry_gatherv(struct schedule *s, struct buffer sendbuf, const struct blocks *recvbuf,
                   int root)
{
    bool is_root = s->view.rank == root;
    if (!check_is_on(s) ||
        check_calls(s, &(struct check_call){.kind = CHECK_GATHERV,
                                            .root = root,
                                            .from = is_root ? recvbuf : NULL,
                                            .own_bytes = is_root ? 0 : buffer_size(sendbuf)}))
        entry_gather_of(s, sendbuf, recvbuf, root);
}

static void entry_scatter_of(struct schedule *s, const struct blocks *sendbuf,
                             struct buffer recvbuf, int root)
{
    if (entry_is_inter(s))
        inter_scatter(s, sendbuf, recvbuf, root);
    else
        coll_scatter(s, sendbuf, recvbuf, root);
}

void entry_scatter(struct schedule *s, const struct blocks *sendbuf, struct buffer recvbuf,
                   int root)
{
    bool is_root = s->view.rank == root;
    if (entry_checks(s, &(struct check_call){.kind = CHECK_SCATTER,
                                             .root = root,
                                             .count = is_root ? sendbuf->count : recvbuf.count,
                                             .type = is_root ? sendbuf->type : recvbuf.type}))
        entry_scatter_of(s, sendbuf, recvbuf, root);
}

void entry_scatterv(struct schedule *s, const struct blocks *sendbuf, struct buffer recvbuf,
                    int root)
{
    bool is_root = s->view.rank == root;
    if (!check_is_on(s) ||
        check_calls(s, &(struct check_call){.kind = CHECK_SCATTERV,
                                            .root = root,
                                            .to = is_root ? sendbuf : NULL,
                                            .own_bytes = is_root ? 0 : buffer_size(recvbuf)}))
        entry_scatter_of(s, sendbuf, recvbuf, root);
}

static void entry_allgather_of(struct schedule *s, struct buffer sendbuf,
                               const struct blocks *recvbuf)
{
    if (entry_is_inter(s))
        inter_allgather(s, sendbuf, recvbuf);
    else
        coll_allgather(s, sendbuf, recvbuf);
}

void entry_allgather(struct schedule *s, struct buffer sendbuf, const struct blocks *recvbuf)
{
    bool in_place = sendbuf.base == MPI_IN_PLACE;
    if (entry_checks(s, &(struct check_call){.kind = CHECK_ALLGATHER,
                                             .root = -1,
                                             .in_place = in_place,
                                             .count = in_place ? recvbuf->count : sendbuf.count,
                                             .type = in_place ? recvbuf->type : sendbuf.type}))
        entry_allgather_of(s, sendbuf, recvbuf);
}

void entry_allgatherv(struct schedule *s, struct buffer sendbuf, const struct blocks *recvbuf)
{
    if (check_is_on(s)) {
        /* Every rank expects from each other one what its own count says. */
        bool in_place = sendbuf.base == MPI_IN_PLACE;
        struct blocks own = {.type = in_place ? recvbuf->type : sendbuf.type,
                             .count =
                                 in_place ? blocks_count(recvbuf, s->view.rank) : sendbuf.count};
        if (!check_calls(s, &(struct check_call){.kind = CHECK_ALLGATHERV,
                                                 .root = -1,
                                                 .in_place = in_place,
                                                 .to = &own,
                                                 .from = recvbuf}))
            return;
    }
    entry_allgather_of(s, sendbuf, recvbuf);
}

static void entry_alltoall_of(struct schedule *s, enum check_kind kind, const struct blocks *send,
                              const struct blocks *recv)
{
    bool in_place = send->buf == MPI_IN_PLACE, regular = kind == CHECK_ALLTOALL;
    if (!entry_checks(s, &(struct check_call){.kind = kind,
                                              .root = -1,
                                              .in_place = in_place,
                                              .count = regular ? recv->count : 0,
                                              .type = regular ? recv->type : NULL,
                                              .to = in_place ? recv : send,
                                              .from = recv}))
        return;
    if (entry_is_inter(s))
        inter_alltoall(s, send, recv);
    else
        coll_alltoall(s, in_place ? NULL : send, recv);
}

void entry_alltoall(struct schedule *s, const struct blocks *sendbuf, const struct blocks *recvbuf)
{
    entry_alltoall_of(s, CHECK_ALLTOALL, sendbuf, recvbuf);
}

void entry_alltoallv(struct schedule *s, const struct blocks *sendbuf, const struct blocks *recvbuf)
{
    entry_alltoall_of(s, CHECK_ALLTOALLV, sendbuf, recvbuf);
}

void entry_alltoallw(struct schedule *s, const struct blocks *sendbuf, const struct blocks *recvbuf)
{
    entry_alltoall_of(s, CHECK_ALLTOALLW, sendbuf, recvbuf);
}

/* ---- reductions ---- */

/* Can `op` combine what is given, and do all ranks call alike? False: the operation must not go
 * on. */
static bool entry_reduces(struct schedule *s, const void *send, struct buffer recv, struct op *op,
                          const struct check_call *call)
{
    int err = op_check(op, recv.type);
    if (__builtin_expect(err != MPI_SUCCESS, 0)) {
        schedule_fail(s, err);
        return false;
    }
    if (!check_is_on(s))
        return true;
    struct check_call all = *call;
    all.op = op;
    all.in_place = send == MPI_IN_PLACE;
    all.count = recv.count;
    all.type = recv.type;
    return check_calls(s, &all);
}

/* The processes of an intercommunicator that stand by give no arguments that count. */
void entry_reduce(struct schedule *s, struct buffer sendbuf, struct buffer recvbuf, struct op *op,
                  int root)
{
    const struct check_call call = {.kind = CHECK_REDUCE, .root = root};
    if (root == MPI_PROC_NULL || !entry_reduces(s, sendbuf.base, recvbuf, op, &call))
        return;
    if (entry_is_inter(s))
        inter_reduce(s, sendbuf.base, recvbuf, op, root);
    else
        coll_reduce(s, sendbuf.base, recvbuf, op, root);
}

void entry_allreduce(struct schedule *s, struct buffer sendbuf, struct buffer recvbuf,
                     struct op *op)
{
    const struct check_call call = {.kind = CHECK_ALLREDUCE, .root = -1};
    if (!entry_reduces(s, sendbuf.base, recvbuf, op, &call))
        return;
    if (entry_is_inter(s))
        inter_allreduce(s, sendbuf.base, recvbuf, op);
    else
        coll_allreduce(s, sendbuf.base, recvbuf, op);
}

static void entry_reduce_scatter_of(struct schedule *s, const void *send, const struct blocks *recv,
                                    struct op *op)
{
    if (entry_is_inter(s))
        inter_reduce_scatter(s, send, recv->buf, recv, op);
    else
        coll_reduce_scatter(s, send, recv->buf, recv, op);
}

void entry_reduce_scatter(struct schedule *s, const void *sendbuf, const struct blocks *recvbuf,
                          struct op *op)
{
    const struct check_call call = {.kind = CHECK_REDUCE_SCATTER, .root = -1};
    struct buffer all = {recvbuf->buf, 0, recvbuf->type};
    if (check_is_on(s))
        all.count = blocks_first(recvbuf, s->view.size);
    if (entry_reduces(s, sendbuf, all, op, &call))
        entry_reduce_scatter_of(s, sendbuf, recvbuf, op);
}

void entry_reduce_scatter_block(struct schedule *s, const void *sendbuf, struct buffer recvbuf,
                                struct op *op)
{
    const struct check_call call = {.kind = CHECK_REDUCE_SCATTER_BLOCK, .root = -1};
    struct blocks recv = {.buf = recvbuf.base, .type = recvbuf.type, .count = recvbuf.count};
    if (entry_reduces(s, sendbuf, recvbuf, op, &call))
        entry_reduce_scatter_of(s, sendbuf, &recv, op);
}

/* Scans are defined on intracommunicators only (MPI-5.0 section 6.11). */
static bool entry_scans(struct schedule *s, const void *send, struct buffer recv, struct op *op,
                        enum check_kind kind)
{
    const struct check_call call = {.kind = kind, .root = -1};
    if (entry_is_inter(s)) {
        schedule_fail(s, err_set(MPI_ERR_COMM,
                                 "a scan needs an intracommunicator, %s is an intercommunicator",
                                 s->view.comm->name));
        return false;
    }
    return entry_reduces(s, send, recv, op, &call);
}

void entry_scan(struct schedule *s, struct buffer sendbuf, struct buffer recvbuf, struct op *op)
{
    if (entry_scans(s, sendbuf.base, recvbuf, op, CHECK_SCAN))
        coll_scan(s, sendbuf.base, recvbuf, op);
}

void entry_exscan(struct schedule *s, struct buffer sendbuf, struct buffer recvbuf, struct op *op)
{
    if (entry_scans(s, sendbuf.base, recvbuf, op, CHECK_EXSCAN))
        coll_exscan(s, sendbuf.base, recvbuf, op);
}
