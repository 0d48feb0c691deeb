/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/object/raise.h"

#include "client/abi/semantics.h"
#include "client/object/comm.h"
#include "client/object/err.h"
#include "client/object/errcode.h"
#include "client/object/errhandler.h"

int raise_on_comm(struct comm *comm, int err, const char *function)
{
    if (comm)
        return errhandler_raise_on(comm->errhandler, ERRHANDLER_COMM,
                                   comm->stands_for ? comm->stands_for : comm->obj.handle,
                                   comm->name, err, function);
    /* MPI-5.0 section 9.3: what is not tied to an object is raised on MPI_COMM_SELF; before
     * MPI_Init, and after MPI_Finalize, the initial error handler holds. Up to MPI-3.1 it was
     * MPI_COMM_WORLD, and programs of that time set no other handler than its: it is called where
     * the other would end the job. */
    const struct comm *comm_for_all = comm_here->self;
    if (comm_here->self && comm_here->self->errhandler == &errhandler_here->fatal &&
        comm_here->world->errhandler != &errhandler_here->fatal)
        comm_for_all = comm_here->world;
    if (comm_for_all)
        return errhandler_raise_on(comm_for_all->errhandler, ERRHANDLER_COMM,
                                   comm_for_all->obj.handle, NULL, err, function);
    return errhandler_raise_on(&errhandler_here->fatal, ERRHANDLER_COMM, 0, NULL, err, function);
}

/* ---- MPI functions ---- */

int mpi_comm_set_errhandler(struct comm *comm, struct errhandler *errhandler)
{
    return errhandler_assign(&comm->errhandler, errhandler, ERRHANDLER_COMM);
}

int mpi_comm_get_errhandler(struct comm *comm, struct errhandler **ret_errhandler)
{
    return errhandler_publish(comm->errhandler, ret_errhandler);
}

/* The handler's return, not the error, is the result: MPI_SUCCESS when it returns (MPI-5.0 section
 * 9.6). */
int mpi_comm_call_errhandler(struct comm *comm, int errorcode)
{
    if (!errcode_text(errorcode))
        return err_set(MPI_ERR_ARG, "%d is no error code", errorcode);
    err_clear();
    raise_on_comm(comm, errorcode, "MPI_Comm_call_errhandler");
    return MPI_SUCCESS;
}
