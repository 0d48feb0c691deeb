/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Type_create_subarray and MPI_Type_create_darray: a process's part of a multidimensional array
 * (MPI-5.0 sections 5.1.3 and 5.1.4).
 *
 * The idea: one pass over the dimensions from the fastest to the slowest. After each, the type so
 * far covers what is wanted of that dimension and has, by its bounds, the extent of the whole of
 * it, so that the next one can count in units of it. The types in between have no handle.
 */
#include "client/abi/semantics.h"
#include "client/datatype/construct.h"
#include "client/object/err.h"

static int check_order(int order)
{
    if (order == MPI_ORDER_C || order == MPI_ORDER_FORTRAN)
        return MPI_SUCCESS;
    return err_set(MPI_ERR_ARG, "order %d is neither MPI_ORDER_C nor MPI_ORDER_FORTRAN", order);
}

/* The index of the step-th fastest dimension. */
static int dimension_at(int step, int ndims, int order)
{
    return order == MPI_ORDER_C ? ndims - 1 - step : step;
}

/* Ends a dimension: makes the type of it over `type`, whose reference is given up, and sets its
 * bounds. */
static int finish_dimension(struct type_map *map, MPI_Count extent, struct datatype **type)
{
    struct datatype *next;
    int rc = type_new_inner(map, &next);
    type_unref(*type);
    *type = NULL;
    if (rc != MPI_SUCCESS)
        return rc;
    type_set_markers(next, 0, extent);
    *type = next;
    return MPI_SUCCESS;
}

static int multiply_extent(MPI_Count *extent, MPI_Count size)
{
    if (__builtin_mul_overflow(*extent, size, extent))
        return err_set(MPI_ERR_VALUE_TOO_LARGE,
                       "the extent of the whole array does not fit into 63 bits");
    return MPI_SUCCESS;
}

/* Makes the user's type from the inner type of the last dimension, whose reference is taken
 * over. */
static int publish_array(struct datatype *inner, struct type_contents *contents,
                         struct datatype **ret_newtype)
{
    struct datatype *type;
    MPI_Count extent = inner->extent;
    int rc = type_new(type_map_new_regular(inner, 1, 1, 0), contents, false, &type);
    type_unref(inner);
    if (rc != MPI_SUCCESS)
        return rc;
    type_set_markers(type, 0, extent);
    return type_publish(type, ret_newtype);
}

static int check_subarray(int ndims, struct intvec sizes, struct intvec subsizes,
                          struct intvec starts)
{
    if (ndims < 1)
        return err_set(MPI_ERR_ARG, "ndims is %d", ndims);
    for (int i = 0; i < ndims; i++) {
        MPI_Count size = intvec_at(sizes, i);
        MPI_Count subsize = intvec_at(subsizes, i);
        MPI_Count start = intvec_at(starts, i);
        if (size < 1)
            return err_set(MPI_ERR_ARG, "array_of_sizes[%d] is %lld", i, (long long)size);
        if (subsize < 1 || subsize > size)
            return err_set(MPI_ERR_ARG, "array_of_subsizes[%d] is %lld, not in 1..%lld", i,
                           (long long)subsize, (long long)size);
        if (start < 0 || start > size - subsize)
            return err_set(MPI_ERR_ARG, "array_of_starts[%d] is %lld, not in 0..%lld", i,
                           (long long)start, (long long)(size - subsize));
    }
    return MPI_SUCCESS;
}

/* The inner types of a subarray; on success *ret_inner has one reference. */
static int build_subarray(int ndims, struct intvec sizes, struct intvec subsizes,
                          struct intvec starts, int order, struct datatype *oldtype,
                          struct datatype **ret_inner)
{
    struct datatype *type = oldtype;
    MPI_Count extent = oldtype->extent; /* of the dimensions done */
    type_ref(type);
    for (int step = 0; step < ndims; step++) {
        int dim = dimension_at(step, ndims, order);
        MPI_Count unit = extent;
        int rc = multiply_extent(&extent, intvec_at(sizes, dim));
        struct type_map *map = NULL;
        if (rc == MPI_SUCCESS) {
            map = type_map_new_regular(type, 1, intvec_at(subsizes, dim), 0);
            if (map != NULL)
                map->offset = intvec_at(starts, dim) * unit;
            rc = finish_dimension(map, extent, &type);
        }
        if (rc != MPI_SUCCESS) {
            if (type != NULL)
                type_unref(type);
            return rc;
        }
    }
    *ret_inner = type;
    return MPI_SUCCESS;
}

int mpi_type_create_subarray(int ndims, struct intvec array_of_sizes,
                             struct intvec array_of_subsizes, struct intvec array_of_starts,
                             int order, struct datatype *oldtype, struct datatype **ret_newtype,
                             bool large)
{
    int rc = check_order(order);
    if (rc == MPI_SUCCESS)
        rc = check_subarray(ndims, array_of_sizes, array_of_subsizes, array_of_starts);
    struct datatype *inner = NULL;
    if (rc == MPI_SUCCESS)
        rc = build_subarray(ndims, array_of_sizes, array_of_subsizes, array_of_starts, order,
                            oldtype, &inner);
    if (rc != MPI_SUCCESS)
        return rc;
    struct type_contents *contents = contents_new(MPI_COMBINER_SUBARRAY, large, 1);
    if (contents != NULL) {
        contents_set_type(contents, 0, oldtype);
        contents_add_int(contents, ndims);
        contents_add_counts(contents, array_of_sizes, ndims);
        contents_add_counts(contents, array_of_subsizes, ndims);
        contents_add_counts(contents, array_of_starts, ndims);
        contents_add_int(contents, order);
    }
    return publish_array(inner, contents, ret_newtype);
}

/* One dimension of a distributed array as this process sees it. */
struct share {
    MPI_Count global_size;
    MPI_Count block;   /* elements dealt out at a time */
    MPI_Count n_procs; /* in this dimension */
    MPI_Count coord;   /* this process's place among them */
};

static int describe_share(int dim, MPI_Count global_size, int distrib, int darg, int n_procs,
                          struct share *share)
{
    *share = (struct share){.global_size = global_size, .n_procs = n_procs};
    if (global_size < 1)
        return err_set(MPI_ERR_ARG, "array_of_gsizes[%d] is %lld", dim, (long long)global_size);
    if (darg != MPI_DISTRIBUTE_DFLT_DARG && darg < 1)
        return err_set(MPI_ERR_ARG, "array_of_dargs[%d] is %d", dim, darg);
    switch (distrib) {
    case MPI_DISTRIBUTE_NONE:
        if (n_procs != 1)
            return err_set(MPI_ERR_ARG,
                           "array_of_psizes[%d] is %d, but the dimension is not distributed", dim,
                           n_procs);
        share->block = global_size;
        return MPI_SUCCESS;
    case MPI_DISTRIBUTE_BLOCK:
        share->block =
            darg == MPI_DISTRIBUTE_DFLT_DARG ? (global_size + n_procs - 1) / n_procs : darg;
        if (share->block < (global_size + n_procs - 1) / n_procs)
            return err_set(MPI_ERR_ARG,
                           "array_of_dargs[%d]: %d blocks of %d do not cover %lld elements", dim,
                           n_procs, darg, (long long)global_size);
        return MPI_SUCCESS;
    case MPI_DISTRIBUTE_CYCLIC:
        share->block = darg == MPI_DISTRIBUTE_DFLT_DARG ? 1 : darg;
        return MPI_SUCCESS;
    default:
        return err_set(MPI_ERR_ARG, "array_of_distribs[%d] is %d", dim, distrib);
    }
}

/* The blocks of a share over `type`: whole ones evenly spaced, and perhaps a shorter one at the end
 * of the dimension, which then is the last. NULL when out of memory. `unit` is the extent of one
 * element. */
static struct type_map *map_share(const struct share *share, struct datatype *type, MPI_Count unit)
{
    MPI_Count cycle = share->block * share->n_procs;
    MPI_Count first = share->coord * share->block;
    MPI_Count whole_blocks = share->global_size / share->block;
    MPI_Count n =
        whole_blocks / share->n_procs + (whole_blocks % share->n_procs > share->coord ? 1 : 0);
    MPI_Count rest = share->global_size % share->block;
    bool has_rest = rest > 0 && whole_blocks % share->n_procs == share->coord;
    if (!has_rest) {
        struct type_map *map = type_map_new_regular(type, n, share->block, cycle * unit);
        if (map != NULL)
            map->offset = first * unit;
        return map;
    }
    struct type_map *map = type_map_new_irregular(type, n + 1);
    for (MPI_Count i = 0; map != NULL && i <= n; i++)
        map->blocks[i] = (struct type_block){.displacement = (first + i * cycle) * unit,
                                             .len = i < n ? share->block : rest};
    return map;
}

static int check_grid(int size, int rank, int ndims, const int psizes[])
{
    if (ndims < 1)
        return err_set(MPI_ERR_ARG, "ndims is %d", ndims);
    if (rank < 0 || rank >= size)
        return err_set(MPI_ERR_ARG, "rank %d is not in 0..%d", rank, size - 1);
    int64_t n_procs = 1;
    for (int i = 0; i < ndims; i++) {
        if (psizes[i] < 1)
            return err_set(MPI_ERR_ARG, "array_of_psizes[%d] is %d", i, psizes[i]);
        n_procs *= psizes[i];
        if (n_procs > size)
            break;
    }
    if (n_procs != size)
        return err_set(MPI_ERR_ARG, "the product of array_of_psizes is not the size %d", size);
    return MPI_SUCCESS;
}

/* Coordinate of a rank in dimension `dim` of the process grid, which is in C order whatever the
 * array's order is. */
static int grid_coord(int rank, int dim, int ndims, const int psizes[])
{
    for (int i = ndims - 1; i > dim; i--)
        rank /= psizes[i];
    return rank % psizes[dim];
}

int mpi_type_create_darray(int size, int rank, int ndims, struct intvec array_of_gsizes,
                           const int array_of_distribs[], const int array_of_dargs[],
                           const int array_of_psizes[], int order, struct datatype *oldtype,
                           struct datatype **ret_newtype, bool large)
{
    int rc = check_order(order);
    if (rc == MPI_SUCCESS)
        rc = check_grid(size, rank, ndims, array_of_psizes);
    if (rc != MPI_SUCCESS)
        return rc;

    struct datatype *type = oldtype;
    MPI_Count extent = oldtype->extent;
    type_ref(type);
    for (int step = 0; rc == MPI_SUCCESS && step < ndims; step++) {
        int dim = dimension_at(step, ndims, order);
        MPI_Count unit = extent;
        struct share share;
        rc = describe_share(dim, intvec_at(array_of_gsizes, dim), array_of_distribs[dim],
                            array_of_dargs[dim], array_of_psizes[dim], &share);
        share.coord = grid_coord(rank, dim, ndims, array_of_psizes);
        if (rc == MPI_SUCCESS)
            rc = multiply_extent(&extent, share.global_size);
        if (rc == MPI_SUCCESS)
            rc = finish_dimension(map_share(&share, type, unit), extent, &type);
    }
    if (rc != MPI_SUCCESS) {
        if (type != NULL)
            type_unref(type);
        return rc;
    }

    struct type_contents *contents = contents_new(MPI_COMBINER_DARRAY, large, 1);
    if (contents != NULL) {
        contents_set_type(contents, 0, oldtype);
        contents_add_int(contents, size);
        contents_add_int(contents, rank);
        contents_add_int(contents, ndims);
        contents_add_counts(contents, array_of_gsizes, ndims);
        contents_add_ints(contents, array_of_distribs, ndims);
        contents_add_ints(contents, array_of_dargs, ndims);
        contents_add_ints(contents, array_of_psizes, ndims);
        contents_add_int(contents, order);
    }
    return publish_array(type, contents, ret_newtype);
}
