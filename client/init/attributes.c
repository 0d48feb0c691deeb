/* SPDX-License-Identifier: BSD-3-Clause */
/* The MPI functions for attributes of communicators and datatypes, and for keyvals of all three
 * kinds. */
#include "client/abi/semantics.h"
#include "client/datatype/datatype.h"
#include "client/init/env.h"
#include "client/object/attr.h"
#include "client/object/comm.h"
#include "client/object/err.h"

/* Handles are pointers in the ABI and uintptr_t here: one machine form, so the callbacks can be
 * called as attr's. */
#define COPY_FN(fn)   ((attr_copy_fn *)(void (*)(void))(fn))
#define DELETE_FN(fn) ((attr_delete_fn *)(void (*)(void))(fn))

/* ---- communicators ---- */

int mpi_comm_create_keyval(MPI_Comm_copy_attr_function *comm_copy_attr_fn,
                           MPI_Comm_delete_attr_function *comm_delete_attr_fn, int *comm_keyval,
                           void *extra_state)
{
    return attr_keyval_new(ATTR_COMM, COPY_FN(comm_copy_attr_fn), DELETE_FN(comm_delete_attr_fn),
                           extra_state, comm_keyval);
}

int mpi_comm_free_keyval(int *comm_keyval)
{
    return attr_keyval_free(ATTR_COMM, comm_keyval);
}

int mpi_comm_set_attr(struct comm *comm, int comm_keyval, void *attribute_val)
{
    if (env_attr(comm_keyval))
        return err_set(MPI_ERR_KEYVAL, "a predefined attribute cannot be set");
    return attr_put(&comm->attrs, ATTR_COMM, comm->obj.handle, comm_keyval, attribute_val);
}

int mpi_comm_get_attr(struct comm *comm, int comm_keyval, void *attribute_val, int *flag)
{
    const int *predefined = env_attr(comm_keyval);
    if (!predefined)
        return attr_get(comm->attrs, ATTR_COMM, comm_keyval, attribute_val, flag);
    /* APPNUM and UNIVERSE_SIZE may be unknown (MPI-5.0 sections 11.10). */
    *flag = *predefined != MPI_UNDEFINED;
    if (*flag)
        *(const int **)attribute_val = predefined;
    return MPI_SUCCESS;
}

int mpi_comm_delete_attr(struct comm *comm, int comm_keyval)
{
    if (env_attr(comm_keyval))
        return err_set(MPI_ERR_KEYVAL, "a predefined attribute cannot be deleted");
    return attr_delete(&comm->attrs, ATTR_COMM, comm->obj.handle, comm_keyval);
}

/* ---- datatypes ---- */

int mpi_type_create_keyval(MPI_Type_copy_attr_function *type_copy_attr_fn,
                           MPI_Type_delete_attr_function *type_delete_attr_fn, int *type_keyval,
                           void *extra_state)
{
    return attr_keyval_new(ATTR_TYPE, COPY_FN(type_copy_attr_fn), DELETE_FN(type_delete_attr_fn),
                           extra_state, type_keyval);
}

int mpi_type_free_keyval(int *type_keyval)
{
    return attr_keyval_free(ATTR_TYPE, type_keyval);
}

int mpi_type_set_attr(struct datatype *datatype, int type_keyval, void *attribute_val)
{
    return attr_put(&datatype->attrs, ATTR_TYPE, datatype->obj.handle, type_keyval, attribute_val);
}

int mpi_type_get_attr(struct datatype *datatype, int type_keyval, void *attribute_val, int *flag)
{
    return attr_get(datatype->attrs, ATTR_TYPE, type_keyval, attribute_val, flag);
}

int mpi_type_delete_attr(struct datatype *datatype, int type_keyval)
{
    return attr_delete(&datatype->attrs, ATTR_TYPE, datatype->obj.handle, type_keyval);
}

/* ---- windows: keyvals only; the attributes come with the windows ---- */

int mpi_win_create_keyval(MPI_Win_copy_attr_function *win_copy_attr_fn,
                          MPI_Win_delete_attr_function *win_delete_attr_fn, int *win_keyval,
                          void *extra_state)
{
    return attr_keyval_new(ATTR_WIN, COPY_FN(win_copy_attr_fn), DELETE_FN(win_delete_attr_fn),
                           extra_state, win_keyval);
}

int mpi_win_free_keyval(int *win_keyval)
{
    return attr_keyval_free(ATTR_WIN, win_keyval);
}
