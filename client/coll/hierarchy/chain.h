/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long blocks of all nodes to all nodes, and operands for them back, over the tree of networks: for
 * hierarchy_blocks.c.
 *
 * The leaders of the nodes form a tree of chains (node_tree.h). Each passes on what comes from one
 * neighbour to all others, nearest blocks first, so that each block crosses each border once and
 * all cards work at the same time, in and out. A reduction goes the same ways backwards: for each
 * node's block, what one side of the tree has is combined on the way to it, blocks for the farthest
 * nodes first. Flooding of a tree; per edge (blocks of one side) beta + (nodes) alpha each way, at
 * the same time on all edges but where a node has more than two.
 */
#ifndef MOTET_CLIENT_COLL_HIERARCHY_CHAIN_H
#define MOTET_CLIENT_COLL_HIERARCHY_CHAIN_H

#include "client/coll/family/coll.h"
#include "client/coll/topology/node_groups.h"

/* Of each node, in bytes or elements. */
struct chain_blocks {
    MPI_Count *at, *n; /* [n_nodes] */
};

/* Called on the leaders of all nodes. The own node's block is in its place. */
void chain_allgather(struct schedule *s, struct node_groups *groups, unsigned char *packed,
                     const struct chain_blocks *blocks);
/* acc: this node's operands for all blocks; then its own block is the result. The operation
 * commutes. */
void chain_reduce_scatter(struct schedule *s, struct node_groups *groups, void *acc,
                          const struct chain_blocks *blocks, struct datatype *type, struct op *op);

#endif
