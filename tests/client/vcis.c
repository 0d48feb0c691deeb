/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads on communicators of their own (client/progress/vci.h): every call that takes the lock of
 * a vci alone, beside those that take the library lock and touch the same vci: collectives, probes,
 * buffered, persistent and partitioned sends, cancelled and freed requests, types and communicators
 * freed while a transfer still needs them. Thread 0 stays on MPI_COMM_WORLD. Runs on any MPI.
 *
 * usage: vcis SEED ROUNDS. Exits with 1 on a wrong value.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_THREADS 3
#define MAX_INTS  40000

struct work {
    MPI_Comm comm;
    unsigned seed;
    int id, *out, *in;
};

static int rank, size, rounds, bad;

static void wrong(const struct work *w, const char *what)
{
    __atomic_store_n(&bad, 1, __ATOMIC_RELAXED);
    fprintf(stderr, "rank %d thread %d: %s\n", rank, w->id, what);
}

/* The same for the thread of this number on every rank. */
static int draw(struct work *w, int below)
{
    w->seed = w->seed * 1103515245u + 12345u;
    return (int)((w->seed >> 12) % (unsigned)below);
}

static int value(const struct work *w, int from, int round, int i)
{
    return from * 1000003 + w->id * 7919 + round * 31 + i;
}

static void fill(const struct work *w, int round, int n)
{
    for (int i = 0; i < n; i++)
        w->out[i] = value(w, rank, round, i);
    memset(w->in, 0xff, (size_t)n * sizeof *w->in);
}

static void check(const struct work *w, int from, int round, int n, const char *what)
{
    for (int i = 0; i < n; i++)
        if (w->in[i] != value(w, from, round, i)) {
            wrong(w, what);
            return;
        }
}

static void check_status(const struct work *w, MPI_Status *status, int from, int tag, int n)
{
    int got = -1;

    MPI_Get_count(status, MPI_INT, &got);
    if (status->MPI_SOURCE != from || status->MPI_TAG != tag || got != n)
        wrong(w, "status");
}

/* Irecv and Isend, finished in one of the ways there are. */
static void nonblocking(struct work *w, int round, int n, int left, int right)
{
    MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status statuses[3];
    int flag = 0, index, n_done, indices[3], how = draw(w, 6), any = draw(w, 2);

    MPI_Irecv(w->in, n, MPI_INT, any ? MPI_ANY_SOURCE : left, round, w->comm, &requests[0]);
    if (draw(w, 2))
        MPI_Isend(w->out, n, MPI_INT, right, round, w->comm, &requests[2]);
    else
        MPI_Issend(w->out, n, MPI_INT, right, round, w->comm, &requests[2]);
    switch (how) {
    case 0:
        MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
        MPI_Wait(&requests[0], &statuses[0]);
        break;
    case 1:
        while (!flag)
            MPI_Test(&requests[0], &flag, &statuses[0]);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        break;
    case 2:
        while (!flag)
            MPI_Testall(3, requests, &flag, statuses);
        break;
    case 3:
        for (int i = 0; i < 2; i++) {
            MPI_Waitany(3, requests, &index, &statuses[1]);
            if (index == 0)
                statuses[0] = statuses[1];
        }
        break;
    case 4:
        for (int left_over = 2; left_over > 0; left_over -= n_done) {
            MPI_Waitsome(3, requests, &n_done, indices, &statuses[1]);
            for (int i = 0; i < n_done; i++)
                if (indices[i] == 0)
                    statuses[0] = statuses[1 + i];
        }
        break;
    default:
        MPI_Waitall(3, requests, statuses);
    }
    if (requests[0] != MPI_REQUEST_NULL || requests[2] != MPI_REQUEST_NULL)
        wrong(w, "a request is left");
    check_status(w, &statuses[0], left, round, n);
    check(w, left, round, n, "nonblocking");
}

/* Every other element, by a type that is freed before the transfer is over. */
static void strided(struct work *w, int round, int n, int left, int right)
{
    MPI_Datatype type;
    MPI_Request requests[2];

    n = n / 2 + 1;
    MPI_Type_vector(n, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < n; i++)
        w->out[2 * i] = value(w, rank, round, i);
    MPI_Irecv(w->in, n, MPI_INT, left, round, w->comm, &requests[0]);
    MPI_Isend(w->out, 1, type, right, round, w->comm, &requests[1]);
    MPI_Type_free(&type);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    check(w, left, round, n, "strided");
}

static void probed(struct work *w, int round, int n, int left, int right)
{
    MPI_Request request;
    MPI_Message message;
    MPI_Status status;
    int flag = 0, how = draw(w, 4);

    MPI_Isend(w->out, n, MPI_INT, right, round, w->comm, &request);
    if (how == 0) {
        MPI_Probe(left, MPI_ANY_TAG, w->comm, &status);
        MPI_Recv(w->in, n, MPI_INT, left, round, w->comm, MPI_STATUS_IGNORE);
    } else if (how == 1) {
        while (!flag)
            MPI_Iprobe(MPI_ANY_SOURCE, round, w->comm, &flag, &status);
        MPI_Recv(w->in, n, MPI_INT, status.MPI_SOURCE, round, w->comm, MPI_STATUS_IGNORE);
    } else {
        if (how == 2)
            MPI_Mprobe(left, round, w->comm, &message, &status);
        while (how == 3 && !flag)
            MPI_Improbe(left, round, w->comm, &flag, &message, &status);
        MPI_Mrecv(w->in, n, MPI_INT, &message, MPI_STATUS_IGNORE);
    }
    check_status(w, &status, left, round, n);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(w, left, round, n, "probed");
}

static void persistent(struct work *w, int round, int n, int left, int right)
{
    MPI_Request requests[2];

    MPI_Recv_init(w->in, n, MPI_INT, left, round, w->comm, &requests[0]);
    MPI_Send_init(w->out, n, MPI_INT, right, round, w->comm, &requests[1]);
    for (int i = 0; i < 3; i++) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    check(w, left, round, n, "persistent");
}

/* A receive that nothing comes for is cancelled; a send is freed while it is under way. */
static void given_up(struct work *w, int round, int n, int left, int right)
{
    MPI_Request request;
    MPI_Status status;
    int cancelled = 0, never;

    MPI_Irecv(&never, 1, MPI_INT, left, 99999, w->comm, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    if (!cancelled)
        wrong(w, "not cancelled");
    MPI_Isend(w->out, n, MPI_INT, right, round, w->comm, &request);
    MPI_Request_free(&request);
    MPI_Recv(w->in, n, MPI_INT, left, round, w->comm, MPI_STATUS_IGNORE);
    MPI_Barrier(w->comm); /* the freed send is over when what it sent has come */
    check(w, left, round, n, "given up");
}

/* The communicator goes while its messages are under way. */
static void short_lived(struct work *w, int round, int n, int left, int right)
{
    MPI_Comm comm;
    MPI_Request requests[2];

    MPI_Comm_dup(w->comm, &comm);
    MPI_Irecv(w->in, n, MPI_INT, left, round, comm, &requests[0]);
    MPI_Isend(w->out, n, MPI_INT, right, round, comm, &requests[1]);
    MPI_Comm_free(&comm);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    check(w, left, round, n, "short-lived");
}

static void buffered(struct work *w, int round, int n, int left, int right)
{
    int room = n * (int)sizeof(int) + MPI_BSEND_OVERHEAD;
    void *buffer = malloc((size_t)room), *was;

    MPI_Comm_attach_buffer(w->comm, buffer, room);
    MPI_Bsend(w->out, n, MPI_INT, right, round, w->comm);
    MPI_Recv(w->in, n, MPI_INT, left, round, w->comm, MPI_STATUS_IGNORE);
    MPI_Comm_detach_buffer(w->comm, &was, &room);
    if (was != buffer)
        wrong(w, "detached buffer");
    free(buffer);
    check(w, left, round, n, "buffered");
}

static void partitioned(struct work *w, int round, int n, int left, int right)
{
    MPI_Request requests[2];

    n = n / 4 * 4 + 4;
    fill(w, round, n);
    MPI_Precv_init(w->in, 2, n / 2, MPI_INT, left, round, w->comm, MPI_INFO_NULL, &requests[0]);
    MPI_Psend_init(w->out, 4, n / 4, MPI_INT, right, round, w->comm, MPI_INFO_NULL, &requests[1]);
    MPI_Startall(2, requests);
    for (int i = 3; i >= 0; i--)
        MPI_Pready(i, requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    check(w, left, round, n, "partitioned");
}

static void reduced(struct work *w, int round)
{
    int one = round + w->id, sum = 0, all = 0;
    MPI_Request request;

    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, w->comm);
    MPI_Iallreduce(&one, &all, 1, MPI_INT, MPI_MAX, w->comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (sum != size * one || all != one)
        wrong(w, "reduction");
}

static void *run(void *arg)
{
    struct work *w = arg;
    int right = (rank + 1) % size, left = (rank + size - 1) % size;

    w->out = malloc(2 * MAX_INTS * sizeof *w->out);
    w->in = malloc(2 * MAX_INTS * sizeof *w->in);
    for (int round = 0; round < rounds; round++) {
        int n = draw(w, 8) == 0 ? draw(w, MAX_INTS) : draw(w, 2000);
        fill(w, round, n);
        switch (draw(w, 14)) {
        case 0:
            MPI_Sendrecv(w->out, n, MPI_INT, right, round, w->in, n, MPI_INT, left, round, w->comm,
                         MPI_STATUS_IGNORE);
            check(w, left, round, n, "sendrecv");
            break;
        case 1:
            strided(w, round, n, left, right);
            break;
        case 2:
            probed(w, round, n, left, right);
            break;
        case 3:
            persistent(w, round, n, left, right);
            break;
        case 4:
            given_up(w, round, n, left, right);
            break;
        case 5:
            short_lived(w, round, n, left, right);
            break;
        case 6:
            buffered(w, round, n, left, right);
            break;
        case 7:
            partitioned(w, round, n, left, right);
            break;
        case 8:
            reduced(w, round);
            break;
        case 9: /* one after the other: odd ranks receive first, an odd one out sends to itself */
            if (size % 2 == 0 && rank % 2) {
                MPI_Recv(w->in, n, MPI_INT, left, round, w->comm, MPI_STATUS_IGNORE);
                MPI_Ssend(w->out, n, MPI_INT, right, round, w->comm);
            } else if (size % 2 == 0) {
                MPI_Ssend(w->out, n, MPI_INT, right, round, w->comm);
                MPI_Recv(w->in, n, MPI_INT, left, round, w->comm, MPI_STATUS_IGNORE);
            } else {
                memcpy(w->in, w->out, (size_t)n * sizeof *w->in);
                MPI_Sendrecv_replace(w->in, n, MPI_INT, right, round, left, round, w->comm,
                                     MPI_STATUS_IGNORE);
            }
            check(w, left, round, n, "in turn");
            break;
        default:
            nonblocking(w, round, n, left, right);
        }
    }
    free(w->out);
    free(w->in);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[N_THREADS];
    struct work works[N_THREADS];
    int provided, any;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE || argc != 3) {
        fprintf(stderr, "usage: vcis SEED ROUNDS, with MPI_THREAD_MULTIPLE\n");
        return 1;
    }
    rounds = atoi(argv[2]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < N_THREADS; i++) {
        works[i] = (struct work){
            .comm = MPI_COMM_WORLD, .seed = (unsigned)atoi(argv[1]) * 31u + (unsigned)i, .id = i};
        if (i > 0)
            MPI_Comm_dup(MPI_COMM_WORLD, &works[i].comm);
    }
    for (int i = 0; i < N_THREADS; i++)
        pthread_create(&threads[i], NULL, run, &works[i]);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    MPI_Allreduce(&bad, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 1; i < N_THREADS; i++)
        MPI_Comm_free(&works[i].comm);
    MPI_Finalize();
    return any;
}
