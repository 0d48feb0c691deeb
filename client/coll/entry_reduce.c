/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The MPI functions for reductions and scans.
 *
 * Each operation is one static function that writes its steps, for either kind of communicator, and
 * three entries that carry it out at once, start it, or make a persistent request of it.
 */
#include "client/abi/semantics.h"
#include "client/coll/check.h"
#include "client/coll/family/coll.h"
#include "client/coll/inter/inter.h"
#include "client/coll/schedule/coll_request.h"
#include "client/object/err.h"

/* Scans are defined on intracommunicators only (MPI-5.0 section 6.11). */
static int check_scan(const struct op *op, const struct datatype *type, const struct comm *comm)
{
    if (comm_is_inter(comm))
        return err_set(MPI_ERR_COMM,
                       "a scan needs an intracommunicator, %s is an intercommunicator", comm->name);
    return op_check(op, type);
}

/* The processes of an intercommunicator that stand by give no arguments that count. */
static int check_rooted(const struct op *op, const struct datatype *type, int root)
{
    return root == MPI_PROC_NULL ? MPI_SUCCESS : op_check(op, type);
}

static void reduce(struct schedule *s, const void *sendbuf, struct buffer recvbuf, struct op *op,
                   int root)
{
    if (check_is_on(s) && !check_calls(s, &(struct check_call){.kind = CHECK_REDUCE,
                                                               .root = root,
                                                               .op = op,
                                                               .in_place = sendbuf == MPI_IN_PLACE,
                                                               .count = recvbuf.count,
                                                               .type = recvbuf.type}))
        return;
    if (comm_is_inter(s->view.comm))
        inter_reduce(s, sendbuf, recvbuf, op, root);
    else
        coll_reduce(s, sendbuf, recvbuf, op, root);
}

int mpi_reduce(const void *sendbuf, void *recvbuf, MPI_Count count, struct datatype *datatype,
               struct op *op, int root, struct comm *comm)
{
    int err = check_rooted(op, datatype, root);
    if (err)
        return err;
    struct schedule s;
    schedule_begin(&s, comm, coll_next_tag(comm));
    reduce(&s, sendbuf, buffer_of(recvbuf, count, datatype), op, root);
    return schedule_end(&s);
}

int mpi_ireduce(const void *sendbuf, void *recvbuf, MPI_Count count, struct datatype *datatype,
                struct op *op, int root, struct comm *comm, struct request **ret_request)
{
    int err = check_rooted(op, datatype, root);
    if (err)
        return err;
    struct schedule *s = schedule_new(comm, coll_next_nonblocking_tag(comm));
    if (s)
        reduce(s, sendbuf, buffer_of(recvbuf, count, datatype), op, root);
    return coll_request_start(s, ret_request);
}

int mpi_reduce_init(const void *sendbuf, void *recvbuf, MPI_Count count, struct datatype *datatype,
                    struct op *op, int root, struct comm *comm, struct info *info,
                    struct request **ret_request)
{
    (void)info; /* no hints are known for collectives */
    int err = check_rooted(op, datatype, root);
    if (err)
        return err;
    struct schedule *s = schedule_new(comm, coll_next_persistent_tag(comm));
    if (s)
        reduce(s, sendbuf, buffer_of(recvbuf, count, datatype), op, root);
    return coll_request_persist(s, ret_request);
}

static void allreduce(struct schedule *s, const void *sendbuf, struct buffer recvbuf, struct op *op)
{
    if (check_is_on(s) && !check_calls(s, &(struct check_call){.kind = CHECK_ALLREDUCE,
                                                               .root = -1,
                                                               .op = op,
                                                               .in_place = sendbuf == MPI_IN_PLACE,
                                                               .count = recvbuf.count,
                                                               .type = recvbuf.type}))
        return;
    if (comm_is_inter(s->view.comm))
        inter_allreduce(s, sendbuf, recvbuf, op);
    else
        coll_allreduce(s, sendbuf, recvbuf, op);
}

int mpi_allreduce(const void *sendbuf, void *recvbuf, MPI_Count count, struct datatype *datatype,
                  struct op *op, struct comm *comm)
{
    int err = op_check(op, datatype);
    if (err)
        return err;
    struct schedule s;
    schedule_begin(&s, comm, coll_next_tag(comm));
    allreduce(&s, sendbuf, buffer_of(recvbuf, count, datatype), op);
    return schedule_end(&s);
}

int mpi_iallreduce(const void *sendbuf, void *recvbuf, MPI_Count count, struct datatype *datatype,
                   struct op *op, struct comm *comm, struct request **ret_request)
{
    int err = op_check(op, datatype);
    if (err)
        return err;
    struct schedule *s = schedule_new(comm, coll_next_nonblocking_tag(comm));
    if (s)
        allreduce(s, sendbuf, buffer_of(recvbuf, count, datatype), op);
    return coll_request_start(s, ret_request);
}

int mpi_allreduce_init(const void *sendbuf, void *recvbuf, MPI_Count count,
                       struct datatype *datatype, struct op *op, struct comm *comm,
                       struct info *info, struct request **ret_request)
{
    (void)info; /* no hints are known for collectives */
    int err = op_check(op, datatype);
    if (err)
        return err;
    struct schedule *s = schedule_new(comm, coll_next_persistent_tag(comm));
    if (s)
        allreduce(s, sendbuf, buffer_of(recvbuf, count, datatype), op);
    return coll_request_persist(s, ret_request);
}

static void reduce_scatter(struct schedule *s, const void *sendbuf, void *recvbuf,
                           struct intvec recvcounts, struct datatype *datatype, struct op *op)
{
    struct blocks counts = {.buf = recvbuf, .type = datatype, .counts = recvcounts};
    if (check_is_on(s) &&
        !check_calls(s, &(struct check_call){.kind = CHECK_REDUCE_SCATTER,
                                             .root = -1,
                                             .op = op,
                                             .in_place = sendbuf == MPI_IN_PLACE,
                                             .count = blocks_first(&counts, s->view.size),
                                             .type = datatype}))
        return;
    if (comm_is_inter(s->view.comm))
        inter_reduce_scatter(s, sendbuf, recvbuf, &counts, op);
    else
        coll_reduce_scatter(s, sendbuf, recvbuf, &counts, op);
}

int mpi_reduce_scatter(const void *sendbuf, void *recvbuf, struct intvec recvcounts,
                       struct datatype *datatype, struct op *op, struct comm *comm)
{
    int err = op_check(op, datatype);
    if (err)
        return err;
    struct schedule s;
    schedule_begin(&s, comm, coll_next_tag(comm));
    reduce_scatter(&s, sendbuf, recvbuf, recvcounts, datatype, op);
    return schedule_end(&s);
}

int mpi_ireduce_scatter(const void *sendbuf, void *recvbuf, struct intvec recvcounts,
                        struct datatype *datatype, struct op *op, struct comm *comm,
                        struct request **ret_request)
{
    int err = op_check(op, datatype);
    if (err)
        return err;
    struct schedule *s = schedule_new(comm, coll_next_nonblocking_tag(comm));
    if (s)
        reduce_scatter(s, sendbuf, recvbuf, recvcounts, datatype, op);
    return coll_request_start(s, ret_request);
}

int mpi_reduce_scatter_init(const void *sendbuf, void *recvbuf, struct intvec recvcounts,
                            struct datatype *datatype, struct op *op, struct comm *comm,
                            struct info *info, struct request **ret_request)
{
    (void)info; /* no hints are known for collectives */
    int err = op_check(op, datatype);
    if (err)
        return err;
    struct schedule *s = schedule_new(comm, coll_next_persistent_tag(comm));
    if (s)
        reduce_scatter(s, sendbuf, recvbuf, recvcounts, datatype, op);
    return coll_request_persist(s, ret_request);
}

static void reduce_scatter_block(struct schedule *s, const void *sendbuf, struct buffer recvbuf,
                                 struct op *op)
{
    if (check_is_on(s) && !check_calls(s, &(struct check_call){.kind = CHECK_REDUCE_SCATTER_BLOCK,
                                                               .root = -1,
                                                               .op = op,
                                                               .in_place = sendbuf == MPI_IN_PLACE,
                                                               .count = recvbuf.count,
                                                               .type = recvbuf.type}))
        return;
    struct blocks counts = {.buf = recvbuf.base, .type = recvbuf.type, .count = recvbuf.count};
    if (comm_is_inter(s->view.comm))
        inter_reduce_scatter(s, sendbuf, recvbuf.base, &counts, op);
    else
        coll_reduce_scatter(s, sendbuf, recvbuf.base, &counts, op);
}

int mpi_reduce_scatter_block(const void *sendbuf, void *recvbuf, MPI_Count recvcount,
                             struct datatype *datatype, struct op *op, struct comm *comm)
{
    int err = op_check(op, datatype);
    if (err)
        return err;
    struct schedule s;
    schedule_begin(&s, comm, coll_next_tag(comm));
    reduce_scatter_block(&s, sendbuf, buffer_of(recvbuf, recvcount, datatype), op);
    return schedule_end(&s);
}

int mpi_ireduce_scatter_block(const void *sendbuf, void *recvbuf, MPI_Count recvcount,
                              struct datatype *datatype, struct op *op, struct comm *comm,
                              struct request **ret_request)
{
    int err = op_check(op, datatype);
    if (err)
        return err;
    struct schedule *s = schedule_new(comm, coll_next_nonblocking_tag(comm));
    if (s)
        reduce_scatter_block(s, sendbuf, buffer_of(recvbuf, recvcount, datatype), op);
    return coll_request_start(s, ret_request);
}

int mpi_reduce_scatter_block_init(const void *sendbuf, void *recvbuf, MPI_Count recvcount,
                                  struct datatype *datatype, struct op *op, struct comm *comm,
                                  struct info *info, struct request **ret_request)
{
    (void)info; /* no hints are known for collectives */
    int err = op_check(op, datatype);
    if (err)
        return err;
    struct schedule *s = schedule_new(comm, coll_next_persistent_tag(comm));
    if (s)
        reduce_scatter_block(s, sendbuf, buffer_of(recvbuf, recvcount, datatype), op);
    return coll_request_persist(s, ret_request);
}

static void scan(struct schedule *s, const void *sendbuf, struct buffer recvbuf, struct op *op)
{
    if (check_is_on(s) && !check_calls(s, &(struct check_call){.kind = CHECK_SCAN,
                                                               .root = -1,
                                                               .op = op,
                                                               .in_place = sendbuf == MPI_IN_PLACE,
                                                               .count = recvbuf.count,
                                                               .type = recvbuf.type}))
        return;
    coll_scan(s, sendbuf, recvbuf, op);
}

int mpi_scan(const void *sendbuf, void *recvbuf, MPI_Count count, struct datatype *datatype,
             struct op *op, struct comm *comm)
{
    int err = check_scan(op, datatype, comm);
    if (err)
        return err;
    struct schedule s;
    schedule_begin(&s, comm, coll_next_tag(comm));
    scan(&s, sendbuf, buffer_of(recvbuf, count, datatype), op);
    return schedule_end(&s);
}

int mpi_iscan(const void *sendbuf, void *recvbuf, MPI_Count count, struct datatype *datatype,
              struct op *op, struct comm *comm, struct request **ret_request)
{
    int err = check_scan(op, datatype, comm);
    if (err)
        return err;
    struct schedule *s = schedule_new(comm, coll_next_nonblocking_tag(comm));
    if (s)
        scan(s, sendbuf, buffer_of(recvbuf, count, datatype), op);
    return coll_request_start(s, ret_request);
}

int mpi_scan_init(const void *sendbuf, void *recvbuf, MPI_Count count, struct datatype *datatype,
                  struct op *op, struct comm *comm, struct info *info, struct request **ret_request)
{
    (void)info; /* no hints are known for collectives */
    int err = check_scan(op, datatype, comm);
    if (err)
        return err;
    struct schedule *s = schedule_new(comm, coll_next_persistent_tag(comm));
    if (s)
        scan(s, sendbuf, buffer_of(recvbuf, count, datatype), op);
    return coll_request_persist(s, ret_request);
}

static void exscan(struct schedule *s, const void *sendbuf, struct buffer recvbuf, struct op *op)
{
    if (check_is_on(s) && !check_calls(s, &(struct check_call){.kind = CHECK_EXSCAN,
                                                               .root = -1,
                                                               .op = op,
                                                               .in_place = sendbuf == MPI_IN_PLACE,
                                                               .count = recvbuf.count,
                                                               .type = recvbuf.type}))
        return;
    coll_exscan(s, sendbuf, recvbuf, op);
}

int mpi_exscan(const void *sendbuf, void *recvbuf, MPI_Count count, struct datatype *datatype,
               struct op *op, struct comm *comm)
{
    int err = check_scan(op, datatype, comm);
    if (err)
        return err;
    struct schedule s;
    schedule_begin(&s, comm, coll_next_tag(comm));
    exscan(&s, sendbuf, buffer_of(recvbuf, count, datatype), op);
    return schedule_end(&s);
}

int mpi_iexscan(const void *sendbuf, void *recvbuf, MPI_Count count, struct datatype *datatype,
                struct op *op, struct comm *comm, struct request **ret_request)
{
    int err = check_scan(op, datatype, comm);
    if (err)
        return err;
    struct schedule *s = schedule_new(comm, coll_next_nonblocking_tag(comm));
    if (s)
        exscan(s, sendbuf, buffer_of(recvbuf, count, datatype), op);
    return coll_request_start(s, ret_request);
}

int mpi_exscan_init(const void *sendbuf, void *recvbuf, MPI_Count count, struct datatype *datatype,
                    struct op *op, struct comm *comm, struct info *info,
                    struct request **ret_request)
{
    (void)info; /* no hints are known for collectives */
    int err = check_scan(op, datatype, comm);
    if (err)
        return err;
    struct schedule *s = schedule_new(comm, coll_next_persistent_tag(comm));
    if (s)
        exscan(s, sendbuf, buffer_of(recvbuf, count, datatype), op);
    return coll_request_persist(s, ret_request);
}
