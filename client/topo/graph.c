/* SPDX-License-Identifier: BSD-3-Clause */
/* Graph topologies, known whole to every process (MPI-5.0 section 8.5.3). */
#include "client/abi/semantics.h"
#include "client/object/err.h"
#include "client/topo/reorder.h"
#include "client/topo/topo.h"

#include <stdlib.h>
#include <string.h>

static int check_graph(const struct comm *comm, int nnodes, const int indx[], const int edges[])
{
    if (nnodes < 0 || nnodes > comm->size)
        return err_set(MPI_ERR_ARG, "nnodes is %d, not in 0..%d", nnodes, comm->size);
    for (int i = 0; i < nnodes; i++)
        if (indx[i] < (i > 0 ? indx[i - 1] : 0))
            return err_set(MPI_ERR_ARG, "index[%d] is %d, less than what comes before it", i,
                           indx[i]);
    int n_edges = nnodes > 0 ? indx[nnodes - 1] : 0;
    if (n_edges > 0 && !edges)
        return err_set(MPI_ERR_ARG, "edges is a null pointer");
    for (int i = 0; i < n_edges; i++)
        if (edges[i] < 0 || edges[i] >= nnodes)
            return err_set(MPI_ERR_ARG, "edges[%d] is %d, not in 0..%d", i, edges[i], nnodes - 1);
    return MPI_SUCCESS;
}

static int new_graph(int rank, int nnodes, const int indx[], const int edges[],
                     struct topo **ret_topo)
{
    int n_edges = nnodes > 0 ? indx[nnodes - 1] : 0;
    struct topo *topo = topo_new(MPI_GRAPH, (long long)nnodes + n_edges);
    if (!topo)
        return err_set(MPI_ERR_NO_MEM, "no memory for a graph of %d edges", n_edges);
    memcpy(topo->ints, indx, (size_t)nnodes * sizeof(int));
    if (n_edges > 0)
        memcpy(topo->ints + nnodes, edges, (size_t)n_edges * sizeof(int));
    topo->n_nodes = nnodes;
    topo->index = topo->ints;
    topo->edges = topo->ints + nnodes;
    int first = rank > 0 ? indx[rank - 1] : 0;
    topo->n_in = topo->n_out = indx[rank] - first;
    topo->in = topo->out = topo->edges + first;
    *ret_topo = topo;
    return MPI_SUCCESS;
}

static int *order(const struct comm *comm, int n, const int indx[], const int edges[])
{
    bool several, better = false;
    int *nodes = topo_nodes(comm, n, &several);
    int *members = NULL, *first = NULL;
    if (nodes && several) {
        members = malloc((size_t)n * sizeof(int));
        first = malloc(((size_t)n + 1) * sizeof(int));
        if (members && first) {
            first[0] = 0;
            memcpy(first + 1, indx, (size_t)n * sizeof(int));
            better = reorder_graph(&(struct reorder_graph){n, first, edges, NULL}, nodes, members);
        }
    }
    free(first);
    free(nodes);
    if (better)
        return members;
    free(members);
    return NULL;
}

int mpi_graph_create(struct comm *comm_old, int nnodes, const int indx[], const int edges[],
                     int reorder, struct comm **ret_comm_graph)
{
    int err = topo_check_intra(comm_old);
    if (!err)
        err = check_graph(comm_old, nnodes, indx, edges);
    if (err)
        return err;
    int *members = reorder ? order(comm_old, nnodes, indx, edges) : NULL;
    int place = topo_place(members, nnodes, comm_old->rank);
    struct topo *topo = NULL;
    if (place != MPI_UNDEFINED)
        err = new_graph(place, nnodes, indx, edges, &topo);
    if (!err)
        err = topo_make_comm(comm_old, nnodes, members, topo, ret_comm_graph);
    free(members);
    return err;
}

int mpi_graph_map(struct comm *comm, int nnodes, const int indx[], const int edges[], int *newrank)
{
    int err = topo_check_intra(comm);
    if (!err)
        err = check_graph(comm, nnodes, indx, edges);
    if (err)
        return err;
    int *members = order(comm, nnodes, indx, edges);
    *newrank = topo_place(members, nnodes, comm->rank);
    free(members);
    return MPI_SUCCESS;
}

int mpi_graphdims_get(struct comm *comm, int *nnodes, int *nedges)
{
    int err = topo_check_kind(comm, MPI_GRAPH);
    if (err)
        return err;
    *nnodes = comm->topo->n_nodes;
    *nedges = comm->topo->index[comm->topo->n_nodes - 1];
    return MPI_SUCCESS;
}

int mpi_graph_get(struct comm *comm, int maxindex, int maxedges, int indx[], int edges[])
{
    int err = topo_check_kind(comm, MPI_GRAPH);
    if (err)
        return err;
    const struct topo *topo = comm->topo;
    int n_edges = topo->index[topo->n_nodes - 1];
    if (maxindex < topo->n_nodes || maxedges < n_edges)
        return err_set(MPI_ERR_ARG,
                       "maxindex is %d and maxedges is %d, but the graph has %d nodes and %d edges",
                       maxindex, maxedges, topo->n_nodes, n_edges);
    memcpy(indx, topo->index, (size_t)topo->n_nodes * sizeof(int));
    if (n_edges > 0)
        memcpy(edges, topo->edges, (size_t)n_edges * sizeof(int));
    return MPI_SUCCESS;
}

static int first_edge(const struct topo *topo, int rank)
{
    return rank > 0 ? topo->index[rank - 1] : 0;
}

int mpi_graph_neighbors_count(struct comm *comm, int rank, int *nneighbors)
{
    int err = topo_check_kind(comm, MPI_GRAPH);
    if (!err)
        *nneighbors = comm->topo->index[rank] - first_edge(comm->topo, rank);
    return err;
}

int mpi_graph_neighbors(struct comm *comm, int rank, int maxneighbors, int neighbors[])
{
    int err = topo_check_kind(comm, MPI_GRAPH);
    if (err)
        return err;
    int first = first_edge(comm->topo, rank), n = comm->topo->index[rank] - first;
    if (n > maxneighbors)
        return err_set(MPI_ERR_ARG, "maxneighbors is %d, but rank %d has %d neighbors",
                       maxneighbors, rank, n);
    if (n > 0)
        memcpy(neighbors, comm->topo->edges + first, (size_t)n * sizeof(int));
    return MPI_SUCCESS;
}
