/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives on intercommunicators (MPI-5.0 section 6.2.2): data goes from one group to the other.
 *
 * A payload that a group hands to the other one crosses a border between networks only where
 * somebody behind it wants it: it goes straight from its source to the nodes of the receiving group
 * that begin the branches of a tree around the source (node_tree.h), and along that tree. Where a
 * group combines operands first, it does so along a tree towards who wants the result. The parts
 * within a group run over comm->local_comm with the algorithms for intracommunicators. What is
 * another payload for each pair of ranks is sent directly.
 *
 * Arguments as in coll.h; roots are MPI_ROOT, MPI_PROC_NULL or a rank of the remote group. Blocks
 * with one entry per rank describe the group that the standard says: the remote one for what is
 * received in gather, allgather and alltoall, the local one in reduce_scatter.
 */
#ifndef MOTET_CLIENT_COLL_INTER_INTER_H
#define MOTET_CLIENT_COLL_INTER_INTER_H

#include "client/coll/family/coll.h"

void inter_barrier(struct schedule *s);
void inter_bcast(struct schedule *s, struct buffer buf, int root);
void inter_gather(struct schedule *s, struct buffer send, const struct blocks *recv, int root);
void inter_scatter(struct schedule *s, const struct blocks *send, struct buffer recv, int root);
void inter_allgather(struct schedule *s, struct buffer send, const struct blocks *recv);
void inter_alltoall(struct schedule *s, const struct blocks *send, const struct blocks *recv);
void inter_reduce(struct schedule *s, const void *send, struct buffer recv, struct op *op,
                  int root);
void inter_allreduce(struct schedule *s, const void *send, struct buffer recv, struct op *op);
void inter_reduce_scatter(struct schedule *s, const void *send, void *recv,
                          const struct blocks *counts, struct op *op);

#endif
