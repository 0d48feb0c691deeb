/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/topology/node_groups.h"

#include "client/coll/family/coll.h"
#include "client/object/group.h"
#include "client/process/job.h"

#include <stdint.h>
#include <stdlib.h>

/* As many roots are tried for the centre; clusters of more networks than this are as good as
 * unheard of. */
#define MAX_TRIED 16

int levels_gateways_of_job(int a, int b)
{
    int n = job_n_networks(), least = JOB_APART;
    for (int i = 0; i < n; i++) {
        if (!job_on_network(a, i))
            continue;
        for (int k = 0; k < n; k++)
            if (job_on_network(b, k) && job_network_distance(i, k) < least)
                least = job_network_distance(i, k);
    }
    return least;
}

int levels_gateways(const struct levels *l, int node_a, int node_b)
{
    return levels_gateways_of_job(l->job_node[node_a], l->job_node[node_b]);
}

/* ---- groups ---- */

/* The network that most of the nodes without group are on; -1: none of them is on any. */
static int most_wanted(const struct levels *l, int n_nodes)
{
    int best = -1, most = 0;
    for (int network = 0; network < job_n_networks(); network++) {
        int n = 0;
        for (int i = 0; i < n_nodes; i++)
            n += l->group_of[i] < 0 && job_on_network(l->job_node[i], network);
        if (n > most) {
            most = n;
            best = network;
        }
    }
    return best;
}

/* Few groups whose nodes share a network each: the greedy cover (Johnson 1974). A node on several
 * networks goes where most others are. */
static void cover(struct levels *l, int n_nodes)
{
    int n_groups = 0, left = n_nodes;
    for (int i = 0; i < n_nodes; i++)
        l->group_of[i] = -1;
    while (left > 0) {
        int network = most_wanted(l, n_nodes);
        for (int i = 0; i < n_nodes; i++) {
            if (l->group_of[i] >= 0 || (network >= 0 && !job_on_network(l->job_node[i], network)))
                continue;
            l->group_of[i] = n_groups;
            left--;
        }
        n_groups++;
    }
}

/* Numbers the groups by their lowest node, which holds their lowest rank, and lists the nodes of
 * each. `seen`: [n_nodes] for the meantime. */
static void number_groups(struct levels *l, int n_nodes, int *seen)
{
    int n = 0, at = 0;
    for (int i = 0; i < n_nodes; i++)
        seen[i] = -1;
    for (int i = 0; i < n_nodes; i++) {
        if (seen[l->group_of[i]] < 0)
            seen[l->group_of[i]] = n++;
        l->group_of[i] = seen[l->group_of[i]];
    }
    l->n_groups = n;
    for (int g = 0; g < n; g++) {
        l->first[g] = at;
        for (int i = 0; i < n_nodes; i++) {
            if (l->group_of[i] != g)
                continue;
            l->leaders[at] = l->shape->leaders[i];
            l->nodes[at++] = i;
        }
    }
    l->first[n] = at;
}

static void list_ranks(struct levels *l, int size)
{
    const struct coll_comm *c = l->shape;
    for (int i = 0; i <= c->n_nodes; i++)
        l->node_first[i] = 0;
    for (int r = 0; r < size; r++)
        l->node_first[c->node_of[r] + 1]++;
    for (int i = 0; i < c->n_nodes; i++)
        l->node_first[i + 1] += l->node_first[i];
    for (int r = size - 1; r >= 0; r--)
        l->ranks[--l->node_first[c->node_of[r] + 1]] = r;
    /* Each end has become the beginning. */
    for (int i = 0; i < c->n_nodes; i++)
        l->node_first[i] = l->node_first[i + 1];
    l->node_first[c->n_nodes] = size;
}

/* Groups and nodes are numbered by their lowest ranks: in rows, their numbers never fall. */
static bool in_rows(const struct levels *l)
{
    for (int i = 1; i < l->shape->n_nodes; i++)
        if (l->group_of[i] < l->group_of[i - 1])
            return false;
    return l->shape->in_order;
}

/* ---- trees ---- */

static bool on_several(const struct levels *l, int node)
{
    int n = 0;
    for (int i = 0; i < job_n_networks(); i++)
        n += job_on_network(l->job_node[node], i);
    return n > 1;
}

/* The nearest pair of nodes between two groups. Nodes on one network only are all alike: the first
 * of them stands for the others. */
static struct levels_edge nearest(const struct levels *l, int from, int to)
{
    struct levels_edge best = {.gateways = JOB_APART + 1};
    bool tried_from = false;
    for (int i = l->first[from]; i < l->first[from + 1]; i++) {
        if (!on_several(l, l->nodes[i])) {
            if (tried_from)
                continue;
            tried_from = true;
        }
        bool tried_to = false;
        for (int k = l->first[to]; k < l->first[to + 1]; k++) {
            if (!on_several(l, l->nodes[k])) {
                if (tried_to)
                    continue;
                tried_to = true;
            }
            int gateways = levels_gateways(l, l->nodes[i], l->nodes[k]);
            if (gateways < best.gateways)
                best = (struct levels_edge){l->nodes[i], l->nodes[k], gateways};
        }
    }
    return best;
}

void levels_tree_free(struct levels_tree *t)
{
    if (!t)
        return;
    free(t->parent);
    free(t->order);
    free(t->depth);
    free(t->edge);
    free(t);
}

static struct levels_tree *tree_alloc(int n_groups)
{
    size_t n = (size_t)n_groups;
    struct levels_tree *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->parent = malloc(n * sizeof(int));
    t->order = malloc(n * sizeof(int));
    t->depth = malloc(n * sizeof(int));
    t->edge = calloc(n, sizeof *t->edge);
    if (t->parent && t->order && t->depth && t->edge)
        return t;
    levels_tree_free(t);
    return NULL;
}

/* Of a tree with one root. */
static void find_peer(const struct levels *l, struct levels_tree *t, int root)
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
static bool branch_between(const struct levels *l, const struct levels_tree *t, int next,
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
static void grow(const struct levels *l, struct levels_tree *t, enum levels_load load)
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
            struct levels_edge edge = nearest(l, next, g);
            if (edge.gateways > t->edge[g].gateways ||
                (edge.gateways == t->edge[g].gateways && above[next] + 1 >= above[g] &&
                 (load == LEVELS_BLOCKS || !branch_between(l, t, next, g))))
                continue;
            if (t->edge[next].gateways >= 0 &&
                levels_gateways(l, t->edge[next].to, edge.to) == edge.gateways)
                edge.from = t->edge[next].to;
            t->edge[g] = edge;
            above[g] = above[next] + 1;
        }
    }
}

const struct levels_tree *levels_tree_of(struct levels *l, int root, enum levels_load load)
{
    struct levels_tree **place = &l->trees[root * LEVELS_LOADS + (int)load], *t;
    if (*place || !(t = tree_alloc(l->n_groups)))
        return *place;
    for (int g = 0; g < l->n_groups; g++) {
        t->edge[g] = (struct levels_edge){.from = -1, .gateways = g == root ? -1 : JOB_APART + 1};
        t->depth[g] = g == root ? 0 : l->n_groups;
    }
    grow(l, t, load);
    find_peer(l, t, root);
    *place = t;
    return t;
}

struct levels_tree *levels_tree_from(const struct levels *l, int job_node)
{
    struct levels_tree *t = tree_alloc(l->n_groups);
    for (int g = 0; t && g < l->n_groups; g++) {
        t->depth[g] = 0;
        t->edge[g] = (struct levels_edge){.from = -1, .gateways = JOB_APART + 1};
        for (int i = l->first[g]; i < l->first[g + 1]; i++) {
            int gateways = levels_gateways_of_job(job_node, l->job_node[l->nodes[i]]);
            if (gateways < t->edge[g].gateways || l->job_node[l->nodes[i]] == job_node)
                t->edge[g] =
                    (struct levels_edge){.from = -1, .to = l->nodes[i], .gateways = gateways};
        }
    }
    if (t)
        grow(l, t, LEVELS_PAYLOAD);
    return t;
}

/* ---- life ---- */

static bool find_centre(struct levels *l)
{
    const struct levels_tree *best = NULL;
    for (int g = 0; g < l->n_groups && g < MAX_TRIED; g++) {
        const struct levels_tree *t = levels_tree_of(l, g, LEVELS_PAYLOAD);
        if (!t)
            return false;
        if (best && best->height <= t->height)
            continue;
        best = t;
        l->centre = g;
    }
    return true;
}

static bool allocate(struct levels *l, size_t n_nodes, size_t size)
{
    l->group_of = malloc(n_nodes * sizeof(int));
    l->nodes = malloc(n_nodes * sizeof(int));
    l->first = malloc((n_nodes + 1) * sizeof(int));
    l->leaders = malloc(n_nodes * sizeof(int));
    l->job_node = malloc(n_nodes * sizeof(int));
    l->ranks = malloc(size * sizeof(int));
    l->node_first = malloc((n_nodes + 1) * sizeof(int));
    l->trees = calloc(n_nodes * LEVELS_LOADS, sizeof *l->trees);
    return l->group_of && l->nodes && l->first && l->leaders && l->job_node && l->ranks &&
           l->node_first && l->trees;
}

struct levels *levels_new(struct coll_comm *c, const struct group *group, bool by_network)
{
    struct levels *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->shape = c;
    if (!allocate(l, (size_t)c->n_nodes, (size_t)group->size)) {
        levels_free(l);
        return NULL;
    }
    for (int i = 0; i < c->n_nodes; i++) {
        l->job_node[i] = job_node_of(group->procs[c->leaders[i]]);
        l->group_of[i] = 0;
    }
    if (by_network)
        cover(l, c->n_nodes);
    number_groups(l, c->n_nodes, l->nodes);
    list_ranks(l, group->size);
    l->in_order = in_rows(l);
    if (!find_centre(l)) {
        levels_free(l);
        return NULL;
    }
    return l;
}

void levels_free(struct levels *l)
{
    if (!l)
        return;
    for (int g = 0; l->trees && g < l->n_groups * LEVELS_LOADS; g++)
        levels_tree_free(l->trees[g]);
    free(l->trees);
    free(l->group_of);
    free(l->nodes);
    free(l->first);
    free(l->leaders);
    free(l->job_node);
    free(l->ranks);
    free(l->node_first);
    free(l);
}
