/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/jobs/placement.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/routing/topology.h"
#include "proto/hop.h"
#include "proto/segment.h"

#define MAX_RANKS (1u << 20)

static void list_nodes(const struct placement_node *nodes, size_t n_nodes, char *out, size_t size)
{
    size_t at = 0;

    for (size_t i = 0; i < n_nodes; i++) {
        int n = snprintf(out + at, size - at, "%s%s", i ? ", " : "", nodes[i].name);
        if (n < 0 || (size_t)n >= size - at) {
            if (at >= 4)
                memcpy(out + at - 3, "...", 4);
            return;
        }
        at += (size_t)n;
    }
}

/* Puts `count` ranks from `next` on a node. 0 or -errno. */
static int placement_put(Motet__Placement *pl, uint32_t next, uint64_t count)
{
    uint32_t *grown = realloc(pl->ranks, (pl->n_ranks + count) * sizeof *grown);

    if (!grown)
        return -ENOMEM;
    pl->ranks = grown;
    for (uint64_t i = 0; i < count; i++)
        pl->ranks[pl->n_ranks++] = next + (uint32_t)i;
    return 0;
}

void placement_free(struct placement *result)
{
    for (size_t i = 0; i < result->n_placements; i++) {
        for (size_t k = 0; k < result->placements[i]->n_networks; k++)
            free(result->placements[i]->networks[k]);
        free(result->placements[i]->networks);
        free(result->placements[i]->node);
        free(result->placements[i]->ranks);
        free(result->placements[i]);
    }
    free(result->placements);
    *result = (struct placement){0};
}

/* The networks that a node is on, each once. 0 or -ENOMEM. */
static int name_networks(Motet__Placement *pl, const struct placement_node *node)
{
    pl->networks = calloc(node->n_endpoints + 1, sizeof *pl->networks);
    if (!pl->networks)
        return -ENOMEM;
    for (size_t i = 0; i < node->n_endpoints; i++) {
        size_t k = 0;
        while (k < pl->n_networks && strcmp(pl->networks[k], node->endpoints[i]->network) != 0)
            k++;
        if (k < pl->n_networks)
            continue;
        pl->networks[k] = strdup(node->endpoints[i]->network);
        if (!pl->networks[k])
            return -ENOMEM;
        pl->n_networks++;
    }
    return 0;
}

/* The placement of a node; made on first use. NULL: no memory. */
static Motet__Placement *placement_of(struct placement *r, const struct placement_node *node)
{
    for (size_t i = 0; i < r->n_placements; i++)
        if (r->placements[i]->node_id == node->node_id)
            return r->placements[i];
    Motet__Placement **grown =
        realloc(r->placements, (r->n_placements + 1) * sizeof(Motet__Placement *));
    if (!grown)
        return NULL;
    r->placements = grown;
    Motet__Placement *pl = malloc(sizeof *pl);
    char *name = strdup(node->name);
    if (!pl || !name) {
        free(pl);
        free(name);
        return NULL;
    }
    motet__placement__init(pl);
    pl->node = name;
    pl->has_node_id = true;
    pl->node_id = node->node_id;
    pl->has_epoch = node->epoch != 0;
    pl->epoch = node->epoch;
    r->placements[r->n_placements++] = pl;
    return name_networks(pl, node) == 0 ? pl : NULL;
}

static const struct placement_node *find_node(const struct placement_node *nodes, size_t n_nodes,
                                              const char *name, size_t len)
{
    if (len == 9 && memcmp(name, "localhost", 9) == 0)
        return &nodes[0];
    for (size_t i = 0; i < n_nodes; i++)
        if (strlen(nodes[i].name) == len && memcmp(nodes[i].name, name, len) == 0)
            return &nodes[i];
    return NULL;
}

/* "name:count". */
static int put_hosts(const Motet__Submit *submit, uint64_t total,
                     const struct placement_node *nodes, size_t n_nodes, struct placement *r,
                     char *error, size_t error_size)
{
    uint64_t next = 0;

    for (size_t i = 0; i < submit->n_hosts; i++) {
        const char *host = submit->hosts[i];
        const char *colon = strrchr(host, ':');
        size_t len = colon ? (size_t)(colon - host) : strlen(host);
        char *end = NULL;
        unsigned long count = colon ? strtoul(colon + 1, &end, 10) : 0;
        if (!colon || end == colon + 1 || *end != '\0' || count > MAX_RANKS) {
            snprintf(error, error_size, "host '%.80s': expected name:count", host);
            return -EINVAL;
        }
        const struct placement_node *node = find_node(nodes, n_nodes, host, len);
        if (!node) {
            char known[256] = "";
            list_nodes(nodes, n_nodes, known, sizeof known);
            snprintf(error, error_size, "node '%.*s' is not reachable from node %s; reachable: %s",
                     (int)len, host, nodes[0].name, known);
            return -EINVAL;
        }
        if (count == 0)
            continue;
        if (next + count > total) {
            snprintf(error, error_size, "hosts are given for more than the %llu ranks of the job",
                     (unsigned long long)total);
            return -EINVAL;
        }
        Motet__Placement *pl = placement_of(r, node);
        if (!pl || placement_put(pl, (uint32_t)next, count) < 0) {
            snprintf(error, error_size, "out of memory");
            return -EINVAL;
        }
        next += count;
    }
    if (next != total) {
        snprintf(error, error_size, "hosts are given for %llu of the %llu ranks of the job",
                 (unsigned long long)next, (unsigned long long)total);
        return -EINVAL;
    }
    return 0;
}

int placement_make(const Motet__Submit *submit, const struct placement_node *nodes, size_t n_nodes,
                   struct placement *ret_result, char *error, size_t error_size)
{
    struct placement r = {0};
    uint64_t total = 0;
    int rc = 0;

    for (size_t i = 0; i < submit->n_apps; i++)
        total += submit->apps[i]->n_ranks;
    if (total == 0 || total > MAX_RANKS) {
        snprintf(error, error_size, "a job has 1 to %u ranks, this one %llu", MAX_RANKS,
                 (unsigned long long)total);
        return -EINVAL;
    }
    if (submit->n_hosts > 0) {
        rc = put_hosts(submit, total, nodes, n_nodes, &r, error, error_size);
    } else {
        uint64_t per_node = submit->has_ranks_per_node && submit->ranks_per_node > 0
                                ? submit->ranks_per_node
                                : total;
        size_t at = 0;
        for (uint64_t next = 0; rc == 0 && next < total; next += per_node) {
            uint64_t count = per_node < total - next ? per_node : total - next;
            Motet__Placement *pl = placement_of(&r, &nodes[at]);
            if (!pl || placement_put(pl, (uint32_t)next, count) < 0) {
                snprintf(error, error_size, "out of memory");
                rc = -EINVAL;
            }
            at = (at + 1) % n_nodes;
        }
    }
    for (size_t i = 0; rc == 0 && i < r.n_placements; i++) {
        if (r.placements[i]->n_ranks > SEGMENT_MAX_LOCAL) {
            snprintf(error, error_size,
                     "node %s would get %zu ranks; at most %u are possible on one node",
                     r.placements[i]->node, r.placements[i]->n_ranks, SEGMENT_MAX_LOCAL);
            rc = -EINVAL;
        }
    }
    if (rc < 0) {
        placement_free(&r);
        return rc;
    }
    *ret_result = r;
    return 0;
}

static int placement_by_name(const void *a, const void *b)
{
    return strcmp(((const struct placement_node *)a)->name,
                  ((const struct placement_node *)b)->name);
}

size_t placement_nodes(const struct topology *topology, uint32_t own_id, const char *own_name,
                       struct placement_node *ret_nodes, size_t max)
{
    size_t n = 1;

    if (max == 0)
        return 0;
    ret_nodes[0] = (struct placement_node){.name = own_name, .node_id = own_id};
    const struct topology_node *own = topology_find(topology, own_id);
    if (own) {
        ret_nodes[0].epoch = own->state->epoch;
        ret_nodes[0].endpoints = own->state->endpoints;
        ret_nodes[0].n_endpoints = own->state->n_endpoints;
    }
    for (struct topology_node *t = topology_first(topology); t && n < max; t = t->hh.next)
        if (t->node_id != own_id && t->reachable && !t->state->draining)
            ret_nodes[n++] = (struct placement_node){.name = t->state->node,
                                                     .node_id = t->node_id,
                                                     .epoch = t->state->epoch,
                                                     .endpoints = t->state->endpoints,
                                                     .n_endpoints = t->state->n_endpoints};
    qsort(ret_nodes + 1, n - 1, sizeof *ret_nodes, placement_by_name);
    return n;
}
