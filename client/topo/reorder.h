/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which process takes which place of a topology, so that neighbours share nodes.
 *
 * Pure computation on what all processes know alike; every one comes to the same result without a
 * message. Several orders are tried, and the one with the least weight of edges between nodes wins;
 * the order as it is wins a tie.
 */
#ifndef MOTET_CLIENT_TOPO_REORDER_H
#define MOTET_CLIENT_TOPO_REORDER_H

#include <stdbool.h>

/* Places 0..n-1; the edges of place i are edges[first[i]] .. edges[first[i + 1] - 1]; negative ones
 * lead nowhere. */
struct reorder_graph {
    int n;
    const int *first;
    const int *edges;
    const int *weights; /* NULL: all alike */
};

/* node_of: of each of the n ranks. ret_members[n]: the rank that takes each place. Returns false,
 * and leaves ret_members as it was, when the order as it is is the best known or memory is
 * missing. */
bool reorder_graph(const struct reorder_graph *g, const int *node_of, int *ret_members);

/* The same for a cartesian grid with the neighbours in `g`, for which blocks are tried as well. */
bool reorder_cart(const struct reorder_graph *g, const int *node_of, int n_dims, const int *dims,
                  int *ret_members);

/* Weight of the edges between places on different nodes; node_at: of each place. */
long long reorder_crossing(const struct reorder_graph *g, const int *node_at);

#endif
