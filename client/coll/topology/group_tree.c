/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/topology/group_tree.h"

#include "client/coll/topology/shape.h"
#include "client/process/job.h"

#include <stdlib.h>

/* As many roots are tried for the centre; clusters of more networks than this are as good as
 * unheard of. */
#define MAX_TRIED 16

static bool tree_on_several(const struct node_groups *l, int node)
{
    int n = 0;
    for (int i = 0; i < job_n_networks(); i++)
        n += l->job_node[node] != NODE_APART && job_on_network(l->job_node[node], i);
    return n > 1;
}

/* The nearest pair of nodes between two groups. Nodes on one network only are all alike: the first
 * of them stands for the others. */
static struct group_edge tree_nearest(const struct node_groups *l, int from, int to)
{
    struct group_edge best = {.gateways = JOB_APART + 1};
    bool tried_from = false;
    for (int i = l->first[from]; i < l->first[from + 1]; i++) {
        if (!tree_on_several(l, l->nodes[i])) {
            if (tried_from)
                continue;
            tried_from = true;
        }
        bool tried_to = false;
        for (int k = l->first[to]; k < l->first[to + 1]; k++) {
            if (!tree_on_several(l, l->nodes[k])) {
                if (tried_to)
                    continue;
                tried_to = true;
            }
            int gateways = node_groups_gateways(l, l->nodes[i], l->nodes[k]);
            if (gateways < best.gateways)
                best = (struct group_edge){l->nodes[i], l->nodes[k], gateways};
        }
    }
    return best;
}

void group_tree_free(struct group_tree *t)
{
    if (!t)
        return;
    free(t->parent);
    free(t->order);
    free(t->depth);
    free(t->edge);
    free(t);
}

static struct group_tree *tree_alloc(int n_groups)
{
    size_t n = (size_t)n_groups;
    struct group_tree *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->parent = malloc(n * sizeof(int));
    t->order = malloc(n * sizeof(int));
    t->depth = malloc(n * sizeof(int));
    t->edge = calloc(n, sizeof *t->edge);
    if (t->parent && t->order && t->depth && t->edge)
        return t;
    group_tree_free(t);
    return NULL;
}

/* Of a tree with one root. */
static void tree_find_peer(const struct node_groups *l, struct group_tree *t, int root)
{
    t->peer = -1;
    for (int g = 0; g < l->n_groups; g++) {
        if (t->depth[g] < t->height || t->height == 0)
            continue;
        int child = g;
        while (t->parent[child] != root)
            child = t->parent[child];
        if (t->peer >= 0 && t->peer != child) {
            t->peer = -1;
            break;
        }
        t->peer = child;
    }
}

/* A group in the tree, and one outside that is as far from it as from its parent: do the two ways
 * from the parent begin alike, and branch off in a network without ranks? Then a payload along both
 * would cross a border twice. */
static bool tree_branches_between(const struct node_groups *l, const struct group_tree *t, int next,
                                  int outside)
{
    int from = t->edge[outside].from, from_group = from < 0 ? -1 : l->group_of[from];
    return from_group == t->parent[next] && t->edge[next].gateways > 1 &&
           t->edge[outside].gateways > 1;
}

/* Prim 1957: the group that the fewest gateways separate from the tree comes next, as near to its
 * beginning as may be. Where the way in leads to a node that is as near to a child as any, that
 * node also serves the child. t->edge: the ways from outside, t->depth: the depth that a group
 * would have. */
static void tree_grow(const struct node_groups *l, struct group_tree *t, enum group_tree_load load)
{
    int *above = t->depth;
    for (int g = 0; g < l->n_groups; g++)
        t->parent[g] = -2;
    for (int n = 0; n < l->n_groups; n++) {
        int next = -1;
        for (int g = 0; g < l->n_groups; g++)
            if (t->parent[g] == -2 &&
                (next < 0 || t->edge[g].gateways < t->edge[next].gateways ||
                 (t->edge[g].gateways == t->edge[next].gateways && above[g] < above[next])))
                next = g;
        t->parent[next] = t->edge[next].from < 0 ? -1 : l->group_of[t->edge[next].from];
        t->order[n] = next;
        t->height = above[next] > t->height ? above[next] : t->height;
        for (int g = 0; g < l->n_groups; g++) {
            if (t->parent[g] != -2)
                continue;
            struct group_edge edge = tree_nearest(l, next, g);
            if (edge.gateways > t->edge[g].gateways ||
                (edge.gateways == t->edge[g].gateways && above[next] + 1 >= above[g] &&
                 (load == GROUP_TREE_BLOCKS || !tree_branches_between(l, t, next, g))))
                continue;
            if (t->edge[next].gateways >= 0 &&
                node_groups_gateways(l, t->edge[next].to, edge.to) == edge.gateways)
                edge.from = t->edge[next].to;
            t->edge[g] = edge;
            above[g] = above[next] + 1;
        }
    }
}

const struct group_tree *group_tree_of(struct node_groups *l, int root, enum group_tree_load load)
{
    struct group_tree **place = &l->trees[root * GROUP_TREE_LOADS + (int)load], *t;
    if (*place || !(t = tree_alloc(l->n_groups)))
        return *place;
    for (int g = 0; g < l->n_groups; g++) {
        t->edge[g] = (struct group_edge){.from = -1, .gateways = g == root ? -1 : JOB_APART + 1};
        t->depth[g] = g == root ? 0 : l->n_groups;
    }
    tree_grow(l, t, load);
    tree_find_peer(l, t, root);
    *place = t;
    return t;
}

struct group_tree *group_tree_from(const struct node_groups *l, int job_node)
{
    struct group_tree *t = tree_alloc(l->n_groups);
    for (int g = 0; t && g < l->n_groups; g++) {
        t->depth[g] = 0;
        t->edge[g] = (struct group_edge){.from = -1, .gateways = JOB_APART + 1};
        for (int i = l->first[g]; i < l->first[g + 1]; i++) {
            int gateways = node_groups_gateways_of_job(job_node, l->job_node[l->nodes[i]]);
            if (gateways < t->edge[g].gateways || l->job_node[l->nodes[i]] == job_node)
                t->edge[g] =
                    (struct group_edge){.from = -1, .to = l->nodes[i], .gateways = gateways};
        }
    }
    if (t)
        tree_grow(l, t, GROUP_TREE_PAYLOAD);
    return t;
}

bool group_tree_find_centre(struct node_groups *l)
{
    const struct group_tree *best = NULL;
    for (int g = 0; g < l->n_groups && g < MAX_TRIED; g++) {
        const struct group_tree *t = group_tree_of(l, g, GROUP_TREE_PAYLOAD);
        if (!t)
            return false;
        if (best && best->height <= t->height)
            continue;
        best = t;
        l->centre = g;
    }
    return true;
}

void group_tree_free_all(struct node_groups *l)
{
    for (int g = 0; l && g < l->n_groups * GROUP_TREE_LOADS; g++)
        group_tree_free(l->trees[g]);
}
