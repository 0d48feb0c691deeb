/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's place in the groups of nodes and in a tree over them: whom it speaks with in a
 * collective of hierarchy.h. The borders are those of the node tree (topology/node_tree.h).
 */
#ifndef MOTET_CLIENT_COLL_HIERARCHY_PLACE_H
#define MOTET_CLIENT_COLL_HIERARCHY_PLACE_H

#include "client/coll/schedule/schedule.h"
#include "client/coll/topology/group_tree.h"
#include "client/coll/topology/shape.h"

struct place {
    struct node_groups *groups;
    const struct group_tree *tree;
    struct schedule_view whole;
    struct schedule_view node;  /* the ranks of this node */
    struct schedule_view group; /* the leaders of this group; rank -1 on other ranks */
    int node_leader;            /* place of the leader in `node` */
    int entry; /* place in `group` of the leader that speaks with the parent: the root's, or any, in
                  the root's group */
    int my_group, my_node;
    int top; /* node with which the tree begins: the root's, or one that speaks with a child */
    int root, root_node; /* -1: no root */
    int partner; /* child of the tree's root with which it exchanges results as equals, or -1 */
};

/* With a root rank, or with root -1 and the groups' centre. False: no memory, and s says so. */
bool place_find(struct schedule *s, struct node_groups *groups, int root, enum group_tree_load load,
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
    const struct node_groups *l = p->groups;
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
/* Node of the parent's group that speaks with a group. */
int place_node_above(const struct place *p, int group);

/* Two groups that lead to equally far ends meet as equals: one crossing less than by way of a
 * root. */
void place_meet_as_equals(struct place *p);
/* Rank that the entries of the two groups that meet as equals exchange with; -1 on all other
 * ranks. */
int place_partner(const struct place *p);

#endif
