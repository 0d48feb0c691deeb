/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on memory within reach: the own window's, and what ranks of the node share. */
#ifndef MOTET_CLIENT_RMA_DIRECT_H
#define MOTET_CLIENT_RMA_DIRECT_H

#include "client/rma/origin.h"

/* 0, or MPI_ERR_RMA_RANGE where a dynamic window has no memory, MPI_ERR_NO_MEM. */
int direct_do(const struct operation_call *call);

#endif
