/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contents: the call that made a derived datatype, kept for MPI_Type_get_envelope and
 * MPI_Type_get_contents.
 *
 * Filled by the constructors in the order in which the standard lists the arguments (MPI-5.0
 * section 5.1.13); counted references, because the copies that MPI_Type_get_contents hands out
 * share them. Library lock held.
 */
#ifndef MOTET_CLIENT_DATATYPE_CONTENTS_H
#define MOTET_CLIENT_DATATYPE_CONTENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "mpi.h"

#include "client/datatype/datatype.h"
#include "client/object/intvec.h"

struct number_list {
    MPI_Count *values;
    size_t n, capacity;
};

struct type_contents {
    int32_t refs;
    int combiner;
    bool large;  /* made by the large-count form of its constructor */
    bool failed; /* out of memory while filling; reported by type_finish */
    struct number_list integers, addresses, large_counts;
    size_t n_types;
    struct datatype **types; /* referenced */
};

/* Room for n_types types, all set to NULL. NULL when out of memory. */
struct type_contents *contents_new(int combiner, bool large, size_t n_types);
void contents_unref(struct type_contents *contents);

/* Sets the type `idx`; takes a reference. */
void contents_set_type(struct type_contents *contents, size_t idx, struct datatype *type);

/* An argument that is an int in both forms. */
void contents_add_int(struct type_contents *contents, MPI_Count value);
/* An argument that is an int in the small form, an MPI_Count in the large one. */
void contents_add_count(struct type_contents *contents, MPI_Count value);
/* An argument that is an MPI_Aint in the small form, an MPI_Count in the large one. */
void contents_add_address(struct type_contents *contents, MPI_Count value);

void contents_add_ints(struct type_contents *contents, const int *values, MPI_Count n);
void contents_add_counts(struct type_contents *contents, struct intvec values, MPI_Count n);
void contents_add_addresses(struct type_contents *contents, struct intvec values, MPI_Count n);

#endif
