/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual topologies: the object that a communicator carries.
 *
 * Made by client/topo, shared by reference among a communicator and its duplicates, never changed.
 * Whatever its kind, it lists the neighbours of this process in the order of the neighbourhood
 * collectives. Protected by the library lock.
 */
#ifndef MOTET_CLIENT_OBJECT_TOPO_H
#define MOTET_CLIENT_OBJECT_TOPO_H

#include <stdbool.h>

struct topo {
    int refs;
    int kind; /* MPI_CART, MPI_GRAPH or MPI_DIST_GRAPH */

    /* Neighbours, MPI_PROC_NULL where a cartesian grid ends. Of MPI_CART: 2 * d and 2 * d + 1 are
     * the lower and the upper one in dimension d, and `in` is `out`; of MPI_GRAPH as well. */
    int n_in, n_out;
    const int *in, *out;
    const int *in_weights, *out_weights; /* NULL: unweighted, or another kind than MPI_DIST_GRAPH */
    bool weighted;

    /* MPI_CART */
    int n_dims;
    const int *dims, *periods, *coords;

    /* MPI_GRAPH: index[i] is the end of the edges of rank i. */
    int n_nodes;
    const int *index, *edges;

    int ints[]; /* what the pointers point into */
};

/* One reference for the caller; room for n ints, the rest is zero. NULL: no memory. */
struct topo *topo_new(int kind, long long n);

static inline void topo_ref(struct topo *topo) /* NULL is fine */
{
    if (topo)
        topo->refs++;
}
void topo_unref(struct topo *topo); /* NULL is fine */

#endif
