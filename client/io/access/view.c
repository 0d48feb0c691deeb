/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/io/access/view.h"

#include <stdlib.h>
#include <sys/uio.h>

#include "client/datatype/layout.h"
#include "client/datatype/type_map.h"
#include "client/io/access/datarep.h"
#include "client/object/err.h"

/* ---- is the stream in the order of the file? ---- */

/* What a part covers, relative to where it is placed. */
struct extent_of_part {
    MPI_Count begin; /* of its first run */
    MPI_Count last;  /* of its last run */
    MPI_Count end;   /* behind its last run */
    bool sorted, disjoint;
};

static struct extent_of_part part_extent(const struct layout_part *part);

/* `b` follows `a`. */
static struct extent_of_part extent_join(struct extent_of_part a, struct extent_of_part b)
{
    return (struct extent_of_part){.begin = a.begin,
                                   .last = b.last,
                                   .end = b.end,
                                   .sorted = a.sorted && b.sorted && b.begin >= a.last,
                                   .disjoint = a.disjoint && b.disjoint && b.begin >= a.end};
}

static struct extent_of_part extent_moved(struct extent_of_part e, MPI_Count by)
{
    e.begin += by;
    e.last += by;
    e.end += by;
    return e;
}

static struct extent_of_part loop_extent(const struct layout *loop)
{
    struct extent_of_part first = part_extent(&loop->child);
    if (loop->count < 2)
        return first;
    /* All steps are alike: the first one tells of the others. */
    struct extent_of_part two = extent_join(first, extent_moved(first, loop->stride));
    two.last = first.last + (loop->count - 1) * loop->stride;
    two.end = first.end + (loop->count - 1) * loop->stride;
    return two;
}

static struct extent_of_part blocks_extent(const struct layout *blocks)
{
    struct extent_of_part child = part_extent(&blocks->child);
    struct extent_of_part all = extent_moved(child, blocks->offsets[0]);
    for (MPI_Count i = 1; i < blocks->count; i++)
        all = extent_join(all, extent_moved(child, blocks->offsets[i]));
    return all;
}

static struct extent_of_part list_extent(const struct layout *list)
{
    struct extent_of_part all = {0};
    for (MPI_Count i = 0; i < list->count; i++) {
        struct layout_part item = {.offset = list->items[i].offset,
                                   .size = layout_item_size(list, i),
                                   .inner = list->items[i].inner};
        all = i == 0 ? part_extent(&item) : extent_join(all, part_extent(&item));
    }
    return all;
}

static struct extent_of_part part_extent(const struct layout_part *part)
{
    const struct layout *inner = part->inner;
    struct extent_of_part e = {
        .begin = 0, .last = 0, .end = part->size, .sorted = true, .disjoint = true};
    if (inner && inner->kind == LAYOUT_LOOP)
        e = loop_extent(inner);
    else if (inner && inner->kind == LAYOUT_BLOCKS)
        e = blocks_extent(inner);
    else if (inner)
        e = list_extent(inner);
    return extent_moved(e, part->offset);
}

/* ---- making ---- */

static int check_layout(struct view *view, bool writable)
{
    const struct datatype *type = view->layout;
    const char *name = datatype_name(view->filetype);
    view->sorted = view->disjoint = true;
    if (type->size == 0)
        return MPI_SUCCESS;
    struct extent_of_part e = {.begin = type->true_lb,
                               .end = type->true_lb + type->size,
                               .sorted = true,
                               .disjoint = true};
    if (!type->contiguous)
        e = part_extent(&type->layout);
    if (e.begin < 0 || type->true_lb < 0)
        return err_set(MPI_ERR_IO, "the filetype %s has a negative displacement", name);
    if (!e.sorted)
        return err_set(MPI_ERR_IO,
                       "the displacements of the filetype %s go down: a filetype's may not", name);
    if (!e.disjoint && writable)
        return err_set(MPI_ERR_IO,
                       "the filetype %s has parts that overlap, and the file may be written", name);
    if (type->extent <= 0)
        return err_set(MPI_ERR_IO, "the filetype %s has the extent %lld", name,
                       (long long)type->extent);
    /* Repeated at distances below its length, its copies lie in one another. */
    struct extent_of_part two = extent_join(e, extent_moved(e, type->extent));
    view->sorted = two.sorted;
    view->disjoint = two.disjoint;
    return MPI_SUCCESS;
}

static int check_etype(const struct view *view)
{
    if (view->etype_bytes <= 0)
        return err_set(MPI_ERR_IO, "the etype %s has no data", datatype_name(view->etype));
    if (view->layout->size % view->etype_bytes != 0)
        return err_set(MPI_ERR_IO,
                       "the filetype %s has %lld bytes in the file, no multiple of the %lld of the "
                       "etype %s",
                       datatype_name(view->filetype), (long long)view->layout->size,
                       (long long)view->etype_bytes, datatype_name(view->etype));
    return MPI_SUCCESS;
}

int view_new(MPI_Offset disp, struct datatype *etype, struct datatype *filetype,
             const struct datarep *rep, bool writable, struct view **ret_view)
{
    if (disp < 0)
        return err_set(MPI_ERR_ARG, "disp is %lld", (long long)disp);
    struct view *view = calloc(1, sizeof *view);
    if (!view)
        return err_set(MPI_ERR_NO_MEM, "no memory for a view");
    view->refs = 1;
    view->disp = disp;
    view->rep = rep;
    view->etype = etype;
    view->filetype = filetype;
    type_ref(etype);
    type_ref(filetype);
    struct datatype *of_etype = NULL;
    int err = datarep_layout(rep, filetype, &view->layout);
    err = err ? err : datarep_layout(rep, etype, &of_etype);
    if (!err) {
        view->etype_bytes = of_etype->size;
        err = check_etype(view);
    }
    if (of_etype)
        type_unref(of_etype);
    err = err ? err : type_layout(view->layout);
    err = err ? err : check_layout(view, writable);
    if (err)
        view_unref(view);
    else
        *ret_view = view;
    return err;
}

int view_new_bytes(struct view **ret_view)
{
    struct datatype *byte = datatype_predefined(MPI_BYTE);
    return view_new(0, byte, byte, datarep_native(), true, ret_view);
}

void view_unref(struct view *view)
{
    if (!view || --view->refs > 0)
        return;
    type_unref(view->etype);
    type_unref(view->filetype);
    if (view->layout)
        type_unref(view->layout);
    free(view);
}

/* ---- the stream ---- */

void view_cursor(const struct view *view, MPI_Count from, MPI_Count n_bytes,
                 struct type_cursor *ret_cursor)
{
    MPI_Count size = view->layout->size, tiles = size > 0 ? (from + n_bytes - 1) / size + 1 : 0;
    type_cursor_init(ret_cursor, view->layout, tiles, (const void *)(uintptr_t)view->disp);
    ret_cursor->position = from;
    ret_cursor->total = n_bytes > 0 ? from + n_bytes : from;
}

/* The run of the file that byte `at` begins or lies in, from there on, as far as it is one. */
static struct iovec run_from(const struct view *view, MPI_Count at, MPI_Count n_bytes)
{
    struct type_cursor c;
    struct iovec run = {0};
    size_t bytes;
    view_cursor(view, at, n_bytes, &c);
    type_cursor_iov(&c, &run, 1, (size_t)n_bytes, &bytes);
    return run;
}

MPI_Offset view_offset(const struct view *view, MPI_Count at)
{
    return (MPI_Offset)(uintptr_t)run_from(view, at, 1).iov_base;
}

MPI_Count view_below(const struct view *view, MPI_Offset offset)
{
    const struct datatype *type = view->layout;
    MPI_Offset rel = offset - view->disp - type->true_lb;
    if (rel <= 0 || type->size == 0)
        return 0;
    if (type->contiguous)
        return rel;
    MPI_Count tile = rel / type->extent, low = 0, high = (tile + 1) * type->size;
    if (type->true_extent <= type->extent) {
        low = tile * type->size;
        if (rel - tile * type->extent >= type->true_extent)
            return high;
    }
    while (low < high) {
        MPI_Count middle = low + (high - low) / 2;
        struct iovec run = run_from(view, middle, high - middle);
        MPI_Offset begin = (MPI_Offset)(uintptr_t)run.iov_base;
        MPI_Offset end = begin + (MPI_Offset)run.iov_len;
        if (begin >= offset)
            high = middle;
        else if (end <= offset)
            low = middle + (MPI_Count)run.iov_len;
        else
            return middle + (offset - begin);
    }
    return low;
}
