/* SPDX-License-Identifier: BSD-3-Clause */
/* What mpifort.h declares, with the names of the profiling interface. */
#include <string.h>

#include "client/fortran/mpifort.h"
#include "client/fortran/support.h"

#define INTEROP_HANDLE(type, name, word)                                                           \
    FORTRAN_API MPI_Fint PMPI_##name##_c2f(type handle);                                           \
    MPI_Fint PMPI_##name##_c2f(type handle)                                                        \
    {                                                                                              \
        return word##_out(handle);                                                                 \
    }                                                                                              \
    FORTRAN_ALIAS(MPI_##name##_c2f, PMPI_##name##_c2f)                                             \
    FORTRAN_API type PMPI_##name##_f2c(MPI_Fint handle);                                           \
    type PMPI_##name##_f2c(MPI_Fint handle)                                                        \
    {                                                                                              \
        return word##_in(handle);                                                                  \
    }                                                                                              \
    FORTRAN_ALIAS(MPI_##name##_f2c, PMPI_##name##_f2c)
INTEROP_HANDLE(MPI_Comm, Comm, comm)
INTEROP_HANDLE(MPI_Errhandler, Errhandler, errhandler)
INTEROP_HANDLE(MPI_File, File, file)
INTEROP_HANDLE(MPI_Group, Group, group)
INTEROP_HANDLE(MPI_Info, Info, info)
INTEROP_HANDLE(MPI_Message, Message, message)
INTEROP_HANDLE(MPI_Op, Op, op)
INTEROP_HANDLE(MPI_Request, Request, request)
INTEROP_HANDLE(MPI_Session, Session, session)
INTEROP_HANDLE(MPI_Datatype, Type, type)
INTEROP_HANDLE(MPI_Win, Win, win)

static int interop_is_ignored(const void *status)
{
    return status == mpi_fortran_status_ignore_ || status == mpi_fortran_statuses_ignore_ ||
           status == mpi_fortran_f08_status_ignore_ || status == mpi_fortran_f08_statuses_ignore_ ||
           status == MPI_STATUS_IGNORE;
}

/* The three forms of a status are the same eight integers. */
#define INTEROP_STATUS(name, from, to)                                                             \
    FORTRAN_API int PMPI_Status_##name(const from *source, to *target);                            \
    int PMPI_Status_##name(const from *source, to *target)                                         \
    {                                                                                              \
        if (interop_is_ignored(source))                                                            \
            return MPI_ERR_ARG;                                                                    \
        memcpy(target, source, sizeof(MPI_Status));                                                \
        return MPI_SUCCESS;                                                                        \
    }                                                                                              \
    FORTRAN_ALIAS(MPI_Status_##name, PMPI_Status_##name)
INTEROP_STATUS(c2f, MPI_Status, MPI_Fint)
INTEROP_STATUS(f2c, MPI_Fint, MPI_Status)
INTEROP_STATUS(c2f08, MPI_Status, MPI_F08_status)
INTEROP_STATUS(f082c, MPI_F08_status, MPI_Status)
INTEROP_STATUS(f2f08, MPI_Fint, MPI_F08_status)
INTEROP_STATUS(f082f, MPI_F08_status, MPI_Fint)
