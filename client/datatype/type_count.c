/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counting what a message holds: bytes to basic elements and back, and the functions that ask a
 * status for them (MPI-5.0 sections 3.2.5 and 5.1.11).
 *
 * The idea: whole elements by division, and one descent through the map for the last, partial one.
 */
#include "client/abi/semantics.h"
#include "client/datatype/type_map.h"
#include "client/object/err.h"
#include "client/progress/status.h"

static MPI_Count elements_in_struct(const struct type_map *map, MPI_Count n_bytes,
                                    MPI_Count *ret_rest);

/* n_bytes < type->size */
static MPI_Count elements_in_part(const struct datatype *type, MPI_Count n_bytes,
                                  MPI_Count *ret_rest)
{
    if (type->map == NULL) {
        *ret_rest = n_bytes;
        return 0;
    }
    if (type->map->child != NULL)
        return datatype_elements_of_bytes(type->map->child, n_bytes, ret_rest);
    return elements_in_struct(type->map, n_bytes, ret_rest);
}

static MPI_Count elements_in_struct(const struct type_map *map, MPI_Count n_bytes,
                                    MPI_Count *ret_rest)
{
    MPI_Count n_elements = 0;
    for (MPI_Count i = 0; i < map->count; i++) {
        const struct datatype *child = map->children[i];
        MPI_Count block_bytes = map->blocks[i].len * child->size;
        if (n_bytes < block_bytes)
            return n_elements + datatype_elements_of_bytes(child, n_bytes, ret_rest);
        n_bytes -= block_bytes;
        n_elements += map->blocks[i].len * child->signature.n_elements;
    }
    *ret_rest = n_bytes;
    return n_elements;
}

MPI_Count datatype_elements_of_bytes(const struct datatype *type, MPI_Count n_bytes,
                                     MPI_Count *ret_rest)
{
    *ret_rest = 0;
    if (type->size == 0) {
        *ret_rest = n_bytes;
        return 0;
    }
    MPI_Count whole = n_bytes / type->size;
    MPI_Count rest = n_bytes % type->size;
    MPI_Count n_elements = whole * type->signature.n_elements;
    return rest == 0 ? n_elements : n_elements + elements_in_part(type, rest, ret_rest);
}

static MPI_Count bytes_in_struct(const struct type_map *map, MPI_Count n_elements)
{
    MPI_Count n_bytes = 0;
    for (MPI_Count i = 0; i < map->count; i++) {
        const struct datatype *child = map->children[i];
        MPI_Count block_elements = map->blocks[i].len * child->signature.n_elements;
        if (n_elements < block_elements)
            return n_bytes + datatype_bytes_of_elements(child, n_elements);
        n_elements -= block_elements;
        n_bytes += map->blocks[i].len * child->size;
    }
    return n_bytes;
}

MPI_Count datatype_bytes_of_elements(const struct datatype *type, MPI_Count n_elements)
{
    MPI_Count per_type = type->signature.n_elements;
    if (per_type == 0)
        return 0;
    MPI_Count n_bytes = n_elements / per_type * type->size;
    MPI_Count rest = n_elements % per_type;
    if (rest == 0)
        return n_bytes;
    if (type->map->child != NULL)
        return n_bytes + datatype_bytes_of_elements(type->map->child, rest);
    return n_bytes + bytes_in_struct(type->map, rest);
}

/* A count that is no whole number of elements is MPI_UNDEFINED; so is, by the binding, one that is
 * too large for int. */
int mpi_get_count(const MPI_Status *status, struct datatype *datatype, MPI_Count *ret_count)
{
    MPI_Count n_bytes = status_get_count_bytes(status);
    if (datatype->size == 0)
        *ret_count = n_bytes == 0 ? 0 : MPI_UNDEFINED;
    else
        *ret_count = n_bytes % datatype->size == 0 ? n_bytes / datatype->size : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

int mpi_get_elements(const MPI_Status *status, struct datatype *datatype, MPI_Count *ret_count)
{
    MPI_Count rest;
    MPI_Count n_elements =
        datatype_elements_of_bytes(datatype, status_get_count_bytes(status), &rest);
    *ret_count = rest == 0 ? n_elements : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

int mpi_status_set_elements(MPI_Status *status, struct datatype *datatype, MPI_Count count)
{
    status_set_count_bytes(status, datatype_bytes_of_elements(datatype, count));
    return MPI_SUCCESS;
}
