/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that floods one that does not drain, and then talks to another one. Uses mpi.h alone.
 *
 *     flood MESSAGES stop|compute
 *
 * Rank 1 stops itself, or computes. All others but the last start MESSAGES sends of 100 bytes each
 * to it, and then 200 round trips of 8 to 100,000 bytes with the last rank, which prints "flood:
 * passed" when all of them are done. Rank 1, once it goes on (SIGCONT, SIGUSR1), receives
 * everything in order.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

enum { BYTES = 100, TRIPS = 200, LARGE = 100000, TAG_FLOOD = 1, TAG_TRIP = 2 };

static sig_atomic_t go_on;

static void on_signal(int number)
{
    (void)number;
    go_on = 1;
}

static void fail(const char *what, int a, int b)
{
    fprintf(stderr, "flood: %s: %d, expected %d\n", what, a, b);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void idle(const char *how)
{
    if (strcmp(how, "stop") == 0)
        raise(SIGSTOP);
    else
        while (!*(__typeof__(go_on) *)&go_on)
            __asm__ __volatile__("" : : : "memory");
}

static void drain(int n_floods, int n_messages)
{
    int buf[BYTES / sizeof(int)], *next = calloc((size_t)n_floods + 2, sizeof *next);
    MPI_Status status;

    for (long i = 0; i < (long)n_floods * n_messages; i++) {
        MPI_Recv(buf, BYTES, MPI_BYTE, MPI_ANY_SOURCE, TAG_FLOOD, MPI_COMM_WORLD, &status);
        int from = status.MPI_SOURCE ? status.MPI_SOURCE - 1 : 0;
        if (buf[0] != next[from])
            fail("a message out of order", buf[0], next[from]);
        next[from]++;
    }
    free(next);
}

static void trips(int rank, int last)
{
    char *buf = malloc(LARGE);
    for (int i = 0; i < TRIPS; i++) {
        int n = i % 4 == 3 ? LARGE : 8 << i % 4;
        memset(buf, i, (size_t)n);
        MPI_Send(buf, n, MPI_BYTE, last, TAG_TRIP, MPI_COMM_WORLD);
        MPI_Recv(buf, n, MPI_BYTE, last, TAG_TRIP, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (buf[n - 1] != (char)(i + rank))
            fail("what came back", buf[n - 1], i + rank);
    }
    free(buf);
}

static void answer(int n_floods)
{
    char *buf = malloc(LARGE);
    for (int i = 0; i < TRIPS * n_floods; i++) {
        MPI_Status status;
        int n;
        MPI_Recv(buf, LARGE, MPI_BYTE, MPI_ANY_SOURCE, TAG_TRIP, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &n);
        for (int k = 0; k < n; k++)
            buf[k] = (char)(buf[k] + status.MPI_SOURCE);
        MPI_Send(buf, n, MPI_BYTE, status.MPI_SOURCE, TAG_TRIP, MPI_COMM_WORLD);
    }
    free(buf);
    printf("flood: passed\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int rank, size;

    signal(SIGUSR1, on_signal);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 3 || size < 3)
        MPI_Abort(MPI_COMM_WORLD, 2);
    int n_messages = atoi(argv[1]), n_floods = size - 2;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        idle(argv[2]);
        drain(n_floods, n_messages);
    } else if (rank == size - 1) {
        answer(n_floods);
    } else {
        int(*bufs)[BYTES / sizeof(int)] = calloc((size_t)n_messages, sizeof *bufs);
        MPI_Request *requests = calloc((size_t)n_messages, sizeof *requests);
        for (int i = 0; i < n_messages; i++) {
            bufs[i][0] = i;
            MPI_Isend(bufs[i], BYTES, MPI_BYTE, 1, TAG_FLOOD, MPI_COMM_WORLD, &requests[i]);
        }
        trips(rank, size - 1);
        MPI_Waitall(n_messages, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("flood: done\n");
    MPI_Finalize();
    return 0;
}
