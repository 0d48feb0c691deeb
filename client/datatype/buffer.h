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

#include "client/datatype/datatype.h"

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

static inline struct buffer buffer_of_bytes(const void *base, MPI_Count n_bytes)
{
    return buffer_of(base, n_bytes, datatype_predefined(MPI_BYTE));
}

/* `count` elements that begin with element `first`. */
static inline struct buffer buffer_part(struct buffer b, MPI_Count first, MPI_Count count)
{
    return buffer_of(datatype_at(b.type, b.base, first), count, b.type);
}

/* From element `first` on up to `most` of them. */
static inline struct buffer buffer_piece(struct buffer b, MPI_Count first, MPI_Count most)
{
    return buffer_part(b, first, b.count - first < most ? b.count - first : most);
}

/* `n` times as many elements, from the same address on. */
static inline struct buffer buffer_times(struct buffer b, MPI_Count n)
{
    return buffer_of(b.base, b.count * n, b.type);
}

/* As many elements of the same type at another address. */
static inline struct buffer buffer_like(struct buffer b, const void *base)
{
    return buffer_of(base, b.count, b.type);
}

/* Elements of a piece of up to `n_bytes` bytes, at least one; all if they are no more. */
static inline MPI_Count buffer_elements(struct buffer b, MPI_Count n_bytes)
{
    if (b.count * b.type->size <= n_bytes)
        return b.count;
    return b.type->size < n_bytes ? n_bytes / b.type->size : 1;
}

/* Bytes of data. */
static inline MPI_Count buffer_size(struct buffer b)
{
    return b.count * b.type->size;
}

#endif
