/* SPDX-License-Identifier: BSD-3-Clause */
/* Persistent sends and receives (MPI-5.0 section 3.9): transfers that are set up once and started
 * again and again. */
#include "client/abi/semantics.h"
#include "client/object/err.h"
#include "client/p2p/inbound.h"
#include "client/p2p/outbound.h"

/* Back into the state before the start. */
static void persistent_rewind(struct request *r)
{
    request_set_complete(r, false);
    r->active = true;
    r->cancelled = false;
    r->error = MPI_SUCCESS;
    r->source = MPI_ANY_SOURCE;
    r->tag = MPI_ANY_TAG;
    r->bytes = 0;
}

static int persistent_start(struct request *r)
{
    struct transfer *t = transfer_of(r);

    engine_enter(t->engine);
    persistent_rewind(r);
    if (t->dir == TRANSFER_SEND)
        outbound_start(t);
    else
        inbound_start(t);
    transfer_left(t);
    engine_leave(t->engine);
    return MPI_SUCCESS;
}

static const struct request_ops persistent_ops = {
    .destroy = transfer_destroy, .cancel = transfer_cancel, .start = persistent_start};

static int persistent_init(enum transfer_dir dir, enum p2p_mode mode, struct buffer buffer,
                           struct envelope envelope, struct request **ret_request)
{
    struct engine *e = engine_of(envelope.comm);

    engine_enter(e);
    struct transfer *t = transfer_new(dir, buffer, envelope);
    engine_leave(e);
    if (!t)
        return err_set(MPI_ERR_NO_MEM, "no memory for a request");
    t->mode = (uint8_t)mode;
    t->base.ops = &persistent_ops;
    t->base.persistent = true;
    t->base.active = false;
    *ret_request = &t->base;
    return request_publish(MPI_SUCCESS, ret_request);
}

int mpi_send_init(const void *buf, MPI_Count count, struct datatype *datatype, int dest, int tag,
                  struct comm *comm, struct request **ret_request)
{
    return persistent_init(TRANSFER_SEND, P2P_STANDARD, buffer_of(buf, count, datatype),
                           envelope_user(comm, dest, tag), ret_request);
}

int mpi_ssend_init(const void *buf, MPI_Count count, struct datatype *datatype, int dest, int tag,
                   struct comm *comm, struct request **ret_request)
{
    return persistent_init(TRANSFER_SEND, P2P_SYNCHRONOUS, buffer_of(buf, count, datatype),
                           envelope_user(comm, dest, tag), ret_request);
}

int mpi_rsend_init(const void *buf, MPI_Count count, struct datatype *datatype, int dest, int tag,
                   struct comm *comm, struct request **ret_request)
{
    return persistent_init(TRANSFER_SEND, P2P_READY, buffer_of(buf, count, datatype),
                           envelope_user(comm, dest, tag), ret_request);
}

int mpi_recv_init(void *buf, MPI_Count count, struct datatype *datatype, int source, int tag,
                  struct comm *comm, struct request **ret_request)
{
    return persistent_init(TRANSFER_RECV, P2P_STANDARD, buffer_of(buf, count, datatype),
                           envelope_user(comm, source, tag), ret_request);
}
