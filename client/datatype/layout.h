/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Layouts: where the bytes of a committed type lie, in stream order, as loops over dense runs.
 *
 * Built by type_layout (type_map.c) at commit, read by cursors. Immutable once built; counted
 * references, because types built on one another share the layouts of their children. References
 * are counted with the library lock held.
 *
 * The idea: loops stay loops. A million rows of a matrix are one node, a nested vector is one node
 * per level, an indexed type is one array of as many entries as it has blocks. Building merges what
 * is adjacent, so that what remains after a tower of constructors is usually one or two levels.
 */
#ifndef MOTET_CLIENT_DATATYPE_LAYOUT_H
#define MOTET_CLIENT_DATATYPE_LAYOUT_H

#include <stdint.h>

#include "client/datatype/datatype.h"

enum layout_kind {
    LAYOUT_LOOP,   /* child `count` times, `stride` apart */
    LAYOUT_BLOCKS, /* child `count` times, at offsets[] */
    LAYOUT_LIST,   /* items[], each of its own size and form */
};

/* An item of a list. Its size is the next item's start (or the list's end) less its own. */
struct layout_item {
    MPI_Count offset;
    MPI_Count start;      /* stream bytes before it */
    struct layout *inner; /* NULL: a dense run; referenced */
};

struct layout {
    int32_t refs;
    uint8_t kind;
    MPI_Count size; /* stream bytes */
    MPI_Count count;
    MPI_Count stride;         /* LAYOUT_LOOP */
    struct layout_part child; /* LAYOUT_LOOP, LAYOUT_BLOCKS; its inner is referenced; size > 0;
                                 offset 0 in a loop */
    /* `count` of them, allocated together with this struct. */
    MPI_Count *offsets;        /* LAYOUT_BLOCKS */
    struct layout_item *items; /* LAYOUT_LIST */
};

static inline MPI_Count layout_item_size(const struct layout *list, MPI_Count idx)
{
    MPI_Count end = idx + 1 < list->count ? list->items[idx + 1].start : list->size;
    return end - list->items[idx].start;
}

/* Takes a reference for a copy of a part; returns the part. */
struct layout_part layout_part_ref(struct layout_part part);
void layout_part_unref(struct layout_part part);

/* `part` `count` times, `stride` bytes apart. Takes no reference of the caller's part away.
 * 0, or MPI_ERR_NO_MEM. Sizes were checked against overflow when the type was made. */
int layout_repeat(struct layout_part part, MPI_Count count, MPI_Count stride,
                  struct layout_part *ret_part);

/* Collects parts one after the other into one part. */
struct layout_builder {
    struct layout_item *items;
    size_t n_items, capacity;
    MPI_Count size;
    bool failed; /* out of memory; reported by layout_builder_finish */
};

void layout_builder_init(struct layout_builder *b);
/* Appends a copy of `part`, moved by `offset`. */
void layout_builder_add(struct layout_builder *b, struct layout_part part, MPI_Count offset);
/* Frees what the builder holds. 0, or MPI_ERR_NO_MEM. */
int layout_builder_finish(struct layout_builder *b, struct layout_part *ret_part);

#endif
