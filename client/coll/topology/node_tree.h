/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tree of nodes: along the networks (group_tree.h), and within each network by halves, in a
 * chain, or not at all.
 *
 * It says for each node which other node it takes from and gives to, so that a payload which runs
 * along the tree crosses each border between two networks once. It begins at the root's node, or
 * outside the group: at a node from which several of its branches may start. By halves, each node
 * has at most log2 nodes children in its network, and a subtree within a network is a row of its
 * nodes; in a chain, which is for long payloads, nodes have as few neighbours as may be.
 *
 * The collectives of hierarchy.h, which hand a payload on within a network by a collective of the
 * leaders, ask for the nodes on the borders alone: node_tree_entry() and node_tree_above().
 */
#ifndef MOTET_CLIENT_COLL_TOPOLOGY_NODE_TREE_H
#define MOTET_CLIENT_COLL_TOPOLOGY_NODE_TREE_H

#include "client/coll/topology/group_tree.h"
#include "client/coll/topology/shape.h"

#include <stddef.h>

#define NODE_TREE_TOP (-1)

/* ---- the borders; top: the root's node, or -1: there is none, or it lies outside ---- */

/* Node of a group that speaks with the group above; of the group at the root, the top, or with a
 * source outside the one that speaks with it. */
int node_tree_entry(const struct group_tree *tree, int group, int top);
/* Node of the group above that speaks with a group: the nearest one, or the top if it is as near;
 * NODE_TREE_TOP for a group at the root. */
int node_tree_above(const struct node_groups *groups, const struct group_tree *tree, int group,
                    int top);

/* ---- the whole ---- */

enum node_tree_form { NODE_TREE_HALVES, NODE_TREE_CHAINS };

struct node_tree {
    const struct shape *shape;
    int *parent; /* [n_nodes] node; NODE_TREE_TOP: the root's, or one that speaks with the source
                    outside */
    int *order;  /* [n_nodes] each node behind its parent */
    int height;  /* edges from a top to the farthest node */
};

/* Bytes of the memory in which a tree is built, which the caller gives and keeps. */
static inline size_t node_tree_bytes(const struct shape *shape)
{
    return 4 * (size_t)shape->n_nodes * sizeof(int);
}

/* From a node, over the groups. False: no memory. */
bool node_tree_of(struct node_groups *groups, int top, enum node_tree_form form, void *memory,
                  struct node_tree *ret_tree);
/* The same in a tree of groups, of which the top lies in the one at the root. */
void node_tree_in(const struct node_groups *groups, const struct group_tree *tree, int top,
                  enum node_tree_form form, void *memory, struct node_tree *ret_tree);
/* By halves from a node of the job that need not belong here, over the networks of the shape.
 * False: no memory. */
bool node_tree_from(const struct shape *shape, int job_node, void *memory,
                    struct node_tree *ret_tree);

/* Fills children ([n_nodes]) with those of a node, or with NODE_TREE_TOP with the tops; those in
 * other networks, and those with most behind them, come first. Returns how many. */
int node_tree_children(const struct node_tree *tree, int node, int *children);

#endif
