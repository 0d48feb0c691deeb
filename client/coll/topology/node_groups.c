/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/topology/node_groups.h"

#include "client/coll/topology/shape.h"
#include "client/object/group.h"
#include "client/process/job.h"

#include <stdlib.h>

/* ---- distances ---- */

int node_groups_gateways_of_job(int a, int b)
{
    int n = job_n_networks(), least = JOB_APART;
    if (a == NODE_APART || b == NODE_APART)
        return 0;
    for (int i = 0; i < n; i++) {
        if (!job_on_network(a, i))
            continue;
        for (int k = 0; k < n; k++)
            if (job_on_network(b, k) && job_network_distance(i, k) < least)
                least = job_network_distance(i, k);
    }
    return least;
}

int node_groups_gateways(const struct node_groups *l, int node_a, int node_b)
{
    return node_groups_gateways_of_job(l->job_node[node_a], l->job_node[node_b]);
}

/* ---- groups ---- */

/* The network that most of the nodes without group are on; -1: none of them is on any. */
static int groups_most_wanted(const struct node_groups *l, int n_nodes)
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
static void groups_cover(struct node_groups *l, int n_nodes)
{
    int n_groups = 0, left = n_nodes;
    for (int i = 0; i < n_nodes; i++)
        l->group_of[i] = -1;
    while (left > 0) {
        int network = groups_most_wanted(l, n_nodes);
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
static void groups_number(struct node_groups *l, int n_nodes, int *seen)
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

static void groups_list_ranks(struct node_groups *l, int size)
{
    const struct shape *c = l->shape;
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
static bool groups_in_rows(const struct node_groups *l)
{
    for (int i = 1; i < l->shape->n_nodes; i++)
        if (l->group_of[i] < l->group_of[i - 1])
            return false;
    return l->shape->in_order;
}

/* ---- life ---- */

static bool groups_allocate(struct node_groups *l, size_t n_nodes, size_t size)
{
    l->group_of = malloc(n_nodes * sizeof(int));
    l->nodes = malloc(n_nodes * sizeof(int));
    l->first = malloc((n_nodes + 1) * sizeof(int));
    l->leaders = malloc(n_nodes * sizeof(int));
    l->job_node = malloc(n_nodes * sizeof(int));
    l->ranks = malloc(size * sizeof(int));
    l->node_first = malloc((n_nodes + 1) * sizeof(int));
    l->trees = calloc(n_nodes * NODE_GROUPS_TREES, sizeof *l->trees);
    return l->group_of && l->nodes && l->first && l->leaders && l->job_node && l->ranks &&
           l->node_first && l->trees;
}

struct node_groups *node_groups_new(const struct shape *c, const struct group *group,
                                    bool by_network)
{
    struct node_groups *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->shape = c;
    if (!groups_allocate(l, (size_t)c->n_nodes, (size_t)group->size)) {
        node_groups_free(l);
        return NULL;
    }
    for (int i = 0; i < c->n_nodes; i++) {
        l->job_node[i] = c->apart ? NODE_APART : job_node_of(group->procs[c->leaders[i]]);
        l->group_of[i] = 0;
    }
    if (by_network)
        groups_cover(l, c->n_nodes);
    groups_number(l, c->n_nodes, l->nodes);
    groups_list_ranks(l, group->size);
    l->in_order = groups_in_rows(l);
    return l;
}

void node_groups_free(struct node_groups *l)
{
    if (!l)
        return;
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
