/* SPDX-License-Identifier: BSD-3-Clause */
#include "data.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define FILLER 0x5a5a5a5a
#define GUARD  4 /* ints of filler behind every buffer */

struct kind kinds[N_KINDS];
int n_failed;
const char *context = "";

void failed(const char *fmt, ...)
{
    va_list args;
    int rank;

    if (n_failed++ >= 10)
        return;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("rank %d: %s: ", rank, context);
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
}

void kinds_make(void)
{
    MPI_Datatype vector;

    kinds[0] = (struct kind){"int", MPI_INT, 1, {0, 0}, 1};
    MPI_Type_vector(2, 1, 2, MPI_INT, &vector);
    kinds[1] = (struct kind){"strided", MPI_DATATYPE_NULL, 2, {0, 2}, 4};
    MPI_Type_create_resized(vector, 0, 4 * sizeof(int), &kinds[1].type);
    MPI_Type_commit(&kinds[1].type);
    MPI_Type_free(&vector);
    kinds[2] = (struct kind){"pair", MPI_2INT, 2, {0, 1}, 2};
}

void kinds_free(void)
{
    MPI_Type_free(&kinds[1].type);
}

int *data_new(const struct kind *k, long count)
{
    long n = count * k->extent + GUARD;
    int *buf = malloc((size_t)n * sizeof(int));

    for (long i = 0; i < n; i++)
        buf[i] = FILLER;
    return buf;
}

int value_of(int who, long i, int part)
{
    return (int)((unsigned)who * 1000003u + (unsigned)i * 7u + (unsigned)part * 3u + 1u);
}

void data_fill(int *buf, const struct kind *k, long first, long count, int who, long index)
{
    for (long i = 0; i < count; i++)
        for (int p = 0; p < k->n; p++)
            buf[(first + i) * k->extent + k->at[p]] = value_of(who, index + i, p);
}

void data_check(const int *buf, const struct kind *k, long first, long count, int who, long index)
{
    for (long i = 0; i < count; i++) {
        for (int p = 0; p < k->n; p++) {
            int got = buf[(first + i) * k->extent + k->at[p]];
            if (got != value_of(who, index + i, p)) {
                failed("%s: element %ld part %d is %d, expected %d (element %ld of %d)", k->name,
                       first + i, p, got, value_of(who, index + i, p), index + i, who);
                return;
            }
        }
    }
}

void data_check_filler(const int *buf, const struct kind *k, long first, long count)
{
    for (long i = first * k->extent; i < (first + count) * k->extent; i++) {
        if (buf[i] != FILLER) {
            failed("%s: int %ld was overwritten by %d", k->name, i, buf[i]);
            return;
        }
    }
}

void data_check_gaps(const int *buf, const struct kind *k, long count)
{
    for (long i = 0; i < count * k->extent; i++) {
        long place = i % k->extent;
        int is_gap = 1;
        for (int p = 0; p < k->n; p++)
            is_gap &= place != k->at[p];
        if (is_gap && buf[i] != FILLER) {
            failed("%s: gap at int %ld was overwritten by %d", k->name, i, buf[i]);
            return;
        }
    }
    for (long i = count * k->extent; i < count * k->extent + GUARD; i++) {
        if (buf[i] != FILLER) {
            failed("%s: int %ld behind the buffer was overwritten by %d", k->name, i, buf[i]);
            return;
        }
    }
}
