/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The buffer of a collective with one block for each rank: the regular, the v and the w form in
 * one.
 *
 * Regular: `counts` is empty, block i has `count` elements and follows block i - 1. v: counts and
 * displacements in elements. w: `types` as well, displacements in bytes. The arrays are the
 * caller's and are read only while the schedule is written.
 */
#ifndef MOTET_CLIENT_COLL_SCHEDULE_BLOCKS_H
#define MOTET_CLIENT_COLL_SCHEDULE_BLOCKS_H

#include "client/datatype/buffer.h"
#include "client/object/intvec.h"

#include <stdbool.h>

struct blocks {
    void *buf;
    struct datatype *type; /* unused in the w form */
    MPI_Count count;       /* regular form */
    struct intvec counts;  /* base NULL: regular form */
    struct intvec
        displs; /* base NULL: dense, in the order of the ranks (reduce_scatter, regular) */
    const MPI_Datatype *types; /* w form, or NULL */
    bool
        uniform; /* gather and scatter, on all ranks: every rank knows the sizes, which are equal */
};

static inline MPI_Count blocks_count(const struct blocks *b, int i)
{
    return b->counts.base ? intvec_at(b->counts, i) : b->count;
}

static inline struct datatype *blocks_type(const struct blocks *b, int i)
{
    return b->types ? datatype_from_handle(b->types[i]) : b->type;
}

static inline MPI_Count blocks_bytes(const struct blocks *b, int i)
{
    MPI_Count count = blocks_count(b, i);
    return count ? count * blocks_type(b, i)->size
                 : 0; /* the type of an empty block need not be one */
}

/* Elements before block i where blocks lie dense. */
static inline MPI_Count blocks_first(const struct blocks *b, int i)
{
    if (!b->counts.base)
        return i * b->count;
    MPI_Count first = 0;
    for (int k = 0; k < i; k++)
        first += intvec_at(b->counts, k);
    return first;
}

static inline void *blocks_at(const struct blocks *b, int i)
{
    if (b->types)
        return (void *)((uintptr_t)b->buf + (uintptr_t)intvec_at(b->displs, i));
    return datatype_at(b->type, b->buf,
                       b->displs.base ? intvec_at(b->displs, i) : blocks_first(b, i));
}

static inline struct buffer blocks_buffer(const struct blocks *b, int i)
{
    return buffer_of(blocks_at(b, i), blocks_count(b, i), blocks_type(b, i));
}

#endif
