/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The topology as a graph for route.h: only links that both ends name, with the slower end's
 * figures, so that every node computes with the same numbers. Pure; control thread and tests.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/routing/route.h"

struct topology;
struct topology_node;

struct graph {
    uint32_t n_nodes; /* highest index + 1 */
    struct route_node *nodes;
    struct route_edge *edges;
    const struct topology_node **by_index;
    uint32_t n_networks;
    char **networks;
    uint32_t *network_hashes;
    uint32_t *network_rtts_us; /* that the links of each network count with */
};

/* 0 or -ENOMEM. */
int graph_init(struct graph *g, const struct topology *t);
/* A zeroed graph is fine. */
void graph_deinit(struct graph *g);
/* Whether the round trips of two graphs of the same links differ so little that routes stay. */
bool graph_same_costs(const struct graph *a, const struct graph *b);
/* "?" if there is no such network. */
const char *graph_network(const struct graph *g, uint32_t network);
/* Whether two nodes that have to do with jobs over several nodes reach one another through this one
 * alone. */
bool graph_is_needed(const struct graph *g, uint32_t index);
/* The node of an index; NULL if there is none. */
const struct topology_node *graph_node(const struct graph *g, uint32_t index);
