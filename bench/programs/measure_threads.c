/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_THREAD_MULTIPLE: one thread and two threads of each of two ranks, each on a communicator of its own. The reported size is the number
 * of threads; each value is that of one thread. */
#include <pthread.h>

#include "measure.h"

#define THREADS_MAX 2
#define WINDOW      64
#define TAG         5
#define BATCH_US    20000.0

struct work {
    MPI_Comm comm;
    int n_messages;
};

static void *stream(void *arg)
{
    const struct work *w = arg;
    char bytes[WINDOW][8] = {{0}};
    MPI_Request requests[WINDOW];

    for (int done = 0; done < w->n_messages; done += WINDOW) {
        for (int i = 0; i < WINDOW; i++)
            if (measure_rank == 0)
                MPI_Isend(bytes[i], 8, MPI_BYTE, 1, TAG, w->comm, &requests[i]);
            else
                MPI_Irecv(bytes[i], 8, MPI_BYTE, 0, TAG, w->comm, &requests[i]);
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        if (measure_rank == 0)
            MPI_Recv(bytes, 0, MPI_BYTE, 1, TAG, w->comm, MPI_STATUS_IGNORE);
        else
            MPI_Send(bytes, 0, MPI_BYTE, 0, TAG, w->comm);
    }
    return NULL;
}

static void *ping_pong(void *arg)
{
    const struct work *w = arg;
    char bytes[8] = {0};

    for (int i = 0; i < w->n_messages; i++) {
        if (measure_rank == 0)
            MPI_Send(bytes, 8, MPI_BYTE, 1, TAG, w->comm);
        MPI_Recv(bytes, 8, MPI_BYTE, 1 - measure_rank, TAG, w->comm, MPI_STATUS_IGNORE);
        if (measure_rank == 1)
            MPI_Send(bytes, 8, MPI_BYTE, 0, TAG, w->comm);
    }
    return NULL;
}

/* Microseconds per message of each thread. */
static double run(void *(*what)(void *), struct work *works, int n_threads, int n_messages)
{
    pthread_t threads[THREADS_MAX];

    MPI_Barrier(MPI_COMM_WORLD);
    double begin_us = measure_now_us();
    for (int i = 0; i < n_threads; i++)
        works[i].n_messages = n_messages;
    if (measure_rank < 2)
        for (int i = 0; i < n_threads; i++)
            if (pthread_create(&threads[i], NULL, what, &works[i]) != 0)
                MPI_Abort(MPI_COMM_WORLD, 2);
    if (measure_rank < 2)
        for (int i = 0; i < n_threads; i++)
            pthread_join(threads[i], NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    return (measure_now_us() - begin_us) / n_messages;
}

static void threads(int argc, char **argv)
{
    struct work works[THREADS_MAX];

    (void)argc;
    (void)argv;
    for (int i = 0; i < THREADS_MAX; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &works[i].comm);
    for (int n = 1; n <= THREADS_MAX; n++) {
        double rates[MEASURE_BATCHES], times[MEASURE_BATCHES];
        int n_stream = WINDOW * measure_repeats(run(stream, works, n, WINDOW) * WINDOW, BATCH_US, 1);
        int n_ping = measure_repeats(run(ping_pong, works, n, 100), BATCH_US, 10);
        for (int b = 0; b < MEASURE_BATCHES; b++) {
            rates[b] = 1 / run(stream, works, n, n_stream);
            times[b] = run(ping_pong, works, n, n_ping) / 2;
        }
        measure_print("thread_rate", (size_t)n, measure_median(rates, MEASURE_BATCHES), "M/s");
        measure_print("thread_latency", (size_t)n, measure_median(times, MEASURE_BATCHES), "us");
    }
    for (int i = 0; i < THREADS_MAX; i++)
        MPI_Comm_free(&works[i].comm);
}

const struct measure measures_threads[] = {{"threads", 2, threads}, {NULL, 0, NULL}};
