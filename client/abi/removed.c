/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions of MPI-1 that MPI-3 took away (MPI-5.0 chapter 17). No header declares them and no
 * profiler is told of them, but a program that was built for another library of the standard ABI
 * may ask for their names, and would end with a message of the dynamic linker. Each is what took
 * its place, by the names that only the library's own calls have.
 */
#include "mpi.h"

#define REMOVED __attribute__((visibility("default"), weak))

REMOVED int MPI_Address(void *location, MPI_Aint *address);
REMOVED int MPI_Errhandler_create(MPI_Comm_errhandler_function *function,
                                  MPI_Errhandler *errhandler);
REMOVED int MPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler *errhandler);
REMOVED int MPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler);
REMOVED int MPI_Type_extent(MPI_Datatype type, MPI_Aint *extent);
REMOVED int MPI_Type_hindexed(int count, int lengths[], MPI_Aint displacements[],
                              MPI_Datatype old_type, MPI_Datatype *new_type);
REMOVED int MPI_Type_hvector(int count, int length, MPI_Aint stride, MPI_Datatype old_type,
                             MPI_Datatype *new_type);
REMOVED int MPI_Type_lb(MPI_Datatype type, MPI_Aint *lb);
REMOVED int MPI_Type_struct(int count, int lengths[], MPI_Aint displacements[],
                            MPI_Datatype old_types[], MPI_Datatype *new_type);
REMOVED int MPI_Type_ub(MPI_Datatype type, MPI_Aint *ub);

int MPI_Address(void *location, MPI_Aint *address)
{
    return PMPI_Get_address(location, address);
}

int MPI_Errhandler_create(MPI_Comm_errhandler_function *function, MPI_Errhandler *errhandler)
{
    return PMPI_Comm_create_errhandler(function, errhandler);
}

int MPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler *errhandler)
{
    return PMPI_Comm_get_errhandler(comm, errhandler);
}

int MPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler)
{
    return PMPI_Comm_set_errhandler(comm, errhandler);
}

int MPI_Type_extent(MPI_Datatype type, MPI_Aint *extent)
{
    MPI_Aint lb;

    return PMPI_Type_get_extent(type, &lb, extent);
}

int MPI_Type_hindexed(int count, int lengths[], MPI_Aint displacements[], MPI_Datatype old_type,
                      MPI_Datatype *new_type)
{
    return PMPI_Type_create_hindexed(count, lengths, displacements, old_type, new_type);
}

int MPI_Type_hvector(int count, int length, MPI_Aint stride, MPI_Datatype old_type,
                     MPI_Datatype *new_type)
{
    return PMPI_Type_create_hvector(count, length, stride, old_type, new_type);
}

int MPI_Type_lb(MPI_Datatype type, MPI_Aint *lb)
{
    MPI_Aint extent;

    return PMPI_Type_get_extent(type, lb, &extent);
}

int MPI_Type_struct(int count, int lengths[], MPI_Aint displacements[], MPI_Datatype old_types[],
                    MPI_Datatype *new_type)
{
    return PMPI_Type_create_struct(count, lengths, displacements, old_types, new_type);
}

int MPI_Type_ub(MPI_Datatype type, MPI_Aint *ub)
{
    MPI_Aint lb;
    int err = PMPI_Type_get_extent(type, &lb, ub);

    if (err == MPI_SUCCESS)
        *ub += lb;
    return err;
}
