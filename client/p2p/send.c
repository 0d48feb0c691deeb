/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends and receives of one message: as other layers call them (p2p.h), and the MPI functions
 * (MPI-5.0 sections 3.2, 3.4 and 3.7; buffered ones: mpi/buffered.c). Both are here so that the
 * short path of the MPI functions is theirs and not a call away.
 */
#include "client/abi/semantics.h"
#include "client/object/err.h"
#include "client/p2p/inbound.h"
#include "client/p2p/outbound.h"
#include "client/p2p/p2p.h"

static int send_no_memory(void)
{
    return err_set(MPI_ERR_NO_MEM, "no memory for a request");
}

static int send_slow(struct buffer message, struct envelope to, enum p2p_mode mode, bool sole)
{
    struct engine *e = engine_of(to.comm);

    engine_enter(e);
    struct transfer *t = transfer_new(TRANSFER_SEND, message, to);
    if (t) {
        t->mode = (uint8_t)mode;
        t->blocking = true;
        t->sole = sole;
        outbound_start(t);
    }
    engine_leave(e);
    return t ? request_wait(&t->base, MPI_STATUS_IGNORE) : send_no_memory();
}

/* The short path: the message leaves at once, without a request, or nothing was done. */
static inline bool send_short(const struct buffer *message, const struct envelope *to)
{
    if (__builtin_expect(to->rank < 0, 0))
        return false;
    uint32_t world = (uint32_t)comm_peers(to->comm)->procs[to->rank];
    if (world == transport_here->world_rank)
        return false;
    struct engine *e = engine_of(to->comm);
    engine_enter(e);
    bool sent =
        outbound_try_eager(peer_get(e, world), message, message->count * message->type->size,
                           to->comm->context_id + to->context, to->comm->rank, to->tag);
    engine_leave(e);
    return sent;
}

int p2p_send(struct buffer message, struct envelope to, enum p2p_mode mode)
{
    if (__builtin_expect(mode != P2P_SYNCHRONOUS, 1) && send_short(&message, &to))
        return MPI_SUCCESS;
    return send_slow(message, to, mode, to.context == P2P_CONTEXT_USER);
}

int p2p_isend(struct buffer message, struct envelope to, enum p2p_mode mode,
              struct request **ret_request)
{
    struct engine *e = engine_of(to.comm);

    if (__builtin_expect(mode != P2P_SYNCHRONOUS && e->shares_sent, 1) &&
        send_short(&message, &to)) {
        *ret_request = &e->sent;
        return MPI_SUCCESS;
    }
    engine_enter(e);
    struct transfer *t = transfer_new(TRANSFER_SEND, message, to);
    if (t) {
        t->mode = (uint8_t)mode;
        outbound_start(t);
        transfer_left(t);
        *ret_request = &t->base;
    }
    engine_leave(e);
    return t ? MPI_SUCCESS : send_no_memory();
}

/* A receive is posted: `blocking` if the caller will wait inside the library. NULL: no memory. */
static struct transfer *send_post_recv(struct buffer room, struct envelope from, bool blocking)
{
    struct engine *e = engine_of(from.comm);

    engine_enter(e);
    struct transfer *t = transfer_new(TRANSFER_RECV, room, from);
    if (t) {
        t->blocking = blocking;
        inbound_start(t);
        if (!blocking)
            transfer_left(t);
    }
    engine_leave(e);
    return t;
}

int p2p_recv(struct buffer room, struct envelope from, MPI_Status *status)
{
    struct transfer *t = send_post_recv(room, from, true);

    return t ? request_wait(&t->base, status) : send_no_memory();
}

int p2p_irecv(struct buffer room, struct envelope from, struct request **ret_request)
{
    struct transfer *t = send_post_recv(room, from, false);

    if (!t)
        return send_no_memory();
    *ret_request = &t->base;
    return MPI_SUCCESS;
}

int p2p_sendrecv(struct buffer message, struct envelope to, struct buffer room,
                 struct envelope from, MPI_Status *status)
{
    /* A short message leaves first: posting the receive then costs the time in which the other
     * side's is on its way. */
    bool sent = send_short(&message, &to);
    struct transfer *recv = send_post_recv(room, from, true);

    if (!recv)
        return send_no_memory();
    int send_err = sent ? MPI_SUCCESS : send_slow(message, to, P2P_STANDARD, false);
    int recv_err = request_wait(&recv->base, status);
    return send_err ? send_err : recv_err;
}

/* ---- MPI ---- */

int mpi_send(const void *buf, MPI_Count count, struct datatype *datatype, int dest, int tag,
             struct comm *comm)
{
    return p2p_send(buffer_of(buf, count, datatype), envelope_user(comm, dest, tag), P2P_STANDARD);
}

int mpi_ssend(const void *buf, MPI_Count count, struct datatype *datatype, int dest, int tag,
              struct comm *comm)
{
    return p2p_send(buffer_of(buf, count, datatype), envelope_user(comm, dest, tag),
                    P2P_SYNCHRONOUS);
}

int mpi_rsend(const void *buf, MPI_Count count, struct datatype *datatype, int dest, int tag,
              struct comm *comm)
{
    return p2p_send(buffer_of(buf, count, datatype), envelope_user(comm, dest, tag), P2P_READY);
}

int mpi_isend(const void *buf, MPI_Count count, struct datatype *datatype, int dest, int tag,
              struct comm *comm, struct request **ret_request)
{
    return request_publish(p2p_isend(buffer_of(buf, count, datatype),
                                     envelope_user(comm, dest, tag), P2P_STANDARD, ret_request),
                           ret_request);
}

int mpi_issend(const void *buf, MPI_Count count, struct datatype *datatype, int dest, int tag,
               struct comm *comm, struct request **ret_request)
{
    return request_publish(p2p_isend(buffer_of(buf, count, datatype),
                                     envelope_user(comm, dest, tag), P2P_SYNCHRONOUS, ret_request),
                           ret_request);
}

int mpi_irsend(const void *buf, MPI_Count count, struct datatype *datatype, int dest, int tag,
               struct comm *comm, struct request **ret_request)
{
    return request_publish(p2p_isend(buffer_of(buf, count, datatype),
                                     envelope_user(comm, dest, tag), P2P_READY, ret_request),
                           ret_request);
}

int mpi_recv(void *buf, MPI_Count count, struct datatype *datatype, int source, int tag,
             struct comm *comm, MPI_Status *status)
{
    return p2p_recv(buffer_of(buf, count, datatype), envelope_user(comm, source, tag), status);
}

int mpi_irecv(void *buf, MPI_Count count, struct datatype *datatype, int source, int tag,
              struct comm *comm, struct request **ret_request)
{
    return request_publish(
        p2p_irecv(buffer_of(buf, count, datatype), envelope_user(comm, source, tag), ret_request),
        ret_request);
}
