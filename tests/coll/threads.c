/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators made by several threads at once, with MPI_THREAD_MULTIPLE.
 *
 * One thread of rank 0 waits in MPI_Comm_dup of A, which the other ranks enter only after a
 * duplication of B with another thread of rank 0: agreements on context ids must not wait for each
 * other. Then two threads make and use communicators side by side.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

enum { N_ROUNDS = 60 };

static MPI_Comm parents[2];
static int rank, size;
static int wrong[2];

static void use(MPI_Comm comm, int value, int *ret_wrong)
{
    int sum = 0;
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
    if (sum != value * size)
        ++*ret_wrong;
}

static void *dup_a(void *arg)
{
    MPI_Comm copy;
    (void)arg;
    MPI_Comm_dup(parents[0], &copy);
    use(copy, 3, &wrong[0]);
    MPI_Comm_free(&copy);
    return NULL;
}

static void test_no_waiting(void)
{
    for (int round = 0; round < N_ROUNDS; round++) {
        pthread_t thread;
        MPI_Comm copy;
        if (rank == 0)
            pthread_create(&thread, NULL, dup_a, NULL);
        MPI_Comm_dup(parents[1], &copy);
        use(copy, 5, &wrong[1]);
        MPI_Comm_free(&copy);
        if (rank == 0)
            pthread_join(thread, NULL);
        else
            dup_a(NULL);
    }
}

static void *make_many(void *arg)
{
    int which = *(int *)arg;
    for (int round = 0; round < N_ROUNDS; round++) {
        MPI_Comm copy, part;
        MPI_Comm_dup(parents[which], &copy);
        MPI_Comm_split(copy, 0, which ? -rank : rank, &part);
        use(copy, round + 1, &wrong[which]);
        use(part, which + 1, &wrong[which]);
        MPI_Comm_free(&copy);
        MPI_Comm_free(&part);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static int which[2] = {0, 1};
    int provided;
    pthread_t thread;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided < MPI_THREAD_MULTIPLE) {
        MPI_Finalize();
        return 77;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &parents[0]);
    MPI_Comm_dup(MPI_COMM_WORLD, &parents[1]);
    test_no_waiting();
    pthread_create(&thread, NULL, make_many, &which[0]);
    make_many(&which[1]);
    pthread_join(thread, NULL);
    MPI_Comm_free(&parents[0]);
    MPI_Comm_free(&parents[1]);
    int all = wrong[0] + wrong[1];
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (all && rank == 0)
        printf("%d sums were wrong\n", all);
    MPI_Finalize();
    return all != 0;
}
