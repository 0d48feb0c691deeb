/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives in two levels: between one leader per node, and within each node.
 *
 * A payload crosses the border between two nodes once per node instead of once per rank. The leader of a node
 * is its lowest rank, for rooted operations the root on its own node. Only for whole communicators that span
 * several nodes (select.c); reductions keep the order of operands when every node holds a row of ranks.
 */
#ifndef MOTET_CLIENT_COLL_HIERARCHY_H
#define MOTET_CLIENT_COLL_HIERARCHY_H

#include "client/coll/coll.h"

void hierarchy_barrier(struct schedule *s);
void hierarchy_bcast(struct schedule *s, void *buf, MPI_Count count, struct datatype *type, int root);
/* In place is resolved, as in algorithms.h. */
void hierarchy_reduce(struct schedule *s, const void *send, void *recv, MPI_Count count,
                      struct datatype *type, struct op *op, int root);
void hierarchy_allreduce(struct schedule *s, const void *send, void *recv, MPI_Count count,
                         struct datatype *type, struct op *op);

#endif
