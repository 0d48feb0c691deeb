/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first program: every rank says where it is. Rank 0 prints all lines in order of rank, since
 * what several ranks print themselves arrives in any order.
 *
 *     mpicc -o hello hello.c && mpiexec -n 4 ./hello
 */
#include <stdio.h>
#include <string.h>

#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, size, length;
    char line[MPI_MAX_PROCESSOR_NAME + 64], host[MPI_MAX_PROCESSOR_NAME];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(host, &length);
    snprintf(line, sizeof line, "hello from rank %d of %d on %s", rank, size, host);

    if (rank != 0) {
        MPI_Send(line, (int)strlen(line) + 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    } else {
        puts(line);
        for (int source = 1; source < size; source++) {
            MPI_Recv(line, (int)sizeof line, MPI_CHAR, source, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            puts(line);
        }
    }
    MPI_Finalize();
    return 0;
}
