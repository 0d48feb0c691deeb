/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that ask instead of waiting: a token goes round, and whoever does not have it calls
 * MPI_Iprobe, MPI_Test or MPI_Testany in a loop. With more ranks than cores each hop needs a core
 * on which somebody else asks; if they all asked until the end of their time slices, a hop would
 * take milliseconds. Uses mpi.h alone.
 */
#include "tests/topo/check.h"

enum how { BY_RECEIVE, BY_PROBE, BY_TEST, BY_TESTANY, N_WAYS };

static void take_token(enum how how, int from, int *token)
{
    MPI_Request request;
    int flag = 0, index;

    while (how == BY_PROBE && !flag)
        MPI_Iprobe(from, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    if (how == BY_RECEIVE || how == BY_PROBE) {
        MPI_Recv(token, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    MPI_Irecv(token, 1, MPI_INT, from, 0, MPI_COMM_WORLD, &request);
    while (!flag) {
        if (how == BY_TEST)
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        else
            MPI_Testany(1, &request, &index, &flag, MPI_STATUS_IGNORE);
    }
}

/* Returns the seconds that a hop takes. */
static double go_round(enum how how, int rank, int size)
{
    enum { N_ROUNDS = 50 };
    int token = 0;

    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int round = 0; round < N_ROUNDS; round++) {
        if (rank > 0 || round > 0)
            take_token(how, (rank + size - 1) % size, &token);
        CHECK(token == round * size + rank, "round %d: token %d", round, token);
        token++;
        MPI_Send(&token, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
    }
    if (rank == 0)
        take_token(how, size - 1, &token);
    MPI_Barrier(MPI_COMM_WORLD);
    return (MPI_Wtime() - start) / (N_ROUNDS * size);
}

int main(int argc, char **argv)
{
    enum { N_TRIES = 5 };
    double hop_s[N_WAYS];
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int how = 0; how < N_WAYS; how++) {
        hop_s[how] = 1e9;
        for (int try = 0; try < N_TRIES; try++) { /* others may need the cores as well */
            double seconds = go_round((enum how)how, rank, size);
            hop_s[how] = seconds < hop_s[how] ? seconds : hop_s[how];
        }
        if (rank == 0)
            printf("way %d: %.1f us a hop\n", how, 1e6 * hop_s[how]);
        CHECK(rank > 0 || hop_s[how] < 20 * hop_s[BY_RECEIVE] + 1e-3,
              "way %d: %.1f us a hop, by receiving %.1f us", how, 1e6 * hop_s[how],
              1e6 * hop_s[BY_RECEIVE]);
    }
    MPI_Finalize();
    return 0;
}
