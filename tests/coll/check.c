/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives that do not match, in the checking mode (MOTET_CHECK=collectives): every case must
 * raise the right class of error on all ranks, and the communicator must be good for the next case.
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

static int rank, size, n_failed;
static MPI_Comm comm;
static int in[4096], out[4096];

static void expect(const char *what, int err, int class)
{
    int got = MPI_SUCCESS;
    MPI_Error_class(err, &got);
    if (got == class)
        return;
    n_failed++;
    printf("rank %d: %s: class %d, expected %d\n", rank, what, got, class);
}

static void test_mismatches(void)
{
    int last = rank == size - 1, err;
    MPI_Request request;
    err = last ? MPI_Barrier(comm) : MPI_Bcast(in, 1, MPI_INT, 0, comm);
    expect("kind", err, MPI_ERR_OTHER);
    expect("root", MPI_Bcast(in, 1, MPI_INT, last, comm), MPI_ERR_ROOT);
    expect("count", MPI_Allreduce(in, out, last ? 2 : 1, MPI_INT, MPI_SUM, comm), MPI_ERR_COUNT);
    expect("truncation", MPI_Bcast(in, last ? 1 : 2, MPI_INT, 0, comm), MPI_ERR_TRUNCATE);
    expect("type", MPI_Bcast(in, 1, last ? MPI_FLOAT : MPI_INT, 0, comm), MPI_ERR_TYPE);
    expect("op", MPI_Reduce(in, out, 1, MPI_INT, last ? MPI_MAX : MPI_SUM, 0, comm), MPI_ERR_OP);
    expect("in place", MPI_Allreduce(last ? MPI_IN_PLACE : in, out, 1, MPI_INT, MPI_SUM, comm),
           MPI_ERR_BUFFER);
    expect("gather", MPI_Gather(in, last ? 3 : 1, MPI_INT, out, 1, MPI_INT, 0, comm),
           MPI_ERR_COUNT);
    expect("scan", MPI_Scan(in, out, 1, last ? MPI_DOUBLE : MPI_INT, MPI_SUM, comm), MPI_ERR_COUNT);
    err = last ? MPI_Ibcast(in, 1, MPI_INT, 0, comm, &request) : MPI_Bcast(in, 1, MPI_INT, 0, comm);
    if (last && err == MPI_SUCCESS)
        err = MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect("form", err, MPI_ERR_OTHER);
    err = MPI_Iallreduce(in, out, last ? 3000 : 1, MPI_INT, MPI_SUM, comm, &request);
    if (err == MPI_SUCCESS)
        err = MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect("nonblocking count", err, MPI_ERR_COUNT);
}

static void test_blocks(void)
{
    int *counts = calloc((size_t)size, sizeof(int)), *displs = calloc((size_t)size, sizeof(int));
    int last = rank == size - 1;
    for (int i = 0; i < size; i++) {
        counts[i] = 1;
        displs[i] = i;
    }
    int err = MPI_Gatherv(in, last ? 2 : 1, MPI_INT, out, counts, displs, MPI_INT, 0, comm);
    expect("gatherv", err, rank == 0 ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER);
    err = MPI_Scatterv(in, counts, displs, MPI_INT, out, last ? 2 : 1, MPI_INT, 0, comm);
    expect("scatterv", err, rank == 0 || last ? MPI_ERR_COUNT : MPI_ERR_OTHER);
    err = MPI_Alltoall(in, last ? 2 : 1, MPI_INT, out, 1, MPI_INT, comm);
    expect("alltoall", err, MPI_ERR_TRUNCATE);
    MPI_Barrier(comm);
    free(counts);
    free(displs);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int round = 0; round < 60; round++) /* more than the cells have steps */
        test_mismatches();
    test_blocks();
    int one = 1, sum = 0;
    expect("afterwards", MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
    n_failed += sum != size;
    MPI_Allreduce(MPI_IN_PLACE, &n_failed, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return n_failed != 0;
}
