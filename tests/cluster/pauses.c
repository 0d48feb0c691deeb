/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ranks send each other numbered messages of all sizes without end, several at once, and check
 * what comes: number, length, every byte. Each exchange of a window is timed; the longest one is
 * the longest pause. Written with mpi.h alone.
 *
 *     pauses SECONDS [LARGEST]
 *
 * "pauses: run" when it is in its swing; at the end
 * "pauses: messages N lost N doubled N reordered N corrupted N longest N ms".
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 8

struct head {
    uint64_t number;
    uint32_t n_bytes, last;
};

static unsigned long long lost, doubled, reordered, corrupted;

static uint32_t size_of(uint64_t number, uint32_t largest)
{
    uint64_t x = (number + 1) * 0x9e3779b97f4a7c15ull;

    x ^= x >> 29;
    /* Mostly small, some large. */
    return (uint32_t)sizeof(struct head) + (uint32_t)(x % (number % 4 == 3 ? largest : 200));
}

static void fill(unsigned char *to, uint64_t number, uint32_t n_bytes, uint32_t last)
{
    struct head head = {number, n_bytes, last};

    memcpy(to, &head, sizeof head);
    for (uint32_t i = sizeof head; i < n_bytes; i++)
        to[i] = (unsigned char)(number * 31 + i);
}

static void check(const unsigned char *got, uint64_t number, int n_bytes, uint32_t *ret_last)
{
    struct head head;

    memcpy(&head, got, sizeof head);
    *ret_last = head.last;
    if (head.number > number)
        lost++;
    else if (head.number + WINDOW < number)
        doubled++;
    else if (head.number != number)
        reordered++;
    if ((int)head.n_bytes != n_bytes) {
        corrupted++;
        return;
    }
    for (int i = sizeof head; i < n_bytes; i++) {
        if (got[i] != (unsigned char)(head.number * 31 + (unsigned)i)) {
            corrupted++;
            return;
        }
    }
}

int main(int argc, char **argv)
{
    MPI_Request requests[2 * WINDOW];
    MPI_Status status[2 * WINDOW];
    unsigned char *out[WINDOW], *in[WINDOW];
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double seconds = argc > 1 ? atof(argv[1]) : 1, longest = 0;
    uint32_t largest = argc > 2 ? (uint32_t)atoi(argv[2]) : 100000, last = 0;
    for (int i = 0; i < WINDOW; i++) {
        out[i] = malloc(sizeof(struct head) + largest);
        in[i] = malloc(sizeof(struct head) + largest);
        if (!out[i] || !in[i])
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    double begin = MPI_Wtime(), before = begin;
    uint64_t number = 0;
    for (; !last; number += WINDOW) {
        /* The first rank says when it is over, one window ahead. */
        uint32_t over = rank == 0 && before - begin > seconds;
        for (int i = 0; i < WINDOW; i++) {
            uint32_t n_bytes = size_of(number + (uint64_t)i, largest);
            MPI_Irecv(in[i], (int)(sizeof(struct head) + largest), MPI_BYTE, 1 - rank, 7,
                      MPI_COMM_WORLD, &requests[i]);
            fill(out[i], number + (uint64_t)i, n_bytes, over);
            MPI_Isend(out[i], (int)n_bytes, MPI_BYTE, 1 - rank, 7, MPI_COMM_WORLD,
                      &requests[WINDOW + i]);
        }
        MPI_Waitall(2 * WINDOW, requests, status);
        last = over;
        for (int i = 0; i < WINDOW; i++) {
            int n_bytes;
            uint32_t their_last;
            MPI_Get_count(&status[i], MPI_BYTE, &n_bytes);
            check(in[i], number + (uint64_t)i, n_bytes, &their_last);
            last |= rank == 1 && their_last;
        }
        double now = MPI_Wtime();
        longest = now - before > longest ? now - before : longest;
        before = now;
        if (number == 0 && rank == 0) {
            puts("pauses: run");
            fflush(stdout);
            longest = 0;
        }
    }
    unsigned long long mine[] = {number, lost, doubled, reordered, corrupted}, sum[5];
    double worst;
    MPI_Reduce(mine, sum, 5, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&longest, &worst, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("pauses: messages %llu lost %llu doubled %llu reordered %llu corrupted %llu longest "
               "%.0f ms\n",
               sum[0], sum[1], sum[2], sum[3], sum[4], worst * 1e3);
    for (int i = 0; i < WINDOW; i++) {
        free(out[i]);
        free(in[i]);
    }
    MPI_Finalize();
    return sum[1] + sum[2] + sum[3] + sum[4] > 0 && rank == 0;
}
