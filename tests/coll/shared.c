/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is particular to collectives through a node's shared memory: communicators that come and go
 * while slow ranks still read, more of them than there are slots, more operations under way than
 * steps, long and short publications mixed, ranks far ahead of others. Arguments: rounds (default
 * 200). Runs on any library with the standard ABI.
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MANY_COMMS 40
#define MANY_OPS   500
#define LONG       70000 /* ints: several segments, more than a publication */

static int rank, size, n_failed;

static void expect(long got, long want, const char *what, int round)
{
    if (got != want && n_failed++ < 5)
        printf("rank %d, round %d: %s gave %ld, expected %ld\n", rank, round, what, got, want);
}

/* A different rank is late in every round. */
static void dawdle(int round)
{
    if (round % size == rank)
        usleep(round % 7 * 100);
}

/* The root of the last operation leaves and frees; the next communicator may get the same slot
 * while others still read. */
static void test_churn(int n_rounds)
{
    for (int round = 0; round < n_rounds; round++) {
        MPI_Comm comm;
        int value[64], sum = 0, root;
        if (round % 3 == 0) {
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        } else {
            MPI_Comm_split(MPI_COMM_WORLD, (rank + round) % 2, round % 5 ? rank : -rank, &comm);
        }
        int own, n;
        MPI_Comm_rank(comm, &own);
        MPI_Comm_size(comm, &n);
        root = round % n;
        for (int i = 0; i < 64; i++)
            value[i] = own == root ? round * 64 + i : -1;
        dawdle(round);
        if (round % 2)
            MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, comm);
        MPI_Bcast(value, 1 + round % 64, MPI_INT, root, comm);
        MPI_Comm_free(&comm);
        expect(value[round % 64], round * 64 + round % 64, "bcast before the free", round);
        if (round % 2)
            expect(sum, (long)n * (n - 1) / 2, "allreduce before the free", round);
    }
}

/* The last of them have no slot. */
static void test_many_comms(void)
{
    MPI_Comm comms[MANY_COMMS];
    for (int i = 0; i < MANY_COMMS; i++)
        MPI_Comm_dup(i ? comms[i - 1] : MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < MANY_COMMS; i++) {
        int in = rank + i, out = -1;
        MPI_Scan(&in, &out, 1, MPI_INT, MPI_SUM, comms[(i * 7) % MANY_COMMS]);
        expect(out, (long)rank * (rank + 1) / 2 + (long)i * (rank + 1), "scan on one of many", i);
    }
    for (int i = 0; i < MANY_COMMS; i++)
        MPI_Comm_free(&comms[i]);
}

/* More operations at once than a rank may be ahead, completed from the last to the first. */
static void test_many_operations(void)
{
    static MPI_Request requests[MANY_OPS];
    static int in[MANY_OPS], out[MANY_OPS], blocks[MANY_OPS][64];
    for (int i = 0; i < MANY_OPS; i++) {
        in[i] = i % 4 == 1 && rank != i % size ? -1 : i + (i % 4 == 1 ? 0 : rank);
        out[i] = -1;
        if (i % 4 == 0)
            MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[i]);
        else if (i % 4 == 1)
            MPI_Ibcast(&in[i], 1, MPI_INT, i % size, MPI_COMM_WORLD, &requests[i]);
        else if (i % 4 == 2)
            MPI_Ibarrier(MPI_COMM_WORLD, &requests[i]);
        else
            MPI_Igather(&in[i], 1, MPI_INT, blocks[i], size <= 64 ? 1 : 0, MPI_INT, i % size,
                        MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = MANY_OPS - 1; i >= 0; i--)
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    for (int i = 0; i < MANY_OPS; i++) {
        if (i % 4 == 0)
            expect(out[i], i + size - 1, "iallreduce", i);
        else if (i % 4 == 1)
            expect(in[i], i, "ibcast", i);
        for (int from = 0; i % 4 == 3 && rank == i % size && from < size; from++)
            expect(blocks[i][from], i + from, "igather", i);
    }
}

/* The root of many broadcasts, or the ranks that only send, run ahead of one that is late; short
 * and long ones in turn. */
static void test_run_ahead(int n_rounds)
{
    int *data = malloc(LONG * sizeof *data);
    for (int round = 0; round < n_rounds; round++) {
        int n = round % 10 == 9 ? LONG : 1 + round % 3000, in = rank + round, sum = 0,
            root = round / 50 % size;
        if (round % 50 == 20)
            dawdle(rank * 7 + round);
        for (int i = 0; i < n; i++)
            data[i] = rank == root ? i ^ round : -1;
        MPI_Bcast(data, n, MPI_INT, root, MPI_COMM_WORLD);
        expect(data[n - 1], (n - 1) ^ round, "end of a bcast", round);
        expect(data[n / 2], (n / 2) ^ round, "middle of a bcast", round);
        MPI_Reduce(&in, &sum, 1, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
        if (rank == root)
            expect(sum, (long)size * (size - 1) / 2 + (long)round * size, "reduce", round);
    }
    free(data);
}

/* Short blocks through the memory, long ones as messages, in one operation. */
static void test_mixed_blocks(void)
{
    int *counts = malloc((size_t)size * sizeof(int)), *displs = malloc((size_t)size * sizeof(int));
    int total = 0;
    for (int i = 0; i < size; i++) {
        counts[i] = (rank + i) % 3 == 0 ? 5000 : (rank + i) % 3 == 1 ? 3 : 0;
        displs[i] = total;
        total += counts[i];
    }
    int *in = malloc((size_t)(total + 1) * sizeof(int)),
        *out = malloc((size_t)(total + 1) * sizeof(int));
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < size; i++)
            for (int k = 0; k < counts[i]; k++) {
                in[displs[i] + k] = rank * 1000 + i + k + round;
                out[displs[i] + k] = -1;
            }
        MPI_Alltoallv(in, counts, displs, MPI_INT, out, counts, displs, MPI_INT, MPI_COMM_WORLD);
        for (int i = 0; i < size; i++)
            if (counts[i] > 0)
                expect(out[displs[i] + counts[i] - 1], i * 1000 + rank + counts[i] - 1 + round,
                       "alltoallv", round);
    }
    free(counts);
    free(displs);
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    int n_rounds = argc > 1 ? atoi(argv[1]) : 200;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    test_churn(n_rounds);
    test_many_comms();
    test_many_operations();
    test_run_ahead(n_rounds);
    test_mixed_blocks();
    test_churn(n_rounds);
    int all = n_failed;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return all != 0;
}
