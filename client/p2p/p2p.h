/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Point-to-point communication, as the layers above use it; the MPI functions are in send.c and
 * mpi/. Called with the library lock held, or with that of the communicator's vci alone
 * (client/progress/vci.h); blocking calls give it up between polls.
 *
 * Protocols: up to 32 bytes ride in the ring's slot; up to the eager limit of the way, in the
 * ring's data area (eager.h); larger ones are announced (announce.h) and then read by the receiver
 * out of the sender's memory (same node) or pulled through the rings (rendezvous.h).
 */
#ifndef MOTET_CLIENT_P2P_P2P_H
#define MOTET_CLIENT_P2P_P2P_H

#include "mpi.h"

#include <stdbool.h>

#include "client/datatype/buffer.h"
#include "client/datatype/datatype.h"
#include "client/object/comm.h"
#include "client/p2p/envelope.h"
#include "client/progress/request.h"

/*
 * Arguments have been checked by the caller (the bindings, for user calls).
 * Errors: MPI_ERR_NO_MEM, MPI_ERR_TRUNCATE (receive, with a detail text), MPI_ERR_OTHER when the
 * destination cannot be reached.
 */
int p2p_send(struct buffer message, struct envelope to, enum p2p_mode mode);
int p2p_isend(struct buffer message, struct envelope to, enum p2p_mode mode,
              struct request **ret_request);
int p2p_recv(struct buffer room, struct envelope from, MPI_Status *status);
int p2p_irecv(struct buffer room, struct envelope from, struct request **ret_request);
/* Both in one communicator. */
int p2p_sendrecv(struct buffer message, struct envelope to, struct buffer room,
                 struct envelope from, MPI_Status *status);

/* Set-up after job_attach and end before job_detach. 0 or an MPI error class. */
int p2p_init(void);
void p2p_deinit(void);

#endif
