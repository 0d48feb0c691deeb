/* SPDX-License-Identifier: BSD-3-Clause */
/* What the programs of this folder share. They use nothing but mpi.h, so that they run on any
 * library of the standard ABI. */
#ifndef MOTET_TESTS_TOPO_CHECK_H
#define MOTET_TESTS_TOPO_CHECK_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(cond, ...)                                                                           \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #cond);                             \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fprintf(stderr, "\n");                                                                 \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                          \
        }                                                                                          \
    } while (0)

/* The same sequence on every rank that starts from the same seed (xorshift64*, Vigna 2014). */
static inline uint64_t check_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717) >> 16;
}

static inline int check_below(uint64_t *state, int n)
{
    return (int)(check_random(state) % (uint64_t)n);
}

#endif
