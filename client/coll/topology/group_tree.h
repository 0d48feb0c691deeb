/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trees over the groups of a communicator's nodes, along the routes between networks.
 *
 * A message between two groups passes gateways, a message within a group does not. A collective
 * that sends along a tree over the groups crosses each border between networks once, however many
 * ranks, nodes and networks lie behind it; data from one end of a chain of networks to the other is
 * taken in between and passed on. Each edge of a tree joins the two nodes that are nearest to one
 * another, so ranks on a gateway do the passing on where there are some.
 *
 * Who speaks with whom follows in node_tree.h. With the library lock held.
 */
#ifndef MOTET_CLIENT_COLL_TOPOLOGY_GROUP_TREE_H
#define MOTET_CLIENT_COLL_TOPOLOGY_GROUP_TREE_H

#include "client/coll/topology/node_groups.h"

/* From the parent's group to the own one; nodes as in shape.leaders. */
struct group_edge {
    int from, to; /* from -1: a source outside */
    int gateways; /* on the way */
};

struct group_tree {
    int *parent; /* [n_groups] -1 for the root, and for all that speak with a source outside */
    int *order;  /* [n_groups] every group behind its parent */
    int *depth;  /* [n_groups] edges from the root */
    struct group_edge *edge; /* [n_groups] to each group but the root */
    int height;              /* edges from the root to the farthest group */
    int peer; /* the only child of the root that leads to the farthest groups: the two may meet as
                 equals; -1 */
};

/* What runs along a tree. Where the ways from a group to two others branch off in a network without
 * ranks, a payload for all takes one of them and turns round behind it, so that it crosses each
 * border once; blocks of their own are better off on the direct ways. */
enum group_tree_load {
    GROUP_TREE_PAYLOAD,
    GROUP_TREE_BLOCKS,
    GROUP_TREE_LOADS = NODE_GROUPS_TREES
};

/* The tree of a root; of all with the fewest gateways the one of least height that greed finds.
 * NULL: no memory. */
const struct group_tree *group_tree_of(struct node_groups *l, int root, enum group_tree_load load);

/* The same for a payload from a node of the job that need not belong here, for the caller to free.
 * NULL: no memory. */
struct group_tree *group_tree_from(const struct node_groups *l, int job_node);
void group_tree_free(struct group_tree *t); /* NULL is fine */

/* Finds the group from which the farthest one is nearest. False: no memory. */
bool group_tree_find_centre(struct node_groups *l);
/* All trees that were made of the groups; NULL is fine. */
void group_tree_free_all(struct node_groups *l);

#endif
