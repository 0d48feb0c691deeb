/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting and starting. */
#include "measure.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static double cpu_us(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/*
 * wait SECONDS: all ranks but 0 sit in MPI_Recv while rank 0 is in nanosleep; reports their
 * processor time together in percent of one core. The reported size is the number of waiting ranks.
 */
static void wait_in_recv(int argc, char **argv)
{
    double seconds = argc > 0 ? atof(argv[0]) : 5, used_us = 0, all_us;
    char byte = 0;

    MPI_Barrier(MPI_COMM_WORLD);
    if (measure_rank == 0) {
        struct timespec ts = {.tv_sec = (time_t)seconds,
                              .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
        while (nanosleep(&ts, &ts) != 0)
            ;
        for (int r = 1; r < measure_size; r++)
            MPI_Send(&byte, 1, MPI_BYTE, r, 1, MPI_COMM_WORLD);
    } else {
        double before_us = cpu_us();
        MPI_Recv(&byte, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        used_us = cpu_us() - before_us;
    }
    MPI_Reduce(&used_us, &all_us, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    measure_print("wait", (size_t)measure_size - 1, all_us / (seconds * 1e6) * 100, "%");
}

/* Nothing between init and finalize: the runner takes the time of the whole. */
static void start(int argc, char **argv)
{
    (void)argc;
    (void)argv;
}

const struct measure measures_wait[] = {
    {"wait", 2, wait_in_recv},
    {"start", 1, start},
    {NULL, 0, NULL},
};
