/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Routes become entries of the forwarding table: each way one word per own channel that can go it.
 * Called by cluster.c; without socket and clock. Control thread.
 */
#pragma once

#include <stdbool.h>

struct forwarding;
struct graph;
struct neighbours;
struct route;
struct topology_node;

/* Sets the entry of a node; forwarding_publish makes it known. True if it changed. */
bool publish_route(struct forwarding *forwarding, const struct neighbours *neighbours,
                   const struct graph *graph, const struct topology_node *to,
                   const struct route *route);
