/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Type maps: making them, and what follows from them: bounds, density, signature, layout. See
 * type_map.h.
 *
 * Bounds follow MPI-5.0 sections 5.1.6 and 5.1.7: a type whose bounds were set by
 * MPI_Type_create_resized carries markers, and where any component carries a marker, only marked
 * components count. A component without any bytes counts as a point at its displacement, as in
 * MPICH and Open MPI.
 */
#include "client/datatype/type_map.h"

#include <stdlib.h>

#include "client/datatype/layout.h"
#include "client/object/err.h"

/* Types are walked recursively, so their nesting is bounded; real programs stay below ten. */
#define TYPE_MAX_DEPTH 1000

/* Odd multiplier of the signature's polynomial: 2^64 divided by the golden ratio, the usual choice
 * for spreading bits. */
#define SIGNATURE_BASE UINT64_C(0x9e3779b97f4a7c15)

struct type_map *type_map_new_regular(struct datatype *child, MPI_Count count, MPI_Count len,
                                      MPI_Count stride)
{
    struct type_map *map = calloc(1, sizeof *map);
    if (map == NULL)
        return NULL;
    type_ref(child);
    *map = (struct type_map){
        .refs = 1, .regular = true, .count = count, .child = child, .len = len, .stride = stride};
    return map;
}

struct type_map *type_map_new_irregular(struct datatype *child, MPI_Count count)
{
    struct type_map *map = calloc(1, sizeof *map);
    if (map == NULL)
        return NULL;
    map->refs = 1;
    map->count = count;
    map->blocks = calloc((size_t)count + 1, sizeof *map->blocks);
    if (child == NULL)
        map->children = calloc((size_t)count + 1, sizeof *map->children);
    if (map->blocks == NULL || (child == NULL && map->children == NULL)) {
        type_map_unref(map);
        return NULL;
    }
    if (child != NULL)
        type_ref(child);
    map->child = child;
    return map;
}

void type_map_unref(struct type_map *map)
{
    if (map == NULL || --map->refs > 0)
        return;
    if (map->child != NULL)
        type_unref(map->child);
    for (MPI_Count i = 0; map->children != NULL && i < map->count; i++) {
        if (map->children[i] != NULL)
            type_unref(map->children[i]);
    }
    free(map->children);
    free(map->blocks);
    free(map);
}

struct type_signature signature_join(struct type_signature a, struct type_signature b)
{
    /* hash(a b) = hash(a) * base^|b| + hash(b): the join is associative, so equal sequences agree
     * however they came about. The power by repeated squaring. */
    uint64_t power = 1;
    uint64_t square = SIGNATURE_BASE;
    for (uint64_t n = (uint64_t)b.n_elements; n != 0; n >>= 1) {
        if (n & 1)
            power *= square;
        square *= square;
    }
    return (struct type_signature){
        .hash = a.hash * power + b.hash,
        .n_elements = (MPI_Count)((uint64_t)a.n_elements + (uint64_t)b.n_elements)};
}

struct type_signature signature_repeat(struct type_signature a, MPI_Count count)
{
    struct type_signature result = {0};
    for (uint64_t n = (uint64_t)count; n != 0; n >>= 1) {
        if (n & 1)
            result = signature_join(result, a);
        a = signature_join(a, a);
    }
    return result;
}

/* Lowest and highest of a set of values, and whether there was any. */
struct interval {
    MPI_Count low, high;
    bool any;
};

/* Everything that is gathered over the blocks of a map. */
struct summary {
    struct interval all, marked_low, marked_high, bytes;
    MPI_Count size;
    bool overflow;
    bool dense;
    MPI_Count dense_end; /* where the run of all blocks so far ends; valid when size > 0 */
};

static MPI_Count checked_add(struct summary *s, MPI_Count a, MPI_Count b)
{
    MPI_Count result;
    if (__builtin_add_overflow(a, b, &result)) {
        s->overflow = true;
        return 0;
    }
    return result;
}

static MPI_Count checked_mul(struct summary *s, MPI_Count a, MPI_Count b)
{
    MPI_Count result;
    if (__builtin_mul_overflow(a, b, &result)) {
        s->overflow = true;
        return 0;
    }
    return result;
}

static void interval_add(struct interval *interval, MPI_Count low, MPI_Count high)
{
    if (!interval->any || low < interval->low)
        interval->low = low;
    if (!interval->any || high > interval->high)
        interval->high = high;
    interval->any = true;
}

/* Bounds of `len` children at a displacement. */
static void summary_add_bounds(struct summary *s, const struct datatype *child,
                               struct type_block block)
{
    MPI_Count reach = checked_mul(s, block.len - 1, child->extent);
    MPI_Count first = checked_add(s, block.displacement, reach < 0 ? reach : 0);
    MPI_Count last = checked_add(s, block.displacement, reach > 0 ? reach : 0);
    MPI_Count low = checked_add(s, first, child->lb);
    MPI_Count high = checked_add(s, checked_add(s, last, child->lb), child->extent);
    interval_add(&s->all, low, high);
    if (child->has_lb_marker)
        interval_add(&s->marked_low, low, high);
    if (child->has_ub_marker)
        interval_add(&s->marked_high, low, high);
    if (child->size > 0) {
        low = checked_add(s, first, child->true_lb);
        high = checked_add(s, checked_add(s, last, child->true_lb), child->true_extent);
        interval_add(&s->bytes, low, high);
    }
}

/* Size, and whether the block goes on exactly where the ones before it ended. */
static void summary_add_bytes(struct summary *s, const struct datatype *child,
                              struct type_block block)
{
    MPI_Count n_bytes = checked_mul(s, child->size, block.len);
    if (n_bytes == 0)
        return;
    MPI_Count start = checked_add(s, block.displacement, child->true_lb);
    if (!datatype_is_run(child, block.len) || (s->size > 0 && start != s->dense_end))
        s->dense = false;
    s->dense_end = checked_add(s, start, n_bytes);
    s->size = checked_add(s, s->size, n_bytes);
}

static void summarize_regular(struct summary *s, const struct type_map *map)
{
    struct type_block block = type_map_block(map, 0);
    MPI_Count last = checked_add(s, map->offset, checked_mul(s, map->count - 1, map->stride));
    summary_add_bounds(s, map->child, block);
    summary_add_bounds(s, map->child, (struct type_block){.displacement = last, .len = map->len});
    summary_add_bytes(s, map->child, block);
    if (map->count > 1 && map->stride != s->size)
        s->dense = false;
    s->size = checked_mul(s, s->size, map->count);
}

static void type_map_summarize(struct summary *s, const struct type_map *map)
{
    s->dense = true;
    if (map->regular) {
        if (map->count > 0 && map->len > 0)
            summarize_regular(s, map);
        return;
    }
    for (MPI_Count i = 0; i < map->count; i++) {
        struct type_block block = map->blocks[i];
        if (block.len == 0)
            continue;
        const struct datatype *child = type_map_child(map, i);
        summary_add_bounds(s, child, block);
        summary_add_bytes(s, child, block);
    }
}

/* Signature, alignment and depth, which concern every child type. */
static void type_map_inherit(const struct type_map *map, struct datatype *type)
{
    MPI_Count n_distinct = map->child != NULL ? (map->count > 0 ? 1 : 0) : map->count;
    /* Unsigned: the number of children may overflow when they have no bytes, and then does not
     * matter. */
    uint64_t n_children = (uint64_t)map->len * (uint64_t)map->count;
    for (MPI_Count i = 0; map->child != NULL && !map->regular && i < map->count; i++)
        n_children += (uint64_t)map->blocks[i].len;
    bool any = false;
    type->align = 1;
    for (MPI_Count i = 0; i < n_distinct; i++) {
        const struct datatype *child = type_map_child(map, i);
        if (child == NULL)
            continue;
        uint64_t n = map->child != NULL ? n_children : (uint64_t)map->blocks[i].len;
        type->signature =
            signature_join(type->signature, signature_repeat(child->signature, (MPI_Count)n));
        if (n > 0 && child->signature.n_elements > 0) {
            type->element = any && type->element != child->element ? NULL : child->element;
            any = true;
        }
        /* Wraps around only where size, which is at least half of it, overflows as well and is
         * refused. */
        type->external_size += (MPI_Count)(n * (uint64_t)child->external_size);
        if (child->align > type->align && n > 0)
            type->align = child->align;
        if (child->depth + 1 > type->depth)
            type->depth = (uint16_t)(child->depth + 1);
    }
}

static void set_bounds(const struct summary *s, bool is_struct, struct datatype *type)
{
    type->has_lb_marker = s->marked_low.any;
    type->has_ub_marker = s->marked_high.any;
    type->lb = s->marked_low.any ? s->marked_low.low : s->all.low;
    MPI_Count ub = s->marked_high.any ? s->marked_high.high : s->all.high;
    type->extent = ub - type->lb;
    MPI_Count rest = type->extent % (MPI_Count)type->align;
    if (is_struct && !type->has_ub_marker && rest > 0)
        type->extent += type->align - rest;
    type->true_lb = s->bytes.low;
    type->true_extent = s->bytes.high - s->bytes.low;
}

int type_map_apply(struct type_map *map, bool is_struct, struct datatype *type)
{
    struct summary s = {0};
    type_map_summarize(&s, map);
    if (s.overflow) {
        type_map_unref(map);
        return err_set(MPI_ERR_VALUE_TOO_LARGE,
                       "size or bounds of the new datatype do not fit into 63 bits");
    }
    type_map_inherit(map, type);
    if (type->depth > TYPE_MAX_DEPTH) {
        type_map_unref(map);
        return err_set(MPI_ERR_TYPE, "datatype is nested more than %d constructors deep",
                       TYPE_MAX_DEPTH);
    }
    type->size = s.size;
    set_bounds(&s, is_struct, type);
    type->dense = s.size == 0 || s.dense;
    type->contiguous = s.size == 0 || (s.dense && type->extent == type->size);
    type->map = map;
    return MPI_SUCCESS;
}

static int layout_regular(const struct type_map *map, struct layout_part *ret_part)
{
    struct layout_part block;
    int rc = layout_repeat(map->child->layout, map->len, map->child->extent, &block);
    if (rc != MPI_SUCCESS)
        return rc;
    rc = layout_repeat(block, map->count, map->stride, ret_part);
    layout_part_unref(block);
    if (rc == MPI_SUCCESS && ret_part->size > 0)
        ret_part->offset += map->offset;
    return rc;
}

static int layout_irregular(const struct type_map *map, struct layout_part *ret_part)
{
    struct layout_builder builder;
    layout_builder_init(&builder);
    int rc = MPI_SUCCESS;
    /* The last block's part, kept because equal neighbours (indexed blocks of one length) then
     * share it. */
    struct layout_part part = {0};
    const struct datatype *part_child = NULL;
    MPI_Count part_len = 0;
    for (MPI_Count i = 0; rc == MPI_SUCCESS && i < map->count; i++) {
        struct type_block block = map->blocks[i];
        const struct datatype *child = type_map_child(map, i);
        if (block.len == 0)
            continue;
        if (child != part_child || block.len != part_len) {
            layout_part_unref(part);
            part = (struct layout_part){0};
            rc = layout_repeat(child->layout, block.len, child->extent, &part);
            part_child = child;
            part_len = block.len;
        }
        if (rc == MPI_SUCCESS)
            layout_builder_add(&builder, part, block.displacement);
    }
    layout_part_unref(part);
    int finish_rc = layout_builder_finish(&builder, ret_part);
    if (rc == MPI_SUCCESS)
        return finish_rc;
    if (finish_rc == MPI_SUCCESS)
        layout_part_unref(*ret_part);
    return rc;
}

int type_layout(struct datatype *type)
{
    if (type->laid_out)
        return MPI_SUCCESS;
    const struct type_map *map = type->map;
    MPI_Count n_children = map->child != NULL ? 1 : map->count;
    for (MPI_Count i = 0; i < n_children; i++) {
        struct datatype *child = type_map_child(map, i);
        int rc = child == NULL ? MPI_SUCCESS : type_layout(child);
        if (rc != MPI_SUCCESS)
            return rc;
    }
    int rc =
        map->regular ? layout_regular(map, &type->layout) : layout_irregular(map, &type->layout);
    type->laid_out = rc == MPI_SUCCESS;
    return rc;
}
