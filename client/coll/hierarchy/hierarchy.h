/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives in groups of nodes: within each node, among the nodes of each group, and along a tree
 * over the groups (topology/group_tree.h).
 *
 * Two kinds of group: with all nodes in one ("nodes" in the table), a payload crosses the border
 * between two nodes once per node instead of once per rank; with a group for each network
 * ("networks"), it also crosses each border between networks once, in few large messages. The
 * leader of a node is its lowest rank, for rooted operations the root on its own node.
 *
 * Only for whole communicators (choice/select.c says when); within a node and among the leaders of
 * a group they call coll.h again, so that the table chooses there too. hierarchy.c: barrier,
 * broadcast, reductions; the operations with a block for each rank have a file each.
 */
#ifndef MOTET_CLIENT_COLL_HIERARCHY_HIERARCHY_H
#define MOTET_CLIENT_COLL_HIERARCHY_HIERARCHY_H

#include "client/coll/algorithms/algorithms.h"
#include "client/coll/family/coll.h"
#include "client/coll/hierarchy/place.h"

/* The two kinds of groups of a communicator with several nodes. */
static inline struct node_groups *hierarchy_nodes(const struct schedule *s)
{
    return coll_shape_of(s->view.comm)->nodes;
}
static inline struct node_groups *hierarchy_networks(const struct schedule *s)
{
    return coll_shape_of(s->view.comm)->networks;
}

#endif
