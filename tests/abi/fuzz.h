/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What fuzz.c (by hand) and fuzz_calls.c (generated from the description of the interface) share.
 *
 * Variant 0 of an argument is good, 1 .. n_bad must be refused, the n_wild behind them must only do
 * no harm.
 */
#ifndef MOTET_TESTS_ABI_FUZZ_H
#define MOTET_TESTS_ABI_FUZZ_H

#include "mpi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fuzz_kind {
    FUZZ_COMM,
    FUZZ_GROUP,
    FUZZ_TYPE,
    FUZZ_OP,
    FUZZ_INFO,
    FUZZ_ERRHANDLER,
    FUZZ_REQUEST,
    FUZZ_MESSAGE,
    FUZZ_WIN,
    FUZZ_FILE,
    FUZZ_SESSION,
    FUZZ_KINDS
};

#define FUZZ_MAX_ARGUMENTS 16

struct fuzz_argument {
    const char *name;
    int n_bad, n_wild;
    int classes[8]; /* that make sense for a bad variant; 0 ends the list */
};

struct fuzz_function {
    const char *name;
    int (*call)(const int *variants);
    int n_arguments;
    bool may_succeed; /* a call with good arguments does no harm */
    struct fuzz_argument arguments[FUZZ_MAX_ARGUMENTS];
};

extern const struct fuzz_function fuzz_functions[];
extern const int fuzz_n_functions;

/* A handle: variant 0 good (fresh: one that the call may consume), 1 to 5 zero, garbage, all ones,
 * of another kind, freed; 6 null. */
uintptr_t fuzz_handle(enum fuzz_kind kind, int variant, bool fresh);

/* Addresses of a place with the value, good until the end of the call. */
void *fuzz_handle_at(uintptr_t handle);
void *fuzz_handle_place(void);
void *fuzz_number_at(int64_t value, size_t bytes);
void *fuzz_place(void);
char *fuzz_text_place(void);
MPI_Status *fuzz_status(void);

/* Counts: variant 0 ones, 1 with a negative one, 2 no array. */
void *fuzz_counts(int variant, size_t element_bytes);

int fuzz_keyval(enum fuzz_kind kind);
int fuzz_function(void); /* stands for any callback; must not be called */

extern char fuzz_buffer[];
extern const char fuzz_text[];

#endif
