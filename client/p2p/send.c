/* SPDX-License-Identifier: BSD-3-Clause */
/* The MPI functions that send and receive (MPI-5.0 sections 3.2, 3.4, 3.7, 3.9, 3.10), except the
 * buffered ones (buffered.c). */
#include <stdlib.h>

#include "client/abi/semantics.h"
#include "client/object/err.h"
#include "client/p2p/transfer.h"
#include "client/progress/progress.h"

int mpi_send(const void *buf, MPI_Count count, struct datatype *datatype, int dest, int tag,
             struct comm *comm)
{
    return p2p_send(buf, count, datatype, dest, tag, comm, P2P_CONTEXT_USER, P2P_STANDARD);
}

int mpi_ssend(const void *buf, MPI_Count count, struct datatype *datatype, int dest, int tag,
              struct comm *comm)
{
    return p2p_send(buf, count, datatype, dest, tag, comm, P2P_CONTEXT_USER, P2P_SYNCHRONOUS);
}

int mpi_rsend(const void *buf, MPI_Count count, struct datatype *datatype, int dest, int tag,
              struct comm *comm)
{
    return p2p_send(buf, count, datatype, dest, tag, comm, P2P_CONTEXT_USER, P2P_READY);
}

int mpi_isend(const void *buf, MPI_Count count, struct datatype *datatype, int dest, int tag,
              struct comm *comm, struct request **ret_request)
{
    return request_publish(p2p_isend(buf, count, datatype, dest, tag, comm, P2P_CONTEXT_USER,
                                     P2P_STANDARD, ret_request),
                           ret_request);
}

int mpi_issend(const void *buf, MPI_Count count, struct datatype *datatype, int dest, int tag,
               struct comm *comm, struct request **ret_request)
{
    return request_publish(p2p_isend(buf, count, datatype, dest, tag, comm, P2P_CONTEXT_USER,
                                     P2P_SYNCHRONOUS, ret_request),
                           ret_request);
}

int mpi_irsend(const void *buf, MPI_Count count, struct datatype *datatype, int dest, int tag,
               struct comm *comm, struct request **ret_request)
{
    return request_publish(
        p2p_isend(buf, count, datatype, dest, tag, comm, P2P_CONTEXT_USER, P2P_READY, ret_request),
        ret_request);
}

int mpi_recv(void *buf, MPI_Count count, struct datatype *datatype, int source, int tag,
             struct comm *comm, MPI_Status *status)
{
    return p2p_recv(buf, count, datatype, source, tag, comm, P2P_CONTEXT_USER, status);
}

int mpi_irecv(void *buf, MPI_Count count, struct datatype *datatype, int source, int tag,
              struct comm *comm, struct request **ret_request)
{
    return request_publish(
        p2p_irecv(buf, count, datatype, source, tag, comm, P2P_CONTEXT_USER, ret_request),
        ret_request);
}

int mpi_sendrecv(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype, int dest,
                 int sendtag, void *recvbuf, MPI_Count recvcount, struct datatype *recvtype,
                 int source, int recvtag, struct comm *comm, MPI_Status *status)
{
    return p2p_sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype,
                        source, recvtag, comm, P2P_CONTEXT_USER, status);
}

/* The outgoing data packed, since the incoming data takes its place. NULL: no memory. */
static void *pack_copy(const void *buf, MPI_Count count, const struct datatype *type)
{
    size_t n_bytes = (size_t)(count * type->size);
    void *copy = malloc(n_bytes ? n_bytes : 1);

    if (copy)
        transfer_pack_all(type, count, buf, copy, n_bytes);
    return copy;
}

static int no_room(MPI_Count n_bytes)
{
    return err_set(MPI_ERR_NO_MEM, "no memory for a copy of %lld bytes", (long long)n_bytes);
}

int mpi_sendrecv_replace(void *buf, MPI_Count count, struct datatype *datatype, int dest,
                         int sendtag, int source, int recvtag, struct comm *comm,
                         MPI_Status *status)
{
    void *copy = pack_copy(buf, count, datatype);

    if (!copy)
        return no_room(count * datatype->size);
    int err =
        p2p_sendrecv(copy, count * datatype->size, datatype_from_handle(MPI_BYTE), dest, sendtag,
                     buf, count, datatype, source, recvtag, comm, P2P_CONTEXT_USER, status);
    free(copy);
    return err;
}

/* ---- nonblocking send-receive: one request over two transfers ---- */

struct exchange {
    struct request base;
    struct list link; /* in `exchanges` while it runs */
    struct request *send, *recv;
    void *copy; /* of the replace form */
};

static struct list exchanges = {&exchanges, &exchanges};
static int n_exchanges;

static void exchange_destroy(struct request *r)
{
    struct exchange *x = (struct exchange *)r;

    comm_unref(x->base.comm);
    free(x->copy);
    free(x);
}

static const struct request_ops exchange_ops = {.destroy = exchange_destroy};

static int poll_exchanges(void)
{
    int n = 0;

    list_foreach_safe(it, &exchanges) {
        struct exchange *x = list_entry(it, struct exchange, link);
        if (!request_is_complete(x->send) || !request_is_complete(x->recv))
            continue;
        list_remove(it);
        n_exchanges--;
        n++;
        x->base.source = x->recv->source;
        x->base.tag = x->recv->tag;
        x->base.bytes = x->recv->bytes;
        int send_err = request_finish(x->send, MPI_STATUS_IGNORE);
        int recv_err = request_finish(x->recv, MPI_STATUS_IGNORE);
        request_complete(&x->base, recv_err ? recv_err : send_err);
    }
    return n;
}

static int start_exchange(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype,
                          int dest, int sendtag, void *recvbuf, MPI_Count recvcount,
                          struct datatype *recvtype, int source, int recvtag, struct comm *comm,
                          void *copy, struct request **ret_request)
{
    struct exchange *x = calloc(1, sizeof *x);

    if (!x)
        return err_set(MPI_ERR_NO_MEM, "no memory for a request");
    request_init(&x->base, &exchange_ops, comm, false);
    int err =
        p2p_irecv(recvbuf, recvcount, recvtype, source, recvtag, comm, P2P_CONTEXT_USER, &x->recv);
    if (!err) {
        err = p2p_isend(sendbuf, sendcount, sendtype, dest, sendtag, comm, P2P_CONTEXT_USER,
                        P2P_STANDARD, &x->send);
        if (err && x->recv->ops->cancel) {
            x->recv->ops->cancel(x->recv);
            request_release(x->recv);
        }
    }
    if (err) {
        free(x);
        return err;
    }
    comm_ref(comm);
    x->copy = copy;
    list_append(&exchanges, &x->link);
    n_exchanges++;
    progress_register(poll_exchanges, &n_exchanges, false);
    *ret_request = &x->base;
    return request_publish(MPI_SUCCESS, ret_request);
}

int mpi_isendrecv(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype, int dest,
                  int sendtag, void *recvbuf, MPI_Count recvcount, struct datatype *recvtype,
                  int source, int recvtag, struct comm *comm, struct request **ret_request)
{
    return start_exchange(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype,
                          source, recvtag, comm, NULL, ret_request);
}

int mpi_isendrecv_replace(void *buf, MPI_Count count, struct datatype *datatype, int dest,
                          int sendtag, int source, int recvtag, struct comm *comm,
                          struct request **ret_request)
{
    void *copy = pack_copy(buf, count, datatype);

    if (!copy)
        return no_room(count * datatype->size);
    int err =
        start_exchange(copy, count * datatype->size, datatype_from_handle(MPI_BYTE), dest, sendtag,
                       buf, count, datatype, source, recvtag, comm, copy, ret_request);
    if (err)
        free(copy);
    return err;
}
