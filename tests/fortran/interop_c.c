/* SPDX-License-Identifier: BSD-3-Clause */
/* The C half of interop.f90: what mpifort.h declares. Each function returns the number of the check
 * that failed, or 0. */
#include <mpi.h>
#include <mpifort.h>
#include <string.h>

int c_checks_handles(MPI_Fint comm, MPI_Fint type, MPI_Fint op, MPI_Fint group, MPI_Fint info,
                     MPI_Fint errhandler);
int c_checks_handles(MPI_Fint comm, MPI_Fint type, MPI_Fint op, MPI_Fint group, MPI_Fint info,
                     MPI_Fint errhandler)
{
    int result, size, in_group, flag, length = 20;
    char value[20] = "";
    if (MPI_Comm_compare(MPI_Comm_f2c(comm), MPI_COMM_WORLD, &result) || result != MPI_CONGRUENT)
        return 1;
    if (MPI_Comm_c2f(MPI_Comm_f2c(comm)) != comm || MPI_Comm_toint(MPI_Comm_f2c(comm)) != comm)
        return 2;
    if (MPI_Type_size(MPI_Type_f2c(type), &size) || size != 28 ||
        MPI_Type_c2f(MPI_Type_f2c(type)) != type)
        return 3;
    if (MPI_Op_commutative(MPI_Op_f2c(op), &flag) || !flag ||
        MPI_Op_c2f(MPI_SUM) != MPI_Op_toint(MPI_SUM))
        return 4;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (MPI_Group_size(MPI_Group_f2c(group), &in_group) || in_group != size)
        return 5;
    if (MPI_Info_get_string(MPI_Info_f2c(info), "who", &length, value, &flag) || !flag ||
        strcmp(value, "fortran") != 0)
        return 6;
    if (MPI_Errhandler_f2c(errhandler) != MPI_ERRORS_RETURN ||
        MPI_Errhandler_c2f(MPI_ERRORS_ARE_FATAL) == errhandler)
        return 7;
    if (MPI_Request_f2c(MPI_Request_c2f(MPI_REQUEST_NULL)) != MPI_REQUEST_NULL)
        return 8;
    if (MPI_Win_f2c(MPI_Win_c2f(MPI_WIN_NULL)) != MPI_WIN_NULL ||
        MPI_File_f2c(MPI_File_c2f(MPI_FILE_NULL)) != MPI_FILE_NULL)
        return 9;
    if (MPI_Message_f2c(MPI_Message_c2f(MPI_MESSAGE_NO_PROC)) != MPI_MESSAGE_NO_PROC)
        return 10;
    return MPI_Session_f2c(MPI_Session_c2f(MPI_SESSION_NULL)) != MPI_SESSION_NULL;
}

int c_checks_attribute(MPI_Fint comm, int keyval, int value);
int c_checks_attribute(MPI_Fint comm, int keyval, int value)
{
    MPI_Aint *at;
    int flag;
    MPI_Comm_get_attr(MPI_Comm_f2c(comm), keyval, &at, &flag);
    return !flag || *at != value;
}

MPI_Fint c_makes_comm(void);
MPI_Fint c_makes_comm(void)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    return MPI_Comm_c2f(comm);
}

/* Both are the status of three integers with tag 41. */
int c_checks_status(const MPI_Fint *f, const MPI_F08_status *f08);
int c_checks_status(const MPI_Fint *f, const MPI_F08_status *f08)
{
    MPI_Status of_f, of_f08;
    MPI_Fint back[sizeof(MPI_Status) / sizeof(MPI_Fint)];
    MPI_F08_status back08;
    int count;
    if (MPI_Status_f2c(f, &of_f) || MPI_Get_count(&of_f, MPI_INT, &count) || count != 3 ||
        of_f.MPI_TAG != 41)
        return 1;
    if (MPI_Status_f082c(f08, &of_f08) || MPI_Get_count(&of_f08, MPI_INT, &count) || count != 3 ||
        of_f08.MPI_TAG != 41)
        return 2;
    if (MPI_Status_c2f(&of_f, back) || memcmp(back, f, sizeof back) != 0)
        return 3;
    if (MPI_Status_c2f08(&of_f08, &back08) || memcmp(&back08, f08, sizeof back08) != 0)
        return 4;
    if (MPI_Status_f2f08(f, &back08) || MPI_Status_f082f(&back08, back) ||
        memcmp(back, f, sizeof back) != 0)
        return 5;
    return 0;
}

/* Fortran's MPI_STATUS_IGNORE is no status (MPI-5.0 section 19.3.5). */
int c_checks_ignored(const MPI_F08_status *ignored);
int c_checks_ignored(const MPI_F08_status *ignored)
{
    MPI_Status status;
    return MPI_Status_f082c(ignored, &status) == MPI_SUCCESS;
}
