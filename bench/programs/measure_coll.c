/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives over all ranks, each kind blocking and nonblocking (started and waited for at once):
 * mean time of one in a batch of many, the slowest rank counts, median of the batches. The size is
 * that of the message (bcast, reduce, allreduce, scans) or of the block for each rank (all others).
 */
#include "measure.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_US  5000.0
#define MAX_RANKS 1024

/* What the operations work on. */
static struct {
    char *in, *out;
    int n, n_doubles; /* bytes and doubles of a message or block */
    int counts[MAX_RANKS], double_counts[MAX_RANKS], displs[MAX_RANKS];
    MPI_Datatype types[MAX_RANKS];
    MPI_Request request;
} at;

#define WORLD MPI_COMM_WORLD
#define WAIT  MPI_Wait(&at.request, MPI_STATUS_IGNORE)
/* Both forms of one kind: the arguments before the communicator. */
#define KIND(name, Name, Iname, ...)                                                               \
    static void name(void)                                                                         \
    {                                                                                              \
        MPI_##Name(__VA_ARGS__, WORLD);                                                            \
    }                                                                                              \
    static void i##name(void)                                                                      \
    {                                                                                              \
        MPI_##Iname(__VA_ARGS__, WORLD, &at.request);                                              \
        WAIT;                                                                                      \
    }

#define IN       at.in, at.n, MPI_BYTE
#define OUT      at.out, at.n, MPI_BYTE
#define V(where) at.where, at.counts, at.displs, MPI_BYTE
#define W(where) at.where, at.counts, at.displs, at.types
#define OPERANDS at.in, at.out, at.n_doubles, MPI_DOUBLE, MPI_SUM

KIND(bcast, Bcast, Ibcast, IN, 0)
KIND(reduce, Reduce, Ireduce, OPERANDS, 0)
KIND(allreduce, Allreduce, Iallreduce, OPERANDS)
KIND(gather, Gather, Igather, IN, OUT, 0)
KIND(gatherv, Gatherv, Igatherv, IN, V(out), 0)
KIND(scatter, Scatter, Iscatter, IN, OUT, 0)
KIND(scatterv, Scatterv, Iscatterv, V(in), OUT, 0)
KIND(allgather, Allgather, Iallgather, IN, OUT)
KIND(allgatherv, Allgatherv, Iallgatherv, IN, V(out))
KIND(alltoall, Alltoall, Ialltoall, IN, OUT)
KIND(alltoallv, Alltoallv, Ialltoallv, V(in), V(out))
KIND(alltoallw, Alltoallw, Ialltoallw, W(in), W(out))
KIND(reduce_scatter, Reduce_scatter, Ireduce_scatter, at.in, at.out, at.double_counts, MPI_DOUBLE,
     MPI_SUM)
KIND(reduce_scatter_block, Reduce_scatter_block, Ireduce_scatter_block, OPERANDS)
KIND(scan, Scan, Iscan, OPERANDS)
KIND(exscan, Exscan, Iexscan, OPERANDS)

static void barrier(void)
{
    MPI_Barrier(WORLD);
}

static void ibarrier(void)
{
    MPI_Ibarrier(WORLD, &at.request);
    WAIT;
}

/* Names no longer than the column of bench/run. */
static const struct kind {
    const char *name;
    void (*run)(void);
} kinds[] = {
    {"barrier", barrier},
    {"bcast", bcast},
    {"reduce", reduce},
    {"allreduce", allreduce},
    {"gather", gather},
    {"gatherv", gatherv},
    {"scatter", scatter},
    {"scatterv", scatterv},
    {"allgather", allgather},
    {"allgatherv", allgatherv},
    {"alltoall", alltoall},
    {"alltoallv", alltoallv},
    {"alltoallw", alltoallw},
    {"reduce_scatter", reduce_scatter},
    {"red_scat_block", reduce_scatter_block},
    {"scan", scan},
    {"exscan", exscan},
    {"ibarrier", ibarrier},
    {"ibcast", ibcast},
    {"ireduce", ireduce},
    {"iallreduce", iallreduce},
    {"igather", igather},
    {"igatherv", igatherv},
    {"iscatter", iscatter},
    {"iscatterv", iscatterv},
    {"iallgather", iallgather},
    {"iallgatherv", iallgatherv},
    {"ialltoall", ialltoall},
    {"ialltoallv", ialltoallv},
    {"ialltoallw", ialltoallw},
    {"ireduce_scatter", ireduce_scatter},
    {"ired_scat_block", ireduce_scatter_block},
    {"iscan", iscan},
    {"iexscan", iexscan},
};
#define N_KINDS (sizeof kinds / sizeof kinds[0])

static void set_size(size_t size)
{
    at.n = (int)size;
    at.n_doubles = (int)(size / sizeof(double));
    for (int i = 0; i < measure_size; i++) {
        at.counts[i] = at.n;
        at.double_counts[i] = at.n_doubles;
        at.displs[i] = i * at.n;
        at.types[i] = MPI_BYTE;
    }
}

static double batch(const struct kind *kind, int n)
{
    double mine_us, slowest_us;

    MPI_Barrier(WORLD);
    double begin_us = measure_now_us();
    for (int i = 0; i < n; i++)
        kind->run();
    mine_us = (measure_now_us() - begin_us) / n;
    MPI_Allreduce(&mine_us, &slowest_us, 1, MPI_DOUBLE, MPI_MAX, WORLD);
    return slowest_us;
}

static void measure(const struct kind *kind, size_t size)
{
    double values[MEASURE_BATCHES];

    set_size(size);
    measure_lines();
    batch(kind, 3);
    int n = measure_repeats(batch(kind, 3), BATCH_US, 1);
    int n_batches = n > 3 ? MEASURE_BATCHES
                          : 3; /* nothing is learned from long series of what takes milliseconds */
    for (int b = 0; b < n_batches; b++)
        values[b] = batch(kind, n);
    measure_print(kind->name, size, measure_median(values, n_batches), "us");
}

static bool is_barrier(const struct kind *kind)
{
    return kind->run == barrier || kind->run == ibarrier;
}

/* collectives [sizes or names]: the named kinds, or all, at the sizes given. */
static void collectives(int argc, char **argv)
{
    static const size_t usual[] = {8, 65536, SIZE_MAX};
    size_t sizes[16], n_sizes = 0, largest = 0;
    bool any_name = false, any_size = false;

    if (measure_size > MAX_RANKS)
        MPI_Abort(WORLD, 2);
    for (int i = 0; i < argc; i++) {
        bool is_size = argv[i][0] >= '0' && argv[i][0] <= '9';
        if (is_size && n_sizes < 16)
            sizes[n_sizes++] = strtoull(argv[i], NULL, 0);
        any_name |= !is_size;
        any_size |= is_size;
    }
    for (int i = 0; !any_size && usual[i] != SIZE_MAX; i++)
        sizes[n_sizes++] = usual[i];
    for (size_t i = 0; i < n_sizes; i++)
        largest = sizes[i] > largest ? sizes[i] : largest;
    at.in = measure_buffer(largest * (size_t)measure_size);
    at.out = measure_buffer(largest * (size_t)measure_size);
    memset(at.in, 0, largest * (size_t)measure_size); /* zeros are doubles, too */
    for (size_t k = 0; k < N_KINDS; k++) {
        bool named = !any_name;
        for (int i = 0; i < argc; i++)
            named |= strcmp(argv[i], kinds[k].name) == 0;
        if (named && is_barrier(&kinds[k]))
            measure(&kinds[k], 0);
        for (size_t i = 0; named && !is_barrier(&kinds[k]) && i < n_sizes; i++)
            measure(&kinds[k], sizes[i]);
    }
    free(at.in);
    free(at.out);
}

const struct measure measures_coll[] = {
    {"collectives", 1, collectives},
    {NULL, 0, NULL},
};
