/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/rma/direct.h"

#include <stdlib.h>
#include <string.h>

#include "client/object/err.h"
#include "client/rma/apply.h"
#include "client/rma/region.h"

/* Packed operands and results of so many bytes at a time. */
#define CHUNK (16u << 10)

static int check_regions(const struct operation_call *call)
{
    struct pieces_cursor c;
    struct pieces pieces;
    if (call->win->flavor != MPI_WIN_FLAVOR_DYNAMIC)
        return MPI_SUCCESS;
    pieces_begin(&c, call->offset, call->target_count, call->target_type, call->element);
    c.type.total = call->bytes;
    while (pieces_next(&c, INT64_MAX, &pieces) > 0)
        if (!region_has(call->win, &pieces))
            return err_set(MPI_ERR_RMA_RANGE,
                           "displacement %#llx at rank %d of %s: no memory is attached there",
                           (unsigned long long)call->offset, call->target, win_text(call->win));
    return MPI_SUCCESS;
}

static void copy(const struct operation_call *call, void *at)
{
    if (call->kind == MESSAGE_PUT)
        datatype_copy(call->origin.base, call->origin.count, call->origin.type, at,
                      call->target_count, call->target_type);
    else
        datatype_copy(at, call->target_count, call->target_type, call->origin.base,
                      call->origin.count, call->origin.type);
}

/* One element, dense on both sides: no packing. */
static bool is_plain(const struct operation_call *call)
{
    return call->target_type == call->element && call->target_count == 1 && call->element->dense &&
           (call->nothing || (call->origin.count == 1 && call->origin.type == call->element)) &&
           (!call->result.type || (call->result.count == 1 && call->result.type == call->element));
}

static void accumulate_one(const struct operation_call *call, const struct apply_place *place)
{
    char before[64];
    apply_fetch(place, call->offset, call->op, call->element, call->origin.base, before);
    if (call->result.type)
        memcpy(call->result.base, before, (size_t)call->element->size);
}

static int accumulate(const struct operation_call *call, const struct apply_place *place)
{
    struct pieces_cursor c;
    struct type_cursor from = {0}, to = {0};
    struct pieces pieces;
    MPI_Count bytes;
    char *operand = malloc(2 * CHUNK), *result = operand + CHUNK;
    if (!operand)
        return err_set(MPI_ERR_NO_MEM, "no memory for a one-sided operation");
    if (!call->nothing)
        type_cursor_init(&from, call->origin.type, call->origin.count, call->origin.base);
    if (call->result.type)
        type_cursor_init(&to, call->result.type, call->result.count, call->result.base);
    pieces_begin(&c, call->offset, call->target_count, call->target_type, call->element);
    c.type.total = call->bytes;
    while ((bytes = pieces_next(&c, CHUNK, &pieces)) > 0) {
        if (!call->nothing)
            type_cursor_pack(&from, operand, (size_t)bytes);
        apply_accumulate(place, &pieces, call->op, call->element, call->nothing ? NULL : operand,
                         call->result.type ? result : NULL);
        if (call->result.type)
            type_cursor_unpack(&to, result, (size_t)bytes);
    }
    free(operand);
    return MPI_SUCCESS;
}

int direct_do(const struct operation_call *call)
{
    const struct win_target *target = &call->win->targets[call->target];
    struct apply_place place = {
        .base = target->local, .lock = target->lock, .shared = call->win->shared};
    int err = check_regions(call);
    if (err)
        return err;
    switch (call->kind) {
    case MESSAGE_PUT:
    case MESSAGE_GET:
        copy(call, (void *)((uintptr_t)place.base + (uintptr_t)call->offset));
        return MPI_SUCCESS;
    case MESSAGE_COMPARE:
        apply_compare(&place, call->offset, call->element, call->origin.base, call->compare,
                      call->result.base);
        return MPI_SUCCESS;
    default:
        if (is_plain(call)) {
            accumulate_one(call, &place);
            return MPI_SUCCESS;
        }
        return accumulate(call, &place);
    }
}
