/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ranks access a file for all in a two-phase collective: so many of each node, as far as
 * possible, that every node's memory and network take part and each byte crosses to one other node
 * at most. */
#ifndef MOTET_CLIENT_IO_AGGREGATORS_H
#define MOTET_CLIENT_IO_AGGREGATORS_H

#include "client/io/file.h"

/* wanted: the hint cb_nodes, or 0. The same on all ranks. MPI_ERR_NO_MEM. */
int aggregators_choose(struct aggregators *a, const struct comm *comm, int wanted);

#endif
