/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The nodes of a communicator in groups that share a network, or all in one.
 *
 * Built from the facts of the job (client/process/job.h) alone, hence equal on all members of the
 * communicator. With the library lock held.
 */
#ifndef MOTET_CLIENT_COLL_TOPOLOGY_NODE_GROUPS_H
#define MOTET_CLIENT_COLL_TOPOLOGY_NODE_GROUPS_H

#include <stdbool.h>

struct group;
struct group_tree;
struct shape;

#define NODE_GROUPS_TREES 2 /* kinds of trees: enum group_tree_load */

struct node_groups {
    int n_groups;    /* numbered by their lowest rank */
    int *group_of;   /* [n_nodes] */
    int *nodes;      /* [n_nodes] group after group, ascending within each */
    int *first;      /* [n_groups + 1] where each group begins in `nodes` */
    int *leaders;    /* [n_nodes] lowest rank on each node, in the order of `nodes` */
    int *ranks;      /* [size] node after node (numbered as in the shape), ascending within each */
    int *node_first; /* [n_nodes + 1] where each node begins in `ranks` */
    bool in_order;   /* each group, and each node, holds an unbroken row of ranks */
    int centre;      /* group from which the farthest one is nearest */
    struct group_tree **trees; /* [n_groups][NODE_GROUPS_TREES] by root: group_tree.h */
    const struct shape *shape; /* what it was made from */
    int *job_node;             /* [n_nodes] */
};

/* By networks, or with all nodes in one group, of the group that the shape describes. NULL: no
 * memory. */
struct node_groups *node_groups_new(const struct shape *shape, const struct group *group,
                                    bool by_network);
void node_groups_free(struct node_groups *l); /* NULL is fine */

/* Gateways on the shortest way between two nodes, and between two of the job. */
int node_groups_gateways(const struct node_groups *l, int node_a, int node_b);
int node_groups_gateways_of_job(int a, int b);

#endif
