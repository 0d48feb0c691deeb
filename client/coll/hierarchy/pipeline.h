/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long payloads over the tree of networks, for hierarchy.c: pipelines through all leaders.
 */
#ifndef MOTET_CLIENT_COLL_HIERARCHY_PIPELINE_H
#define MOTET_CLIENT_COLL_HIERARCHY_PIPELINE_H

#include "client/coll/hierarchy/place.h"

/* Is the payload long enough for the number of nodes? The same answer on all ranks. */
bool pipeline_suits(const struct node_groups *l, struct buffer buf);

/* In place is resolved; operations must commute. The root is the place's. */
void pipeline_bcast(struct schedule *s, const struct place *p, struct buffer buf);
void pipeline_reduce(struct schedule *s, const struct place *p, const void *send,
                     struct buffer recv, struct op *op);
/* Without root. */
void pipeline_allreduce(struct schedule *s, const struct place *p, const void *send,
                        struct buffer recv, struct op *op);

#endif
