/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parcels: what one rank has in one window of an aggregator, on its way between the two.
 *
 * The sender of a parcel is the rank whose bytes they are, in both directions: its head and its
 * pieces go to the aggregator; then the data go there, or come back. All of one parcel are messages
 * of the file's private communicator under the tags of the transfer, in the order of the rounds.
 */
#ifndef MOTET_CLIENT_IO_PARCEL_H
#define MOTET_CLIENT_IO_PARCEL_H

#include <stdbool.h>
#include <stdint.h>

#include "client/datatype/buffer.h"
#include "client/io/exchange.h"
#include "client/rma/pieces.h"

/* Pieces that travel with the head: a row of a few arrays is one. */
#define PARCEL_INLINE 6

struct parcel_head {
    uint64_t n_pieces;
    uint64_t bytes; /* of data */
    struct piece pieces[PARCEL_INLINE];
};

enum parcel_tag { PARCEL_HEAD, PARCEL_PIECES, PARCEL_DATA, PARCEL_BACK };

/* Allocates or ends the job: in the middle of a transfer others wait for this rank. */
void *parcel_alloc(size_t n_bytes);
/* Likewise of calls that fail for want of memory alone. */
void parcel_must(int err);

/* ---- the sender's side ---- */

struct parcel {
    struct parcel_head head;
    struct piece *pieces; /* head.pieces, or allocated */
    size_t max_pieces;
    char *data; /* packed, or to be unpacked; NULL: they are in their place in memory */
    MPI_Count at;
    struct request *requests[3];
};

/* Begins to send what lies in [at, at + bytes) of the stream, or to receive it. */
void parcel_post(struct parcel *p, const struct exchange_call *call, int aggregator, MPI_Count at,
                 MPI_Count bytes);
/* True when all of it is over; *ret_moved: bytes of data that reached their place. */
bool parcel_is_over(struct parcel *p, const struct exchange_call *call, MPI_Count *ret_moved);

/* ---- the aggregator's side ---- */

enum source_state {
    SOURCE_IDLE,
    SOURCE_HEAD,
    SOURCE_PIECES,
    SOURCE_DATA,
    SOURCE_READY,
    SOURCE_BACK
};

struct source {
    enum source_state state;
    struct parcel_head head;
    struct piece *pieces;
    char *data; /* in between; NULL: straight into the window */
    struct request *request;
};

/* The aggregator's window in a round. */
struct window {
    char *bytes;
    MPI_Offset begin;
    int64_t n_bytes;
    int64_t valid; /* read: bytes of it that the file has */
};

struct marks;

void source_post(struct source *s, const struct exchange_call *call, int rank);
/* Goes on as far as it can: to SOURCE_READY, with written data in the window and marked. Returns
 * the number of steps. */
int source_advance(struct source *s, const struct exchange_call *call, int rank,
                   const struct window *w, struct marks *marks);
/* Sends the data of the window back; then SOURCE_BACK until source_is_back(). */
void source_reply(struct source *s, const struct exchange_call *call, int rank,
                  const struct window *w);
bool source_is_back(struct source *s);
/* Lowest and highest byte of its pieces. */
void source_span(const struct source *s, MPI_Offset *low, MPI_Offset *high);

#endif
