/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/topology/shape.h"

#include "client/coll/topology/group_tree.h"
#include "client/coll/topology/node_groups.h"
#include "client/object/group.h"
#include "client/process/job.h"

#include <stdlib.h>

/* Fills node_of and leaders. Nodes are numbered as they appear; `seen` maps job node to that
 * number. */
static bool shape_number_nodes(struct shape *c, const struct group *group)
{
    int max_node = 0;
    for (int i = 0; i < group->size; i++) {
        int node = job_node_of(group->procs[i]);
        if (node > max_node)
            max_node = node;
    }
    int *seen = malloc(((size_t)max_node + 1) * sizeof(int));
    if (!seen)
        return false;
    for (int i = 0; i <= max_node; i++)
        seen[i] = -1;
    int previous = -1;
    c->n_nodes = 0;
    c->in_order = true;
    for (int i = 0; i < group->size; i++) {
        int node = job_node_of(group->procs[i]);
        if (seen[node] < 0) {
            c->leaders[c->n_nodes] = i;
            seen[node] = c->n_nodes++;
        } else if (seen[node] != previous) {
            c->in_order = false;
        }
        previous = c->node_of[i] = seen[node];
    }
    free(seen);
    return true;
}

static void shape_collect_members(struct shape *c, int size, int rank)
{
    for (int i = 0; i < size; i++) {
        if (c->node_of[i] != c->node_of[rank])
            continue;
        if (i == rank)
            c->my_member = c->n_members;
        c->members[c->n_members++] = i;
    }
}

static struct node_groups *shape_group(const struct shape *c, const struct group *group,
                                       bool by_network)
{
    struct node_groups *groups = node_groups_new(c, group, by_network);
    if (groups && group_tree_find_centre(groups))
        return groups;
    group_tree_free_all(groups);
    node_groups_free(groups);
    return NULL;
}

static bool shape_number_apart(struct shape *c, int size)
{
    c->n_nodes = size;
    c->in_order = true;
    for (int i = 0; i < size; i++)
        c->leaders[i] = c->node_of[i] = i;
    return true;
}

struct shape *shape_new(const struct group *group, int rank, bool apart)
{
    size_t n = (size_t)group->size;
    struct shape *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->apart = apart;
    c->leaders = malloc(n * sizeof(int));
    c->node_of = malloc(n * sizeof(int));
    c->members = malloc(n * sizeof(int));
    bool done = c->leaders && c->node_of && c->members &&
                (apart ? shape_number_apart(c, group->size) : shape_number_nodes(c, group));
    if (done && c->n_nodes > 1) {
        c->nodes = shape_group(c, group, false);
        c->networks = shape_group(c, group, !apart);
        done = c->nodes && c->networks;
    }
    if (!done) {
        shape_free(c);
        return NULL;
    }
    if (rank >= 0)
        shape_collect_members(c, group->size, rank);
    return c;
}

void shape_free(struct shape *c)
{
    if (!c)
        return;
    group_tree_free_all(c->nodes);
    group_tree_free_all(c->networks);
    node_groups_free(c->nodes);
    node_groups_free(c->networks);
    free(c->leaders);
    free(c->node_of);
    free(c->members);
    free(c);
}
