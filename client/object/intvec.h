/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An array of counts or displacements that the application gave as int[], MPI_Aint[] or
 * MPI_Count[].
 *
 * The bindings make one of either form, so that a function and its large-count form share one body.
 * The array is the application's and is not copied: read it during the call only.
 */
#ifndef MOTET_CLIENT_OBJECT_INTVEC_H
#define MOTET_CLIENT_OBJECT_INTVEC_H

#include "mpi.h"

#include <stdint.h>

struct intvec {
    const void *base; /* may be NULL where the array is not significant */
    uint8_t width;    /* bytes per element: 4 or 8 */
};

static inline struct intvec intvec_of_int(const int *base)
{
    return (struct intvec){base, sizeof(int)};
}

static inline struct intvec intvec_of_count(const MPI_Count *base)
{
    return (struct intvec){base, sizeof(MPI_Count)};
}

static inline struct intvec intvec_of_aint(const MPI_Aint *base)
{
    return (struct intvec){base, sizeof(MPI_Aint)};
}

static inline MPI_Count intvec_at(struct intvec v, MPI_Count i)
{
    return v.width == sizeof(int) ? ((const int *)v.base)[i] : ((const int64_t *)v.base)[i];
}

#endif
