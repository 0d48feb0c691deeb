/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives in levels: within each node, among the nodes of each group, and along a tree over the
 * groups (levels.h).
 *
 * Two kinds of group: with all nodes in one ("nodes" in the table), a payload crosses the border
 * between two nodes once per node instead of once per rank; with a group for each network
 * ("networks"), it also crosses each border between networks once, in few large messages. The
 * leader of a node is its lowest rank, for rooted operations the root on its own node.
 *
 * Only for whole communicators (select.c says when); within a node and among the leaders of a group
 * they call coll.h again, so that the table chooses there too. hierarchy.c: barrier, broadcast,
 * reductions; hierarchy_blocks.c: operations with a block for each rank.
 */
#ifndef MOTET_CLIENT_COLL_HIERARCHY_HIERARCHY_H
#define MOTET_CLIENT_COLL_HIERARCHY_HIERARCHY_H

#include "client/coll/family/coll.h"
#include "client/coll/topology/node_groups.h"

/* The two kinds of levels of a communicator with several nodes. */
static inline struct levels *hierarchy_nodes(const struct schedule *s)
{
    return s->view.comm->coll->nodes;
}
static inline struct levels *hierarchy_networks(const struct schedule *s)
{
    return s->view.comm->coll->networks;
}

void hierarchy_barrier(struct schedule *s, struct levels *levels);
void hierarchy_bcast(struct schedule *s, struct levels *levels, struct buffer buf, int root);

/* In place is resolved, as in algorithms.h. Operations that do not commute go by noncommutative.h.
 */
void hierarchy_reduce(struct schedule *s, struct levels *levels, const void *send,
                      struct buffer recv, struct op *op, int root);
void hierarchy_allreduce(struct schedule *s, struct levels *levels, const void *send,
                         struct buffer recv, struct op *op);

/* Arguments as in coll.h; gather and scatter with blocks of one size. `recv` of allgather holds the
 * own block already. The operation of reduce_scatter must commute. */
void hierarchy_gather(struct schedule *s, struct levels *levels, struct buffer send,
                      const struct blocks *recv, int root);
void hierarchy_scatter(struct schedule *s, struct levels *levels, const struct blocks *send,
                       struct buffer recv, int root);
void hierarchy_allgather(struct schedule *s, struct levels *levels, const struct blocks *recv);
void hierarchy_reduce_scatter(struct schedule *s, struct levels *levels, const void *send,
                              void *recv, const struct blocks *counts, struct op *op);

/* ---- a rank's place in the levels, for the two files ---- */

struct place {
    struct levels *levels;
    const struct levels_tree *tree;
    struct schedule_view whole;
    struct schedule_view node;  /* the ranks of this node */
    struct schedule_view group; /* the leaders of this group; rank -1 on other ranks */
    int node_leader;            /* place of the leader in `node` */
    int entry; /* place in `group` of the leader that speaks with the parent: the root's, or any, in
                  the root's group */
    int my_group, my_node;
    int root, root_node; /* -1: no root */
    int partner; /* child of the tree's root with which it exchanges results as equals, or -1 */
};

/* With a root rank, or with root -1 and the levels' centre. False: no memory, and s says so. */
bool place_find(struct schedule *s, struct levels *levels, int root, enum levels_load load,
                struct place *ret_place);

static inline bool place_leads(const struct place *p)
{
    return p->group.rank >= 0;
}

static inline bool place_is_entry(const struct place *p)
{
    return p->group.rank == p->entry;
}

static inline int place_leader_of(const struct place *p, int node)
{
    const struct levels *l = p->levels;
    return node == p->root_node ? p->root : l->shape->leaders[node];
}

/* Rank that speaks with the parent of a group, and the parent's rank that speaks with the group. */
int place_below(const struct place *p, int group);
int place_above(const struct place *p, int group);
/* The own group has a parent to speak with. */
static inline bool place_has_parent(const struct place *p)
{
    return p->tree->parent[p->my_group] >= 0 && p->partner != p->my_group;
}
/* This rank speaks with a group as one of its parent's. */
bool place_has_child(const struct place *p, int group);
/* Node of a group that speaks with the parent; of the root's group, the root's or one that speaks
 * with a child. */
int place_entry_node(const struct place *p, int group);
/* Node of the parent's group that speaks with a group. */
int place_node_above(const struct place *p, int group);

#endif
