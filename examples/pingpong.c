/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Half the round trip between two ranks, for sizes from nothing to 4 MiB; what comes back is
 * compared with what was sent.
 *
 *     mpicc -O2 -o pingpong pingpong.c && mpiexec -n 2 ./pingpong [rank rank]
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

enum { MAX_BYTES = 4 << 20, TAG = 1 };

static void fill(unsigned char *buf, int n_bytes, int seed)
{
    for (int i = 0; i < n_bytes; i++)
        buf[i] = (unsigned char)(i * 31 + (i >> 8) + seed);
}

/* The two directions of one round; the caller is `first` or the other one. */
static void round_trip(unsigned char *buf, int n_bytes, int is_first, int other)
{
    if (is_first) {
        MPI_Send(buf, n_bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
        MPI_Recv(buf, n_bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(buf, n_bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(buf, n_bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    int rank, size, wrong = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int first = argc > 2 ? atoi(argv[1]) : 0, second = argc > 2 ? atoi(argv[2]) : size - 1;
    if (size < 2 || first == second || first >= size || second >= size) {
        if (rank == 0)
            fprintf(stderr, "pingpong: needs two different ranks below %d\n", size);
        MPI_Finalize();
        return 1;
    }
    unsigned char *buf = malloc(MAX_BYTES), *sent = malloc(MAX_BYTES);
    if (!buf || !sent)
        MPI_Abort(MPI_COMM_WORLD, 1);

    if (rank == first)
        printf("%10s %12s %10s\n", "bytes", "us", "MB/s");
    for (int n_bytes = 0; n_bytes <= MAX_BYTES && (rank == first || rank == second);
         n_bytes = n_bytes ? n_bytes * 4 : 1) {
        int n_rounds = n_bytes <= 16384 ? 100 : 10;
        int other = rank == first ? second : first;
        fill(sent, n_bytes, n_rounds);
        memcpy(buf, sent, (size_t)n_bytes);
        round_trip(buf, n_bytes, rank == first, other); /* not timed: wakes everything up */
        double start = MPI_Wtime();
        for (int i = 0; i < n_rounds; i++)
            round_trip(buf, n_bytes, rank == first, other);
        double us = (MPI_Wtime() - start) * 1e6 / (2.0 * n_rounds);
        wrong += memcmp(buf, sent, (size_t)n_bytes) != 0;
        if (rank == first)
            printf("%10d %12.2f %10.1f\n", n_bytes, us, us > 0 ? n_bytes / us : 0.0);
    }
    if (rank == first)
        printf("pingpong: %s\n", wrong ? "FAILED" : "ok");
    free(buf);
    free(sent);
    MPI_Finalize();
    return wrong != 0;
}
