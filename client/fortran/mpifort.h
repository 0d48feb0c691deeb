/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI for C programs that work with Fortran ones: handles and statuses from one language to the
 * other (MPI-5.0 section 19.3.4 and 19.3.5). The C library of the standard ABI knows handles as
 * integers (MPI_Comm_toint); these are the older names for them, which libmpifort_abi has.
 */
#ifndef MPIFORT_H_ABI
#define MPIFORT_H_ABI

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A status of mpi_f08; the fields of the type MPI_Status there. */
typedef struct {
    MPI_Fint MPI_SOURCE;
    MPI_Fint MPI_TAG;
    MPI_Fint MPI_ERROR;
    MPI_Fint MPI_internal[5];
} MPI_F08_status;

extern MPI_Fint mpi_fortran_status_ignore_[8], mpi_fortran_statuses_ignore_[8];
extern MPI_Fint mpi_fortran_f08_status_ignore_[8], mpi_fortran_f08_statuses_ignore_[8];
#define MPI_F_STATUS_IGNORE     (mpi_fortran_status_ignore_)
#define MPI_F_STATUSES_IGNORE   (mpi_fortran_statuses_ignore_)
#define MPI_F08_STATUS_IGNORE   ((MPI_F08_status *)mpi_fortran_f08_status_ignore_)
#define MPI_F08_STATUSES_IGNORE ((MPI_F08_status *)mpi_fortran_f08_statuses_ignore_)

MPI_Fint MPI_Comm_c2f(MPI_Comm comm);
MPI_Comm MPI_Comm_f2c(MPI_Fint comm);
MPI_Fint MPI_Errhandler_c2f(MPI_Errhandler errhandler);
MPI_Errhandler MPI_Errhandler_f2c(MPI_Fint errhandler);
MPI_Fint MPI_File_c2f(MPI_File file);
MPI_File MPI_File_f2c(MPI_Fint file);
MPI_Fint MPI_Group_c2f(MPI_Group group);
MPI_Group MPI_Group_f2c(MPI_Fint group);
MPI_Fint MPI_Info_c2f(MPI_Info info);
MPI_Info MPI_Info_f2c(MPI_Fint info);
MPI_Fint MPI_Message_c2f(MPI_Message message);
MPI_Message MPI_Message_f2c(MPI_Fint message);
MPI_Fint MPI_Op_c2f(MPI_Op op);
MPI_Op MPI_Op_f2c(MPI_Fint op);
MPI_Fint MPI_Request_c2f(MPI_Request request);
MPI_Request MPI_Request_f2c(MPI_Fint request);
MPI_Fint MPI_Session_c2f(MPI_Session session);
MPI_Session MPI_Session_f2c(MPI_Fint session);
MPI_Fint MPI_Type_c2f(MPI_Datatype datatype);
MPI_Datatype MPI_Type_f2c(MPI_Fint datatype);
MPI_Fint MPI_Win_c2f(MPI_Win win);
MPI_Win MPI_Win_f2c(MPI_Fint win);

/* MPI_ERR_ARG for the statuses that are to be ignored, which are none. */
int MPI_Status_c2f(const MPI_Status *c_status, MPI_Fint *f_status);
int MPI_Status_f2c(const MPI_Fint *f_status, MPI_Status *c_status);
int MPI_Status_c2f08(const MPI_Status *c_status, MPI_F08_status *f08_status);
int MPI_Status_f082c(const MPI_F08_status *f08_status, MPI_Status *c_status);
int MPI_Status_f2f08(const MPI_Fint *f_status, MPI_F08_status *f08_status);
int MPI_Status_f082f(const MPI_F08_status *f08_status, MPI_Fint *f_status);

#ifdef __cplusplus
}
#endif

#endif
