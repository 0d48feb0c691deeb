/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making datatypes, for the files of this folder: a map plus the record of the call become a type.
 */
#ifndef MOTET_CLIENT_DATATYPE_CONSTRUCT_H
#define MOTET_CLIENT_DATATYPE_CONSTRUCT_H

#include "client/datatype/contents.h"
#include "client/datatype/type_map.h"

/* Makes a type from its two halves and takes both over, also when it fails; either may be NULL when
 * the allocation that should have made it failed. The type has one reference and no handle.
 * `is_struct`: see type_map_apply. 0 or MPI_ERR_NO_MEM, MPI_ERR_VALUE_TOO_LARGE, MPI_ERR_TYPE. */
int type_new(struct type_map *map, struct type_contents *contents, bool is_struct,
             struct datatype **ret_type);

/* Gives a new type its handle. On failure the type is released. */
int type_publish(struct datatype *type, struct datatype **ret_type);

/* A type without contents and handle, for the inside of another one. */
int type_new_inner(struct type_map *map, struct datatype **ret_type);

/* A type with the same map, layout and bounds, without contents, name, attributes and handle. NULL:
 * out of memory. */
struct datatype *type_clone(const struct datatype *type);

/* What MPI_Type_get_contents returns for a type: itself if it is predefined, else a new type like
 * it. */
int type_hand_out(struct datatype *type, struct datatype **ret_type);
void type_release_handed_out(struct datatype *type);

/* Sets the bounds of a type that nobody else knows yet, as MPI_Type_create_resized does. */
void type_set_markers(struct datatype *type, MPI_Count lb, MPI_Count extent);

#endif
