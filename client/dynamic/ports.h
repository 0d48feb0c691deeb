/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports of MPI-5.0 section 11.9, also for joining over a socket (join.c). With the library lock. */
#ifndef MOTET_CLIENT_DYNAMIC_PORTS_H
#define MOTET_CLIENT_DYNAMIC_PORTS_H

#include "client/object/comm.h"
#include "client/transport/foreign.h"

/* Asks the daemon and waits for its answer. MPI_SUCCESS, or the class of what it says. */
int ports_ask(struct attach_ask *ask, struct foreign_request *ret_request);
/* Collective over comm; port and timeout count at the root. */
int ports_meet(enum attach_wish wish, const char *port, uint32_t timeout_ms, int root,
               struct comm *comm, struct comm **ret_intercomm);

#endif
