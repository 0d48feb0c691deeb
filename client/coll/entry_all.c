/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The MPI functions for allgather and alltoall.
 *
 * Each operation is one static function that writes its steps, for either kind of communicator, and
 * three entries that carry it out at once, start it, or make a persistent request of it.
 */
#include "client/abi/semantics.h"
#include "client/coll/check.h"
#include "client/coll/family/coll.h"
#include "client/coll/inter/inter.h"
#include "client/coll/schedule/coll_request.h"

static void allgather(struct schedule *s, struct buffer sendbuf, struct buffer recvbuf)
{
    bool in_place = sendbuf.base == MPI_IN_PLACE;
    if (check_is_on(s) &&
        !check_calls(s, &(struct check_call){.kind = CHECK_ALLGATHER,
                                             .root = -1,
                                             .in_place = in_place,
                                             .count = in_place ? recvbuf.count : sendbuf.count,
                                             .type = in_place ? recvbuf.type : sendbuf.type}))
        return;
    struct blocks recv = {.buf = recvbuf.base, .type = recvbuf.type, .count = recvbuf.count};
    if (comm_is_inter(s->view.comm))
        inter_allgather(s, sendbuf, &recv);
    else
        coll_allgather(s, sendbuf, &recv);
}

int mpi_allgather(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype,
                  void *recvbuf, MPI_Count recvcount, struct datatype *recvtype, struct comm *comm)
{
    struct schedule s;
    schedule_begin(&s, comm, coll_next_tag(comm));
    allgather(&s, buffer_of(sendbuf, sendcount, sendtype), buffer_of(recvbuf, recvcount, recvtype));
    return schedule_end(&s);
}

int mpi_iallgather(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype,
                   void *recvbuf, MPI_Count recvcount, struct datatype *recvtype, struct comm *comm,
                   struct request **ret_request)
{
    struct schedule *s = schedule_new(comm, coll_next_nonblocking_tag(comm));
    if (s)
        allgather(s, buffer_of(sendbuf, sendcount, sendtype),
                  buffer_of(recvbuf, recvcount, recvtype));
    return coll_request_start(s, ret_request);
}

int mpi_allgather_init(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype,
                       void *recvbuf, MPI_Count recvcount, struct datatype *recvtype,
                       struct comm *comm, struct info *info, struct request **ret_request)
{
    (void)info; /* no hints are known for collectives */
    struct schedule *s = schedule_new(comm, coll_next_persistent_tag(comm));
    if (s)
        allgather(s, buffer_of(sendbuf, sendcount, sendtype),
                  buffer_of(recvbuf, recvcount, recvtype));
    return coll_request_persist(s, ret_request);
}

static void allgatherv(struct schedule *s, struct buffer sendbuf, void *recvbuf,
                       struct intvec recvcounts, struct intvec displs, struct datatype *recvtype)
{
    struct blocks recv = {.buf = recvbuf, .type = recvtype, .counts = recvcounts, .displs = displs};
    bool in_place = sendbuf.base == MPI_IN_PLACE;
    if (check_is_on(s)) {
        /* Every rank expects from each other one what its own count says. */
        struct blocks own = {.type = in_place ? recvtype : sendbuf.type,
                             .count = in_place ? blocks_count(&recv, s->view.rank) : sendbuf.count};
        if (!check_calls(s, &(struct check_call){.kind = CHECK_ALLGATHERV,
                                                 .root = -1,
                                                 .in_place = in_place,
                                                 .to = &own,
                                                 .from = &recv}))
            return;
    }
    if (comm_is_inter(s->view.comm))
        inter_allgather(s, sendbuf, &recv);
    else
        coll_allgather(s, sendbuf, &recv);
}

int mpi_allgatherv(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype,
                   void *recvbuf, struct intvec recvcounts, struct intvec displs,
                   struct datatype *recvtype, struct comm *comm)
{
    struct schedule s;
    schedule_begin(&s, comm, coll_next_tag(comm));
    allgatherv(&s, buffer_of(sendbuf, sendcount, sendtype), recvbuf, recvcounts, displs, recvtype);
    return schedule_end(&s);
}

int mpi_iallgatherv(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype,
                    void *recvbuf, struct intvec recvcounts, struct intvec displs,
                    struct datatype *recvtype, struct comm *comm, struct request **ret_request)
{
    struct schedule *s = schedule_new(comm, coll_next_nonblocking_tag(comm));
    if (s)
        allgatherv(s, buffer_of(sendbuf, sendcount, sendtype), recvbuf, recvcounts, displs,
                   recvtype);
    return coll_request_start(s, ret_request);
}

int mpi_allgatherv_init(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype,
                        void *recvbuf, struct intvec recvcounts, struct intvec displs,
                        struct datatype *recvtype, struct comm *comm, struct info *info,
                        struct request **ret_request)
{
    (void)info; /* no hints are known for collectives */
    struct schedule *s = schedule_new(comm, coll_next_persistent_tag(comm));
    if (s)
        allgatherv(s, buffer_of(sendbuf, sendcount, sendtype), recvbuf, recvcounts, displs,
                   recvtype);
    return coll_request_persist(s, ret_request);
}

static void alltoall(struct schedule *s, struct buffer sendbuf, struct buffer recvbuf)
{
    bool in_place = sendbuf.base == MPI_IN_PLACE;
    struct blocks send = {
        .buf = (void *)sendbuf.base, .type = sendbuf.type, .count = sendbuf.count};
    struct blocks recv = {.buf = recvbuf.base, .type = recvbuf.type, .count = recvbuf.count};
    if (check_is_on(s) && !check_calls(s, &(struct check_call){.kind = CHECK_ALLTOALL,
                                                               .root = -1,
                                                               .in_place = in_place,
                                                               .count = recvbuf.count,
                                                               .type = recvbuf.type,
                                                               .to = in_place ? &recv : &send,
                                                               .from = &recv}))
        return;
    if (comm_is_inter(s->view.comm))
        inter_alltoall(s, &send, &recv);
    else
        coll_alltoall(s, sendbuf.base == MPI_IN_PLACE ? NULL : &send, &recv);
}

int mpi_alltoall(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype, void *recvbuf,
                 MPI_Count recvcount, struct datatype *recvtype, struct comm *comm)
{
    struct schedule s;
    schedule_begin(&s, comm, coll_next_tag(comm));
    alltoall(&s, buffer_of(sendbuf, sendcount, sendtype), buffer_of(recvbuf, recvcount, recvtype));
    return schedule_end(&s);
}

int mpi_ialltoall(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype,
                  void *recvbuf, MPI_Count recvcount, struct datatype *recvtype, struct comm *comm,
                  struct request **ret_request)
{
    struct schedule *s = schedule_new(comm, coll_next_nonblocking_tag(comm));
    if (s)
        alltoall(s, buffer_of(sendbuf, sendcount, sendtype),
                 buffer_of(recvbuf, recvcount, recvtype));
    return coll_request_start(s, ret_request);
}

int mpi_alltoall_init(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype,
                      void *recvbuf, MPI_Count recvcount, struct datatype *recvtype,
                      struct comm *comm, struct info *info, struct request **ret_request)
{
    (void)info; /* no hints are known for collectives */
    struct schedule *s = schedule_new(comm, coll_next_persistent_tag(comm));
    if (s)
        alltoall(s, buffer_of(sendbuf, sendcount, sendtype),
                 buffer_of(recvbuf, recvcount, recvtype));
    return coll_request_persist(s, ret_request);
}

static void alltoallv(struct schedule *s, const void *sendbuf, struct intvec sendcounts,
                      struct intvec sdispls, struct datatype *sendtype, void *recvbuf,
                      struct intvec recvcounts, struct intvec rdispls, struct datatype *recvtype)
{
    struct blocks send = {
        .buf = (void *)sendbuf, .type = sendtype, .counts = sendcounts, .displs = sdispls};
    struct blocks recv = {
        .buf = recvbuf, .type = recvtype, .counts = recvcounts, .displs = rdispls};
    bool in_place = sendbuf == MPI_IN_PLACE;
    if (check_is_on(s) && !check_calls(s, &(struct check_call){.kind = CHECK_ALLTOALLV,
                                                               .root = -1,
                                                               .in_place = in_place,
                                                               .to = in_place ? &recv : &send,
                                                               .from = &recv}))
        return;
    if (comm_is_inter(s->view.comm))
        inter_alltoall(s, &send, &recv);
    else
        coll_alltoall(s, sendbuf == MPI_IN_PLACE ? NULL : &send, &recv);
}

int mpi_alltoallv(const void *sendbuf, struct intvec sendcounts, struct intvec sdispls,
                  struct datatype *sendtype, void *recvbuf, struct intvec recvcounts,
                  struct intvec rdispls, struct datatype *recvtype, struct comm *comm)
{
    struct schedule s;
    schedule_begin(&s, comm, coll_next_tag(comm));
    alltoallv(&s, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype);
    return schedule_end(&s);
}

int mpi_ialltoallv(const void *sendbuf, struct intvec sendcounts, struct intvec sdispls,
                   struct datatype *sendtype, void *recvbuf, struct intvec recvcounts,
                   struct intvec rdispls, struct datatype *recvtype, struct comm *comm,
                   struct request **ret_request)
{
    struct schedule *s = schedule_new(comm, coll_next_nonblocking_tag(comm));
    if (s)
        alltoallv(s, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls,
                  recvtype);
    return coll_request_start(s, ret_request);
}

int mpi_alltoallv_init(const void *sendbuf, struct intvec sendcounts, struct intvec sdispls,
                       struct datatype *sendtype, void *recvbuf, struct intvec recvcounts,
                       struct intvec rdispls, struct datatype *recvtype, struct comm *comm,
                       struct info *info, struct request **ret_request)
{
    (void)info; /* no hints are known for collectives */
    struct schedule *s = schedule_new(comm, coll_next_persistent_tag(comm));
    if (s)
        alltoallv(s, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls,
                  recvtype);
    return coll_request_persist(s, ret_request);
}

static void alltoallw(struct schedule *s, const void *sendbuf, struct intvec sendcounts,
                      struct intvec sdispls, const MPI_Datatype sendtypes[], void *recvbuf,
                      struct intvec recvcounts, struct intvec rdispls,
                      const MPI_Datatype recvtypes[])
{
    struct blocks send = {
        .buf = (void *)sendbuf, .types = sendtypes, .counts = sendcounts, .displs = sdispls};
    struct blocks recv = {
        .buf = recvbuf, .types = recvtypes, .counts = recvcounts, .displs = rdispls};
    bool in_place = sendbuf == MPI_IN_PLACE;
    if (check_is_on(s) && !check_calls(s, &(struct check_call){.kind = CHECK_ALLTOALLW,
                                                               .root = -1,
                                                               .in_place = in_place,
                                                               .to = in_place ? &recv : &send,
                                                               .from = &recv}))
        return;
    if (comm_is_inter(s->view.comm))
        inter_alltoall(s, &send, &recv);
    else
        coll_alltoall(s, sendbuf == MPI_IN_PLACE ? NULL : &send, &recv);
}

int mpi_alltoallw(const void *sendbuf, struct intvec sendcounts, struct intvec sdispls,
                  const MPI_Datatype sendtypes[], void *recvbuf, struct intvec recvcounts,
                  struct intvec rdispls, const MPI_Datatype recvtypes[], struct comm *comm)
{
    struct schedule s;
    schedule_begin(&s, comm, coll_next_tag(comm));
    alltoallw(&s, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes);
    return schedule_end(&s);
}

int mpi_ialltoallw(const void *sendbuf, struct intvec sendcounts, struct intvec sdispls,
                   const MPI_Datatype sendtypes[], void *recvbuf, struct intvec recvcounts,
                   struct intvec rdispls, const MPI_Datatype recvtypes[], struct comm *comm,
                   struct request **ret_request)
{
    struct schedule *s = schedule_new(comm, coll_next_nonblocking_tag(comm));
    if (s)
        alltoallw(s, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls,
                  recvtypes);
    return coll_request_start(s, ret_request);
}

int mpi_alltoallw_init(const void *sendbuf, struct intvec sendcounts, struct intvec sdispls,
                       const MPI_Datatype sendtypes[], void *recvbuf, struct intvec recvcounts,
                       struct intvec rdispls, const MPI_Datatype recvtypes[], struct comm *comm,
                       struct info *info, struct request **ret_request)
{
    (void)info; /* no hints are known for collectives */
    struct schedule *s = schedule_new(comm, coll_next_persistent_tag(comm));
    if (s)
        alltoallw(s, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls,
                  recvtypes);
    return coll_request_persist(s, ret_request);
}
