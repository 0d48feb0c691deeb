/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long payloads over the tree of networks, for hierarchy.c: pipelines through all leaders.
 */
#ifndef MOTET_CLIENT_COLL_HIERARCHY_PIPELINE_H
#define MOTET_CLIENT_COLL_HIERARCHY_PIPELINE_H

#include "client/coll/hierarchy/hierarchy.h"

/* Is the payload long enough for the number of nodes? The same answer on all ranks. */
bool chain_suits(const struct levels *l, MPI_Count count, const struct datatype *type);

/* In place is resolved; operations must commute. The root is the place's. */
void chain_bcast(struct schedule *s, const struct place *p, void *buf, MPI_Count count,
                 struct datatype *type);
void chain_reduce(struct schedule *s, const struct place *p, const void *send, void *recv,
                  MPI_Count count, struct datatype *type, struct op *op);
/* Without root. */
void chain_allreduce(struct schedule *s, const struct place *p, const void *send, void *recv,
                     MPI_Count count, struct datatype *type, struct op *op);

#endif
