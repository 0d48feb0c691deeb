/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/topology/node_tree.h"

/* What a tree is made from. */
struct plan {
    const struct levels *levels;
    const struct levels_tree *tree;
    struct node_tree *out;
    int *depth;  /* [n_nodes] */
    int *degree; /* [n_nodes] neighbours */
    int root_node, n;
    bool chains;
};

static int entry_of(const struct plan *p, int group)
{
    return p->root_node >= 0 && p->tree->parent[group] < 0 ? p->root_node : p->tree->edge[group].to;
}

static void hang(struct plan *p, int node, int parent)
{
    p->out->parent[node] = parent;
    p->out->order[p->n++] = node;
    p->depth[node] = parent == NODE_TREE_TOP ? 0 : p->depth[parent] + 1;
    p->degree[node] = parent != NODE_TREE_TOP;
    if (parent != NODE_TREE_TOP)
        p->degree[parent]++;
    if (p->depth[node] > p->out->height)
        p->out->height = p->depth[node];
}

/* The nodes of a group from place `first` to before `end`, of which the one at `top` is in the
 * tree: halves without it hang on it. */
static void hang_halves(struct plan *p, int first, int end, int top)
{
    const int *nodes = p->levels->nodes;
    while (end - first > 1) {
        int middle = first + (end - first) / 2;
        if (top < middle) {
            hang(p, nodes[middle], nodes[top]);
            hang_halves(p, middle, end, middle);
            end = middle;
        } else {
            hang(p, nodes[first], nodes[top]);
            hang_halves(p, first, middle, first);
            first = middle;
        }
    }
}

/* The nodes of a group but the one at `top`, one behind the other. */
static void hang_chain(struct plan *p, int first, int end, int top)
{
    const int *nodes = p->levels->nodes;
    for (int i = first, last = nodes[top]; i < end; i++) {
        if (i == top)
            continue;
        hang(p, nodes[i], last);
        last = nodes[i];
    }
}

/* Of the nodes that are as near to a group as any, the one with the fewest neighbours. */
static int node_with_fewest(const struct plan *p, int group)
{
    const struct levels *l = p->levels;
    const struct levels_edge *edge = &p->tree->edge[group];
    int best = edge->from, above = p->tree->parent[group];
    for (int i = l->first[above]; i < l->first[above + 1]; i++)
        if (p->degree[l->nodes[i]] < p->degree[best] &&
            levels_gateways(l, l->nodes[i], edge->to) == edge->gateways)
            best = l->nodes[i];
    return best;
}

/* The node of the parent's group that speaks with a group: its entry if it is as near as any. */
static int node_above(const struct plan *p, int group)
{
    const struct levels_edge *edge = &p->tree->edge[group];
    if (p->tree->parent[group] < 0)
        return NODE_TREE_TOP;
    if (p->chains)
        return node_with_fewest(p, group);
    int entry = entry_of(p, p->tree->parent[group]);
    return levels_gateways(p->levels, entry, edge->to) == edge->gateways ? entry : edge->from;
}

static bool build(struct schedule *s, const struct coll_comm *shape, const struct levels *levels,
                  const struct levels_tree *tree, int root_node, bool chains,
                  struct node_tree *ret_nodes)
{
    int n = shape->n_nodes, *ints = schedule_temp(s, 4 * (size_t)n * sizeof(int));
    if (!ints)
        return false;
    *ret_nodes = (struct node_tree){.shape = shape, .parent = ints, .order = ints + n};
    struct plan p = {.levels = levels,
                     .tree = tree,
                     .out = ret_nodes,
                     .depth = ints + 2 * n,
                     .degree = ints + 3 * n,
                     .root_node = root_node,
                     .chains = chains};
    if (n == 1) {
        hang(&p, 0, NODE_TREE_TOP);
        return true;
    }
    for (int i = 0; i < levels->n_groups; i++) {
        int g = tree->order[i], top = levels->first[g];
        while (levels->nodes[top] != entry_of(&p, g))
            top++;
        hang(&p, levels->nodes[top], node_above(&p, g));
        if (chains)
            hang_chain(&p, levels->first[g], levels->first[g + 1], top);
        else
            hang_halves(&p, levels->first[g], levels->first[g + 1], top);
    }
    return true;
}

bool node_tree_of_root(struct schedule *s, struct levels *levels, int root_node,
                       struct node_tree *ret_nodes)
{
    const struct levels_tree *tree =
        levels_tree_of(levels, levels->group_of[root_node], LEVELS_PAYLOAD);
    if (!tree)
        schedule_no_memory(s);
    return tree && build(s, levels->shape, levels, tree, root_node, false, ret_nodes);
}

bool node_tree_of_chains(struct schedule *s, struct levels *levels, int root_node,
                         struct node_tree *ret_nodes)
{
    const struct levels_tree *tree =
        levels_tree_of(levels, levels->group_of[root_node], LEVELS_BLOCKS);
    if (!tree)
        schedule_no_memory(s);
    return tree && build(s, levels->shape, levels, tree, root_node, true, ret_nodes);
}

bool node_tree_from(struct schedule *s, const struct coll_comm *shape, int job_node,
                    struct node_tree *ret_nodes)
{
    struct levels_tree *tree = NULL;
    if (shape && shape->n_nodes == 1)
        return build(s, shape, NULL, NULL, -1, false, ret_nodes);
    if (shape)
        tree = levels_tree_from(shape->networks, job_node);
    if (!tree) {
        schedule_no_memory(s);
        return false;
    }
    bool done = build(s, shape, shape->networks, tree, -1, false, ret_nodes);
    levels_tree_free(tree);
    return done;
}

int *node_tree_children(struct schedule *s, const struct node_tree *out, int node, int *ret_n)
{
    const struct coll_comm *c = out->shape;
    int *children = schedule_temp(s, ((size_t)c->n_nodes + 1) * sizeof(int)), n = 0;
    *ret_n = 0;
    if (!children)
        return NULL;
    for (int other = 1; other >= 0; other--) {
        for (int i = 0; i < c->n_nodes; i++) {
            int child = out->order[i];
            if (out->parent[child] != node)
                continue;
            bool in_other = node != NODE_TREE_TOP &&
                            c->networks->group_of[child] != c->networks->group_of[node];
            if (in_other == (other != 0))
                children[n++] = child;
        }
    }
    *ret_n = n;
    return children;
}
