/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/topology/node_tree.h"

/* ---- the borders ---- */

int node_tree_entry(const struct group_tree *tree, int group, int top)
{
    return top >= 0 && tree->parent[group] < 0 ? top : tree->edge[group].to;
}

/* Where a group has an entry that is as near, the edge begins there already (group_tree.c); for the
 * top, which any node of its group may be, that shows here. */
int node_tree_above(const struct node_groups *groups, const struct group_tree *tree, int group,
                    int top)
{
    const struct group_edge *edge = &tree->edge[group];
    int above = tree->parent[group];
    if (above < 0)
        return NODE_TREE_TOP;
    if (top >= 0 && tree->parent[above] < 0 && edge->from != top &&
        node_groups_gateways(groups, top, edge->to) == edge->gateways)
        return top;
    return edge->from;
}

/* ---- the whole ---- */

/* What a tree is made from. */
struct plan {
    const struct node_groups *groups;
    const struct group_tree *tree;
    struct node_tree *out;
    int *depth;  /* [n_nodes] */
    int *degree; /* [n_nodes] neighbours */
    int top, n;
};

static void tree_hang(struct plan *p, int node, int parent)
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
 * tree: halves without it tree_hang on it. */
static void tree_hang_halves(struct plan *p, int first, int end, int top)
{
    const int *nodes = p->groups->nodes;
    while (end - first > 1) {
        int middle = first + (end - first) / 2;
        if (top < middle) {
            tree_hang(p, nodes[middle], nodes[top]);
            tree_hang_halves(p, middle, end, middle);
            end = middle;
        } else {
            tree_hang(p, nodes[first], nodes[top]);
            tree_hang_halves(p, first, middle, first);
            first = middle;
        }
    }
}

/* The node that had better be the last one in the chain of a group: one that must speak with
 * another group, so that it has nobody else to send to. -1: any. */
static int tree_last_node(const struct plan *p, int group, int entry)
{
    const struct node_groups *l = p->groups;
    int last = l->nodes[l->first[group + 1] - 1];
    if (last == entry)
        last = l->nodes[l->first[group]];
    for (int g = 0; g < l->n_groups; g++)
        if (p->tree->parent[g] == group && p->tree->edge[g].from != entry &&
            node_groups_gateways(l, last, p->tree->edge[g].to) > p->tree->edge[g].gateways)
            return p->tree->edge[g].from;
    return last;
}

/* The nodes of a group but its entry, one behind the other. */
static void tree_hang_chain(struct plan *p, int group, int entry)
{
    const struct node_groups *l = p->groups;
    int before = entry, last = tree_last_node(p, group, entry);
    for (int i = l->first[group]; i < l->first[group + 1]; i++) {
        if (l->nodes[i] == entry || l->nodes[i] == last)
            continue;
        tree_hang(p, l->nodes[i], before);
        before = l->nodes[i];
    }
    if (last != entry)
        tree_hang(p, last, before);
}

/* Of the nodes that are as near to a group as any, the one with the fewest neighbours, the last one
 * in its chain if there are several. */
static int tree_node_with_fewest(const struct plan *p, int group)
{
    const struct node_groups *l = p->groups;
    const struct group_edge *edge = &p->tree->edge[group];
    int best = edge->from;
    for (int i = 0; i < p->n; i++) {
        int node = p->out->order[i];
        if (l->group_of[node] == p->tree->parent[group] && p->degree[node] <= p->degree[best] &&
            node_groups_gateways(l, node, edge->to) == edge->gateways)
            best = node;
    }
    return best;
}

static int tree_place_of(const struct node_groups *groups, int group, int node)
{
    int place = groups->first[group];
    while (groups->nodes[place] != node)
        place++;
    return place;
}

static void tree_build(const struct shape *shape, const struct node_groups *groups,
                       const struct group_tree *tree, int top, enum node_tree_form form,
                       int *memory, struct node_tree *ret_tree)
{
    int n = shape->n_nodes;
    *ret_tree = (struct node_tree){.shape = shape, .parent = memory, .order = memory + n};
    struct plan p = {.groups = groups,
                     .tree = tree,
                     .out = ret_tree,
                     .depth = memory + 2 * n,
                     .degree = memory + 3 * n,
                     .top = top};
    if (n == 1) {
        tree_hang(&p, 0, NODE_TREE_TOP);
        return;
    }
    for (int i = 0; i < groups->n_groups; i++) {
        int g = tree->order[i], entry = node_tree_entry(tree, g, top);
        bool chains = form == NODE_TREE_CHAINS && tree->parent[g] >= 0;
        tree_hang(&p, entry,
                  chains ? tree_node_with_fewest(&p, g) : node_tree_above(groups, tree, g, top));
        if (form == NODE_TREE_CHAINS)
            tree_hang_chain(&p, g, entry);
        else
            tree_hang_halves(&p, groups->first[g], groups->first[g + 1],
                             tree_place_of(groups, g, entry));
    }
}

void node_tree_in(const struct node_groups *groups, const struct group_tree *tree, int top,
                  enum node_tree_form form, void *memory, struct node_tree *ret_tree)
{
    tree_build(groups->shape, groups, tree, top, form, memory, ret_tree);
}

bool node_tree_of(struct node_groups *groups, int top, enum node_tree_form form, void *memory,
                  struct node_tree *ret_tree)
{
    const struct group_tree *tree =
        group_tree_of(groups, groups->group_of[top],
                      form == NODE_TREE_CHAINS ? GROUP_TREE_BLOCKS : GROUP_TREE_PAYLOAD);
    if (tree)
        tree_build(groups->shape, groups, tree, top, form, memory, ret_tree);
    return tree != NULL;
}

bool node_tree_from(const struct shape *shape, int job_node, void *memory,
                    struct node_tree *ret_tree)
{
    struct group_tree *tree = NULL;
    if (shape->n_nodes > 1 && !(tree = group_tree_from(shape->networks, job_node)))
        return false;
    tree_build(shape, shape->networks, tree, -1, NODE_TREE_HALVES, memory, ret_tree);
    group_tree_free(tree);
    return true;
}

int node_tree_children(const struct node_tree *tree, int node, int *children)
{
    const struct shape *c = tree->shape;
    int n = 0;
    for (int other = 1; other >= 0; other--) {
        for (int i = 0; i < c->n_nodes; i++) {
            int child = tree->order[i];
            if (tree->parent[child] != node)
                continue;
            bool in_other = node != NODE_TREE_TOP &&
                            c->networks->group_of[child] != c->networks->group_of[node];
            if (in_other == (other != 0))
                children[n++] = child;
        }
    }
    return n;
}
