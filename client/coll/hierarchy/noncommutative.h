/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions that keep the order of ranks, over nodes and networks that hold the ranks in any
 * order.
 *
 * A run is a row of ranks r, r + 1, ... that all lie behind one node of a tree (node_tree.h). Each
 * node combines the operands of each run that it has complete, takes those of the nodes behind it,
 * joins runs that have become neighbours, and passes one partial result for each run on. At the top
 * one run is left: the result. So a border is crossed by one payload per run, and that once; by one
 * payload where nodes and networks hold rows of ranks. Scans pass back along the tree, for each
 * run, what all ranks before it add up to.
 *
 * Partial results travel in pieces, so that a node keeps 4 MiB at most (or an element for each
 * run), and all nodes of a long way work at once. Cost over a border: runs (alpha + n beta), each
 * way for scans; gamma n for each run that ends at a node.
 *
 * For operations that do not commute, for scans, and for intercommunicators. With the library lock
 * held; in place is resolved.
 */
#ifndef MOTET_CLIENT_COLL_HIERARCHY_NONCOMMUTATIVE_H
#define MOTET_CLIENT_COLL_HIERARCHY_NONCOMMUTATIVE_H

#include "client/coll/family/coll.h"
#include "client/coll/topology/node_groups.h"

/* The groups are those of the schedule's communicator, over all of which it runs. */
void noncommutative_reduce(struct schedule *s, struct node_groups *groups, const void *send,
                           struct buffer recv, struct op *op, int root);
void noncommutative_allreduce(struct schedule *s, struct node_groups *groups, const void *send,
                              struct buffer recv, struct op *op);
/* From all ranks of this side of an intercommunicator to a rank of the other one, and what that one
 * does. */
void noncommutative_reduce_across(struct schedule *s, struct buffer send, struct op *op, int root);
void noncommutative_take_across(struct schedule *s, struct buffer recv, struct op *op);

#endif
