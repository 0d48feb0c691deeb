/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two-phase collective access (Rosario, Bordawekar and Choudhary, 1993): what the ranks want of a
 * file lies in many pieces that fit together, so some of them, the aggregators, read or write long
 * runs for all, and the pieces travel between the ranks by messages.
 *
 * The part of the file that is touched is cut into one share for each aggregator, and that into
 * windows of the hint cb_buffer_size. A round is one window of each aggregator: who has something
 * in it sends its aggregator the pieces (client/rma/pieces.h, so that rows of equal runs are one)
 * and the data, or gets the data back. Nobody waits for another rank but for its messages: a rank
 * may be in a later round than its aggregator. Bytes that nobody gave are never written, so what
 * others do with them meanwhile is not undone.
 *
 * A state machine: exchange_advance() does what can be done now. Library lock held; the accesses of
 * the file are jobs for whoever drives it.
 */
#ifndef MOTET_CLIENT_IO_EXCHANGE_H
#define MOTET_CLIENT_IO_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "client/datatype/buffer.h"
#include "client/io/access/view.h"
#include "client/io/file.h"
#include "client/io/worker.h"

/* What each rank tells of its access before it is decided how it is done. */
struct member {
    int64_t low, high; /* lowest byte of the file, the one behind the highest */
    int64_t bytes;     /* 0: nothing */
    int64_t piece;     /* bytes of a run of the file, on average */
    int32_t unsorted;  /* it cannot be cut by places in the file */
    int32_t error;     /* it cannot take part */
};

struct exchange_call {
    struct file *file;
    const struct view *view;
    const struct member *members; /* of each rank; stays until the end */
    bool write;
    int tag;         /* first of EXCHANGE_TAGS */
    MPI_Count from;  /* of the view's stream */
    MPI_Count bytes; /* of it */
    struct buffer memory;
    /* Has a job run; exchange_advance() is called again when it is done. */
    void (*submit)(void *arg, struct job *job);
    void *arg;
};

#define EXCHANGE_TAGS 4

struct exchange;

/* Without memory the job ends. */
struct exchange *exchange_new(const struct exchange_call *call);
/* Number of steps that it advanced. */
int exchange_advance(struct exchange *x);
bool exchange_is_over(const struct exchange *x);
/* Bytes of this rank that were moved. */
MPI_Count exchange_done(const struct exchange *x);
/* The system's error that this rank met as an aggregator, or 0. */
int exchange_errnum(const struct exchange *x);
void exchange_free(struct exchange *x);

#endif
