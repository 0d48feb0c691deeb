/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reference for datatype tests: typemaps written out element by element, as the standard
 * defines them, and random types made in both forms. Slow and obvious on purpose; shares no code
 * with client/datatype.
 */
#ifndef MOTET_TESTS_DATATYPE_REFERENCE_H
#define MOTET_TESTS_DATATYPE_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpi.h"

#include "client/datatype/datatype.h"

/* One basic element. */
struct ref_entry {
    MPI_Count displacement;
    MPI_Count size;
    MPI_Datatype basic;
};

/* A typemap with its bounds. */
struct ref_map {
    struct ref_entry *entries;
    size_t n;
    bool any;         /* some element or some empty type fixes the bounds */
    MPI_Count lb, ub; /* as the standard defines them */
    bool lb_marker, ub_marker;
    MPI_Count marked_lb, marked_ub;
    MPI_Count align;
};

/* A type in both forms. The engine's has a handle and is committed. */
struct ref_type {
    struct ref_map map;
    struct datatype *type;
};

/* xorshift generator with a seed that the test prints. */
struct ref_random {
    uint64_t state;
};
uint64_t ref_random_next(struct ref_random *r);
/* 0 .. n - 1 */
MPI_Count ref_random_below(struct ref_random *r, MPI_Count n);

/* A random type of at most `max_entries` elements. Ends the test on any error. */
struct ref_type ref_type_random(struct ref_random *r, int depth, size_t max_entries);
struct ref_type ref_type_basic(MPI_Datatype handle);
void ref_type_free(struct ref_type *t);

MPI_Count ref_size(const struct ref_map *map);
MPI_Count ref_extent(const struct ref_map *map);
/* Lowest and behind the highest byte of `count` elements, 0 and 0 if there are none. */
void ref_span(const struct ref_map *map, MPI_Count count, MPI_Count *ret_low, MPI_Count *ret_high);
/* The packed stream of `count` elements at `buf`. */
void ref_pack(const struct ref_map *map, MPI_Count count, const unsigned char *buf,
              unsigned char *out);
void ref_unpack(const struct ref_map *map, MPI_Count count, unsigned char *buf,
                const unsigned char *in);

#endif
