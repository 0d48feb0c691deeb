/* SPDX-License-Identifier: BSD-3-Clause */
/* Persistent sends and receives (MPI-5.0 section 3.9): transfers that are set up once and started
 * again and again. */
#include "client/abi/semantics.h"
#include "client/object/err.h"
#include "client/p2p/transfer.h"

static int init(enum transfer_dir dir, enum p2p_mode mode, struct buffer buffer,
                struct envelope envelope, struct request **ret_request)
{
    struct engine *e = engine_of(envelope.comm);

    engine_enter(e);
    struct transfer *t = transfer_new(dir, buffer, envelope, true);
    engine_leave(e);
    if (!t)
        return err_set(MPI_ERR_NO_MEM, "no memory for a request");
    t->mode = (uint8_t)mode;
    *ret_request = &t->base;
    return request_publish(MPI_SUCCESS, ret_request);
}

int mpi_send_init(const void *buf, MPI_Count count, struct datatype *datatype, int dest, int tag,
                  struct comm *comm, struct request **ret_request)
{
    return init(TRANSFER_SEND, P2P_STANDARD, buffer_of(buf, count, datatype),
                envelope_user(comm, dest, tag), ret_request);
}

int mpi_ssend_init(const void *buf, MPI_Count count, struct datatype *datatype, int dest, int tag,
                   struct comm *comm, struct request **ret_request)
{
    return init(TRANSFER_SEND, P2P_SYNCHRONOUS, buffer_of(buf, count, datatype),
                envelope_user(comm, dest, tag), ret_request);
}

int mpi_rsend_init(const void *buf, MPI_Count count, struct datatype *datatype, int dest, int tag,
                   struct comm *comm, struct request **ret_request)
{
    return init(TRANSFER_SEND, P2P_READY, buffer_of(buf, count, datatype),
                envelope_user(comm, dest, tag), ret_request);
}

int mpi_recv_init(void *buf, MPI_Count count, struct datatype *datatype, int source, int tag,
                  struct comm *comm, struct request **ret_request)
{
    return init(TRANSFER_RECV, P2P_STANDARD, buffer_of(buf, count, datatype),
                envelope_user(comm, source, tag), ret_request);
}
