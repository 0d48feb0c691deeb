/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Comm_split as a function of the library. */
#ifndef MOTET_CLIENT_COMM_SPLIT_H
#define MOTET_CLIENT_COMM_SPLIT_H

#include "client/object/comm.h"

/* color: not negative or MPI_UNDEFINED. Intercommunicators as well. *ret_newcomm is NULL for
 * MPI_UNDEFINED. */
int split_comm(struct comm *comm, int color, int key, struct comm **ret_newcomm);

#endif
