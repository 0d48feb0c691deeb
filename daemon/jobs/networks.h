/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The networks of a job and how far they are apart: what collectives need in order to pass data
 * from network to network along the routes. The home computes it once from its view of the cluster
 * and sends it with the launch message, so that all ranks of a job know the same, whatever their
 * own daemons see. Pure functions; control thread and tests.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/jobs/placement.h"

#define NETWORKS_APART 255u /* no chain of gateways joins the two */

/* The networks of all placements, each once, in the order of the placements: the same on all nodes.
 * The names stay the placements'. Returns their number, or -EINVAL when there are more than
 * `max`. */
int networks_list(Motet__Placement *const *placements, size_t n_placements, const char **ret_names,
                  size_t max);

/* The number of gateways on the shortest way from network i to network j at [i * n + j];
 * NETWORKS_APART: there is none. Any of the nodes may be a gateway, with ranks or without, and
 * networks of which no rank is on may lie between. 0 or -ENOMEM. */
int networks_distances(const char *const *names, size_t n_names, const struct placement_node *nodes,
                       size_t n_nodes, uint8_t *ret_distances);
