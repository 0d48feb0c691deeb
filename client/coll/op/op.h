/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reduction operations: inout[i] = in[i] op inout[i].
 *
 * Called by the bindings and by every reducing collective, with the library lock held; applying an
 * operation only reads the op, so several threads may do it at once.
 *
 * The idea: a predefined operation is a table from the machine form of a basic type (enum
 * basic_kind) to a loop; which *classes* of types it accepts is the standard's table (MPI-5.0
 * section 6.9.2). A user's operation is one function for all types.
 */
#ifndef MOTET_CLIENT_COLL_OP_OP_H
#define MOTET_CLIENT_COLL_OP_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpi.h"

#include "client/datatype/datatype.h"
#include "client/object/object.h"

/* inout[i] = in[i] op inout[i] for i < n. The buffers do not overlap. */
typedef void (*op_loop)(const void *restrict in, void *restrict inout, size_t n);

struct op_family;

struct op {
    struct object obj;
    bool commutative;
    const char *name;               /* "MPI_SUM"; of a user's operation: "user-defined operation" */
    const struct op_family *family; /* predefined: its loops; NULL for a user's */
    MPI_User_function *user_fn;     /* exactly one of these two is set for a user's operation */
    MPI_User_function_c *user_fn_c;
};

/* Creates the predefined operations; further calls do nothing. Needs datatype_init. */
int op_init(void);

/* Looks up a handle; NULL for MPI_OP_NULL and for anything that is no operation. */
struct op *op_from_handle(MPI_Op handle);

/* The predefined operation of a handle constant such as MPI_SUM. */
struct op *op_predefined(MPI_Op handle);

void op_ref(struct op *op);
void op_unref(struct op *op);

/* Can `op` reduce elements of `type`? Returns MPI_SUCCESS or MPI_ERR_OP with a text naming both. A
 * reducing collective asks once before it communicates. MPI_REPLACE and MPI_NO_OP reduce
 * nothing. */
int op_check(const struct op *op, const struct datatype *type);

/* inout[i] = in[i] op inout[i] for `count` elements: `in` is the left operand, as MPI_Reduce_local
 * defines it. Returns what op_check says, and in addition takes MPI_REPLACE (copies) and MPI_NO_OP
 * (leaves inout) on any type, for accumulation. */
int op_apply(const struct op *op, const void *in, void *inout, MPI_Count count,
             struct datatype *type);

#endif
