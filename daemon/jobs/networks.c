/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/jobs/networks.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static size_t networks_find(const char *const *names, size_t n, const char *name)
{
    size_t k = 0;

    while (k < n && strcmp(names[k], name) != 0)
        k++;
    return k;
}

int networks_list(Motet__Placement *const *placements, size_t n_placements, const char **ret_names,
                  size_t max)
{
    size_t n = 0;

    for (size_t i = 0; i < n_placements; i++) {
        for (size_t j = 0; j < placements[i]->n_networks; j++) {
            const char *name = placements[i]->networks[j];
            if (networks_find(ret_names, n, name) < n)
                continue;
            if (n == max)
                return -EINVAL;
            ret_names[n++] = name;
        }
    }
    return (int)n;
}

/* The nodes' endpoints as numbers of networks: those of the list first, then all others as they
 * appear. */
struct cluster_networks {
    size_t n_networks;
    const char **names;
    size_t *of; /* of all endpoints, node by node */
};

static int networks_number(struct cluster_networks *c, const char *const *names, size_t n_names,
                           const struct placement_node *nodes, size_t n_nodes)
{
    size_t n_endpoints = 0, at = 0;

    for (size_t i = 0; i < n_nodes; i++)
        n_endpoints += nodes[i].n_endpoints;
    c->names = calloc(n_names + n_endpoints + 1, sizeof *c->names);
    c->of = calloc(n_endpoints + 1, sizeof *c->of);
    if (!c->names || !c->of)
        return -ENOMEM;
    for (size_t k = 0; k < n_names; k++)
        c->names[k] = names[k];
    c->n_networks = n_names;
    for (size_t i = 0; i < n_nodes; i++) {
        for (size_t j = 0; j < nodes[i].n_endpoints; j++) {
            size_t k = networks_find(c->names, c->n_networks, nodes[i].endpoints[j]->network);
            if (k == c->n_networks)
                c->names[c->n_networks++] = nodes[i].endpoints[j]->network;
            c->of[at++] = k;
        }
    }
    return 0;
}

/* One step outward: what a node joins is at most one gateway farther than its nearest network.
 * False: nothing came nearer. */
static bool networks_relax(const struct cluster_networks *c, const struct placement_node *nodes,
                           size_t n_nodes, uint8_t *distance)
{
    bool nearer = false;
    const size_t *of = c->of;

    for (size_t i = 0; i < n_nodes; of += nodes[i++].n_endpoints) {
        unsigned least = NETWORKS_APART;
        for (size_t j = 0; j < nodes[i].n_endpoints; j++)
            least = distance[of[j]] < least ? distance[of[j]] : least;
        for (size_t j = 0; j < nodes[i].n_endpoints; j++) {
            if (distance[of[j]] <= least + 1)
                continue;
            distance[of[j]] = (uint8_t)(least + 1);
            nearer = true;
        }
    }
    return nearer;
}

int networks_distances(const char *const *names, size_t n_names, const struct placement_node *nodes,
                       size_t n_nodes, uint8_t *ret_distances)
{
    struct cluster_networks c = {0};
    uint8_t *distance = NULL;
    int rc = networks_number(&c, names, n_names, nodes, n_nodes);

    if (rc == 0) {
        distance = malloc(c.n_networks + 1);
        rc = distance ? 0 : -ENOMEM;
    }
    for (size_t from = 0; rc == 0 && from < n_names; from++) {
        memset(distance, NETWORKS_APART, c.n_networks);
        distance[from] = 0;
        while (networks_relax(&c, nodes, n_nodes, distance))
            ;
        memcpy(ret_distances + from * n_names, distance, n_names);
    }
    free(distance);
    free(c.names);
    free(c.of);
    return rc;
}
