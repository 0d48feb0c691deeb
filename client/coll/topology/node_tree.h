/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tree over the nodes of a group of processes: along the networks, and within each network by
 * halves, or in a chain.
 *
 * Where levels.h says how networks hang together, this says for each node which other node it takes
 * from and gives to, so that a payload which runs along the tree crosses each border between two
 * networks once. It begins at the root's node, or outside the group: at a node from which several
 * of its branches may start. By halves, each node has at most log2 nodes children in its network,
 * and a subtree within a network is a row of its nodes; in a chain, which is for long payloads,
 * nodes have as few neighbours as may be.
 *
 * Used by noncommutative.c, chain.c and the collectives of intercommunicators, with the library
 * lock held.
 */
#ifndef MOTET_CLIENT_COLL_TOPOLOGY_NODE_TREE_H
#define MOTET_CLIENT_COLL_TOPOLOGY_NODE_TREE_H

#include "client/coll/family/coll.h"
#include "client/coll/topology/node_groups.h"

#define NODE_TREE_TOP (-1)

struct node_tree {
    const struct coll_comm *shape;
    int *parent; /* [n_nodes] node; NODE_TREE_TOP: the root's, or one that speaks with the source
                  * outside
                  */
    int *order;  /* [n_nodes] each node behind its parent */
    int height;  /* edges from a top to the farthest node */
};

/* From a node, over the groups of the levels. False: no memory, and s says so. */
bool node_tree_of_root(struct schedule *s, struct levels *levels, int root_node,
                       struct node_tree *ret_tree);
/* From a node, in chains, for blocks of each node's own. */
bool node_tree_of_chains(struct schedule *s, struct levels *levels, int root_node,
                         struct node_tree *ret_tree);
/* From a node of the job, over the networks of a shape; NULL: there was no memory for it. */
bool node_tree_from(struct schedule *s, const struct coll_comm *shape, int job_node,
                    struct node_tree *ret_tree);

/* The children of a node, or with NODE_TREE_TOP the tops; those in other networks, and those with
 * most behind them, come first. NULL: no memory. */
int *node_tree_children(struct schedule *s, const struct node_tree *tree, int node, int *ret_n);

#endif
