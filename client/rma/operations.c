/* SPDX-License-Identifier: BSD-3-Clause */
/* Communication calls (MPI-5.0 section 12.3): checks, and what goes to whom; origin.c does it. */
#include <string.h>

#include "client/abi/semantics.h"
#include "client/coll/op/op.h"
#include "client/object/err.h"
#include "client/rma/apply.h"
#include "client/rma/epoch.h"
#include "client/rma/origin.h"

/* Where in the target's memory, and whether that lies in the window. */
static int place(struct operation_call *call, MPI_Aint disp)
{
    const struct win *win = call->win;
    const struct win_target *target = &win->targets[call->target];
    if (win->flavor == MPI_WIN_FLAVOR_DYNAMIC) {
        call->offset = disp; /* the target knows what is attached */
        return MPI_SUCCESS;
    }
    if (disp < 0)
        return err_set(MPI_ERR_DISP,
                       "target_disp is %lld at rank %d of %s, but must not be negative",
                       (long long)disp, call->target, win_text(win));
    MPI_Count low, high;
    bool far = __builtin_mul_overflow(disp, target->disp_unit, &call->offset);
    datatype_span(call->target_type, call->target_count, &low, &high);
    far = far || __builtin_add_overflow(low, call->offset, &low) ||
          __builtin_add_overflow(high, call->offset, &high);
    if (far || low < 0 || high > target->bytes)
        return err_set(MPI_ERR_RMA_RANGE,
                       "an access at displacement %lld (unit %lld) to rank %d is outside of %s, "
                       "which has %lld bytes there",
                       (long long)disp, (long long)target->disp_unit, call->target, win_text(win),
                       (long long)target->bytes);
    return MPI_SUCCESS;
}

static int too_long(const struct operation_call *call, MPI_Count bytes, const char *from,
                    MPI_Count room, const char *to)
{
    return err_set(MPI_ERR_TRUNCATE,
                   "%lld bytes of the %s do not fit into %lld of the %s (rank %d of %s)",
                   (long long)bytes, from, (long long)room, to, call->target, win_text(call->win));
}

/* Carries out a call whose sides fit one another. Calls to MPI_PROC_NULL do nothing. */
static int start(struct operation_call *call, MPI_Aint disp, struct request **ret_request)
{
    struct win *win = call->win;
    if (call->target == MPI_PROC_NULL)
        return ret_request ? request_new_complete(NULL, MPI_PROC_NULL, MPI_ANY_TAG, 0, ret_request)
                           : MPI_SUCCESS;
    int err = epoch_check_rank(win, call->target);
    if (!err)
        err = epoch_access(win, call->target);
    if (!err && call->bytes > 0)
        err = place(call, disp);
    return err ? err : origin_start(call, ret_request);
}

static int move(uint8_t kind, struct buffer origin, int target, MPI_Aint disp, MPI_Count count,
                struct datatype *type, struct win *win, struct request **ret_request)
{
    struct operation_call call = {.win = win,
                                  .target = target,
                                  .kind = kind,
                                  .target_count = count,
                                  .target_type = type,
                                  .origin = origin};
    MPI_Count here = buffer_size(origin), there = count * type->size;
    call.bytes = here < there ? here : there;
    if (target != MPI_PROC_NULL && kind == MESSAGE_PUT && here > there)
        return too_long(&call, here, "origin", there, "target");
    if (target != MPI_PROC_NULL && kind == MESSAGE_GET && there > here)
        return too_long(&call, there, "target", here, "origin");
    return start(&call, disp, ret_request);
}

/* The predefined type of all elements, for the operation; or why there is none. */
static int find_element(struct operation_call *call)
{
    uintptr_t op = call->op->obj.handle;
    bool moves = op == (uintptr_t)MPI_REPLACE || op == (uintptr_t)MPI_NO_OP;
    if (call->op->user_fn || call->op->user_fn_c)
        return err_set(MPI_ERR_OP, "one-sided operations take predefined operations only");
    call->element = (struct datatype *)(uintptr_t)call->target_type->element;
    bool any = call->target_count > 0 && call->target_type->size > 0;
    if (!any)
        return MPI_SUCCESS;
    if (!call->element && moves)
        call->element = datatype_predefined(MPI_BYTE);
    if (!call->element)
        return err_set(MPI_ERR_TYPE, "the elements of target_datatype are not all of one "
                                     "predefined type");
    return moves ? MPI_SUCCESS : op_check(call->op, call->element);
}

static int combine(struct buffer origin, struct buffer result, int target, MPI_Aint disp,
                   MPI_Count count, struct datatype *type, struct op *op, struct win *win,
                   struct request **ret_request)
{
    struct operation_call call = {.win = win,
                                  .target = target,
                                  .kind = MESSAGE_ACCUMULATE,
                                  .target_count = count,
                                  .target_type = type,
                                  .origin = origin,
                                  .result = result,
                                  .op = op,
                                  .nothing = op->obj.handle == (uintptr_t)MPI_NO_OP};
    int err = find_element(&call);
    if (err)
        return err;
    MPI_Count there = count * type->size, here = call.nothing ? there : buffer_size(origin);
    call.bytes = here < there ? here : there;
    if (target == MPI_PROC_NULL)
        return start(&call, disp, ret_request);
    if (here > there)
        return too_long(&call, here, "origin", there, "target");
    if (result.type && buffer_size(result) < call.bytes)
        return too_long(&call, call.bytes, "target", buffer_size(result), "result");
    if (call.bytes > 0 && call.bytes % call.element->size != 0)
        return err_set(MPI_ERR_TYPE, "the origin has %lld bytes, no whole number of %s",
                       (long long)here, datatype_name(call.element));
    if (call.nothing)
        call.origin = (struct buffer){0};
    return start(&call, disp, ret_request);
}

static const struct buffer no_buffer;

/* ---- MPI ---- */

int mpi_put(const void *origin_addr, MPI_Count origin_count, struct datatype *origin_datatype,
            int target_rank, MPI_Aint target_disp, MPI_Count target_count,
            struct datatype *target_datatype, struct win *win)
{
    return move(MESSAGE_PUT, buffer_of(origin_addr, origin_count, origin_datatype), target_rank,
                target_disp, target_count, target_datatype, win, NULL);
}

int mpi_get(void *origin_addr, MPI_Count origin_count, struct datatype *origin_datatype,
            int target_rank, MPI_Aint target_disp, MPI_Count target_count,
            struct datatype *target_datatype, struct win *win)
{
    return move(MESSAGE_GET, buffer_of(origin_addr, origin_count, origin_datatype), target_rank,
                target_disp, target_count, target_datatype, win, NULL);
}

int mpi_rput(const void *origin_addr, MPI_Count origin_count, struct datatype *origin_datatype,
             int target_rank, MPI_Aint target_disp, MPI_Count target_count,
             struct datatype *target_datatype, struct win *win, struct request **ret_request)
{
    int err = move(MESSAGE_PUT, buffer_of(origin_addr, origin_count, origin_datatype), target_rank,
                   target_disp, target_count, target_datatype, win, ret_request);
    return request_publish(err, ret_request);
}

int mpi_rget(void *origin_addr, MPI_Count origin_count, struct datatype *origin_datatype,
             int target_rank, MPI_Aint target_disp, MPI_Count target_count,
             struct datatype *target_datatype, struct win *win, struct request **ret_request)
{
    int err = move(MESSAGE_GET, buffer_of(origin_addr, origin_count, origin_datatype), target_rank,
                   target_disp, target_count, target_datatype, win, ret_request);
    return request_publish(err, ret_request);
}

int mpi_accumulate(const void *origin_addr, MPI_Count origin_count,
                   struct datatype *origin_datatype, int target_rank, MPI_Aint target_disp,
                   MPI_Count target_count, struct datatype *target_datatype, struct op *op,
                   struct win *win)
{
    return combine(buffer_of(origin_addr, origin_count, origin_datatype), no_buffer, target_rank,
                   target_disp, target_count, target_datatype, op, win, NULL);
}

int mpi_raccumulate(const void *origin_addr, MPI_Count origin_count,
                    struct datatype *origin_datatype, int target_rank, MPI_Aint target_disp,
                    MPI_Count target_count, struct datatype *target_datatype, struct op *op,
                    struct win *win, struct request **ret_request)
{
    int err = combine(buffer_of(origin_addr, origin_count, origin_datatype), no_buffer, target_rank,
                      target_disp, target_count, target_datatype, op, win, ret_request);
    return request_publish(err, ret_request);
}

int mpi_get_accumulate(const void *origin_addr, MPI_Count origin_count,
                       struct datatype *origin_datatype, void *result_addr, MPI_Count result_count,
                       struct datatype *result_datatype, int target_rank, MPI_Aint target_disp,
                       MPI_Count target_count, struct datatype *target_datatype, struct op *op,
                       struct win *win)
{
    return combine(buffer_of(origin_addr, origin_count, origin_datatype),
                   buffer_of(result_addr, result_count, result_datatype), target_rank, target_disp,
                   target_count, target_datatype, op, win, NULL);
}

int mpi_rget_accumulate(const void *origin_addr, MPI_Count origin_count,
                        struct datatype *origin_datatype, void *result_addr, MPI_Count result_count,
                        struct datatype *result_datatype, int target_rank, MPI_Aint target_disp,
                        MPI_Count target_count, struct datatype *target_datatype, struct op *op,
                        struct win *win, struct request **ret_request)
{
    int err = combine(buffer_of(origin_addr, origin_count, origin_datatype),
                      buffer_of(result_addr, result_count, result_datatype), target_rank,
                      target_disp, target_count, target_datatype, op, win, ret_request);
    return request_publish(err, ret_request);
}

static int check_predefined(const struct datatype *type, const char *function)
{
    return type->element == type ? MPI_SUCCESS
                                 : err_set(MPI_ERR_TYPE, "%s takes predefined datatypes, not %s",
                                           function, datatype_name(type));
}

/* The short path: one element that lies whole in memory within reach, in an epoch that is open.
 * False: nothing was done. */
static inline bool fetch_short(const struct win *win, int target, MPI_Aint disp,
                               struct datatype *type, const struct op *op, const void *operand,
                               void *ret_result)
{
    const struct win_epochs *e = &win->epochs;
    if ((unsigned)target >= (unsigned)win->comm->size || win->flavor == MPI_WIN_FLAVOR_DYNAMIC)
        return false;
    const struct win_target *t = &win->targets[target];
    int64_t offset, end;
    if (!t->direct || t->locked == WIN_UNLOCKED ||
        (e->access != ACCESS_LOCK && e->access != ACCESS_LOCK_ALL) || !type->dense || disp < 0 ||
        __builtin_mul_overflow(disp, t->disp_unit, &offset) ||
        __builtin_add_overflow(offset, type->size, &end) || end > t->bytes || !op->family ||
        op_check(op, type) != MPI_SUCCESS)
        return false;
    char before[64];
    struct apply_place there = {.base = t->local, .lock = t->lock, .shared = win->shared};
    apply_fetch(&there, offset, op, type, operand, before);
    memcpy(ret_result, before, (size_t)type->size);
    return true;
}

int mpi_fetch_and_op(const void *origin_addr, void *result_addr, struct datatype *datatype,
                     int target_rank, MPI_Aint target_disp, struct op *op, struct win *win)
{
    int err = check_predefined(datatype, "MPI_Fetch_and_op");
    if (err)
        return err;
    if (fetch_short(win, target_rank, target_disp, datatype, op, origin_addr, result_addr))
        return MPI_SUCCESS;
    return combine(buffer_of(origin_addr, 1, datatype), buffer_of(result_addr, 1, datatype),
                   target_rank, target_disp, 1, datatype, op, win, NULL);
}

int mpi_compare_and_swap(const void *origin_addr, const void *compare_addr, void *result_addr,
                         struct datatype *datatype, int target_rank, MPI_Aint target_disp,
                         struct win *win)
{
    int err = check_predefined(datatype, "MPI_Compare_and_swap");
    if (!err)
        err = apply_check_compare(datatype);
    if (err)
        return err;
    struct operation_call call = {.win = win,
                                  .target = target_rank,
                                  .kind = MESSAGE_COMPARE,
                                  .target_count = 1,
                                  .target_type = datatype,
                                  .origin = buffer_of(origin_addr, 1, datatype),
                                  .result = buffer_of(result_addr, 1, datatype),
                                  .compare = compare_addr,
                                  .element = datatype,
                                  .bytes = datatype->size};
    return start(&call, target_disp, NULL);
}
