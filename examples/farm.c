/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A task farm: rank 0 hands out pieces of work and takes results from whoever is ready
 * (MPI_ANY_SOURCE), so that fast and slow workers are equally busy. A task is to count the primes
 * of an interval; the sum is compared with a sieve at the end.
 *
 *     mpicc -O2 -o farm farm.c && mpiexec -n 4 ./farm [limit] [tasks] [-v]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

enum { TAG_READY = 1, TAG_RESULT, TAG_TASK, TAG_STOP };

struct result {
    long task, n_primes;
};

static long interval_start(long task, long n_tasks, long limit)
{
    return limit / n_tasks * task + limit % n_tasks * task / n_tasks;
}

static long count_primes(long from, long to)
{
    long n = 0;
    for (long candidate = from > 2 ? from : 2; candidate < to; candidate++) {
        int prime = 1;
        for (long d = 2; prime && d * d <= candidate; d++)
            prime = candidate % d != 0;
        n += prime;
    }
    return n;
}

/* The same number, computed another way. */
static long sieve(long limit)
{
    char *composite = calloc((size_t)limit + 1, 1);
    long n = 0;
    if (!composite)
        return -1;
    for (long i = 2; i < limit; i++) {
        n += !composite[i];
        for (long j = i * i; j < limit && !composite[i]; j += i)
            composite[j] = 1;
    }
    free(composite);
    return n;
}

static void work(long limit, long n_tasks)
{
    struct result result = {0};
    MPI_Status status;
    long task;

    MPI_Send(NULL, 0, MPI_LONG, 0, TAG_READY, MPI_COMM_WORLD);
    for (;;) {
        MPI_Recv(&task, 1, MPI_LONG, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        if (status.MPI_TAG == TAG_STOP)
            return;
        result.task = task;
        result.n_primes = count_primes(interval_start(task, n_tasks, limit),
                                       interval_start(task + 1, n_tasks, limit));
        MPI_Send(&result, 2, MPI_LONG, 0, TAG_RESULT, MPI_COMM_WORLD);
    }
}

static long hand_out(long n_tasks, int n_workers, long *done_by)
{
    char *seen = calloc((size_t)n_tasks, 1);
    long next = 0, total = 0, n_wrong = 0;
    if (!seen)
        MPI_Abort(MPI_COMM_WORLD, 1);

    for (int n_working = n_workers; n_working > 0;) {
        struct result result;
        MPI_Status status;
        int n_longs;
        MPI_Recv(&result, 2, MPI_LONG, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_LONG, &n_longs);
        if (status.MPI_TAG == TAG_RESULT) {
            if (n_longs != 2 || result.task < 0 || result.task >= n_tasks || seen[result.task]) {
                n_wrong++;
            } else {
                seen[result.task] = 1;
                total += result.n_primes;
                done_by[status.MPI_SOURCE]++;
            }
        }
        if (next < n_tasks) {
            MPI_Send(&next, 1, MPI_LONG, status.MPI_SOURCE, TAG_TASK, MPI_COMM_WORLD);
            next++;
        } else {
            MPI_Send(NULL, 0, MPI_LONG, status.MPI_SOURCE, TAG_STOP, MPI_COMM_WORLD);
            n_working--;
        }
    }
    free(seen);
    return n_wrong ? -1 : total;
}

int main(int argc, char **argv)
{
    int rank, size, failed = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long limit = argc > 1 ? atol(argv[1]) : 200000, n_tasks = argc > 2 ? atol(argv[2]) : 200;
    int verbose = argc > 3 && strcmp(argv[3], "-v") == 0;

    if (rank != 0) {
        work(limit, n_tasks);
    } else {
        long *done_by = calloc((size_t)size, sizeof *done_by);
        if (!done_by)
            MPI_Abort(MPI_COMM_WORLD, 1);
        long total = size > 1 ? hand_out(n_tasks, size - 1, done_by) : count_primes(0, limit);
        failed = total != sieve(limit);
        for (int i = 1; verbose && i < size; i++)
            fprintf(stderr, "worker %d did %ld tasks\n", i, done_by[i]);
        printf("farm: %d workers, %ld tasks, %ld primes below %ld: %s\n", size - 1, n_tasks, total,
               limit, failed ? "FAILED" : "ok");
        free(done_by);
    }
    MPI_Bcast(&failed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return failed;
}
