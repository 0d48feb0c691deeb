/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which rank runs where: turns a Submit into placements. Pure function; control thread and tests.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/control.pb-c.h"

struct topology;

/* A node that takes ranks. */
struct placement_node {
    const char *name;
    uint32_t node_id, epoch;
    Motet__Endpoint **endpoints; /* its channels, for the names of their networks */
    size_t n_endpoints;
};

struct placement {
    size_t n_placements;
    Motet__Placement **placements;
};

/*
 * nodes: those reachable now, the own node first, the others by name. Returns 0 and the placements
 * (to be freed with placement_free), or -EINVAL and one line in error.
 */
int placement_make(const Motet__Submit *submit, const struct placement_node *nodes, size_t n_nodes,
                   struct placement *ret_result, char *error, size_t error_size);
void placement_free(struct placement *result);

/* Nodes of the cluster that take ranks, the own one first, the others by name. Their number. */
size_t placement_nodes(const struct topology *topology, uint32_t own_id, const char *own_name,
                       struct placement_node *ret_nodes, size_t max);
