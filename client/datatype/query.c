/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sizes, bounds and addresses: the functions of MPI-5.0 sections 5.1.5 to 5.1.8 that only read a
 * type.
 *
 * Where a value does not fit into the type of the small form, the binding turns it into
 * MPI_UNDEFINED.
 */
#include "client/abi/semantics.h"
#include "client/datatype/datatype.h"
#include "client/object/err.h"

int mpi_type_size(struct datatype *datatype, MPI_Count *ret_size)
{
    *ret_size = datatype->size;
    return MPI_SUCCESS;
}

int mpi_type_get_extent(struct datatype *datatype, MPI_Count *ret_lb, MPI_Count *ret_extent)
{
    *ret_lb = datatype->lb;
    *ret_extent = datatype->extent;
    return MPI_SUCCESS;
}

int mpi_type_get_true_extent(struct datatype *datatype, MPI_Count *ret_true_lb,
                             MPI_Count *ret_true_extent)
{
    *ret_true_lb = datatype->true_lb;
    *ret_true_extent = datatype->true_extent;
    return MPI_SUCCESS;
}

int mpi_get_address(const void *location, MPI_Aint *ret_address)
{
    *ret_address = (MPI_Aint)(uintptr_t)location;
    return MPI_SUCCESS;
}

/* Unsigned inside: addresses of the upper half of the address space are negative as MPI_Aint. */
MPI_Aint mpi_aint_add(MPI_Aint base, MPI_Aint disp)
{
    return (MPI_Aint)((uintptr_t)base + (uintptr_t)disp);
}

MPI_Aint mpi_aint_diff(MPI_Aint addr1, MPI_Aint addr2)
{
    return (MPI_Aint)((uintptr_t)addr1 - (uintptr_t)addr2);
}
