/* SPDX-License-Identifier: BSD-3-Clause */
/* Point to point between ranks 0 and 1; other ranks look on. */
#include "measure.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TAG       1
#define TAG_NEVER 1000 /* and above: messages that nobody sends */
#define WINDOW    64
/* A batch this long hides the clock's cost and is shorter than most disturbances, which the median
 * then drops. */
#define BATCH_US 3000.0

static const size_t latency_sizes[] = {0,    1,     8,     64,     256,     1024,
                                       4096, 16384, 65536, 262144, 1048576, SIZE_MAX};
static const size_t bandwidth_sizes[] = {1024,    4096,    16384,    65536,   262144,
                                         1048576, 4194304, 16777216, SIZE_MAX};
static const size_t rate_sizes[] = {0, 8, 64, 1024, SIZE_MAX};
static const size_t match_depths[] = {0, 100, 1000, 10000, SIZE_MAX};
static const size_t overlap_sizes[] = {1048576, 4194304, 16777216, SIZE_MAX};

/* n round trips; microseconds for half of one. */
static double ping_pong(char *buf, size_t size, int n)
{
    double begin_us = measure_now_us();

    for (int i = 0; i < n; i++) {
        if (measure_rank == 0) {
            MPI_Send(buf, (int)size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
            MPI_Recv(buf, (int)size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (measure_rank == 1) {
            MPI_Recv(buf, (int)size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(buf, (int)size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        }
    }
    return (measure_now_us() - begin_us) / n / 2;
}

static double latency_of(char *buf, size_t size)
{
    double values[MEASURE_BATCHES];

    ping_pong(buf, size, 20);
    int n = measure_repeats(2 * ping_pong(buf, size, 20), BATCH_US, 5);
    for (int b = 0; b < MEASURE_BATCHES; b++)
        values[b] = ping_pong(buf, size, n);
    return measure_median(values, MEASURE_BATCHES);
}

static void latency(int argc, char **argv)
{
    size_t size;

    for (int i = 0; (size = measure_next_size(argc, argv, latency_sizes, i)) != SIZE_MAX; i++) {
        char *buf = measure_buffer(size);
        measure_print("latency", size, latency_of(buf, size), "us");
        free(buf);
    }
}

/* n windows of messages from 0 to 1, each answered by an empty one; microseconds for all. */
static double stream(char *buf, size_t size, int n)
{
    MPI_Request requests[WINDOW];
    double begin_us = measure_now_us();

    for (int i = 0; i < n; i++) {
        if (measure_rank == 0) {
            for (int w = 0; w < WINDOW; w++)
                MPI_Isend(buf, (int)size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &requests[w]);
            MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
            MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (measure_rank == 1) {
            for (int w = 0; w < WINDOW; w++)
                MPI_Irecv(buf, (int)size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &requests[w]);
            MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
            MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        }
    }
    return measure_now_us() - begin_us;
}

/* Microseconds per message. */
static double stream_of(char *buf, size_t size)
{
    double values[MEASURE_BATCHES];

    stream(buf, size, 2);
    int n = measure_repeats(stream(buf, size, 1), 4 * BATCH_US, 1);
    for (int b = 0; b < MEASURE_BATCHES; b++)
        values[b] = stream(buf, size, n) / n / WINDOW;
    return measure_median(values, MEASURE_BATCHES);
}

static void bandwidth(int argc, char **argv)
{
    size_t size;

    for (int i = 0; (size = measure_next_size(argc, argv, bandwidth_sizes, i)) != SIZE_MAX; i++) {
        char *buf = measure_buffer(size);
        measure_print("bandwidth", size, (double)size / stream_of(buf, size) * 1e-3, "GB/s");
        free(buf);
    }
}

static void rate(int argc, char **argv)
{
    size_t size;

    for (int i = 0; (size = measure_next_size(argc, argv, rate_sizes, i)) != SIZE_MAX; i++) {
        char *buf = measure_buffer(size);
        measure_print("rate", size, 1 / stream_of(buf, size), "M/s");
        free(buf);
    }
}

/* Latency of 8 bytes behind `depth` posted receives that match nothing. The reported size is the
 * depth. */
static void match(int argc, char **argv)
{
    size_t depth;

    for (int i = 0; (depth = measure_next_size(argc, argv, match_depths, i)) != SIZE_MAX; i++) {
        MPI_Request *posted = malloc((depth + 1) * sizeof *posted);
        char *buf = measure_buffer(8), *never = measure_buffer(8);
        if (measure_rank < 2)
            for (size_t d = 0; d < depth; d++)
                MPI_Irecv(never, 8, MPI_BYTE, 1 - measure_rank, TAG_NEVER + (int)d, MPI_COMM_WORLD,
                          &posted[d]);
        MPI_Barrier(MPI_COMM_WORLD);
        measure_print("match", depth, latency_of(buf, 8), "us");
        if (measure_rank < 2) {
            for (size_t d = 0; d < depth; d++)
                MPI_Cancel(&posted[d]);
            MPI_Waitall((int)depth, posted, MPI_STATUSES_IGNORE);
        }
        free(posted);
        free(buf);
        free(never);
    }
}

/* Work that needs the processor: a chain of dependent multiplications. Returns its value so that it
 * is not left out. */
static double compute(long n)
{
    double x = 1.0000001;

    for (long i = 0; i < n; i++)
        x = x * 1.0000001 + 1e-9;
    return x;
}

static double transfer(char *in, char *out, size_t size, int both, long work, double *sink)
{
    MPI_Request r[2];
    int n = 0;

    MPI_Barrier(MPI_COMM_WORLD);
    double begin_us = measure_now_us();
    if (measure_rank == 1 || (both && measure_rank == 0))
        MPI_Irecv(in, (int)size, MPI_BYTE, 1 - measure_rank, TAG, MPI_COMM_WORLD, &r[n++]);
    if (measure_rank == 0 || (both && measure_rank == 1))
        MPI_Isend(out, (int)size, MPI_BYTE, 1 - measure_rank, TAG, MPI_COMM_WORLD, &r[n++]);
    if (work > 0 && measure_rank < 2)
        *sink += compute(work);
    MPI_Waitall(n, r, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    return measure_now_us() - begin_us;
}

static double transfer_median(char *in, char *out, size_t size, int both, long work, double *sink)
{
    double values[MEASURE_BATCHES];

    for (int b = 0; b < MEASURE_BATCHES; b++)
        values[b] = transfer(in, out, size, both, work, sink);
    double t_us = measure_median(values, MEASURE_BATCHES);
    MPI_Bcast(&t_us, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return t_us;
}

/*
 * How much of a transfer hides behind computing that takes as long as the transfer: 100 %: both
 * together take as long as one, 0 %: as long as one after the other. The computing is a fixed
 * amount of work, not a fixed time, so what a helping thread takes from the processor counts as not
 * hidden.
 */
static void overlap(int argc, char **argv)
{
    double sink = 0;
    size_t size;

    double begin_us = measure_now_us();
    sink += compute(20000000);
    double per_us = 20000000 / (measure_now_us() - begin_us);
    for (int i = 0; (size = measure_next_size(argc, argv, overlap_sizes, i)) != SIZE_MAX; i++) {
        for (int both = 0; both < 2; both++) {
            char *in = measure_buffer(size), *out = measure_buffer(size);
            transfer(in, out, size, both, 0, &sink);
            double alone_us = transfer_median(in, out, size, both, 0, &sink);
            double together_us =
                transfer_median(in, out, size, both, (long)(alone_us * per_us), &sink);
            double hidden = (2 * alone_us - together_us) / alone_us * 100;
            hidden = hidden < 0 ? 0 : hidden > 100 ? 100 : hidden;
            measure_print(both ? "overlap_both" : "overlap_one", size, hidden, "%");
            free(in);
            free(out);
        }
    }
    if (sink == 12345)
        measure_print("overlap_sink", 0, sink, "");
}

const struct measure measures_p2p[] = {
    {"latency", 2, latency}, {"bandwidth", 2, bandwidth}, {"rate", 2, rate},
    {"match", 2, match},     {"overlap", 2, overlap},     {NULL, 0, NULL},
};
