/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Type maps: a derived type as blocks of child types, in the order of the standard's typemap.
 *
 * Made by the constructors (construct.c, array_type.c) and immutable after that; counted
 * references, because duplicates share the map of their original. All the constructors of MPI come
 * down to two forms: *regular* (count blocks of len children, evenly spaced) and *irregular*
 * (blocks at given places, of one child type or of one each).
 */
#ifndef MOTET_CLIENT_DATATYPE_TYPE_MAP_H
#define MOTET_CLIENT_DATATYPE_TYPE_MAP_H

#include <stdint.h>

#include "client/datatype/datatype.h"

struct type_block {
    MPI_Count displacement; /* bytes */
    MPI_Count len;          /* children, spaced by their extent */
};

struct type_map {
    int32_t refs;
    bool regular;
    MPI_Count count;           /* blocks */
    struct datatype *child;    /* of all blocks; NULL: children[i]. Referenced. */
    MPI_Count offset;          /* regular: displacement of the first block */
    MPI_Count len;             /* regular: children in each block */
    MPI_Count stride;          /* regular: bytes from block to block */
    struct type_block *blocks; /* irregular */
    struct datatype *
        *children; /* irregular with unlike children, NULL where len is 0; each referenced */
};

static inline struct type_block type_map_block(const struct type_map *map, MPI_Count idx)
{
    if (!map->regular)
        return map->blocks[idx];
    return (struct type_block){.displacement = map->offset + idx * map->stride, .len = map->len};
}

static inline struct datatype *type_map_child(const struct type_map *map, MPI_Count idx)
{
    return map->child != NULL ? map->child : map->children[idx];
}

/* A regular map over `child` (a reference is taken). NULL when out of memory. */
struct type_map *type_map_new_regular(struct datatype *child, MPI_Count count, MPI_Count len,
                                      MPI_Count stride);

/* An irregular map with `count` zeroed blocks for the caller to fill in. With child == NULL also
 * room for as many children, whose references the caller takes. NULL when out of memory. */
struct type_map *type_map_new_irregular(struct datatype *child, MPI_Count count);

void type_map_unref(struct type_map *map);

/* Takes over a finished map and computes from it everything in `type` but name, contents and
 * handle: size, bounds, density, alignment, signature. `is_struct` adds the padding that the
 * standard leaves to us (MPI-5.0 section 5.1.6): the extent of a struct is a multiple of its
 * alignment. On an error the map is released. 0, or MPI_ERR_VALUE_TOO_LARGE when a number does not
 * fit into MPI_Count, or MPI_ERR_TYPE when too deeply nested. */
int type_map_apply(struct type_map *map, bool is_struct, struct datatype *type);

/* Builds the layout of a type and of all types below it that have none yet. 0, or
 * MPI_ERR_NO_MEM. */
int type_layout(struct datatype *type);

/* Signature of `a` followed by `b`, and of `count` times `a`. */
struct type_signature signature_join(struct type_signature a, struct type_signature b);
struct type_signature signature_repeat(struct type_signature a, MPI_Count count);

#endif
