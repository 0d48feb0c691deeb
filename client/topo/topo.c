/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual topologies (MPI-5.0 chapter 8): so far only the question whether a communicator has one.
 *
 * Called by the bindings with the library lock held. Nothing in this library makes a topology yet, so no communicator
 * carries one; applications and Python bindings ask all the same for every communicator they meet.
 */
#include "client/abi/semantics.h"
#include "client/core/comm.h"

#include <assert.h>
#include <stddef.h>

int mpi_topo_test(struct comm *comm, int *status)
{
    assert(comm->topo == NULL);
    *status = MPI_UNDEFINED;
    return MPI_SUCCESS;
}
