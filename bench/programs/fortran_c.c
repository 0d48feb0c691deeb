/* SPDX-License-Identifier: BSD-3-Clause */
/* The C half of fortran.f90. */
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>

void pin_to(int rank);
void trips_of_c(int64_t *buffer, int n, int rank);

/* With MOTET_BENCH_PIN set, as in mpi_measure.c. */
void pin_to(int rank)
{
    cpu_set_t all, one;

    if (!getenv("MOTET_BENCH_PIN") || sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    int nth = rank % CPU_COUNT(&all);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &all) && nth-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof one, &one);
        }
    }
}

void trips_of_c(int64_t *buffer, int n, int rank)
{
    for (int i = 0; i < n; i++) {
        if (rank == 0) {
            MPI_Send(buffer, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
            MPI_Recv(buffer, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(buffer, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(buffer, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        }
    }
}
