/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/p2p/p2p.h"

#include "client/object/err.h"
#include "client/p2p/outbound.h"
#include "client/p2p/transfer.h"

int p2p_init(void)
{
    int err = vci_init(transport_here->base ? transport_here->layout.shape.n_vcis : 1);

    if (err)
        return err;
    return engine_init() ? err_set(MPI_ERR_NO_MEM, "no memory for the message queues")
                         : MPI_SUCCESS;
}

void p2p_deinit(void)
{
    engine_deinit();
}

static int no_memory(void)
{
    return err_set(MPI_ERR_NO_MEM, "no memory for a request");
}

/* Blocks until the transfer is over. */
static int wait_for(struct transfer *t, MPI_Status *status)
{
    return request_wait(&t->base, status);
}

static int send_slow(struct buffer message, struct envelope to, enum p2p_mode mode, bool sole)
{
    struct engine *e = engine_of(to.comm);

    engine_enter(e);
    struct transfer *t = transfer_new(TRANSFER_SEND, message, to, false);
    if (t) {
        t->mode = (uint8_t)mode;
        t->blocking = true;
        t->sole = sole;
        transfer_start_send(t);
    }
    engine_leave(e);
    return t ? wait_for(t, MPI_STATUS_IGNORE) : no_memory();
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
    struct transfer *t = transfer_new(TRANSFER_SEND, message, to, false);
    if (t) {
        t->mode = (uint8_t)mode;
        transfer_start_send(t);
        transfer_left(t);
        *ret_request = &t->base;
    }
    engine_leave(e);
    return t ? MPI_SUCCESS : no_memory();
}

/* A receive is posted: `blocking` if the caller will wait inside the library. NULL: no memory. */
static struct transfer *post(struct buffer room, struct envelope from, bool blocking)
{
    struct engine *e = engine_of(from.comm);

    engine_enter(e);
    struct transfer *t = transfer_new(TRANSFER_RECV, room, from, false);
    if (t) {
        t->blocking = blocking;
        transfer_start_recv(t);
        if (!blocking)
            transfer_left(t);
    }
    engine_leave(e);
    return t;
}

int p2p_recv(struct buffer room, struct envelope from, MPI_Status *status)
{
    struct transfer *t = post(room, from, true);

    return t ? wait_for(t, status) : no_memory();
}

int p2p_irecv(struct buffer room, struct envelope from, struct request **ret_request)
{
    struct transfer *t = post(room, from, false);

    if (!t)
        return no_memory();
    *ret_request = &t->base;
    return MPI_SUCCESS;
}

int p2p_sendrecv(struct buffer message, struct envelope to, struct buffer room,
                 struct envelope from, MPI_Status *status)
{
    /* A short message leaves first: posting the receive then costs the time in which the other
     * side's is on its way. */
    bool sent = send_short(&message, &to);
    struct transfer *recv = post(room, from, true);

    if (!recv)
        return no_memory();
    int send_err = sent ? MPI_SUCCESS : send_slow(message, to, P2P_STANDARD, false);
    int recv_err = wait_for(recv, status);
    return send_err ? send_err : recv_err;
}
