/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Partitioned communication round a ring: partitions of both sides in every relation, released in
 * any order, several rounds and several transfers under one tag.
 */
#include "check.h"

#include <string.h>

#define TOTAL 840 /* ints; what many numbers divide */

static int rank, size, to, from;

static int value(int who, int round, int i)
{
    return who * 1000000 + round * 1000 + i;
}

static void fill(int *buf, int who, int round)
{
    for (int i = 0; i < TOTAL; i++)
        buf[i] = value(who, round, i);
}

static void check(const int *buf, int who, int round)
{
    for (int i = 0; i < TOTAL; i++)
        CHECK(buf[i] == value(who, round, i), "round %d, element %d is %d", round, i, buf[i]);
}

/* A random order of 0..n-1. */
static void shuffle(int *order, int n, uint64_t *random)
{
    for (int i = 0; i < n; i++) {
        int j = check_below(random, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
}

static void release(MPI_Request request, int n, int round, uint64_t *random)
{
    int order[TOTAL];
    if (round % 3 == 0) {
        MPI_Pready_range(0, n - 1, request);
        return;
    }
    shuffle(order, n, random);
    if (round % 3 == 1) {
        MPI_Pready_list(n, order, request);
        return;
    }
    for (int i = 0; i < n; i++)
        MPI_Pready(order[i], request);
}

static void check_relation(int n_send, int n_recv, uint64_t *random)
{
    static int out[TOTAL], in[TOTAL];
    MPI_Request send, recv;
    MPI_Psend_init(out, n_send, TOTAL / n_send, MPI_INT, to, 7, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &send);
    MPI_Precv_init(in, n_recv, TOTAL / n_recv, MPI_INT, from, 7, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &recv);
    for (int round = 0; round < 4; round++) {
        MPI_Status status;
        int count;
        fill(out, rank, round);
        memset(in, 0, sizeof in);
        MPI_Start(&send);
        MPI_Start(&recv);
        release(send, n_send, round, random);
        if (round % 2) {
            for (int i = n_recv - 1; i >= 0; i--)
                for (int flag = 0; !flag;)
                    MPI_Parrived(recv, i, &flag);
            check(in, from, round);
        }
        MPI_Wait(&recv, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        CHECK(status.MPI_SOURCE == from && status.MPI_TAG == 7, "from %d, tag %d",
              status.MPI_SOURCE, status.MPI_TAG);
        CHECK(count == TOTAL, "%d", count);
        check(in, from, round);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&send);
    MPI_Request_free(&recv);
}

/* Receive types whose elements the sender's parts cut through, and with gaps. */
static void check_types(void)
{
    static int out[TOTAL], in[2 * TOTAL];
    MPI_Datatype every_other, spread;
    MPI_Request send, recv;
    MPI_Type_vector(TOTAL / 4, 1, 2, MPI_INT, &every_other);
    MPI_Type_create_resized(every_other, 0, TOTAL / 2 * (MPI_Aint)sizeof(int), &spread);
    MPI_Type_commit(&spread);
    MPI_Psend_init(out, 7, TOTAL / 7, MPI_INT, to, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
    MPI_Precv_init(in, 4, 1, spread, from, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &recv);
    for (int round = 0; round < 3; round++) {
        fill(out, rank, round);
        memset(in, 0xff, sizeof in);
        MPI_Startall(2, (MPI_Request[]){send, recv});
        for (int i = 6; i >= 0; i--)
            MPI_Pready(i, send);
        MPI_Waitall(2, (MPI_Request[]){send, recv}, MPI_STATUSES_IGNORE);
        for (int i = 0; i < TOTAL; i++)
            CHECK(in[2 * i] == value(from, round, i) && in[2 * i + 1] == -1, "element %d: %d, %d",
                  i, in[2 * i], in[2 * i + 1]);
    }
    MPI_Request_free(&send);
    MPI_Request_free(&recv);
    MPI_Type_free(&spread);
    MPI_Type_free(&every_other);
}

/* Transfers under one tag meet in the order in which they were set up, whatever the order of their
 * starts. */
static void check_order(void)
{
    enum { N = 5 };
    static int out[N][TOTAL], in[N][TOTAL];
    MPI_Request send[N], recv[N];
    for (int i = 0; i < N; i++)
        MPI_Psend_init(out[i], 2, TOTAL / 2, MPI_INT, to, 3, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &send[i]);
    for (int i = 0; i < N; i++)
        MPI_Precv_init(in[i], 3, TOTAL / 3, MPI_INT, from, 3, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &recv[i]);
    for (int round = 0; round < 3; round++) {
        for (int k = 0; k < N; k++) {
            int i = (k * 3 + round) % N;
            fill(out[i], rank * 10 + i, round);
            MPI_Start(&send[i]);
            MPI_Pready_range(0, 1, send[i]);
        }
        for (int k = N - 1; k >= 0; k--)
            MPI_Start(&recv[k]);
        MPI_Waitall(N, recv, MPI_STATUSES_IGNORE);
        MPI_Waitall(N, send, MPI_STATUSES_IGNORE);
        for (int i = 0; i < N; i++)
            check(in[i], from * 10 + i, round);
    }
    for (int i = 0; i < N; i++) {
        MPI_Request_free(&send[i]);
        MPI_Request_free(&recv[i]);
    }
}

/* Partitions without bytes arrive like all others: not before they are ready. */
static void check_empty(void)
{
    MPI_Request send, recv;
    int flag = 1;
    MPI_Psend_init(NULL, 3, 0, MPI_INT, to, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
    MPI_Precv_init(NULL, 3, 0, MPI_INT, from, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &recv);
    MPI_Startall(2, (MPI_Request[]){send, recv});
    for (int i = 0; i < 3; i++) {
        MPI_Parrived(recv, i, &flag);
        CHECK(!flag, "partition %d", i);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Pready_range(0, 2, send);
    for (int i = 0; i < 3; i++)
        for (flag = 0; !flag;)
            MPI_Parrived(recv, i, &flag);
    MPI_Waitall(2, (MPI_Request[]){send, recv}, MPI_STATUSES_IGNORE);
    MPI_Request_free(&send);
    MPI_Request_free(&recv);
}

static void check_nobody(void)
{
    int in[4] = {0}, out[4] = {0}, flag = 0;
    MPI_Request send, recv;
    MPI_Status status;
    MPI_Psend_init(out, 4, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
    MPI_Precv_init(in, 4, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &recv);
    MPI_Start(&send);
    MPI_Start(&recv);
    for (int i = 0; i < 4; i++)
        MPI_Pready(i, send);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Wait(&recv, &status);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL, "source %d", status.MPI_SOURCE);
    MPI_Parrived(recv, 0, &flag);
    CHECK(flag, "inactive");
    MPI_Request_free(&send);
    MPI_Request_free(&recv);
}

int main(int argc, char **argv)
{
    static const int parts[] = {1, 2, 3, 5, 8, 24, 840};
    uint64_t random = 20260103;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    to = (rank + 1) % size;
    from = (rank + size - 1) % size;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        for (size_t j = 0; j < sizeof parts / sizeof parts[0]; j++)
            check_relation(parts[i], parts[j], &random);
    check_types();
    check_order();
    check_empty();
    if (argc > 1 &&
        strcmp(argv[1], "nobody") == 0) /* MPICH 5.0.2 dies of MPI_PROC_NULL in MPI_Psend_init */
        check_nobody();
    MPI_Finalize();
    return 0;
}
