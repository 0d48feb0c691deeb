/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations: the predefined ones, those of users, and applying them. See op.h; the loops are in
 * op_*.c.
 */
#include "client/coll/op/op.h"

#include <limits.h>
#include <stdlib.h>

#include "client/abi/semantics.h"
#include "client/client.h"
#include "client/coll/op/op_family.h"
#include "client/object/err.h"
#include "client/object/handle.h"

struct predefined_op {
    MPI_Op handle;
    struct op op;
};

#define OP_OBJECT                                                                                  \
    {                                                                                              \
        .refs = 1, .kind = OBJECT_OP                                                               \
    }
#define REDUCTION(handle, family)                                                                  \
    {                                                                                              \
        handle,                                                                                    \
        {                                                                                          \
            OP_OBJECT, true, #handle, family, NULL, NULL                                           \
        }                                                                                          \
    }

static const struct predefined_op predefined_ops[] = {
    REDUCTION(MPI_SUM, &op_family_sum),
    REDUCTION(MPI_MIN, &op_family_min),
    REDUCTION(MPI_MAX, &op_family_max),
    REDUCTION(MPI_PROD, &op_family_prod),
    REDUCTION(MPI_BAND, &op_family_band),
    REDUCTION(MPI_BOR, &op_family_bor),
    REDUCTION(MPI_BXOR, &op_family_bxor),
    REDUCTION(MPI_LAND, &op_family_land),
    REDUCTION(MPI_LOR, &op_family_lor),
    REDUCTION(MPI_LXOR, &op_family_lxor),
    REDUCTION(MPI_MINLOC, &op_family_minloc),
    REDUCTION(MPI_MAXLOC, &op_family_maxloc),
    {MPI_REPLACE, {OP_OBJECT, false, "MPI_REPLACE", NULL, NULL, NULL}},
    {MPI_NO_OP, {OP_OBJECT, false, "MPI_NO_OP", NULL, NULL, NULL}},
};

#define N_PREDEFINED (sizeof predefined_ops / sizeof predefined_ops[0])

struct op_state {
    struct op predefined[N_PREDEFINED];
};
static struct op_state op_first;
static struct op_state *op_here = &op_first;
CLIENT_PART(op_here, op_first);

int op_init(void)
{
    if (op_here->predefined[0].obj.handle != 0)
        return MPI_SUCCESS;
    for (size_t i = 0; i < N_PREDEFINED; i++) {
        op_here->predefined[i] = predefined_ops[i].op;
        handle_set_predefined((uintptr_t)predefined_ops[i].handle, &op_here->predefined[i].obj);
    }
    return MPI_SUCCESS;
}

struct op *op_from_handle(MPI_Op handle)
{
    return (struct op *)handle_get(OBJECT_OP, (uintptr_t)handle);
}

struct op *op_predefined(MPI_Op handle)
{
    return (struct op *)handle_here->predefined[(uintptr_t)handle].object;
}

void op_ref(struct op *op)
{
    if (!op->obj.predefined)
        object_ref(&op->obj);
}

void op_unref(struct op *op)
{
    if (op->obj.predefined || !object_unref(&op->obj))
        return;
    handle_free(&op->obj);
    free(op);
}

static bool is_users(const struct op *op)
{
    return op->user_fn != NULL || op->user_fn_c != NULL;
}

/* The loop of a predefined operation for a type, or NULL where the standard defines none. */
static op_loop find_loop(const struct op *op, const struct datatype *type)
{
    const struct op_family *family = op->family;
    if (family == NULL || (family->classes & OP_ACCEPTS(type->class)) == 0)
        return NULL;
    if (type->class == CLASS_PAIR && type->pair_index != BASIC_INT32)
        return family->same_index_loops[type->basic];
    return family->loops[type->basic];
}

static int refuse(const struct op *op, const struct datatype *type)
{
    if (op->family == NULL)
        return err_set(MPI_ERR_OP, "%s is for one-sided accumulation only, not for reductions",
                       op->name);
    if (type->class == CLASS_NONE)
        return err_set(MPI_ERR_OP, "%s is defined for predefined datatypes only, not for %s",
                       op->name, datatype_name(type));
    return err_set(MPI_ERR_OP, "%s is not defined for %s", op->name, datatype_name(type));
}

int op_check(const struct op *op, const struct datatype *type)
{
    return is_users(op) || find_loop(op, type) != NULL ? MPI_SUCCESS : refuse(op, type);
}

/* Calls a user's function, in pieces where its count is an int. */
static void apply_users(const struct op *op, void *in, void *inout, MPI_Count count,
                        struct datatype *type)
{
    MPI_Datatype handle = (MPI_Datatype)type->obj.handle;
    if (op->user_fn_c != NULL) {
        op->user_fn_c(in, inout, &count, &handle);
        return;
    }
    for (MPI_Count done = 0; done < count;) {
        int len = count - done > INT_MAX ? INT_MAX : (int)(count - done);
        op->user_fn(datatype_at(type, in, done), datatype_at(type, inout, done), &len, &handle);
        done += len;
    }
}

int op_apply(const struct op *op, const void *in, void *inout, MPI_Count count,
             struct datatype *type)
{
    op_loop loop = find_loop(op, type);
    if (loop != NULL) {
        loop(in, inout, (size_t)count);
        return MPI_SUCCESS;
    }
    if (op->obj.handle == (uintptr_t)MPI_NO_OP)
        return MPI_SUCCESS;
    if (op->obj.handle == (uintptr_t)MPI_REPLACE) {
        datatype_copy(in, count, type, inout, count, type);
        return MPI_SUCCESS;
    }
    if (!is_users(op))
        return refuse(op, type);

    /* A nonblocking reduction may go on after the type's handle was freed; the user's function
     * still gets one. */
    bool lend_handle = type->obj.handle == 0;
    if (lend_handle && handle_new(&type->obj) == 0)
        return err_set(MPI_ERR_NO_MEM, "no handle left to call a user-defined operation with");
    apply_users(op, (void *)(uintptr_t)in, inout, count, type);
    if (lend_handle)
        handle_free(&type->obj);
    return MPI_SUCCESS;
}

int mpi_op_create(MPI_User_function *user_fn, MPI_User_function_c *user_fn_c, int commute,
                  struct op **ret_op)
{
    struct op *op = calloc(1, sizeof *op);
    if (op == NULL)
        return err_set(MPI_ERR_NO_MEM, "out of memory for an operation");
    *op = (struct op){.obj = OP_OBJECT,
                      .commutative = commute != 0,
                      .name = "user-defined operation",
                      .user_fn = user_fn,
                      .user_fn_c = user_fn_c};
    if (handle_new(&op->obj) == 0) {
        free(op);
        return err_set(MPI_ERR_NO_MEM, "no handle left for an operation");
    }
    *ret_op = op;
    return MPI_SUCCESS;
}

int mpi_op_free(struct op **op)
{
    if ((*op)->obj.predefined)
        return err_set(MPI_ERR_OP, "%s is predefined: it cannot be freed", (*op)->name);
    handle_free(&(*op)->obj);
    op_unref(*op);
    *op = NULL;
    return MPI_SUCCESS;
}

int mpi_op_commutative(struct op *op, int *commute)
{
    *commute = op->commutative;
    return MPI_SUCCESS;
}

int mpi_reduce_local(const void *inbuf, void *inoutbuf, MPI_Count count, struct datatype *datatype,
                     struct op *op)
{
    int rc = op_check(op, datatype);
    return rc == MPI_SUCCESS ? op_apply(op, inbuf, inoutbuf, count, datatype) : rc;
}
