/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A buffer as the caller describes it: address, count and datatype (MPI-5.0 section 3.2.2), which
 * travel together through every layer below the bindings. A value: whoever keeps one beyond the
 * call takes a reference to the type.
 */
#ifndef MOTET_CLIENT_DATATYPE_BUFFER_H
#define MOTET_CLIENT_DATATYPE_BUFFER_H

#include <stdint.h>

#include "mpi.h"

struct datatype;

struct buffer {
    void *base; /* buffers that are only read come without their const: see buffer_of */
    MPI_Count count;
    struct datatype *type;
};

/* `base` may be const: the direction of the operation says whether it is written. */
static inline struct buffer buffer_of(const void *base, MPI_Count count, struct datatype *type)
{
    return (struct buffer){.base = (void *)(uintptr_t)base, .count = count, .type = type};
}

#endif
