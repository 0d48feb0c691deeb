/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The levels of a communicator above its nodes: groups of nodes that share a network, and trees over the groups along the routes.
 *
 * A message between two groups passes gateways, a message within a group does not. A collective that sends along a tree over the groups
 * crosses each border between networks once, however many ranks, nodes and networks lie behind it; data from one end of a chain of
 * networks to the other is taken in between and passed on. Each edge of a tree joins the two nodes that are nearest to one another, so
 * ranks on a gateway do the passing on where there are some.
 *
 * Built from the facts of the job (client/core/job.h) alone, hence equal on all members of the communicator. Used by hierarchy.c, with the
 * library lock held.
 */
#ifndef MOTET_CLIENT_COLL_LEVELS_H
#define MOTET_CLIENT_COLL_LEVELS_H

#include <stdbool.h>

struct coll_comm;
struct comm;

/* From the parent's group to the own one; nodes as in coll_comm.leaders. */
struct levels_edge {
    int from, to;
    int gateways; /* on the way */
};

struct levels_tree {
    int *parent;              /* [n_groups] -1 for the root */
    int *order;               /* [n_groups] every group behind its parent */
    int *depth;               /* [n_groups] edges from the root */
    struct levels_edge *edge; /* [n_groups] to each group but the root */
    int height;               /* edges from the root to the farthest group */
    bool in_order;            /* each group's subtree holds an unbroken row of ranks */
    int peer;                 /* the only child of the root that leads to the farthest groups: the two may meet as equals; -1 */
    bool peer_in_order;       /* what lies behind each of the two is an unbroken row of ranks */
};

struct levels {
    int n_groups;  /* numbered by their lowest rank */
    int *group_of; /* [n_nodes] */
    int *nodes;    /* [n_nodes] group after group, ascending within each */
    int *first;    /* [n_groups + 1] where each group begins in `nodes` */
    int *leaders;  /* [n_nodes] lowest rank on each node, in the order of `nodes` */
    int *ranks;    /* [size] node after node (numbered as in coll_comm), ascending within each */
    int *node_first; /* [n_nodes + 1] where each node begins in `ranks` */
    bool in_order; /* each group, and each node, holds an unbroken row of ranks */
    int centre;    /* group from which the farthest one is nearest, in_order if there is such a tree */
    struct levels_tree **trees; /* [n_groups] by root, made on first use */
    struct coll_comm *shape;    /* what it was made from */
    int *job_node;              /* [n_nodes] */
};

/* By networks, or with all nodes in one group. The shape must be filled in. NULL: no memory. */
struct levels *levels_new(struct comm *comm, bool by_network);
void levels_free(struct levels *l); /* NULL is fine */

/* The tree of a root; of all with the fewest gateways the one of least height that greed finds. NULL: no memory. */
const struct levels_tree *levels_tree_of(struct levels *l, int root);

/* Gateways on the shortest way between two nodes. */
int levels_gateways(const struct levels *l, int node_a, int node_b);

#endif
