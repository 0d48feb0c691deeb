/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Point-to-point communication, as the layers above use it; the MPI functions are in send.c and
 * mpi/. Called with the library lock held, or with that of the communicator's vci alone
 * (client/progress/vci.h); blocking calls give it up between polls.
 *
 * Protocols: up to 32 bytes ride in the ring's slot; up to the eager limit of the way, in the
 * ring's data area (eager.h); larger ones are announced (announce.h) and then pulled through the
 * rings (rendezvous.h) or, within a node, read by the receiver out of the sender's memory.
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

/*
 * Messages that nobody has posted a receive for, in contexts that a layer above keeps to itself
 * (one-sided communication): it takes them as they come, in the order of their source. Vci 0 only.
 * `bytes`: of the whole message; payload: valid during the call, NULL of one that was announced,
 * which is then received as any other. True: taken; of a message with a payload the taker says by
 * p2p_taken() when it has no more need of the eager allowance.
 */
typedef bool p2p_taker(uint32_t context, int32_t source, int32_t tag, const void *payload,
                       MPI_Count bytes);
void p2p_set_taker(p2p_taker *taker);
void p2p_taken(uint32_t src_world, uint64_t bytes);

/* Set-up after job_attach and end before job_detach. 0 or an MPI error class. */
int p2p_init(void);
void p2p_deinit(void);

#endif
