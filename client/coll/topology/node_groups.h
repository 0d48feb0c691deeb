/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The levels of a communicator above its nodes: groups of nodes that share a network, and trees
 * over the groups along the routes.
 *
 * A message between two groups passes gateways, a message within a group does not. A collective
 * that sends along a tree over the groups crosses each border between networks once, however many
 * ranks, nodes and networks lie behind it; data from one end of a chain of networks to the other is
 * taken in between and passed on. Each edge of a tree joins the two nodes that are nearest to one
 * another, so ranks on a gateway do the passing on where there are some.
 *
 * Built from the facts of the job (client/process/job.h) alone, hence equal on all members of the
 * communicator. Used by hierarchy.c, with the library lock held.
 */
#ifndef MOTET_CLIENT_COLL_TOPOLOGY_NODE_GROUPS_H
#define MOTET_CLIENT_COLL_TOPOLOGY_NODE_GROUPS_H

#include <stdbool.h>

struct coll_comm;
struct group;

/* From the parent's group to the own one; nodes as in coll_comm.leaders. */
struct levels_edge {
    int from, to; /* from -1: a source outside */
    int gateways; /* on the way */
};

struct levels_tree {
    int *parent; /* [n_groups] -1 for the root, and for all that speak with a source outside */
    int *order;  /* [n_groups] every group behind its parent */
    int *depth;  /* [n_groups] edges from the root */
    struct levels_edge *edge; /* [n_groups] to each group but the root */
    int height;               /* edges from the root to the farthest group */
    int peer; /* the only child of the root that leads to the farthest groups: the two may meet as
                 equals; -1 */
};

struct levels {
    int n_groups;    /* numbered by their lowest rank */
    int *group_of;   /* [n_nodes] */
    int *nodes;      /* [n_nodes] group after group, ascending within each */
    int *first;      /* [n_groups + 1] where each group begins in `nodes` */
    int *leaders;    /* [n_nodes] lowest rank on each node, in the order of `nodes` */
    int *ranks;      /* [size] node after node (numbered as in coll_comm), ascending within each */
    int *node_first; /* [n_nodes + 1] where each node begins in `ranks` */
    bool in_order;   /* each group, and each node, holds an unbroken row of ranks */
    int centre;      /* group from which the farthest one is nearest */
    struct levels_tree **trees; /* [n_groups][LEVELS_LOADS] by root, made on first use */
    struct coll_comm *shape;    /* what it was made from */
    int *job_node;              /* [n_nodes] */
};

/* By networks, or with all nodes in one group, of the group that the shape describes. NULL: no
 * memory. */
struct levels *levels_new(struct coll_comm *shape, const struct group *group, bool by_network);
void levels_free(struct levels *l); /* NULL is fine */

/* What runs along a tree. Where the ways from a group to two others branch off in a network without
 * ranks, a payload for all takes one of them and turns round behind it, so that it crosses each
 * border once; blocks of their own are better off on the direct ways. */
enum levels_load { LEVELS_PAYLOAD, LEVELS_BLOCKS, LEVELS_LOADS };

/* The tree of a root; of all with the fewest gateways the one of least height that greed finds.
 * NULL: no memory. */
const struct levels_tree *levels_tree_of(struct levels *l, int root, enum levels_load load);

/* The same for a payload from a node of the job that need not belong here, for the caller to free.
 * NULL: no memory. */
struct levels_tree *levels_tree_from(const struct levels *l, int job_node);
void levels_tree_free(struct levels_tree *t); /* NULL is fine */

/* Gateways on the shortest way between two nodes, and between two of the job. */
int levels_gateways(const struct levels *l, int node_a, int node_b);
int levels_gateways_of_job(int a, int b);

#endif
