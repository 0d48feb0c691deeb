/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the MPI benchmarks share. Each file measure_*.c defines some measures; mpi_measure.c runs
 * the one named on its command line. Plain MPI, so that the same source serves every
 * implementation: compiled once for the standard ABI, once for each other.
 *
 * Results leave as lines "RESULT name size value unit line_ns", printed by rank 0; the last is the
 * time of a raw hand-over of a cache line just before (measure_lines.c), or 0.
 */
#pragma once

#include <mpi.h>
#include <stddef.h>

struct measure {
    const char *name;
    int min_ranks;
    void (*run)(int argc, char **argv); /* the words after the name */
};

extern const struct measure measures_p2p[], measures_coll[], measures_wait[], measures_threads[],
    measures_files[];

extern int measure_rank, measure_size;
/* Values of one measurement, of which the median is reported. */
#define MEASURE_BATCHES 11

/* CLOCK_MONOTONIC in microseconds. */
double measure_now_us(void);
/* Sorts values. */
double measure_median(double *values, int n);
/* Rank 0 prints a result; the others do nothing. */
void measure_print(const char *name, size_t size, double value, const char *unit);
/* measure_lines.c: set up (collectively); how long a cache line takes between ranks 0 and 1 now
 * (collectively; 0: not on one node). */
void measure_lines_open(void);
void measure_lines(void);
extern double measure_line_ns;
/* Sizes from the command line, or the given ones (ended by SIZE_MAX). Returns the next one or
 * SIZE_MAX. Looks at the cache lines before each. */
size_t measure_next_size(int argc, char **argv, const size_t *defaults, int at);
/* How often to repeat something that took once_us, so that a batch lasts batch_us; the same on all
 * ranks (rank 0 decides). */
int measure_repeats(double once_us, double batch_us, int least);
/* A page-aligned buffer, touched. Ends the program when there is no memory. */
char *measure_buffer(size_t bytes);
/* Binds the calling thread to core nth modulo the number of cores, if MOTET_BENCH_PIN is set. */
void measure_pin(int nth);
