/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_THREAD_MULTIPLE: several threads per rank, each on a communicator of its own, exchange
 * messages of all sizes round a ring of ranks, do reductions, and use wildcards on a shared
 * communicator. Runs on any MPI. Exits with 1 on a wrong value.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define N_THREADS 3
#define ROUNDS    150
#define MAX_INTS  30000

static int rank, size, bad;
static MPI_Comm comms[N_THREADS];

static void *work(void *arg)
{
    int me = (int)(size_t)arg;
    int *out = malloc(MAX_INTS * sizeof *out), *in = malloc(MAX_INTS * sizeof *in);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;

    for (int round = 0; round < ROUNDS; round++) {
        int n = round % 5 == 4 ? MAX_INTS : 1 + round * 7 % 900;
        MPI_Request requests[2];
        int sum = 0, one = me + round;
        for (int i = 0; i < n; i++)
            out[i] = rank * 1000003 + me * 101 + round + i;
        MPI_Irecv(in, n, MPI_INT, left, round, comms[me], &requests[0]);
        MPI_Isend(out, n, MPI_INT, right, round, comms[me], &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < n; i++)
            if (in[i] != left * 1000003 + me * 101 + round + i)
                bad = 1;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comms[me]);
        if (sum != size * (me + round))
            bad = 1;
        /* Tag = thread: the shared communicator, any source. */
        MPI_Send(&one, 1, MPI_INT, right, me, MPI_COMM_WORLD);
        MPI_Recv(&sum, 1, MPI_INT, MPI_ANY_SOURCE, me, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (sum != one)
            bad = 1;
    }
    free(out);
    free(in);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[N_THREADS];
    int provided, any;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE) {
        fprintf(stderr, "MPI_THREAD_MULTIPLE was not granted\n");
        return 1;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < N_THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < N_THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)(size_t)i);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    MPI_Allreduce(&bad, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < N_THREADS; i++)
        MPI_Comm_free(&comms[i]);
    MPI_Finalize();
    if (rank == 0 && any)
        fprintf(stderr, "wrong values\n");
    return any;
}
