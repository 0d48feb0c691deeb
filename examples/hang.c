/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job that hangs, to be looked at. Rank 0 waits for a message with tag 7 that nobody sends; rank
 * 1 has sent one with tag 9, which sits among the unexpected messages of rank 0. While it hangs:
 *
 *     motetctl queues
 *
 * shows the receive beside the message, from which the mistake (a wrong tag) is plain.
 *
 *     mpicc -o hang hang.c && mpiexec -n 2 ./hang [seconds]
 *
 * With a number of seconds rank 1 sends the missing message then, and the job ends in order.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <mpi.h>

enum { TAG_AWAITED = 7, TAG_SENT = 9, N_BYTES = 1000 };

int main(int argc, char **argv)
{
    int rank, size;
    static char buf[N_BYTES];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int seconds = argc > 1 ? atoi(argv[1]) : 0;
    if (size < 2) {
        fprintf(stderr, "hang: needs two ranks\n");
        MPI_Finalize();
        return 2;
    }

    if (rank == 0) {
        printf("hang: rank 0 waits for tag %d, rank 1 sends tag %d\n", TAG_AWAITED, TAG_SENT);
        fflush(stdout);
        MPI_Recv(buf, N_BYTES, MPI_BYTE, 1, TAG_AWAITED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(buf, N_BYTES, MPI_BYTE, 1, TAG_SENT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_Send(buf, N_BYTES, MPI_BYTE, 0, TAG_SENT, MPI_COMM_WORLD);
        if (seconds > 0) {
            sleep((unsigned)seconds);
            MPI_Send(buf, N_BYTES, MPI_BYTE, 0, TAG_AWAITED, MPI_COMM_WORLD);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
