/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective writing and reading of one file in the system's cache (TMPDIR, else /tmp): bytes of
 * all ranks per second, the slowest rank counts, median of the rounds. The size is that of a rank's
 * part. Patterns, as IOR and the array benchmarks have them: a block for each rank; blocks of 1 KiB
 * that take turns; a cube of doubles cut along all three dimensions; elements of 8 bytes that take
 * turns.
 */
#include "measure.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS 9

struct pattern {
    const char *write, *read;
    /* The filetype of a rank's part of about `bytes`, and the bytes that it really has. */
    size_t (*make)(size_t bytes, MPI_Datatype *filetype, MPI_Offset *disp);
};

static size_t make_block(size_t bytes, MPI_Datatype *filetype, MPI_Offset *disp)
{
    MPI_Type_contiguous((int)bytes, MPI_BYTE, filetype);
    *disp = (MPI_Offset)bytes * measure_rank;
    return bytes;
}

static size_t make_turns(size_t bytes, size_t block, MPI_Datatype *filetype, MPI_Offset *disp)
{
    MPI_Type_vector((int)(bytes / block), (int)block, (int)block * measure_size, MPI_BYTE,
                    filetype);
    *disp = (MPI_Offset)block * measure_rank;
    return bytes / block * block;
}

static size_t make_long_turns(size_t bytes, MPI_Datatype *filetype, MPI_Offset *disp)
{
    return make_turns(bytes, 1024, filetype, disp);
}

static size_t make_short_turns(size_t bytes, MPI_Datatype *filetype, MPI_Offset *disp)
{
    return make_turns(bytes, 8, filetype, disp);
}

static size_t make_array(size_t bytes, MPI_Datatype *filetype, MPI_Offset *disp)
{
    int edge = 1, dims[3] = {0, 0, 0}, sizes[3], subsizes[3], starts[3];
    while ((size_t)(edge + 1) * (size_t)(edge + 1) * (size_t)(edge + 1) * 8 <= bytes)
        edge++;
    MPI_Dims_create(measure_size, 3, dims);
    /* The last dimension lies together in the file: it is the one that is cut first. */
    int cuts[3] = {dims[2], dims[1], dims[0]}, rest = measure_rank;
    for (int i = 2; i >= 0; i--) {
        sizes[i] = edge * cuts[i];
        subsizes[i] = edge;
        starts[i] = edge * (rest % cuts[i]);
        rest /= cuts[i];
    }
    MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C, MPI_DOUBLE, filetype);
    *disp = 0;
    return (size_t)edge * (size_t)edge * (size_t)edge * 8;
}

static const struct pattern patterns[] = {
    {"write-block", "read-block", make_block},
    {"write-turns-1k", "read-turns-1k", make_long_turns},
    {"write-array", "read-array", make_array},
    {"write-turns-8", "read-turns-8", make_short_turns},
};

static void must(int err, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int n;
    if (err == MPI_SUCCESS)
        return;
    MPI_Error_string(err, text, &n);
    fprintf(stderr, "mpi_measure: %s: %s\n", what, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static double once(MPI_File file, char *data, size_t n, int write)
{
    MPI_Status status;
    MPI_Barrier(MPI_COMM_WORLD);
    double before_us = measure_now_us(), taken_us;
    must(write ? MPI_File_write_at_all(file, 0, data, (int)n, MPI_BYTE, &status)
               : MPI_File_read_at_all(file, 0, data, (int)n, MPI_BYTE, &status),
         write ? "write" : "read");
    taken_us = measure_now_us() - before_us;
    MPI_Allreduce(MPI_IN_PLACE, &taken_us, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return (double)n * measure_size / taken_us;
}

static void measure_pattern(const struct pattern *p, MPI_File file, size_t bytes, char *data)
{
    double rates[ROUNDS];
    MPI_Datatype filetype;
    MPI_Offset disp;
    size_t n = p->make(bytes, &filetype, &disp);
    MPI_Type_commit(&filetype);
    must(MPI_File_set_view(file, disp, MPI_BYTE, filetype, "native", MPI_INFO_NULL), "view");
    for (int write = 1; write >= 0; write--) {
        once(file, data, n, write);
        for (int i = 0; i < ROUNDS; i++)
            rates[i] = once(file, data, n, write);
        measure_print(write ? p->write : p->read, bytes, measure_median(rates, ROUNDS), "MB/s");
    }
    MPI_Type_free(&filetype);
}

static void run_files(int argc, char **argv)
{
    static const size_t defaults[] = {65536, 1 << 20, 16 << 20, SIZE_MAX};
    char name[512] = "";
    size_t bytes;
    if (measure_rank == 0)
        snprintf(name, sizeof name, "%s/motet-measure-%d",
                 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int i = 0; (bytes = measure_next_size(argc, argv, defaults, i)) != SIZE_MAX; i++) {
        char *data = measure_buffer(bytes);
        for (size_t k = 0; k < sizeof patterns / sizeof patterns[0]; k++) {
            MPI_File file;
            must(MPI_File_open(MPI_COMM_WORLD, name,
                               MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                               MPI_INFO_NULL, &file),
                 "open");
            measure_pattern(&patterns[k], file, bytes, data);
            must(MPI_File_close(&file), "close");
        }
        free(data);
    }
}

const struct measure measures_files[] = {{"files", 1, run_files}, {NULL, 0, NULL}};
