/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi_measure NAME [sizes or arguments]: see measure.h. With MOTET_BENCH_PIN set, rank r is bound
 * to core r modulo the number of cores, whatever the launcher, so that all implementations run with
 * the same placement.
 */
#include "measure.h"

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int measure_rank, measure_size;

double measure_now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec * 1e-3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double measure_median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_value);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

void measure_print(const char *name, size_t size, double value, const char *unit)
{
    if (measure_rank == 0) {
        printf("RESULT %s %zu %.6g %s %.3g\n", name, size, value, unit, measure_line_ns);
        fflush(stdout);
    }
}

size_t measure_next_size(int argc, char **argv, const size_t *defaults, int at)
{
    size_t size = argc == 0 ? defaults[at] : at < argc ? strtoull(argv[at], NULL, 0) : SIZE_MAX;

    if (size != SIZE_MAX)
        measure_lines();
    return size;
}

int measure_repeats(double once_us, double batch_us, int least)
{
    double want = once_us > 0 ? batch_us / once_us : 1e6;
    int n = want > 1e6 ? 1000000 : (int)want;

    if (n < least)
        n = least;
    MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return n;
}

char *measure_buffer(size_t bytes)
{
    void *p = NULL;

    if (posix_memalign(&p, 4096, bytes + 4096) != 0) {
        fprintf(stderr, "mpi_measure: no memory for %zu bytes\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memset(p, 1, bytes + 4096);
    return p;
}

static cpu_set_t all_cores;

void measure_pin(int nth)
{
    cpu_set_t one;
    int n = CPU_COUNT(&all_cores);

    if (!getenv("MOTET_BENCH_PIN") || n == 0)
        return;
    nth %= n;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &all_cores) && nth-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof one, &one);
            return;
        }
    }
}

static void pin(void)
{
    const char *const names[] = {"MOTET_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"};
    const char *rank = NULL;

    for (size_t i = 0; i < sizeof names / sizeof *names && !rank; i++)
        rank = getenv(names[i]);
    if (rank && sched_getaffinity(0, sizeof all_cores, &all_cores) == 0)
        measure_pin(atoi(rank));
}

static const struct measure *find(const char *name)
{
    const struct measure *const tables[] = {measures_p2p, measures_coll, measures_wait,
                                            measures_threads, measures_files};

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const struct measure *m = tables[i]; m->name; m++)
            if (strcmp(m->name, name) == 0)
                return m;
    return NULL;
}

int main(int argc, char **argv)
{
    const struct measure *m = argc > 1 ? find(argv[1]) : NULL;

    if (!m) {
        fprintf(stderr, "usage: mpi_measure NAME [sizes]\n");
        return 2;
    }
    pin();
    /* Nobody pays for threads but those who measure them. */
    int provided,
        wanted = strcmp(m->name, "threads") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, wanted, &provided);
    if (provided < wanted) {
        fprintf(stderr, "mpi_measure: MPI_THREAD_MULTIPLE was refused\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &measure_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &measure_size);
    if (measure_size < m->min_ranks) {
        if (measure_rank == 0)
            fprintf(stderr, "mpi_measure: %s needs %d ranks\n", m->name, m->min_ranks);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    /* What is timed from outside shall do nothing more. */
    if (strcmp(m->name, "start") != 0)
        measure_lines_open();
    m->run(argc - 2, argv + 2);
    MPI_Finalize();
    return 0;
}
