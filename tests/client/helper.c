/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Progress without calls: large transfers and nonblocking collectives must end while all ranks only
 * look at their memory. Then the same with calls between, in random order. Arguments: rounds of the
 * second part. Exits with 1 on a wrong value or after 20 s without progress.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N_BYTES (3u << 20)
#define LIMIT_S 20.0

static int rank, size;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* Looks at memory, as a program that computes would, until it has the value. */
static void look_until(const void *at, uint8_t value, const char *what)
{
    double end = MPI_Wtime() + LIMIT_S;
    const struct timespec little = {.tv_nsec = 100000};

    while (__atomic_load_n((const uint8_t *)at, __ATOMIC_RELAXED) != value) {
        if (MPI_Wtime() > end)
            fail(what);
        nanosleep(&little, NULL);
    }
}

static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

static void without_calls(void)
{
    uint8_t *out = malloc(N_BYTES), *in = calloc(1, N_BYTES);
    int right = (rank + 1) % size, left = (rank + size - 1) % size, one = 1, sum = 0, mine = rank;
    MPI_Request requests[2];
    MPI_Datatype column;
    MPI_Op op;

    memset(out, rank + 1, N_BYTES);
    MPI_Irecv(in, N_BYTES, MPI_BYTE, left, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, N_BYTES, MPI_BYTE, right, 1, MPI_COMM_WORLD, &requests[1]);
    look_until(in, (uint8_t)(left + 1), "the first byte of a large message did not come");
    look_until(in + N_BYTES - 1, (uint8_t)(left + 1),
               "the last byte of a large message did not come");
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (uint32_t i = 0; i < N_BYTES; i++)
        if (in[i] != left + 1)
            fail("wrong byte");

    /* With gaps: packets through the rings. */
    memset(in, 0, N_BYTES);
    MPI_Type_vector((int)(N_BYTES / 64), 32, 64, MPI_BYTE, &column);
    MPI_Type_commit(&column);
    MPI_Irecv(in, 1, column, left, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 1, column, right, 2, MPI_COMM_WORLD, &requests[1]);
    look_until(in + N_BYTES - 33, (uint8_t)(left + 1), "the end of a strided message did not come");
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Type_free(&column);

    MPI_Op_create(add, 1, &op);
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, op, MPI_COMM_WORLD, &requests[0]);
    look_until(&sum, (uint8_t)size, "a nonblocking reduction did not end");
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Op_free(&op);

    /* Only the root knows that the others came, and they that it did. */
    MPI_Ibcast(&mine, 1, MPI_INT, size - 1, MPI_COMM_WORLD, &requests[0]);
    look_until(&mine, (uint8_t)(size - 1), "a nonblocking broadcast did not end");
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    free(in);
    free(out);
}

/* What an error was, which the helper thread found, is told by the thread that asks for the
 * result. */
static void expect_text(int error, int mpi_class, const char *wanted)
{
    char text[MPI_MAX_ERROR_STRING];
    int len;

    if (error != mpi_class)
        fail("an error that the helper found is not returned");
    MPI_Error_string(error, text, &len);
    if (!strstr(text, wanted)) {
        fprintf(stderr, "rank %d: %s\n", rank, text);
        fail("the text of an error that the helper found is lost");
    }
}

static void errors_without_calls(void)
{
    uint8_t *out = malloc(N_BYTES), *in = calloc(1, N_BYTES);
    int right = (rank + 1) % size, left = (rank + size - 1) % size, n = 100000 + left;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    char wanted[100];

    memset(out, rank + 1, N_BYTES);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Irecv(in, n, MPI_BYTE, left, 5, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 200000 + rank, MPI_BYTE, right, 5, MPI_COMM_WORLD, &requests[1]);
    look_until(in + n - 1, (uint8_t)(left + 1),
               "the last byte of a large message that does not fit did not come");
    int error = MPI_Waitall(2, requests, statuses);
    snprintf(wanted, sizeof wanted, "%d bytes with tag 5 from rank %d met a receive of %d bytes",
             200000 + left, left, n);
    expect_text(error == MPI_ERR_IN_STATUS ? statuses[0].MPI_ERROR : error, MPI_ERR_TRUNCATE,
                wanted);

    /* The root of a broadcast with more than the others take comes late. */
    memset(in, 0, N_BYTES);
    if (rank == 0) {
        const struct timespec pause = {.tv_nsec = 20000000};
        nanosleep(&pause, NULL);
    }
    MPI_Ibcast(rank == 0 ? out : in, rank == 0 ? 40 : 30, MPI_BYTE, 0, MPI_COMM_WORLD,
               &requests[0]);
    if (rank > 0)
        look_until(in + 29, 1, "the last byte of a broadcast that does not fit did not come");
    error = MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    if (rank > 0)
        expect_text(error, MPI_ERR_TRUNCATE, "40 bytes");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    free(in);
    free(out);
}

static void with_calls(int rounds)
{
    uint8_t *out = malloc(N_BYTES), *in = malloc(N_BYTES);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    uint64_t seed = 1 + (uint64_t)rank;

    for (int round = 0; round < rounds; round++) {
        MPI_Request requests[3];
        int flag = 0, got = -1, one = round, sum = 0;
        int n = 1 + (int)((uint64_t)round * 7919 * 4099 % N_BYTES);
        memset(out, rank + round, (size_t)n);
        MPI_Irecv(in, n, MPI_BYTE, left, 3, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, n, MPI_BYTE, right, 3, MPI_COMM_WORLD, &requests[1]);
        MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[2]);
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const struct timespec pause = {.tv_nsec = (long)(seed >> 44) % 600000};
        nanosleep(&pause, NULL);
        if (seed >> 62 == 0)
            MPI_Testall(3, requests, &flag, MPI_STATUSES_IGNORE);
        MPI_Sendrecv(&rank, 1, MPI_INT, right, 4, &got, 1, MPI_INT, left, 4, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        if (got != left)
            fail("wrong value beside transfers");
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        if (sum != size * round)
            fail("wrong sum");
        for (int i = 0; i < n; i += 997)
            if (in[i] != (uint8_t)(left + round))
                fail("wrong byte beside calls");
    }
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 200;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
#ifdef __SANITIZE_THREAD__
    const bool look = false; /* to look at a buffer that a transfer fills is a race by definition */
#else
    const bool look = !getenv("MOTET_PROGRESS");
#endif
    if (look) {
        without_calls();
        errors_without_calls();
    }
    with_calls(rounds);
    MPI_Finalize();
    if (rank == 0)
        printf("progress without calls: %d ranks\n", size);
    return 0;
}
