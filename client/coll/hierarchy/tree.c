/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/hierarchy/tree.h"

bool tree_of(struct schedule *s, struct node_groups *groups, int top, enum node_tree_form form,
             struct node_tree *ret_tree)
{
    void *memory = schedule_temp(s, node_tree_bytes(groups->shape));
    if (memory && !node_tree_of(groups, top, form, memory, ret_tree))
        schedule_no_memory(s);
    return !s->broken;
}

bool tree_of_place(struct schedule *s, const struct place *p, struct node_tree *ret_tree)
{
    void *memory = schedule_temp(s, node_tree_bytes(p->groups->shape));
    if (memory)
        node_tree_in(p->groups, p->tree, p->top, NODE_TREE_CHAINS, memory, ret_tree);
    return memory != NULL;
}

bool tree_from(struct schedule *s, const struct shape *shape, int job_node,
               struct node_tree *ret_tree)
{
    void *memory = shape ? schedule_temp(s, node_tree_bytes(shape)) : NULL;
    if (!shape || (memory && !node_tree_from(shape, job_node, memory, ret_tree)))
        schedule_no_memory(s);
    return !s->broken;
}

int *tree_children(struct schedule *s, const struct node_tree *tree, int node, int *ret_n)
{
    int *children = schedule_temp(s, (size_t)tree->shape->n_nodes * sizeof(int));
    *ret_n = children ? node_tree_children(tree, node, children) : 0;
    return children;
}
