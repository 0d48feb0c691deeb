/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/io/pointer.h"

#include "client/abi/semantics.h"
#include "client/coll/op/op.h"
#include "client/datatype/datatype.h"
#include "client/object/handle.h"
#include "client/rma/win.h"

int pointer_open(struct file *file)
{
    int64_t *memory;
    if (file->comm->size == 1)
        return MPI_SUCCESS;
    int err = mpi_win_allocate(file->comm->rank == 0 ? (MPI_Aint)sizeof *memory : 0, sizeof *memory,
                               NULL, file->comm, (void *)&memory, &file->pointers);
    if (err)
        return err;
    /* It is no window of the application's, and none that it could have forgotten. */
    handle_free(&file->pointers->obj);
    if (file->comm->rank == 0)
        *memory = 0;
    err = mpi_barrier(file->comm);
    return err ? err : mpi_win_lock_all(MPI_MODE_NOCHECK, file->pointers);
}

void pointer_close(struct file *file)
{
    if (!file->pointers)
        return;
    mpi_win_unlock_all(file->pointers);
    mpi_win_free(&file->pointers);
}

static int pointer_change(struct file *file, MPI_Offset operand, MPI_Op op, MPI_Offset *ret_before)
{
    int64_t value = operand, before = file->pointer;
    if (!file->pointers) {
        if (op == MPI_SUM)
            file->pointer += operand;
        else if (op == MPI_REPLACE)
            file->pointer = operand;
        *ret_before = before;
        return MPI_SUCCESS;
    }
    int err = mpi_fetch_and_op(&value, &before, datatype_predefined(MPI_INT64_T), 0, 0,
                               op_predefined(op), file->pointers);
    err = err ? err : mpi_win_flush(0, file->pointers);
    if (!err)
        *ret_before = before;
    return err;
}

int pointer_add(struct file *file, MPI_Offset n, MPI_Offset *ret_before)
{
    return pointer_change(file, n, MPI_SUM, ret_before);
}

int pointer_get(struct file *file, MPI_Offset *ret_position)
{
    return pointer_change(file, 0, MPI_NO_OP, ret_position);
}

int pointer_set(struct file *file, MPI_Offset position)
{
    MPI_Offset before;
    return pointer_change(file, position, MPI_REPLACE, &before);
}
