/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Node trees (topology/node_tree.h) in the memory of a schedule: made anew for each call, since
 * most depend on its root. NULL or false: no memory, and s says so.
 */
#ifndef MOTET_CLIENT_COLL_HIERARCHY_TREE_H
#define MOTET_CLIENT_COLL_HIERARCHY_TREE_H

#include "client/coll/hierarchy/place.h"
#include "client/coll/topology/node_tree.h"

bool tree_of(struct schedule *s, struct node_groups *groups, int top, enum node_tree_form form,
             struct node_tree *ret_tree);
/* In chains, from the top of a place, along its groups. */
bool tree_of_place(struct schedule *s, const struct place *p, struct node_tree *ret_tree);
/* shape NULL: there was no memory for it. */
bool tree_from(struct schedule *s, const struct shape *shape, int job_node,
               struct node_tree *ret_tree);
int *tree_children(struct schedule *s, const struct node_tree *tree, int node, int *ret_n);

#endif
