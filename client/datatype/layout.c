/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Building layouts: see layout.h for the form. Everything here keeps three properties that cursors
 * rely on: no part of size 0 inside a layout, no loop or list of fewer than two, no two adjacent
 * runs side by side in a list.
 */
#include "client/datatype/layout.h"

#include <stdlib.h>
#include <string.h>

/* A list inside a list is dissolved up to this many items: struct in struct then merges at the
 * seam, and short lists are no level of their own. More would copy big lists again and again. */
#define LAYOUT_DISSOLVE_ITEMS 8

static void layout_unref(struct layout *layout)
{
    if (layout == NULL || --layout->refs > 0)
        return;
    if (layout->kind == LAYOUT_LIST) {
        for (MPI_Count i = 0; i < layout->count; i++)
            layout_unref(layout->items[i].inner);
    } else {
        layout_unref(layout->child.inner);
    }
    free(layout);
}

struct layout_part layout_part_ref(struct layout_part part)
{
    if (part.inner != NULL)
        part.inner->refs++;
    return part;
}

void layout_part_unref(struct layout_part part)
{
    layout_unref(part.inner);
}

static struct layout *layout_new(enum layout_kind kind, MPI_Count count)
{
    size_t item_bytes = kind == LAYOUT_BLOCKS ? sizeof(MPI_Count) : sizeof(struct layout_item);
    size_t n_bytes = sizeof(struct layout) + (kind == LAYOUT_LOOP ? 0 : (size_t)count * item_bytes);
    struct layout *layout = calloc(1, n_bytes);
    if (layout == NULL)
        return NULL;
    if (kind == LAYOUT_BLOCKS)
        layout->offsets = (MPI_Count *)(layout + 1);
    if (kind == LAYOUT_LIST)
        layout->items = (struct layout_item *)(layout + 1);
    layout->refs = 1;
    layout->kind = (uint8_t)kind;
    layout->count = count;
    return layout;
}

int layout_repeat(struct layout_part part, MPI_Count count, MPI_Count stride,
                  struct layout_part *ret_part)
{
    if (count == 0 || part.size == 0) {
        *ret_part = (struct layout_part){0};
        return MPI_SUCCESS;
    }
    if (count == 1) {
        *ret_part = layout_part_ref(part);
        return MPI_SUCCESS;
    }
    if (part.inner == NULL && stride == part.size) {
        *ret_part = (struct layout_part){.offset = part.offset, .size = part.size * count};
        return MPI_SUCCESS;
    }

    struct layout *outer = layout_new(LAYOUT_LOOP, count);
    if (outer == NULL)
        return MPI_ERR_NO_MEM;
    const struct layout *inner = part.inner;
    if (inner != NULL && inner->kind == LAYOUT_LOOP && stride == inner->count * inner->stride) {
        /* The loop goes on where it stopped: one longer loop. */
        outer->count = count * inner->count;
        outer->stride = inner->stride;
        outer->child = layout_part_ref(inner->child);
    } else {
        outer->stride = stride;
        outer->child = layout_part_ref(part);
        outer->child.offset = 0;
    }
    outer->size = part.size * count;
    *ret_part = (struct layout_part){.offset = part.offset, .size = outer->size, .inner = outer};
    return MPI_SUCCESS;
}

void layout_builder_init(struct layout_builder *b)
{
    *b = (struct layout_builder){0};
}

static void builder_push(struct layout_builder *b, MPI_Count offset, MPI_Count size,
                         struct layout *inner)
{
    if (size == 0 || b->failed)
        return;
    if (b->n_items > 0 && inner == NULL) {
        const struct layout_item *last = &b->items[b->n_items - 1];
        if (last->inner == NULL && last->offset + (b->size - last->start) == offset) {
            b->size += size;
            return;
        }
    }
    if (b->n_items == b->capacity) {
        size_t capacity = b->capacity == 0 ? 16 : b->capacity * 2;
        struct layout_item *items = reallocarray(b->items, capacity, sizeof *items);
        if (items == NULL) {
            b->failed = true;
            return;
        }
        b->items = items;
        b->capacity = capacity;
    }
    if (inner != NULL)
        inner->refs++;
    b->items[b->n_items++] =
        (struct layout_item){.offset = offset, .start = b->size, .inner = inner};
    b->size += size;
}

void layout_builder_add(struct layout_builder *b, struct layout_part part, MPI_Count offset)
{
    const struct layout *inner = part.inner;
    offset += part.offset;
    if (inner != NULL && inner->kind == LAYOUT_LIST && inner->count <= LAYOUT_DISSOLVE_ITEMS) {
        for (MPI_Count i = 0; i < inner->count; i++)
            builder_push(b, offset + inner->items[i].offset, layout_item_size(inner, i),
                         inner->items[i].inner);
        return;
    }
    builder_push(b, offset, part.size, part.inner);
}

static MPI_Count builder_item_size(const struct layout_builder *b, size_t idx)
{
    return (idx + 1 < b->n_items ? b->items[idx + 1].start : b->size) - b->items[idx].start;
}

/* All items of one size and form: they can be a loop or blocks. */
static bool builder_is_uniform(const struct layout_builder *b)
{
    MPI_Count size = builder_item_size(b, 0);
    for (size_t i = 1; i < b->n_items; i++) {
        if (b->items[i].inner != b->items[0].inner || builder_item_size(b, i) != size)
            return false;
    }
    return true;
}

static bool builder_is_evenly_spaced(const struct layout_builder *b)
{
    MPI_Count stride = b->items[1].offset - b->items[0].offset;
    for (size_t i = 2; i < b->n_items; i++) {
        if (b->items[i].offset - b->items[i - 1].offset != stride)
            return false;
    }
    return true;
}

static int builder_make_blocks(const struct layout_builder *b, struct layout_part *ret_part)
{
    struct layout *blocks = layout_new(LAYOUT_BLOCKS, (MPI_Count)b->n_items);
    if (blocks == NULL)
        return MPI_ERR_NO_MEM;
    for (size_t i = 0; i < b->n_items; i++)
        blocks->offsets[i] = b->items[i].offset;
    blocks->size = b->size;
    blocks->child = layout_part_ref(
        (struct layout_part){.size = builder_item_size(b, 0), .inner = b->items[0].inner});
    *ret_part = (struct layout_part){.size = b->size, .inner = blocks};
    return MPI_SUCCESS;
}

static int builder_make_list(const struct layout_builder *b, struct layout_part *ret_part)
{
    struct layout *list = layout_new(LAYOUT_LIST, (MPI_Count)b->n_items);
    if (list == NULL)
        return MPI_ERR_NO_MEM;
    memcpy(list->items, b->items, b->n_items * sizeof *b->items);
    for (size_t i = 0; i < b->n_items; i++) {
        if (list->items[i].inner != NULL)
            list->items[i].inner->refs++;
    }
    list->size = b->size;
    *ret_part = (struct layout_part){.size = b->size, .inner = list};
    return MPI_SUCCESS;
}

int layout_builder_finish(struct layout_builder *b, struct layout_part *ret_part)
{
    int rc = MPI_SUCCESS;
    if (b->failed) {
        rc = MPI_ERR_NO_MEM;
    } else if (b->n_items == 0) {
        *ret_part = (struct layout_part){0};
    } else if (b->n_items == 1) {
        *ret_part = layout_part_ref((struct layout_part){
            .offset = b->items[0].offset, .size = b->size, .inner = b->items[0].inner});
    } else if (!builder_is_uniform(b)) {
        rc = builder_make_list(b, ret_part);
    } else if (builder_is_evenly_spaced(b)) {
        struct layout_part one = {.offset = b->items[0].offset,
                                  .size = builder_item_size(b, 0),
                                  .inner = b->items[0].inner};
        rc = layout_repeat(one, (MPI_Count)b->n_items, b->items[1].offset - b->items[0].offset,
                           ret_part);
    } else {
        rc = builder_make_blocks(b, ret_part);
    }
    for (size_t i = 0; i < b->n_items; i++)
        layout_unref(b->items[i].inner);
    free(b->items);
    layout_builder_init(b);
    return rc;
}
