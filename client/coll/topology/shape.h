/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a group of processes lies over the nodes of the job: which ranks share a node, and which
 * nodes a network.
 *
 * Built from the facts of the job alone, hence equal on all members but for what says "my". Made on
 * first use by the communicator's collectives, kept with it, with the library lock held.
 */
#ifndef MOTET_CLIENT_COLL_TOPOLOGY_SHAPE_H
#define MOTET_CLIENT_COLL_TOPOLOGY_SHAPE_H

#include <stdbool.h>

struct group;
struct node_groups;

/* The node of a member of such communicators that have processes of several jobs: all of them see
 * every node there as near as any other. */
#define NODE_APART (-1)

struct shape {
    int n_nodes;  /* nodes with at least one member */
    int *leaders; /* [n_nodes] lowest rank on each node, nodes in the order of their leaders */
    int *node_of; /* [size] index of each rank's node in leaders */
    int *members; /* [n_members] ranks on my node, ascending; none for a group without me */
    int n_members;
    int my_member;                        /* my place in members */
    bool apart;                           /* as given to shape_new */
    bool in_order;                        /* every node holds an unbroken row of ranks */
    struct node_groups *nodes, *networks; /* all nodes in one group, and a group for each network;
                                             NULL with one node */
};

/* rank: mine, or -1 where I am not in the group. `apart`: processes of several jobs use it, who do
 * not see nodes and networks alike; so each process counts as a node of its own, all on one
 * network. NULL: no memory. */
struct shape *shape_new(const struct group *group, int rank, bool apart);
void shape_free(struct shape *shape); /* NULL is fine */

#endif
