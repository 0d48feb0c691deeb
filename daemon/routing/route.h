/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Routes from one node to all others, from a picture of the cluster. Pure function, no memory kept;
 * used by cluster.c and by tests.
 *
 * Two metrics, both sums over the links of a way, so both are shortest-path problems (Dijkstra
 * 1959, with a heap, O(links log nodes) each):
 *   quick: half the round trip, and the time a gateway needs to pass a packet on; for small
 *   messages; wide: the time to move a large piece: the same and the piece's size over the link's
 *   bandwidth.
 *
 * Alternatives for large traffic: a neighbour is a further next hop when it is nearer to the
 * destination than we are, in the same metric (the downstream condition of loop-free alternates,
 * RFC 5286). Every packet thus gets strictly nearer at each hop, whatever alternative each node
 * takes: no loops while all nodes see the same picture. Shares follow the bandwidth of the
 * narrowest link of each way. Only gateways (nodes on several networks) are asked as alternatives,
 * so that a flat cluster of n nodes costs one Dijkstra and not n.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define ROUTE_MAX_WIDE 4u

/* A link as seen from one end; the graph holds both directions. */
struct route_edge {
    uint32_t to;      /* node index */
    uint32_t network; /* any number that tells networks apart */
    uint32_t rtt_us;
    uint32_t mbytes_per_s;
};

struct route_node {
    const struct route_edge *edges;
    uint32_t n_edges;
    uint32_t hash; /* spreads equal choices over pairs of nodes: the node's id */
    bool relays; /* may stand in the middle of any way; else (draining) only where there is no other
                  */
};

struct route_way {
    uint32_t next;    /* node index of the neighbour */
    uint32_t network; /* and the network it is reached on */
    uint32_t n_hops;  /* links to the destination */
    uint32_t share;   /* in 1/65535; wide ways of a destination add up to 65535 */
    uint64_t cost_ns; /* in its metric */
};

struct route {
    bool reachable;
    struct route_way quick;
    uint32_t n_wide;
    struct route_way wide[ROUTE_MAX_WIDE];
};

/* Fills ret_routes (n_nodes of them; that of `self` stays unreachable with no ways). 0 or
 * -ENOMEM. */
int route_compute(const struct route_node *nodes, uint32_t n_nodes, uint32_t self,
                  struct route *ret_routes);
