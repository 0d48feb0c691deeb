/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/rma/pieces.h"

#include <sys/uio.h>

void pieces_begin(struct pieces_cursor *c, int64_t offset, MPI_Count count,
                  const struct datatype *type, const struct datatype *element)
{
    type_cursor_init(&c->type, type, count, (const void *)(uintptr_t)offset);
    c->element = element;
}

/* Adds a run, to the row before if it fits. False: no room. */
static bool add_run(struct pieces *p, int64_t offset, uint64_t bytes)
{
    if (p->n > 0) {
        struct piece *last = &p->at[p->n - 1];
        if (last->bytes == bytes && last->count == 1 && offset != last->offset) {
            last->stride = offset - last->offset;
            last->count = 2;
            return true;
        }
        if (last->bytes == bytes && offset == last->offset + (int64_t)last->count * last->stride) {
            last->count++;
            return true;
        }
    }
    if (p->n == PIECES_MAX)
        return false;
    p->at[p->n++] = (struct piece){.offset = offset, .stride = 0, .bytes = bytes, .count = 1};
    return true;
}

/* Runs of dense elements, or of bytes: as they come from the type, cut at whole elements. */
static MPI_Count next_dense(struct pieces_cursor *c, MPI_Count max_bytes, struct pieces *p)
{
    MPI_Count unit = c->element ? c->element->size : 1, taken = 0;
    max_bytes -= max_bytes % unit;
    while (taken < max_bytes) {
        struct iovec iov[64];
        size_t bytes;
        struct type_cursor before = c->type;
        int n = type_cursor_iov(&c->type, iov, 64, (size_t)(max_bytes - taken), &bytes);
        if (n == 0)
            break;
        for (int i = 0; i < n; i++) {
            if (!add_run(p, (int64_t)(uintptr_t)iov[i].iov_base, iov[i].iov_len)) {
                type_cursor_seek(&c->type, before.position);
                return taken;
            }
            before.position += (MPI_Count)iov[i].iov_len;
            taken += (MPI_Count)iov[i].iov_len;
        }
    }
    return taken;
}

/* Elements with a gap inside (pairs of unlike types): each is a run of its own, at its lowest
 * byte. */
static MPI_Count next_gapped(struct pieces_cursor *c, MPI_Count max_bytes, struct pieces *p)
{
    MPI_Count size = c->element->size, taken = 0;
    while (taken + size <= max_bytes && type_cursor_left(&c->type) >= size) {
        struct iovec iov;
        size_t bytes;
        MPI_Count position = c->type.position;
        if (type_cursor_iov(&c->type, &iov, 1, (size_t)size, &bytes) == 0)
            break;
        int64_t offset = (int64_t)(uintptr_t)iov.iov_base - c->element->true_lb;
        type_cursor_seek(&c->type, position);
        if (!add_run(p, offset, (uint64_t)size))
            break;
        type_cursor_seek(&c->type, position + size);
        taken += size;
    }
    return taken;
}

MPI_Count pieces_next(struct pieces_cursor *c, MPI_Count max_bytes, struct pieces *ret_pieces)
{
    ret_pieces->n = 0;
    if (c->element && !c->element->dense)
        return next_gapped(c, max_bytes, ret_pieces);
    return next_dense(c, max_bytes, ret_pieces);
}

bool piece_span(const struct piece *p, int64_t *ret_low, int64_t *ret_high)
{
    int64_t way, first = p->offset, last, end;
    if (p->count == 0 || p->count > INT64_MAX || p->bytes > INT64_MAX ||
        __builtin_mul_overflow((int64_t)(p->count - 1), p->stride, &way) ||
        __builtin_add_overflow(first, way, &last))
        return false;
    *ret_low = first < last ? first : last;
    if (__builtin_add_overflow(first < last ? last : first, (int64_t)p->bytes, &end))
        return false;
    *ret_high = end;
    return true;
}
