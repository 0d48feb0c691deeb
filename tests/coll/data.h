/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffers with a known content for the tests of collectives, for a dense, a strided and a pair type
 * alike.
 *
 * Every element consists of `n` ints that follow from (who, index); what lies between them is a
 * filler that nobody may touch. Uses the MPI interface only, so that the tests run on any library
 * with the standard ABI.
 */
#ifndef MOTET_TESTS_COLL_DATA_H
#define MOTET_TESTS_COLL_DATA_H

#include <mpi.h>

struct kind {
    const char *name;
    MPI_Datatype type;
    int n;      /* ints in an element */
    int at[2];  /* where, in ints */
    int extent; /* ints from one element to the next */
};

#define N_KINDS 3
extern struct kind kinds[N_KINDS];
void kinds_make(void);
void kinds_free(void);

extern int n_failed;
extern const char *context; /* named in messages of failures */

/* One failed check: prints where (the first few only). */
void failed(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

int *data_new(const struct kind *k, long count); /* all filler; free() it */
int value_of(int who, long i, int part);
void data_fill(int *buf, const struct kind *k, long first, long count, int who, long index);
/* Elements first.. of buf are elements index.. of who. */
void data_check(const int *buf, const struct kind *k, long first, long count, int who, long index);
/* Elements first.. of buf, or the filler in all of buf, are untouched. */
void data_check_filler(const int *buf, const struct kind *k, long first, long count);
void data_check_gaps(const int *buf, const struct kind *k, long count);

#endif
