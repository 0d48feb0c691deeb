/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives over all ranks: mean time of one in a batch of many, the slowest rank counts, median of the batches. */
#include "measure.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_US 5000.0

enum kind { BARRIER, BCAST, REDUCE, ALLREDUCE, ALLGATHER, ALLTOALL };

static void once(enum kind kind, char *in, char *out, size_t size)
{
    int n = (int)size, n_doubles = (int)(size / sizeof(double));

    switch (kind) {
    case BARRIER:
        MPI_Barrier(MPI_COMM_WORLD);
        break;
    case BCAST:
        MPI_Bcast(in, n, MPI_BYTE, 0, MPI_COMM_WORLD);
        break;
    case REDUCE:
        MPI_Reduce(in, out, n_doubles, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        break;
    case ALLREDUCE:
        MPI_Allreduce(in, out, n_doubles, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        break;
    case ALLGATHER:
        MPI_Allgather(in, n, MPI_BYTE, out, n, MPI_BYTE, MPI_COMM_WORLD);
        break;
    case ALLTOALL:
        MPI_Alltoall(in, n, MPI_BYTE, out, n, MPI_BYTE, MPI_COMM_WORLD);
        break;
    }
}

static double batch(enum kind kind, char *in, char *out, size_t size, int n)
{
    double mine_us, slowest_us;

    MPI_Barrier(MPI_COMM_WORLD);
    double begin_us = measure_now_us();
    for (int i = 0; i < n; i++)
        once(kind, in, out, size);
    mine_us = (measure_now_us() - begin_us) / n;
    MPI_Allreduce(&mine_us, &slowest_us, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest_us;
}

static void all(enum kind kind, const char *name, const size_t *sizes, int argc, char **argv)
{
    double values[MEASURE_BATCHES];
    size_t size;

    for (int i = 0; (size = measure_next_size(argc, argv, sizes, i)) != SIZE_MAX; i++) {
        char *in = measure_buffer(size * (size_t)measure_size), *out = measure_buffer(size * (size_t)measure_size);
        memset(in, 0, size * (size_t)measure_size); /* zeros are doubles too */
        batch(kind, in, out, size, 3);
        int n = measure_repeats(batch(kind, in, out, size, 3), BATCH_US, 3);
        for (int b = 0; b < MEASURE_BATCHES; b++)
            values[b] = batch(kind, in, out, size, n);
        measure_print(name, size, measure_median(values, MEASURE_BATCHES), "us");
        free(in);
        free(out);
    }
}

static const size_t none[] = {0, SIZE_MAX};
static const size_t usual[] = {8, 1024, 65536, 262144, 1048576, SIZE_MAX};
static const size_t each[] = {8, 1024, 65536, SIZE_MAX};

static void barrier(int argc, char **argv)
{
    (void)argc;
    all(BARRIER, "barrier", none, 0, argv);
}

static void bcast(int argc, char **argv)
{
    all(BCAST, "bcast", usual, argc, argv);
}

static void reduce(int argc, char **argv)
{
    all(REDUCE, "reduce", usual, argc, argv);
}

static void allreduce(int argc, char **argv)
{
    all(ALLREDUCE, "allreduce", usual, argc, argv);
}

static void allgather(int argc, char **argv)
{
    all(ALLGATHER, "allgather", each, argc, argv);
}

static void alltoall(int argc, char **argv)
{
    all(ALLTOALL, "alltoall", each, argc, argv);
}

const struct measure measures_coll[] = {
    {"barrier", 1, barrier},     {"bcast", 1, bcast},         {"reduce", 1, reduce},
    {"allreduce", 1, allreduce}, {"allgather", 1, allgather}, {"alltoall", 1, alltoall},
    {NULL, 0, NULL},
};
