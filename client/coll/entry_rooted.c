/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The MPI functions for barrier, broadcast, gather and scatter.
 *
 * Each operation is one static function that writes its steps, for either kind of communicator, and
 * three entries that carry it out at once, start it, or make a persistent request of it.
 */
#include "client/abi/semantics.h"
#include "client/coll/check.h"
#include "client/coll/family/coll.h"
#include "client/coll/inter/inter.h"
#include "client/coll/schedule/coll_request.h"

static void barrier(struct schedule *s)
{
    if (check_is_on(s) && !check_calls(s, &(struct check_call){.kind = CHECK_BARRIER, .root = -1}))
        return;
    if (comm_is_inter(s->view.comm))
        inter_barrier(s);
    else
        coll_barrier(s);
}

int mpi_barrier(struct comm *comm)
{
    struct schedule s;
    schedule_begin(&s, comm, coll_next_tag(comm));
    barrier(&s);
    return schedule_end(&s);
}

int mpi_ibarrier(struct comm *comm, struct request **ret_request)
{
    struct schedule *s = schedule_new(comm, coll_next_nonblocking_tag(comm));
    if (s)
        barrier(s);
    return coll_request_start(s, ret_request);
}

int mpi_barrier_init(struct comm *comm, struct info *info, struct request **ret_request)
{
    (void)info; /* no hints are known for collectives */
    struct schedule *s = schedule_new(comm, coll_next_persistent_tag(comm));
    if (s)
        barrier(s);
    return coll_request_persist(s, ret_request);
}

static void bcast(struct schedule *s, struct buffer buffer, int root)
{
    if (check_is_on(s) && !check_calls(s, &(struct check_call){.kind = CHECK_BCAST,
                                                               .root = root,
                                                               .count = buffer.count,
                                                               .type = buffer.type}))
        return;
    if (comm_is_inter(s->view.comm))
        inter_bcast(s, buffer, root);
    else
        coll_bcast(s, buffer, root);
}

int mpi_bcast(void *buffer, MPI_Count count, struct datatype *datatype, int root, struct comm *comm)
{
    struct schedule s;
    schedule_begin(&s, comm, coll_next_tag(comm));
    bcast(&s, buffer_of(buffer, count, datatype), root);
    return schedule_end(&s);
}

int mpi_ibcast(void *buffer, MPI_Count count, struct datatype *datatype, int root,
               struct comm *comm, struct request **ret_request)
{
    struct schedule *s = schedule_new(comm, coll_next_nonblocking_tag(comm));
    if (s)
        bcast(s, buffer_of(buffer, count, datatype), root);
    return coll_request_start(s, ret_request);
}

int mpi_bcast_init(void *buffer, MPI_Count count, struct datatype *datatype, int root,
                   struct comm *comm, struct info *info, struct request **ret_request)
{
    (void)info; /* no hints are known for collectives */
    struct schedule *s = schedule_new(comm, coll_next_persistent_tag(comm));
    if (s)
        bcast(s, buffer_of(buffer, count, datatype), root);
    return coll_request_persist(s, ret_request);
}

static void gather(struct schedule *s, struct buffer sendbuf, struct buffer recvbuf, int root)
{
    bool is_root = s->view.rank == root; /* what it takes of each is what each gives */
    if (check_is_on(s) &&
        !check_calls(s, &(struct check_call){.kind = CHECK_GATHER,
                                             .root = root,
                                             .count = is_root ? recvbuf.count : sendbuf.count,
                                             .type = is_root ? recvbuf.type : sendbuf.type}))
        return;
    struct blocks recv = {
        .buf = recvbuf.base, .type = recvbuf.type, .count = recvbuf.count, .uniform = true};
    if (comm_is_inter(s->view.comm))
        inter_gather(s, sendbuf, &recv, root);
    else
        coll_gather(s, sendbuf, &recv, root);
}

int mpi_gather(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype, void *recvbuf,
               MPI_Count recvcount, struct datatype *recvtype, int root, struct comm *comm)
{
    struct schedule s;
    schedule_begin(&s, comm, coll_next_tag(comm));
    gather(&s, buffer_of(sendbuf, sendcount, sendtype), buffer_of(recvbuf, recvcount, recvtype),
           root);
    return schedule_end(&s);
}

int mpi_igather(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype, void *recvbuf,
                MPI_Count recvcount, struct datatype *recvtype, int root, struct comm *comm,
                struct request **ret_request)
{
    struct schedule *s = schedule_new(comm, coll_next_nonblocking_tag(comm));
    if (s)
        gather(s, buffer_of(sendbuf, sendcount, sendtype), buffer_of(recvbuf, recvcount, recvtype),
               root);
    return coll_request_start(s, ret_request);
}

int mpi_gather_init(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype,
                    void *recvbuf, MPI_Count recvcount, struct datatype *recvtype, int root,
                    struct comm *comm, struct info *info, struct request **ret_request)
{
    (void)info; /* no hints are known for collectives */
    struct schedule *s = schedule_new(comm, coll_next_persistent_tag(comm));
    if (s)
        gather(s, buffer_of(sendbuf, sendcount, sendtype), buffer_of(recvbuf, recvcount, recvtype),
               root);
    return coll_request_persist(s, ret_request);
}

static void gatherv(struct schedule *s, struct buffer sendbuf, void *recvbuf,
                    struct intvec recvcounts, struct intvec displs, struct datatype *recvtype,
                    int root)
{
    struct blocks recv = {.buf = recvbuf, .type = recvtype, .counts = recvcounts, .displs = displs};
    bool is_root = s->view.rank == root;
    if (check_is_on(s) &&
        !check_calls(s, &(struct check_call){.kind = CHECK_GATHERV,
                                             .root = root,
                                             .from = is_root ? &recv : NULL,
                                             .own_bytes = is_root ? 0 : buffer_size(sendbuf)}))
        return;
    if (comm_is_inter(s->view.comm))
        inter_gather(s, sendbuf, &recv, root);
    else
        coll_gather(s, sendbuf, &recv, root);
}

int mpi_gatherv(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype, void *recvbuf,
                struct intvec recvcounts, struct intvec displs, struct datatype *recvtype, int root,
                struct comm *comm)
{
    struct schedule s;
    schedule_begin(&s, comm, coll_next_tag(comm));
    gatherv(&s, buffer_of(sendbuf, sendcount, sendtype), recvbuf, recvcounts, displs, recvtype,
            root);
    return schedule_end(&s);
}

int mpi_igatherv(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype, void *recvbuf,
                 struct intvec recvcounts, struct intvec displs, struct datatype *recvtype,
                 int root, struct comm *comm, struct request **ret_request)
{
    struct schedule *s = schedule_new(comm, coll_next_nonblocking_tag(comm));
    if (s)
        gatherv(s, buffer_of(sendbuf, sendcount, sendtype), recvbuf, recvcounts, displs, recvtype,
                root);
    return coll_request_start(s, ret_request);
}

int mpi_gatherv_init(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype,
                     void *recvbuf, struct intvec recvcounts, struct intvec displs,
                     struct datatype *recvtype, int root, struct comm *comm, struct info *info,
                     struct request **ret_request)
{
    (void)info; /* no hints are known for collectives */
    struct schedule *s = schedule_new(comm, coll_next_persistent_tag(comm));
    if (s)
        gatherv(s, buffer_of(sendbuf, sendcount, sendtype), recvbuf, recvcounts, displs, recvtype,
                root);
    return coll_request_persist(s, ret_request);
}

static void scatter(struct schedule *s, struct buffer sendbuf, struct buffer recvbuf, int root)
{
    bool is_root = s->view.rank == root;
    if (check_is_on(s) &&
        !check_calls(s, &(struct check_call){.kind = CHECK_SCATTER,
                                             .root = root,
                                             .count = is_root ? sendbuf.count : recvbuf.count,
                                             .type = is_root ? sendbuf.type : recvbuf.type}))
        return;
    struct blocks send = {
        .buf = (void *)sendbuf.base, .type = sendbuf.type, .count = sendbuf.count, .uniform = true};
    if (comm_is_inter(s->view.comm))
        inter_scatter(s, &send, recvbuf, root);
    else
        coll_scatter(s, &send, recvbuf, root);
}

int mpi_scatter(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype, void *recvbuf,
                MPI_Count recvcount, struct datatype *recvtype, int root, struct comm *comm)
{
    struct schedule s;
    schedule_begin(&s, comm, coll_next_tag(comm));
    scatter(&s, buffer_of(sendbuf, sendcount, sendtype), buffer_of(recvbuf, recvcount, recvtype),
            root);
    return schedule_end(&s);
}

int mpi_iscatter(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype, void *recvbuf,
                 MPI_Count recvcount, struct datatype *recvtype, int root, struct comm *comm,
                 struct request **ret_request)
{
    struct schedule *s = schedule_new(comm, coll_next_nonblocking_tag(comm));
    if (s)
        scatter(s, buffer_of(sendbuf, sendcount, sendtype), buffer_of(recvbuf, recvcount, recvtype),
                root);
    return coll_request_start(s, ret_request);
}

int mpi_scatter_init(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype,
                     void *recvbuf, MPI_Count recvcount, struct datatype *recvtype, int root,
                     struct comm *comm, struct info *info, struct request **ret_request)
{
    (void)info; /* no hints are known for collectives */
    struct schedule *s = schedule_new(comm, coll_next_persistent_tag(comm));
    if (s)
        scatter(s, buffer_of(sendbuf, sendcount, sendtype), buffer_of(recvbuf, recvcount, recvtype),
                root);
    return coll_request_persist(s, ret_request);
}

static void scatterv(struct schedule *s, const void *sendbuf, struct intvec sendcounts,
                     struct intvec displs, struct datatype *sendtype, struct buffer recvbuf,
                     int root)
{
    struct blocks send = {
        .buf = (void *)sendbuf, .type = sendtype, .counts = sendcounts, .displs = displs};
    bool is_root = s->view.rank == root;
    if (check_is_on(s) &&
        !check_calls(s, &(struct check_call){.kind = CHECK_SCATTERV,
                                             .root = root,
                                             .to = is_root ? &send : NULL,
                                             .own_bytes = is_root ? 0 : buffer_size(recvbuf)}))
        return;
    if (comm_is_inter(s->view.comm))
        inter_scatter(s, &send, recvbuf, root);
    else
        coll_scatter(s, &send, recvbuf, root);
}

int mpi_scatterv(const void *sendbuf, struct intvec sendcounts, struct intvec displs,
                 struct datatype *sendtype, void *recvbuf, MPI_Count recvcount,
                 struct datatype *recvtype, int root, struct comm *comm)
{
    struct schedule s;
    schedule_begin(&s, comm, coll_next_tag(comm));
    scatterv(&s, sendbuf, sendcounts, displs, sendtype, buffer_of(recvbuf, recvcount, recvtype),
             root);
    return schedule_end(&s);
}

int mpi_iscatterv(const void *sendbuf, struct intvec sendcounts, struct intvec displs,
                  struct datatype *sendtype, void *recvbuf, MPI_Count recvcount,
                  struct datatype *recvtype, int root, struct comm *comm,
                  struct request **ret_request)
{
    struct schedule *s = schedule_new(comm, coll_next_nonblocking_tag(comm));
    if (s)
        scatterv(s, sendbuf, sendcounts, displs, sendtype, buffer_of(recvbuf, recvcount, recvtype),
                 root);
    return coll_request_start(s, ret_request);
}

int mpi_scatterv_init(const void *sendbuf, struct intvec sendcounts, struct intvec displs,
                      struct datatype *sendtype, void *recvbuf, MPI_Count recvcount,
                      struct datatype *recvtype, int root, struct comm *comm, struct info *info,
                      struct request **ret_request)
{
    (void)info; /* no hints are known for collectives */
    struct schedule *s = schedule_new(comm, coll_next_persistent_tag(comm));
    if (s)
        scatterv(s, sendbuf, sendcounts, displs, sendtype, buffer_of(recvbuf, recvcount, recvtype),
                 root);
    return coll_request_persist(s, ret_request);
}
