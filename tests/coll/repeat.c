/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One collective, many times, with the last result checked: for tests that look at what the network
 * carried meanwhile. Arguments: name, bytes (of the message or block, a multiple of 4), repeats.
 * Rank 0 is the root. inter_allgather: from the even ranks to the odd ones, and back. Runs on any
 * library with the standard ABI.
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    int rank, size, n_failed = 0, all = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *name = argc > 3 ? argv[1] : "";
    int n = argc > 3 ? atoi(argv[2]) / 4 : 0, repeats = argc > 3 ? atoi(argv[3]) : 0;
    int *in = malloc((size_t)n * (size_t)size * sizeof(int)),
        *out = calloc((size_t)n * (size_t)size, sizeof(int));
    for (int i = 0; i < n * size; i++)
        in[i] = rank + i;
    MPI_Comm half, inter;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 1, &inter);
    for (int k = 0; k < repeats; k++) {
        if (strcmp(name, "inter_allgather") == 0)
            MPI_Allgather(in, n, MPI_INT, out, n, MPI_INT, inter);
        else if (strcmp(name, "bcast") == 0)
            MPI_Bcast(rank ? out : in, n, MPI_INT, 0, MPI_COMM_WORLD);
        else if (strcmp(name, "reduce") == 0)
            MPI_Reduce(in, out, n, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
        else if (strcmp(name, "allreduce") == 0)
            MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        else if (strcmp(name, "allgather") == 0)
            MPI_Allgather(in, n, MPI_INT, out, n, MPI_INT, MPI_COMM_WORLD);
        else if (strcmp(name, "reduce_scatter") == 0)
            MPI_Reduce_scatter_block(in, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        else if (strcmp(name, "scan") == 0)
            MPI_Scan(in, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        else
            MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int ranks = size * (size - 1) / 2;
    for (int i = 0; i < n; i++) {
        if (strcmp(name, "bcast") == 0)
            n_failed += rank && out[i] != i;
        else if (strcmp(name, "reduce") == 0)
            n_failed += rank == 0 && out[i] != ranks + size * i;
        else if (strcmp(name, "allreduce") == 0)
            n_failed += out[i] != ranks + size * i;
        else if (strcmp(name, "reduce_scatter") == 0)
            n_failed += out[i] != ranks + size * (rank * n + i);
        else if (strcmp(name, "scan") == 0)
            n_failed += out[i] != rank * (rank + 1) / 2 + (rank + 1) * i;
        for (int from = 0; strcmp(name, "allgather") == 0 && from < size; from++)
            n_failed += out[from * n + i] != from + i;
        for (int from = 0; strcmp(name, "inter_allgather") == 0 && from < size / 2; from++)
            n_failed += out[from * n + i] != 2 * from + 1 - rank % 2 + i;
    }
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    MPI_Allreduce(&n_failed, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s: %s\n", name, all ? "wrong" : "ok");
    free(in);
    free(out);
    MPI_Finalize();
    return all != 0;
}
