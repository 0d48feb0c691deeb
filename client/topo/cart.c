/* SPDX-License-Identifier: BSD-3-Clause */
/* Cartesian topologies (MPI-5.0 section 8.5). Ranks lie in row-major order: the last dimension runs
 * fastest. */
#include "client/abi/semantics.h"
#include "client/comm/split.h"
#include "client/object/err.h"
#include "client/topo/reorder.h"
#include "client/topo/topo.h"

#include <stdlib.h>
#include <string.h>

/* Number of places, or an error for dims that are no grid of at most `size` places. */
static int count_places(int ndims, const int dims[], int size, int *ret_n)
{
    long long n = 1;
    for (int i = 0; i < ndims; i++) {
        if (dims[i] <= 0)
            return err_set(MPI_ERR_DIMS, "dims[%d] is %d, but must be positive", i, dims[i]);
        n *= dims[i];
        if (n > size)
            return err_set(MPI_ERR_DIMS,
                           "the grid has more places than the communicator has processes (%d)",
                           size);
    }
    *ret_n = (int)n;
    return MPI_SUCCESS;
}

static void coords_of(int rank, int n_dims, const int *dims, int *coords)
{
    for (int i = n_dims - 1; i >= 0; i--) {
        coords[i] = rank % dims[i];
        rank /= dims[i];
    }
}

/* The rank `disp` steps up in dimension d, or MPI_PROC_NULL. */
static int step(int n_dims, const int *dims, const int *periods, const int *coords, int d,
                long long disp)
{
    long long at = coords[d] + disp;
    int rank = 0;
    if (at < 0 || at >= dims[d]) {
        if (!periods[d])
            return MPI_PROC_NULL;
        at = (at % dims[d] + dims[d]) % dims[d];
    }
    for (int i = 0; i < n_dims; i++)
        rank = rank * dims[i] + (i == d ? (int)at : coords[i]);
    return rank;
}

/* `coords` is filled for the rank. */
static void fill_neighbors(int rank, int n_dims, const int *dims, const int *periods, int *coords,
                           int *neighbors)
{
    coords_of(rank, n_dims, dims, coords);
    for (int d = 0; d < n_dims; d++) {
        neighbors[2 * d] = step(n_dims, dims, periods, coords, d, -1);
        neighbors[2 * d + 1] = step(n_dims, dims, periods, coords, d, 1);
    }
}

static int new_cart(int rank, int n_dims, const int *dims, const int *periods,
                    struct topo **ret_topo)
{
    struct topo *topo = topo_new(MPI_CART, 5LL * n_dims);
    if (!topo)
        return err_set(MPI_ERR_NO_MEM, "no memory for a grid of %d dimensions", n_dims);
    int *own_dims = topo->ints, *own_periods = own_dims + n_dims, *coords = own_periods + n_dims;
    int *neighbors = coords + n_dims;
    for (int i = 0; i < n_dims; i++) {
        own_dims[i] = dims[i];
        own_periods[i] = periods[i] != 0;
    }
    fill_neighbors(rank, n_dims, own_dims, own_periods, coords, neighbors);
    topo->n_dims = n_dims;
    topo->dims = own_dims;
    topo->periods = own_periods;
    topo->coords = coords;
    topo->n_in = topo->n_out = 2 * n_dims;
    topo->in = topo->out = neighbors;
    *ret_topo = topo;
    return MPI_SUCCESS;
}

/* The order of the ranks that suits the nodes, or NULL for the order as it is. */
static int *order(const struct comm *comm, int n, int n_dims, const int *dims, const int *periods)
{
    bool several, better = false;
    int *nodes = topo_nodes(comm, n, &several);
    int *members = NULL;
    if (nodes && several && n_dims > 0) {
        int degree = 2 * n_dims;
        int *first = malloc(((size_t)n + 1) * sizeof(int));
        int *edges = malloc((size_t)n * (size_t)degree * sizeof(int));
        int *coords = malloc((size_t)n_dims * sizeof(int));
        members = malloc((size_t)n * sizeof(int));
        if (first && edges && coords && members) {
            first[0] = 0;
            for (int i = 0; i < n; i++) {
                first[i + 1] = first[i] + degree;
                fill_neighbors(i, n_dims, dims, periods, coords, edges + first[i]);
            }
            better = reorder_cart(&(struct reorder_graph){n, first, edges, NULL}, nodes, n_dims,
                                  dims, members);
        }
        free(first);
        free(edges);
        free(coords);
    }
    free(nodes);
    if (better)
        return members;
    free(members);
    return NULL;
}

int mpi_cart_create(struct comm *comm_old, int ndims, const int dims[], const int periods[],
                    int reorder, struct comm **ret_comm_cart)
{
    int n;
    int err = topo_check_intra(comm_old);
    if (!err)
        err = count_places(ndims, dims, comm_old->size, &n);
    if (err)
        return err;
    int *members = reorder ? order(comm_old, n, ndims, dims, periods) : NULL;
    int place = topo_place(members, n, comm_old->rank);
    struct topo *topo = NULL;
    if (place != MPI_UNDEFINED)
        err = new_cart(place, ndims, dims, periods, &topo);
    if (!err)
        err = topo_make_comm(comm_old, n, members, topo, ret_comm_cart);
    free(members);
    return err;
}

int mpi_cart_map(struct comm *comm, int ndims, const int dims[], const int periods[], int *newrank)
{
    int n;
    int err = topo_check_intra(comm);
    if (!err)
        err = count_places(ndims, dims, comm->size, &n);
    if (err)
        return err;
    int *members = order(comm, n, ndims, dims, periods);
    *newrank = topo_place(members, n, comm->rank);
    free(members);
    return MPI_SUCCESS;
}

int mpi_cartdim_get(struct comm *comm, int *ndims)
{
    int err = topo_check_kind(comm, MPI_CART);
    if (!err)
        *ndims = comm->topo->n_dims;
    return err;
}

static int check_room(const struct topo *topo, int maxdims)
{
    return maxdims >= topo->n_dims
               ? MPI_SUCCESS
               : err_set(MPI_ERR_ARG, "maxdims is %d, but the grid has %d dimensions", maxdims,
                         topo->n_dims);
}

int mpi_cart_get(struct comm *comm, int maxdims, int dims[], int periods[], int coords[])
{
    int err = topo_check_kind(comm, MPI_CART);
    if (!err)
        err = check_room(comm->topo, maxdims);
    for (int i = 0; !err && i < comm->topo->n_dims; i++) {
        dims[i] = comm->topo->dims[i];
        periods[i] = comm->topo->periods[i];
        coords[i] = comm->topo->coords[i];
    }
    return err;
}

int mpi_cart_coords(struct comm *comm, int rank, int maxdims, int coords[])
{
    int err = topo_check_kind(comm, MPI_CART);
    if (!err)
        err = check_room(comm->topo, maxdims);
    if (!err)
        coords_of(rank, comm->topo->n_dims, comm->topo->dims, coords);
    return err;
}

int mpi_cart_rank(struct comm *comm, const int coords[], int *rank)
{
    int err = topo_check_kind(comm, MPI_CART);
    if (err)
        return err;
    const struct topo *topo = comm->topo;
    if (!coords && topo->n_dims > 0)
        return err_set(MPI_ERR_ARG, "coords is a null pointer");
    int at = 0;
    for (int i = 0; i < topo->n_dims; i++) {
        int c = coords[i];
        if (c < 0 || c >= topo->dims[i]) {
            if (!topo->periods[i])
                return err_set(MPI_ERR_ARG,
                               "coords[%d] is %d, not in 0..%d of a dimension that is not periodic",
                               i, c, topo->dims[i] - 1);
            c = (c % topo->dims[i] + topo->dims[i]) % topo->dims[i];
        }
        at = at * topo->dims[i] + c;
    }
    *rank = at;
    return MPI_SUCCESS;
}

int mpi_cart_shift(struct comm *comm, int direction, int disp, int *rank_source, int *rank_dest)
{
    int err = topo_check_kind(comm, MPI_CART);
    if (err)
        return err;
    const struct topo *topo = comm->topo;
    if (direction < 0 || direction >= topo->n_dims)
        return err_set(MPI_ERR_ARG, "direction is %d, but the grid has %d dimensions", direction,
                       topo->n_dims);
    *rank_source =
        step(topo->n_dims, topo->dims, topo->periods, topo->coords, direction, -(long long)disp);
    *rank_dest = step(topo->n_dims, topo->dims, topo->periods, topo->coords, direction, disp);
    return MPI_SUCCESS;
}

/* The dimensions that are kept or (keep false) dropped; the rank of the own coordinates in that
 * smaller grid. */
static int sub_rank(const struct topo *topo, const int *remain_dims, bool keep, int *dims,
                    int *periods, int *ret_n_dims)
{
    int rank = 0, n = 0;
    for (int i = 0; i < topo->n_dims; i++) {
        if ((remain_dims[i] != 0) != keep)
            continue;
        rank = rank * topo->dims[i] + topo->coords[i];
        dims[n] = topo->dims[i];
        periods[n++] = topo->periods[i];
    }
    *ret_n_dims = n;
    return rank;
}

int mpi_cart_sub(struct comm *comm, const int remain_dims[], struct comm **ret_newcomm)
{
    int err = topo_check_kind(comm, MPI_CART);
    if (err)
        return err;
    const struct topo *topo = comm->topo;
    if (!remain_dims && topo->n_dims > 0)
        return err_set(MPI_ERR_ARG, "remain_dims is a null pointer");
    int *dims = malloc(2 * ((size_t)topo->n_dims + 1) * sizeof(int));
    if (!dims)
        return err_set(MPI_ERR_NO_MEM, "no memory for a grid of %d dimensions", topo->n_dims);
    int *periods = dims + topo->n_dims + 1, n_dims;
    int color = sub_rank(topo, remain_dims, false, dims, periods, &n_dims);
    int key = sub_rank(topo, remain_dims, true, dims, periods, &n_dims);
    struct topo *sub = NULL;
    err = new_cart(key, n_dims, dims, periods, &sub);
    if (!err)
        err = split_comm(comm, color, key, ret_newcomm);
    if (!err)
        (*ret_newcomm)->topo = sub;
    else
        topo_unref(sub);
    free(dims);
    return err;
}
