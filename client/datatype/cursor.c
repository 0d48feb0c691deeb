/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cursors: moving bytes between a buffer and the packed stream of its type.
 *
 * Called by p2p for every message that is not one dense run, by collectives, RMA and MPI_Pack, on
 * any thread; nothing is allocated. The idea: one recursive walk over the layout, with the bytes to
 * skip as an argument, serves packing, unpacking and listing of pieces. No state but the position
 * is kept between calls, so a seek is free and a chunk costs one descent (depth of the layout, a
 * binary search per list) before it runs at the speed of the innermost loops.
 */
#include <string.h>

#include "client/datatype/layout.h"

enum walk_op { WALK_PACK, WALK_UNPACK, WALK_IOV };

struct walk {
    enum walk_op op;
    unsigned char *stream; /* WALK_PACK: written, WALK_UNPACK: read */
    struct iovec *iov;     /* WALK_IOV */
    int n_iov, max_iov;
    MPI_Count left; /* stream bytes still wanted; the walk ends at 0 */
    MPI_Count done;
};

/* Memory is addressed by integers throughout: with MPI_BOTTOM the offsets are absolute addresses,
 * and offsets may pass outside the user's array on their way. */
static inline unsigned char *cursor_at(uintptr_t base)
{
    return (unsigned char *)base;
}

/* Small copies of known size become one or two moves; the size is a constant at every call
 * below. */
static inline __attribute__((always_inline)) void copy_const(void *restrict dst,
                                                             const void *restrict src, size_t n)
{
    __builtin_memcpy(dst, src, n);
}

/* A run of any size. Up to 16 bytes by two moves that may overlap, without a call: the members of
 * structs are that small. */
static inline void copy_run(unsigned char *restrict dst, const unsigned char *restrict src,
                            size_t n)
{
    if (n > 16) {
        memcpy(dst, src, n);
    } else if (n >= 8) {
        uint64_t first, last;
        copy_const(&first, src, 8);
        copy_const(&last, src + n - 8, 8);
        copy_const(dst, &first, 8);
        copy_const(dst + n - 8, &last, 8);
    } else if (n >= 4) {
        uint32_t first, last;
        copy_const(&first, src, 4);
        copy_const(&last, src + n - 4, 4);
        copy_const(dst, &first, 4);
        copy_const(dst + n - 4, &last, 4);
    } else {
        for (size_t i = 0; i < n; i++)
            dst[i] = src[i];
    }
}

static inline __attribute__((always_inline)) void gather_const(unsigned char *restrict out,
                                                               uintptr_t base, MPI_Count stride,
                                                               MPI_Count n, size_t size)
{
    for (MPI_Count i = 0; i < n; i++) {
        copy_const(out, cursor_at(base), size);
        out += size;
        base += (uintptr_t)stride;
    }
}

static inline __attribute__((always_inline)) void scatter_const(const unsigned char *restrict in,
                                                                uintptr_t base, MPI_Count stride,
                                                                MPI_Count n, size_t size)
{
    for (MPI_Count i = 0; i < n; i++) {
        copy_const(cursor_at(base), in, size);
        in += size;
        base += (uintptr_t)stride;
    }
}

/* n runs of `size` bytes, `stride` apart, to the stream. */
static void cursor_gather(unsigned char *out, uintptr_t base, MPI_Count stride, MPI_Count n,
                          size_t size)
{
    switch (size) {
    case 1:
        gather_const(out, base, stride, n, 1);
        break;
    case 2:
        gather_const(out, base, stride, n, 2);
        break;
    case 4:
        gather_const(out, base, stride, n, 4);
        break;
    case 8:
        gather_const(out, base, stride, n, 8);
        break;
    case 12:
        gather_const(out, base, stride, n, 12);
        break;
    case 16:
        gather_const(out, base, stride, n, 16);
        break;
    case 24:
        gather_const(out, base, stride, n, 24);
        break;
    case 32:
        gather_const(out, base, stride, n, 32);
        break;
    default:
        gather_const(out, base, stride, n, size);
        break;
    }
}

static void cursor_scatter(const unsigned char *in, uintptr_t base, MPI_Count stride, MPI_Count n,
                           size_t size)
{
    switch (size) {
    case 1:
        scatter_const(in, base, stride, n, 1);
        break;
    case 2:
        scatter_const(in, base, stride, n, 2);
        break;
    case 4:
        scatter_const(in, base, stride, n, 4);
        break;
    case 8:
        scatter_const(in, base, stride, n, 8);
        break;
    case 12:
        scatter_const(in, base, stride, n, 12);
        break;
    case 16:
        scatter_const(in, base, stride, n, 16);
        break;
    case 24:
        scatter_const(in, base, stride, n, 24);
        break;
    case 32:
        scatter_const(in, base, stride, n, 32);
        break;
    default:
        scatter_const(in, base, stride, n, size);
        break;
    }
}

static inline __attribute__((always_inline)) void gather_at_const(unsigned char *restrict out,
                                                                  uintptr_t base,
                                                                  const MPI_Count *offsets,
                                                                  MPI_Count n, size_t size)
{
    for (MPI_Count i = 0; i < n; i++, out += size)
        copy_const(out, cursor_at(base + (uintptr_t)offsets[i]), size);
}

static inline __attribute__((always_inline)) void scatter_at_const(const unsigned char *restrict in,
                                                                   uintptr_t base,
                                                                   const MPI_Count *offsets,
                                                                   MPI_Count n, size_t size)
{
    for (MPI_Count i = 0; i < n; i++, in += size)
        copy_const(cursor_at(base + (uintptr_t)offsets[i]), in, size);
}

static void gather_at(unsigned char *out, uintptr_t base, const MPI_Count *offsets, MPI_Count n,
                      size_t size)
{
    switch (size) {
    case 4:
        gather_at_const(out, base, offsets, n, 4);
        break;
    case 8:
        gather_at_const(out, base, offsets, n, 8);
        break;
    case 16:
        gather_at_const(out, base, offsets, n, 16);
        break;
    default:
        gather_at_const(out, base, offsets, n, size);
        break;
    }
}

static void scatter_at(const unsigned char *in, uintptr_t base, const MPI_Count *offsets,
                       MPI_Count n, size_t size)
{
    switch (size) {
    case 4:
        scatter_at_const(in, base, offsets, n, 4);
        break;
    case 8:
        scatter_at_const(in, base, offsets, n, 8);
        break;
    case 16:
        scatter_at_const(in, base, offsets, n, 16);
        break;
    default:
        scatter_at_const(in, base, offsets, n, size);
        break;
    }
}

/* Adds a piece of memory to the list, joined to the last piece where they touch. Stops the walk
 * when the list is full. */
static void walk_piece(struct walk *w, uintptr_t base, MPI_Count n)
{
    if (w->n_iov > 0) {
        struct iovec *last = &w->iov[w->n_iov - 1];
        if ((uintptr_t)last->iov_base + last->iov_len == base) {
            last->iov_len += (size_t)n;
            return;
        }
    }
    w->iov[w->n_iov++] = (struct iovec){.iov_base = cursor_at(base), .iov_len = (size_t)n};
}

/* One dense run of `size` bytes. */
static void walk_run(struct walk *w, uintptr_t base, MPI_Count size)
{
    MPI_Count n = size < w->left ? size : w->left;
    switch (w->op) {
    case WALK_PACK:
        copy_run(w->stream, cursor_at(base), (size_t)n);
        w->stream += n;
        break;
    case WALK_UNPACK:
        copy_run(cursor_at(base), w->stream, (size_t)n);
        w->stream += n;
        break;
    case WALK_IOV:
        if (w->n_iov == w->max_iov &&
            (uintptr_t)w->iov[w->n_iov - 1].iov_base + w->iov[w->n_iov - 1].iov_len != base) {
            w->left = 0;
            return;
        }
        walk_piece(w, base, n);
        break;
    }
    w->left -= n;
    w->done += n;
}

static void walk_part(struct walk *w, const struct layout_part *part, uintptr_t base,
                      MPI_Count skip);

/* As many whole runs as are wanted, at most `count`, through the loops above. Returns how many. */
static MPI_Count walk_whole_runs(struct walk *w, const MPI_Count *offsets, MPI_Count stride,
                                 MPI_Count count, MPI_Count size, uintptr_t base)
{
    MPI_Count n = w->left / size;
    if (n > count)
        n = count;
    if (w->op == WALK_PACK) {
        if (offsets != NULL)
            gather_at(w->stream, base, offsets, n, (size_t)size);
        else
            cursor_gather(w->stream, base, stride, n, (size_t)size);
    } else {
        if (offsets != NULL)
            scatter_at(w->stream, base, offsets, n, (size_t)size);
        else
            cursor_scatter(w->stream, base, stride, n, (size_t)size);
    }
    w->stream += n * size;
    w->left -= n * size;
    w->done += n * size;
    return n;
}

/* The child `count` times, at offsets[i], or at i * stride if there are no offsets; `skip` stream
 * bytes are passed over first. */
static void walk_repeat(struct walk *w, const MPI_Count *offsets, MPI_Count stride, MPI_Count count,
                        const struct layout_part *child, uintptr_t base, MPI_Count skip)
{
    MPI_Count i = 0;
    if (skip != 0) {
        i = skip / child->size;
        skip -= i * child->size;
    }
    while (i < count && w->left > 0) {
        uintptr_t here = base + (uintptr_t)(offsets != NULL ? 0 : i * stride);
        if (skip == 0 && child->inner == NULL && w->op != WALK_IOV && w->left >= child->size) {
            i += walk_whole_runs(w, offsets != NULL ? offsets + i : NULL, stride, count - i,
                                 child->size, here + (uintptr_t)child->offset);
            continue;
        }
        if (offsets != NULL)
            here += (uintptr_t)offsets[i];
        walk_part(w, child, here, skip);
        skip = 0;
        i++;
    }
}

/* Index of the item that holds the stream byte `skip`. */
static MPI_Count list_find(const struct layout *list, MPI_Count skip)
{
    MPI_Count low = 0;
    MPI_Count high = list->count;
    while (high - low > 1) {
        MPI_Count middle = low + (high - low) / 2;
        if (list->items[middle].start <= skip)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void walk_list(struct walk *w, const struct layout *list, uintptr_t base, MPI_Count skip)
{
    MPI_Count i = skip == 0 ? 0 : list_find(list, skip);
    skip -= list->items[i].start;
    for (; i < list->count && w->left > 0; i++, skip = 0) {
        const struct layout_item *item = &list->items[i];
        MPI_Count size = layout_item_size(list, i);
        if (item->inner == NULL) {
            walk_run(w, base + (uintptr_t)(item->offset + skip), size - skip);
            continue;
        }
        struct layout_part part = {.offset = item->offset, .size = size, .inner = item->inner};
        walk_part(w, &part, base, skip);
    }
}

/* The stream bytes of a part from `skip` on; skip < part->size. */
static void walk_part(struct walk *w, const struct layout_part *part, uintptr_t base,
                      MPI_Count skip)
{
    const struct layout *inner = part->inner;
    base += (uintptr_t)part->offset;
    if (inner == NULL)
        walk_run(w, base + (uintptr_t)skip, part->size - skip);
    else if (inner->kind == LAYOUT_LOOP)
        walk_repeat(w, NULL, inner->stride, inner->count, &inner->child, base, skip);
    else if (inner->kind == LAYOUT_BLOCKS)
        walk_repeat(w, inner->offsets, 0, inner->count, &inner->child, base, skip);
    else
        walk_list(w, inner, base, skip);
}

/* Runs a prepared walk from the cursor's position and moves the cursor. */
static void walk_from(struct type_cursor *c, struct walk *w)
{
    MPI_Count left = type_cursor_left(c);
    if (w->left > left)
        w->left = left;
    if (w->left <= 0)
        return;
    const struct datatype *type = c->type;
    if (type->contiguous)
        walk_run(w, c->base + (uintptr_t)(type->true_lb + c->position), c->total - c->position);
    else
        walk_repeat(w, NULL, type->extent, c->count, &type->layout, c->base, c->position);
    c->position += w->done;
}

void type_cursor_init(struct type_cursor *c, const struct datatype *type, MPI_Count count,
                      const void *buf)
{
    *c = (struct type_cursor){
        .type = type, .base = (uintptr_t)buf, .count = count, .total = count * type->size};
}

static inline MPI_Count clamp_bytes(size_t n_bytes)
{
    return n_bytes > INT64_MAX ? INT64_MAX : (MPI_Count)n_bytes;
}

size_t type_cursor_pack(struct type_cursor *c, void *out, size_t max_bytes)
{
    struct walk w = {.op = WALK_PACK, .stream = out, .left = clamp_bytes(max_bytes)};
    walk_from(c, &w);
    return (size_t)w.done;
}

size_t type_cursor_unpack(struct type_cursor *c, const void *in, size_t n_bytes)
{
    struct walk w = {
        .op = WALK_UNPACK, .stream = (unsigned char *)(uintptr_t)in, .left = clamp_bytes(n_bytes)};
    walk_from(c, &w);
    return (size_t)w.done;
}

void type_cursor_seek(struct type_cursor *c, MPI_Count stream_offset)
{
    c->position = stream_offset;
}

int type_cursor_iov(struct type_cursor *c, struct iovec *iov, int max_iov, size_t max_bytes,
                    size_t *ret_bytes)
{
    struct walk w = {
        .op = WALK_IOV, .iov = iov, .max_iov = max_iov, .left = clamp_bytes(max_bytes)};
    if (max_iov > 0)
        walk_from(c, &w);
    *ret_bytes = (size_t)w.done;
    return w.n_iov;
}

MPI_Count datatype_copy(const void *src, MPI_Count src_count, struct datatype *src_type, void *dst,
                        MPI_Count dst_count, struct datatype *dst_type)
{
    struct type_cursor from, to;
    type_cursor_init(&from, src_type, src_count, src);
    type_cursor_init(&to, dst_type, dst_count, dst);
    if (datatype_is_run(dst_type, dst_count)) {
        return (MPI_Count)type_cursor_pack(&from, datatype_run_start(dst_type, dst),
                                           (size_t)to.total);
    }
    if (datatype_is_run(src_type, src_count))
        return (MPI_Count)type_cursor_unpack(&to, datatype_run_start(src_type, src),
                                             (size_t)from.total);

    /* Neither side is dense: through pieces of the source, which need no buffer of their own. */
    struct iovec pieces[32];
    size_t n_bytes;
    for (;;) {
        int n = type_cursor_iov(&from, pieces, 32, SIZE_MAX, &n_bytes);
        if (n == 0)
            return to.position;
        for (int i = 0; i < n; i++) {
            if (type_cursor_unpack(&to, pieces[i].iov_base, pieces[i].iov_len) < pieces[i].iov_len)
                return to.position;
        }
    }
}
