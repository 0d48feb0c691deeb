/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/hierarchy/place.h"

#include "client/coll/topology/node_tree.h"

#include <string.h>

int place_below(const struct place *p, int group)
{
    return place_leader_of(p, p->tree->edge[group].to);
}

int place_node_above(const struct place *p, int group)
{
    return node_tree_above(p->groups, p->tree, group, p->root_node);
}

int place_above(const struct place *p, int group)
{
    return place_leader_of(p, place_node_above(p, group));
}

bool place_has_child(const struct place *p, int group)
{
    return place_leads(p) && p->tree->parent[group] == p->my_group && group != p->partner &&
           place_node_above(p, group) == p->my_node;
}

bool place_find(struct schedule *s, struct node_groups *groups, int root, enum group_tree_load load,
                struct place *ret_place)
{
    struct comm *comm = s->view.comm;
    const struct shape *c = groups->shape;
    int my_node = c->node_of[comm->rank], root_node = root < 0 ? -1 : c->node_of[root];
    int group = groups->group_of[my_node], first = groups->first[group],
        n = groups->first[group + 1] - first;
    const struct group_tree *tree =
        group_tree_of(groups, root < 0 ? groups->centre : groups->group_of[root_node], load);
    int first_child = tree && groups->n_groups > 1 && tree->peer < 0 ? tree->order[1]
                      : tree                                         ? tree->peer
                                                                     : -1;
    int *leaders = groups->leaders + first;
    if (root >= 0 && groups->group_of[root_node] == group && c->leaders[root_node] != root) {
        leaders = schedule_temp(s, (size_t)n * sizeof(int));
        if (leaders)
            memcpy(leaders, groups->leaders + first, (size_t)n * sizeof(int));
    }
    if (!tree)
        schedule_no_memory(s);
    if (s->broken)
        return false;
    *ret_place = (struct place){
        .groups = groups,
        .tree = tree,
        .whole = s->view,
        .node = {.comm = comm, .rank = c->my_member, .size = c->n_members, .map = c->members},
        .group = {.comm = comm, .rank = -1, .size = n, .map = leaders},
        .my_group = group,
        .my_node = my_node,
        .root = root,
        .root_node = root_node,
        .partner = -1,
    };
    ret_place->top = root >= 0              ? root_node
                     : groups->n_groups > 1 ? tree->edge[first_child].from
                                            : groups->nodes[0];
    int entry = node_tree_entry(tree, group, ret_place->top);
    for (int i = 0; i < n; i++) {
        int node = groups->nodes[first + i];
        if (node == root_node)
            leaders[i] = root;
        if (node == entry)
            ret_place->entry = i;
        if (leaders[i] == comm->rank)
            ret_place->group.rank = i;
    }
    int leader = place_leader_of(ret_place, my_node);
    for (int i = 0; i < c->n_members; i++)
        if (c->members[i] == leader)
            ret_place->node_leader = i;
    return true;
}

void place_meet_as_equals(struct place *p)
{
    p->partner = p->tree->peer;
}

int place_partner(const struct place *p)
{
    if (p->partner < 0 || !place_is_entry(p))
        return -1;
    if (p->my_group == p->partner)
        return place_above(p, p->partner);
    return p->tree->parent[p->my_group] < 0 ? place_below(p, p->partner) : -1;
}
