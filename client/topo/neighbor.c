/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbourhood collectives (MPI-5.0 section 8.6): blocking, nonblocking and persistent.
 *
 * Every transfer is posted at once: the neighbours are few and the messages independent. A
 * neighbour that is listed several times (parallel edges, a periodic dimension of one or two ranks)
 * gets several messages under one tag, told apart by their order alone. In a grid, what leaves
 * downwards arrives from above, so receives are posted with the two directions of each dimension
 * exchanged (section 8.6, buffers of periodic dimensions of size 1 and 2).
 */
#include "client/abi/semantics.h"
#include "client/coll/family/coll.h"
#include "client/coll/schedule/coll_request.h"
#include "client/object/err.h"
#include "client/topo/topo.h"

/* `send` has one block for all neighbours (allgather) or one for each. */
static void exchange(struct schedule *s, const struct blocks *send, bool send_same,
                     const struct blocks *recv)
{
    const struct topo *topo = s->view.comm->topo;
    for (int k = 0; k < topo->n_in; k++) {
        int i = topo->kind == MPI_CART ? k ^ 1 : k;
        if (topo->in[i] != MPI_PROC_NULL && blocks_bytes(recv, i) > 0)
            schedule_irecv(s, blocks_buffer(recv, i), topo->in[i]);
    }
    for (int i = 0; i < topo->n_out; i++) {
        int block = send_same ? 0 : i;
        if (topo->out[i] != MPI_PROC_NULL && blocks_bytes(send, block) > 0)
            schedule_isend(s, blocks_buffer(send, block), topo->out[i]);
    }
    schedule_wait(s);
}

/* The arrays have an element per neighbour, whose number the bindings do not know. */
static int check_vector(const char *argument, const struct blocks *blocks, int n)
{
    const struct intvec counts = blocks->counts;
    const MPI_Datatype *types = blocks->types;
    if (n > 0 && !counts.base)
        return err_set(MPI_ERR_ARG, "%s is a null pointer", argument);
    if (n > 0 && !blocks->displs.base)
        return err_set(MPI_ERR_ARG, "the displacements that belong to %s are a null pointer",
                       argument);
    for (int i = 0; i < n; i++) {
        MPI_Count count = intvec_at(counts, i);
        if (count < 0)
            return err_set(MPI_ERR_COUNT, "%s[%d] is %lld, but must not be negative", argument, i,
                           (long long)count);
        const struct datatype *type = types && count > 0 ? datatype_from_handle(types[i]) : NULL;
        if (types && count > 0 && (!type || !type->committed))
            return err_set(MPI_ERR_TYPE, "the datatype that belongs to %s[%d] is no committed one",
                           argument, i);
    }
    return MPI_SUCCESS;
}

/* Writes the exchange unless an argument is wrong, which then is the schedule's error. Vectors are
 * checked where given. */
static void write_exchange(struct schedule *s, const struct blocks *send, bool send_same,
                           const struct blocks *recv, bool vectors)
{
    const struct topo *topo = s->view.comm->topo;
    s->err = topo_check_kind(s->view.comm, 0);
    if (!s->err && vectors && !send_same)
        s->err = check_vector("sendcounts", send, topo->n_out);
    if (!s->err && vectors)
        s->err = check_vector("recvcounts", recv, topo->n_in);
    if (!s->err)
        exchange(s, send, send_same, recv);
}

static void allgather(struct schedule *s, const void *sendbuf, MPI_Count sendcount,
                      struct datatype *sendtype, void *recvbuf, MPI_Count recvcount,
                      struct datatype *recvtype)
{
    struct blocks send = {.buf = (void *)sendbuf, .type = sendtype, .count = sendcount};
    struct blocks recv = {.buf = recvbuf, .type = recvtype, .count = recvcount};
    write_exchange(s, &send, true, &recv, false);
}

int mpi_neighbor_allgather(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype,
                           void *recvbuf, MPI_Count recvcount, struct datatype *recvtype,
                           struct comm *comm)
{
    struct schedule s;
    schedule_begin(&s, comm, coll_next_tag(comm));
    allgather(&s, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype);
    return schedule_end(&s);
}

int mpi_ineighbor_allgather(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype,
                            void *recvbuf, MPI_Count recvcount, struct datatype *recvtype,
                            struct comm *comm, struct request **ret_request)
{
    struct schedule *s = schedule_new(comm, coll_next_nonblocking_tag(comm));
    if (s)
        allgather(s, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype);
    return coll_request_start(s, ret_request);
}

int mpi_neighbor_allgather_init(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype,
                                void *recvbuf, MPI_Count recvcount, struct datatype *recvtype,
                                struct comm *comm, struct info *info, struct request **ret_request)
{
    (void)info; /* no hints are known for collectives */
    struct schedule *s = schedule_new(comm, coll_next_persistent_tag(comm));
    if (s)
        allgather(s, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype);
    return coll_request_persist(s, ret_request);
}

static void allgatherv(struct schedule *s, const void *sendbuf, MPI_Count sendcount,
                       struct datatype *sendtype, void *recvbuf, struct intvec recvcounts,
                       struct intvec displs, struct datatype *recvtype)
{
    struct blocks send = {.buf = (void *)sendbuf, .type = sendtype, .count = sendcount};
    struct blocks recv = {.buf = recvbuf, .type = recvtype, .counts = recvcounts, .displs = displs};
    write_exchange(s, &send, true, &recv, true);
}

int mpi_neighbor_allgatherv(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype,
                            void *recvbuf, struct intvec recvcounts, struct intvec displs,
                            struct datatype *recvtype, struct comm *comm)
{
    struct schedule s;
    schedule_begin(&s, comm, coll_next_tag(comm));
    allgatherv(&s, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype);
    return schedule_end(&s);
}

int mpi_ineighbor_allgatherv(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype,
                             void *recvbuf, struct intvec recvcounts, struct intvec displs,
                             struct datatype *recvtype, struct comm *comm,
                             struct request **ret_request)
{
    struct schedule *s = schedule_new(comm, coll_next_nonblocking_tag(comm));
    if (s)
        allgatherv(s, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype);
    return coll_request_start(s, ret_request);
}

int mpi_neighbor_allgatherv_init(const void *sendbuf, MPI_Count sendcount,
                                 struct datatype *sendtype, void *recvbuf, struct intvec recvcounts,
                                 struct intvec displs, struct datatype *recvtype, struct comm *comm,
                                 struct info *info, struct request **ret_request)
{
    (void)info; /* no hints are known for collectives */
    struct schedule *s = schedule_new(comm, coll_next_persistent_tag(comm));
    if (s)
        allgatherv(s, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype);
    return coll_request_persist(s, ret_request);
}

static void alltoall(struct schedule *s, const void *sendbuf, MPI_Count sendcount,
                     struct datatype *sendtype, void *recvbuf, MPI_Count recvcount,
                     struct datatype *recvtype)
{
    struct blocks send = {.buf = (void *)sendbuf, .type = sendtype, .count = sendcount};
    struct blocks recv = {.buf = recvbuf, .type = recvtype, .count = recvcount};
    write_exchange(s, &send, false, &recv, false);
}

int mpi_neighbor_alltoall(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype,
                          void *recvbuf, MPI_Count recvcount, struct datatype *recvtype,
                          struct comm *comm)
{
    struct schedule s;
    schedule_begin(&s, comm, coll_next_tag(comm));
    alltoall(&s, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype);
    return schedule_end(&s);
}

int mpi_ineighbor_alltoall(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype,
                           void *recvbuf, MPI_Count recvcount, struct datatype *recvtype,
                           struct comm *comm, struct request **ret_request)
{
    struct schedule *s = schedule_new(comm, coll_next_nonblocking_tag(comm));
    if (s)
        alltoall(s, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype);
    return coll_request_start(s, ret_request);
}

int mpi_neighbor_alltoall_init(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype,
                               void *recvbuf, MPI_Count recvcount, struct datatype *recvtype,
                               struct comm *comm, struct info *info, struct request **ret_request)
{
    (void)info; /* no hints are known for collectives */
    struct schedule *s = schedule_new(comm, coll_next_persistent_tag(comm));
    if (s)
        alltoall(s, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype);
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
    write_exchange(s, &send, false, &recv, true);
}

int mpi_neighbor_alltoallv(const void *sendbuf, struct intvec sendcounts, struct intvec sdispls,
                           struct datatype *sendtype, void *recvbuf, struct intvec recvcounts,
                           struct intvec rdispls, struct datatype *recvtype, struct comm *comm)
{
    struct schedule s;
    schedule_begin(&s, comm, coll_next_tag(comm));
    alltoallv(&s, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype);
    return schedule_end(&s);
}

int mpi_ineighbor_alltoallv(const void *sendbuf, struct intvec sendcounts, struct intvec sdispls,
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

int mpi_neighbor_alltoallv_init(const void *sendbuf, struct intvec sendcounts,
                                struct intvec sdispls, struct datatype *sendtype, void *recvbuf,
                                struct intvec recvcounts, struct intvec rdispls,
                                struct datatype *recvtype, struct comm *comm, struct info *info,
                                struct request **ret_request)
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
    write_exchange(s, &send, false, &recv, true);
}

int mpi_neighbor_alltoallw(const void *sendbuf, struct intvec sendcounts, struct intvec sdispls,
                           const MPI_Datatype sendtypes[], void *recvbuf, struct intvec recvcounts,
                           struct intvec rdispls, const MPI_Datatype recvtypes[], struct comm *comm)
{
    struct schedule s;
    schedule_begin(&s, comm, coll_next_tag(comm));
    alltoallw(&s, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes);
    return schedule_end(&s);
}

int mpi_ineighbor_alltoallw(const void *sendbuf, struct intvec sendcounts, struct intvec sdispls,
                            const MPI_Datatype sendtypes[], void *recvbuf, struct intvec recvcounts,
                            struct intvec rdispls, const MPI_Datatype recvtypes[],
                            struct comm *comm, struct request **ret_request)
{
    struct schedule *s = schedule_new(comm, coll_next_nonblocking_tag(comm));
    if (s)
        alltoallw(s, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls,
                  recvtypes);
    return coll_request_start(s, ret_request);
}

int mpi_neighbor_alltoallw_init(const void *sendbuf, struct intvec sendcounts,
                                struct intvec sdispls, const MPI_Datatype sendtypes[],
                                void *recvbuf, struct intvec recvcounts, struct intvec rdispls,
                                const MPI_Datatype recvtypes[], struct comm *comm,
                                struct info *info, struct request **ret_request)
{
    (void)info; /* no hints are known for collectives */
    struct schedule *s = schedule_new(comm, coll_next_persistent_tag(comm));
    if (s)
        alltoallw(s, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls,
                  recvtypes);
    return coll_request_persist(s, ret_request);
}
