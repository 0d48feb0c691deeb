/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Point-to-point communication, as the layers above use it. The MPI functions themselves are in
 * send.c, recv.c, probe.c, persistent.c and buffered.c. Called with the library lock held, or with
 * that of the communicator's vci alone (client/progress/vci.h); blocking calls give it up between
 * polls.
 *
 * Protocols (eager.c, rendezvous.c): up to 32 bytes ride in the ring's slot; up to the eager limit
 * of the way, in the ring's data area; larger ones are announced (RTS) and then read by the
 * receiver out of the sender's memory (same node) or pulled through the rings.
 */
#ifndef MOTET_CLIENT_P2P_P2P_H
#define MOTET_CLIENT_P2P_P2P_H

#include "mpi.h"

#include <stdbool.h>

#include "client/datatype/datatype.h"
#include "client/object/comm.h"
#include "client/progress/request.h"

enum p2p_mode { P2P_STANDARD, P2P_SYNCHRONOUS, P2P_READY };

/* Added to comm->context_id: traffic inside the library never meets the user's. */
enum p2p_context { P2P_CONTEXT_USER = 0, P2P_CONTEXT_COLL = 1, P2P_CONTEXT_PARTITIONED = 2 };

/*
 * dest/source: rank in comm_peers(comm), or MPI_PROC_NULL; source may be MPI_ANY_SOURCE, tag of a
 * receive MPI_ANY_TAG. Arguments have been checked by the caller (the bindings, for user calls).
 * Errors: MPI_ERR_NO_MEM, MPI_ERR_TRUNCATE (receive, with a detail text), MPI_ERR_OTHER when the
 * destination cannot be reached.
 */
int p2p_send(const void *buf, MPI_Count count, struct datatype *type, int dest, int tag,
             struct comm *comm, enum p2p_context context, enum p2p_mode mode);
int p2p_isend(const void *buf, MPI_Count count, struct datatype *type, int dest, int tag,
              struct comm *comm, enum p2p_context context, enum p2p_mode mode,
              struct request **ret_request);
int p2p_recv(void *buf, MPI_Count count, struct datatype *type, int source, int tag,
             struct comm *comm, enum p2p_context context, MPI_Status *status);
int p2p_irecv(void *buf, MPI_Count count, struct datatype *type, int source, int tag,
              struct comm *comm, enum p2p_context context, struct request **ret_request);
int p2p_sendrecv(const void *sbuf, MPI_Count scount, struct datatype *stype, int dest, int stag,
                 void *rbuf, MPI_Count rcount, struct datatype *rtype, int source, int rtag,
                 struct comm *comm, enum p2p_context context, MPI_Status *status);

/* Set-up after job_attach and end before job_detach. 0 or an MPI error class. */
int p2p_init(void);
void p2p_deinit(void);

#endif
