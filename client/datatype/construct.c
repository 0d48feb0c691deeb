/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The constructors of MPI-5.0 section 5.1 but subarray and darray: each writes its call down
 * (contents) and brings it into one of the two normal forms (map). Called by the bindings with
 * checked counts, library lock held.
 */
#include "client/datatype/construct.h"

#include "client/abi/semantics.h"
#include "client/object/err.h"

static int too_large(const char *what, MPI_Count value, MPI_Count extent)
{
    return err_set(MPI_ERR_VALUE_TOO_LARGE,
                   "%s %lld times the extent %lld does not fit into 63 bits", what,
                   (long long)value, (long long)extent);
}

/* The common end of the constructors: takes over map and contents. */
static int publish_new(struct type_map *map, struct type_contents *contents, bool is_struct,
                       struct datatype **ret_type)
{
    struct datatype *type;
    int rc = type_new(map, contents, is_struct, &type);
    return rc == MPI_SUCCESS ? type_publish(type, ret_type) : rc;
}

/* The record of a constructor with one child type; NULL when out of memory. */
static struct type_contents *construct_record(int combiner, bool large, struct datatype *oldtype)
{
    struct type_contents *contents = contents_new(combiner, large, 1);
    if (contents != NULL)
        contents_set_type(contents, 0, oldtype);
    return contents;
}

int mpi_type_contiguous(MPI_Count count, struct datatype *oldtype, struct datatype **ret_newtype,
                        bool large)
{
    struct type_contents *contents = construct_record(MPI_COMBINER_CONTIGUOUS, large, oldtype);
    if (contents != NULL)
        contents_add_count(contents, count);
    return publish_new(type_map_new_regular(oldtype, 1, count, 0), contents, false, ret_newtype);
}

int mpi_type_vector(MPI_Count count, MPI_Count blocklength, MPI_Count stride,
                    struct datatype *oldtype, struct datatype **ret_newtype, bool large)
{
    MPI_Count stride_bytes;
    if (__builtin_mul_overflow(stride, oldtype->extent, &stride_bytes))
        return too_large("stride", stride, oldtype->extent);
    struct type_contents *contents = construct_record(MPI_COMBINER_VECTOR, large, oldtype);
    if (contents != NULL) {
        contents_add_count(contents, count);
        contents_add_count(contents, blocklength);
        contents_add_count(contents, stride);
    }
    return publish_new(type_map_new_regular(oldtype, count, blocklength, stride_bytes), contents,
                       false, ret_newtype);
}

int mpi_type_create_hvector(MPI_Count count, MPI_Count blocklength, MPI_Count stride,
                            struct datatype *oldtype, struct datatype **ret_newtype, bool large)
{
    struct type_contents *contents = construct_record(MPI_COMBINER_HVECTOR, large, oldtype);
    if (contents != NULL) {
        contents_add_count(contents, count);
        contents_add_count(contents, blocklength);
        contents_add_address(contents, stride);
    }
    return publish_new(type_map_new_regular(oldtype, count, blocklength, stride), contents, false,
                       ret_newtype);
}

/* Fills the blocks of an irregular map. lens == NULL: all blocks have `len` children. Displacements
 * are multiplied by `unit` bytes. */
static int fill_blocks(struct type_map *map, const struct intvec *lens, MPI_Count len,
                       struct intvec displacements, MPI_Count unit)
{
    for (MPI_Count i = 0; i < map->count; i++) {
        MPI_Count displacement = intvec_at(displacements, i);
        map->blocks[i].len = lens != NULL ? intvec_at(*lens, i) : len;
        if (__builtin_mul_overflow(displacement, unit, &map->blocks[i].displacement))
            return too_large("displacement", displacement, unit);
    }
    return MPI_SUCCESS;
}

/* Map and type of the four indexed constructors. Takes over contents. */
static int publish_indexed(struct type_contents *contents, MPI_Count count,
                           const struct intvec *lens, MPI_Count len, struct intvec displacements,
                           MPI_Count unit, struct datatype *oldtype, struct datatype **ret_newtype)
{
    struct type_map *map = type_map_new_irregular(oldtype, count);
    int rc = map == NULL ? MPI_SUCCESS : fill_blocks(map, lens, len, displacements, unit);
    if (rc != MPI_SUCCESS) {
        contents_unref(contents);
        type_map_unref(map);
        return rc;
    }
    return publish_new(map, contents, false, ret_newtype);
}

int mpi_type_indexed(MPI_Count count, struct intvec array_of_blocklengths,
                     struct intvec array_of_displacements, struct datatype *oldtype,
                     struct datatype **ret_newtype, bool large)
{
    struct type_contents *contents = construct_record(MPI_COMBINER_INDEXED, large, oldtype);
    if (contents != NULL) {
        contents_add_count(contents, count);
        contents_add_counts(contents, array_of_blocklengths, count);
        contents_add_counts(contents, array_of_displacements, count);
    }
    return publish_indexed(contents, count, &array_of_blocklengths, 0, array_of_displacements,
                           oldtype->extent, oldtype, ret_newtype);
}

int mpi_type_create_hindexed(MPI_Count count, struct intvec array_of_blocklengths,
                             struct intvec array_of_displacements, struct datatype *oldtype,
                             struct datatype **ret_newtype, bool large)
{
    struct type_contents *contents = construct_record(MPI_COMBINER_HINDEXED, large, oldtype);
    if (contents != NULL) {
        contents_add_count(contents, count);
        contents_add_counts(contents, array_of_blocklengths, count);
        contents_add_addresses(contents, array_of_displacements, count);
    }
    return publish_indexed(contents, count, &array_of_blocklengths, 0, array_of_displacements, 1,
                           oldtype, ret_newtype);
}

int mpi_type_create_indexed_block(MPI_Count count, MPI_Count blocklength,
                                  struct intvec array_of_displacements, struct datatype *oldtype,
                                  struct datatype **ret_newtype, bool large)
{
    struct type_contents *contents = construct_record(MPI_COMBINER_INDEXED_BLOCK, large, oldtype);
    if (contents != NULL) {
        contents_add_count(contents, count);
        contents_add_count(contents, blocklength);
        contents_add_counts(contents, array_of_displacements, count);
    }
    return publish_indexed(contents, count, NULL, blocklength, array_of_displacements,
                           oldtype->extent, oldtype, ret_newtype);
}

int mpi_type_create_hindexed_block(MPI_Count count, MPI_Count blocklength,
                                   struct intvec array_of_displacements, struct datatype *oldtype,
                                   struct datatype **ret_newtype, bool large)
{
    struct type_contents *contents = construct_record(MPI_COMBINER_HINDEXED_BLOCK, large, oldtype);
    if (contents != NULL) {
        contents_add_count(contents, count);
        contents_add_count(contents, blocklength);
        contents_add_addresses(contents, array_of_displacements, count);
    }
    return publish_indexed(contents, count, NULL, blocklength, array_of_displacements, 1, oldtype,
                           ret_newtype);
}

int mpi_type_create_struct(MPI_Count count, struct intvec array_of_blocklengths,
                           struct intvec array_of_displacements,
                           const MPI_Datatype array_of_types[], struct datatype **ret_newtype,
                           bool large)
{
    struct type_contents *contents = contents_new(MPI_COMBINER_STRUCT, large, (size_t)count);
    struct type_map *map = type_map_new_irregular(NULL, count);
    if (contents != NULL) {
        contents_add_count(contents, count);
        contents_add_counts(contents, array_of_blocklengths, count);
        contents_add_addresses(contents, array_of_displacements, count);
    }
    for (MPI_Count i = 0; contents != NULL && map != NULL && i < count; i++) {
        struct datatype *type = datatype_from_handle(array_of_types[i]);
        contents_set_type(contents, (size_t)i, type);
        type_ref(type);
        map->children[i] = type;
        map->blocks[i].len = intvec_at(array_of_blocklengths, i);
        map->blocks[i].displacement = intvec_at(array_of_displacements, i);
    }
    return publish_new(map, contents, true, ret_newtype);
}

int mpi_type_create_resized(struct datatype *oldtype, MPI_Count lb, MPI_Count extent,
                            struct datatype **ret_newtype, bool large)
{
    struct type_contents *contents = construct_record(MPI_COMBINER_RESIZED, large, oldtype);
    if (contents != NULL) {
        contents_add_address(contents, lb);
        contents_add_address(contents, extent);
    }
    struct datatype *type;
    int rc = type_new(type_map_new_regular(oldtype, 1, 1, 0), contents, false, &type);
    if (rc != MPI_SUCCESS)
        return rc;
    type_set_markers(type, lb, extent);
    return type_publish(type, ret_newtype);
}
