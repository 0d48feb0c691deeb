/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_THREAD_MULTIPLE: one thread and two threads of each of two ranks, each on a communicator of
 * its own. The reported size is the number of threads; each value is that of one thread.
 * `thread_self`: threads of one rank, each of which sends to itself, so that a core for each is all
 * they need: what two of them lose against one is what they wait for one another. */
#include <pthread.h>

#include "measure.h"

#define THREADS_MAX 2
#define WINDOW      64
#define TAG         5
#define BATCH_US    20000.0

struct work {
    MPI_Comm comm;
    void *(*what)(void *);
    pthread_barrier_t *start;
    int index, n_messages;
    double took_us;
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

static void *to_itself(void *arg)
{
    const struct work *w = arg;
    char out[8] = {0}, in[8];
    MPI_Request request;

    for (int i = 0; i < w->n_messages; i++) {
        MPI_Irecv(in, 8, MPI_BYTE, measure_rank, TAG, w->comm, &request);
        MPI_Send(out, 8, MPI_BYTE, measure_rank, TAG, w->comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    return NULL;
}

/* Thread i of rank r is bound to core r + i: the two of a rank, and the two that talk, have
 * different ones. Once to be awake, and once for the clock. */
static void *timed(void *arg)
{
    struct work *w = arg;

    measure_pin(measure_rank + w->index);
    w->what(w);
    pthread_barrier_wait(w->start);
    double begin_us = measure_now_us();
    w->what(w);
    w->took_us = measure_now_us() - begin_us;
    return NULL;
}

/* Microseconds per message of the slowest thread of rank 0; threads run in the first n_ranks
 * ranks. */
static double run(void *(*what)(void *), struct work *works, int n_ranks, int n_threads,
                  int n_messages)
{
    pthread_t threads[THREADS_MAX];
    pthread_barrier_t start;
    double took_us = 0;
    int n_here = measure_rank < n_ranks ? n_threads : 0;

    pthread_barrier_init(&start, NULL, (unsigned)n_threads);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < n_here; i++) {
        works[i].what = what;
        works[i].start = &start;
        works[i].index = i;
        works[i].n_messages = n_messages;
        if (pthread_create(&threads[i], NULL, timed, &works[i]) != 0)
            MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int i = 0; i < n_here; i++) {
        pthread_join(threads[i], NULL);
        took_us = works[i].took_us > took_us ? works[i].took_us : took_us;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    pthread_barrier_destroy(&start);
    return took_us / n_messages;
}

static void threads(int argc, char **argv)
{
    struct work works[THREADS_MAX];

    (void)argc;
    (void)argv;
    for (int i = 0; i < THREADS_MAX; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &works[i].comm);
    for (int n = 1; n <= THREADS_MAX; n++) {
        double rates[MEASURE_BATCHES], times[MEASURE_BATCHES], selfs[MEASURE_BATCHES];
        measure_lines();
        int n_stream =
            WINDOW * measure_repeats(run(stream, works, 2, n, WINDOW) * WINDOW, BATCH_US, 1);
        int n_ping = measure_repeats(run(ping_pong, works, 2, n, 100), BATCH_US, 10);
        int n_self = measure_repeats(run(to_itself, works, 1, n, 1000), BATCH_US, 100);
        for (int b = 0; b < MEASURE_BATCHES; b++) {
            rates[b] = 1 / run(stream, works, 2, n, n_stream);
            times[b] = run(ping_pong, works, 2, n, n_ping) / 2;
            selfs[b] = 1 / run(to_itself, works, 1, n, n_self);
        }
        measure_print("thread_rate", (size_t)n, measure_median(rates, MEASURE_BATCHES), "M/s");
        measure_print("thread_latency", (size_t)n, measure_median(times, MEASURE_BATCHES), "us");
        measure_print("thread_self", (size_t)n, measure_median(selfs, MEASURE_BATCHES), "M/s");
    }
    for (int i = 0; i < THREADS_MAX; i++)
        MPI_Comm_free(&works[i].comm);
}

const struct measure measures_threads[] = {{"threads", 2, threads}, {NULL, 0, NULL}};
