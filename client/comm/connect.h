/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for the daemon about connections with other jobs. With the library lock held, which is
 * given up while it waits. */
#ifndef MOTET_CLIENT_COMM_CONNECT_H
#define MOTET_CLIENT_COMM_CONNECT_H

#include "client/transport/foreign.h"

/* Makes the ranks at the other end of the connection peers. The reference is the caller's.
 * MPI_ERR_OTHER with the daemon's reason, or MPI_ERR_NO_MEM. */
int connect_claim(uint64_t number, struct foreign **ret_foreign);

/* Until the request is answered; MPI_ERR_OTHER when the daemon is gone. */
int connect_wait(struct foreign_request *request);

#endif
