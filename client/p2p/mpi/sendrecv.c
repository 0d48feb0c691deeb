/* SPDX-License-Identifier: BSD-3-Clause */
/* The MPI functions that send one message and receive another (MPI-5.0 section 3.10). */
#include <stdlib.h>

#include "client/abi/semantics.h"
#include "client/client.h"
#include "client/object/err.h"
#include "client/p2p/p2p.h"
#include "client/p2p/transfer.h"
#include "client/progress/progress.h"

int mpi_sendrecv(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype, int dest,
                 int sendtag, void *recvbuf, MPI_Count recvcount, struct datatype *recvtype,
                 int source, int recvtag, struct comm *comm, MPI_Status *status)
{
    return p2p_sendrecv(buffer_of(sendbuf, sendcount, sendtype), envelope_user(comm, dest, sendtag),
                        buffer_of(recvbuf, recvcount, recvtype),
                        envelope_user(comm, source, recvtag), status);
}

/* The outgoing data packed, since the incoming data takes its place. NULL: no memory. */
static void *sendrecv_copy(const struct buffer *buffer, size_t n_bytes)
{
    void *copy = malloc(n_bytes ? n_bytes : 1);

    if (copy)
        transfer_pack_all(buffer, copy, n_bytes);
    else
        err_set(MPI_ERR_NO_MEM, "no memory for a copy of %zu bytes", n_bytes);
    return copy;
}

int mpi_sendrecv_replace(void *buf, MPI_Count count, struct datatype *datatype, int dest,
                         int sendtag, int source, int recvtag, struct comm *comm,
                         MPI_Status *status)
{
    struct buffer buffer = buffer_of(buf, count, datatype);
    MPI_Count n_bytes = count * datatype->size;
    void *copy = sendrecv_copy(&buffer, (size_t)n_bytes);

    if (!copy)
        return MPI_ERR_NO_MEM;
    int err = p2p_sendrecv(buffer_of(copy, n_bytes, datatype_from_handle(MPI_BYTE)),
                           envelope_user(comm, dest, sendtag), buffer,
                           envelope_user(comm, source, recvtag), status);
    free(copy);
    return err;
}

/* ---- nonblocking send-receive: one request over two transfers ---- */

struct sendrecv {
    struct request base;
    struct list link; /* in sendrecv_here->running until it is complete */
    struct request *send, *recv;
    void *copy; /* of the replace form */
};

struct sendrecv_state {
    struct list running;
    int n_running;
};
static struct sendrecv_state sendrecv_first;
static struct sendrecv_state *sendrecv_here = &sendrecv_first;

static void sendrecv_part_init(void)
{
    list_init(&sendrecv_here->running);
}
CLIENT_PART(sendrecv_here, sendrecv_first, .init = sendrecv_part_init);

static void sendrecv_destroy(struct request *r)
{
    struct sendrecv *x = (struct sendrecv *)r;

    comm_unref(x->base.comm);
    free(x->copy);
    free(x);
}

static const struct request_ops sendrecv_ops = {.destroy = sendrecv_destroy};

static int sendrecv_poll(void)
{
    int n = 0;

    list_foreach_safe(it, &sendrecv_here->running) {
        struct sendrecv *x = list_entry(it, struct sendrecv, link);
        if (!request_is_complete(x->send) || !request_is_complete(x->recv))
            continue;
        list_remove(it);
        sendrecv_here->n_running--;
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

/* `copy` is the request's if this succeeds. */
static int sendrecv_start(struct buffer message, struct envelope to, struct buffer room,
                          struct envelope from, void *copy, struct request **ret_request)
{
    struct sendrecv *x = calloc(1, sizeof *x);

    if (!x)
        return err_set(MPI_ERR_NO_MEM, "no memory for a request");
    request_init(&x->base, &sendrecv_ops, to.comm, false);
    int err = p2p_irecv(room, from, &x->recv);
    if (!err) {
        err = p2p_isend(message, to, P2P_STANDARD, &x->send);
        if (err && x->recv->ops->cancel) {
            x->recv->ops->cancel(x->recv);
            request_release(x->recv);
        }
    }
    if (err) {
        free(x);
        return err;
    }
    comm_ref(to.comm);
    x->copy = copy;
    list_append(&sendrecv_here->running, &x->link);
    sendrecv_here->n_running++;
    progress_register(sendrecv_poll, &sendrecv_here->n_running, false);
    *ret_request = &x->base;
    return request_publish(MPI_SUCCESS, ret_request);
}

int mpi_isendrecv(const void *sendbuf, MPI_Count sendcount, struct datatype *sendtype, int dest,
                  int sendtag, void *recvbuf, MPI_Count recvcount, struct datatype *recvtype,
                  int source, int recvtag, struct comm *comm, struct request **ret_request)
{
    return sendrecv_start(buffer_of(sendbuf, sendcount, sendtype),
                          envelope_user(comm, dest, sendtag),
                          buffer_of(recvbuf, recvcount, recvtype),
                          envelope_user(comm, source, recvtag), NULL, ret_request);
}

int mpi_isendrecv_replace(void *buf, MPI_Count count, struct datatype *datatype, int dest,
                          int sendtag, int source, int recvtag, struct comm *comm,
                          struct request **ret_request)
{
    struct buffer buffer = buffer_of(buf, count, datatype);
    MPI_Count n_bytes = count * datatype->size;
    void *copy = sendrecv_copy(&buffer, (size_t)n_bytes);

    if (!copy)
        return MPI_ERR_NO_MEM;
    int err = sendrecv_start(buffer_of(copy, n_bytes, datatype_from_handle(MPI_BYTE)),
                             envelope_user(comm, dest, sendtag), buffer,
                             envelope_user(comm, source, recvtag), copy, ret_request);
    if (err)
        free(copy);
    return err;
}
