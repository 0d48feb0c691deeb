/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A token goes round all ranks, growing from 8 bytes to 1 MiB, and every rank adds its number to
 * each word of it. When the token is back its words are known, so a byte that was lost, doubled or
 * changed on any of the links shows.
 *
 *     mpicc -o ring ring.c && mpiexec -n 4 ./ring [laps]
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

enum { MAX_WORDS = 1 << 17 };

int main(int argc, char **argv)
{
    int rank, size, wrong = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int laps = argc > 1 ? atoi(argv[1]) : 3;
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    int64_t ranks_sum = (int64_t)size * (size - 1) / 2;
    int64_t *token = calloc(MAX_WORDS, sizeof *token);
    if (!token)
        MPI_Abort(MPI_COMM_WORLD, 1);

    for (int lap = 0; lap < laps; lap++) {
        for (int n_words = 1; n_words <= MAX_WORDS; n_words *= 8) {
            if (size == 1)
                continue; /* nobody to hand it to */
            if (rank == 0) {
                for (int i = 0; i < n_words; i++)
                    token[i] = i + lap;
                MPI_Send(token, n_words, MPI_INT64_T, next, lap, MPI_COMM_WORLD);
                MPI_Recv(token, n_words, MPI_INT64_T, previous, lap, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
                for (int i = 0; i < n_words; i++)
                    wrong += token[i] != i + lap + ranks_sum;
            } else {
                MPI_Recv(token, n_words, MPI_INT64_T, previous, lap, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
                for (int i = 0; i < n_words; i++)
                    token[i] += rank;
                MPI_Send(token, n_words, MPI_INT64_T, next, lap, MPI_COMM_WORLD);
            }
        }
    }
    MPI_Bcast(&wrong, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("ring: %d ranks, %d laps, up to %d bytes, %d words wrong: %s\n", size, laps,
               MAX_WORDS * 8, wrong, wrong ? "FAILED" : "ok");
    free(token);
    MPI_Finalize();
    return wrong != 0;
}
