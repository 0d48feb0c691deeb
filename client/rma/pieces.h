/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pieces: where the bytes of a part of an operation lie in the target's window, in the order of the
 * stream, as rows of runs of one length at one distance. The origin makes them from the target's
 * datatype, so the target needs to know no types but the predefined ones; a row of a matrix, or a
 * column of one, is one piece.
 *
 * Parts: an operation is cut so that the pieces, and the data where they do not go straight to
 * their place, have bounded size.
 */
#ifndef MOTET_CLIENT_RMA_PIECES_H
#define MOTET_CLIENT_RMA_PIECES_H

#include <stdbool.h>
#include <stdint.h>

#include "mpi.h"

#include "client/datatype/datatype.h"

struct piece {
    int64_t offset; /* of the first run, from the window's base; in dynamic windows the address */
    int64_t stride; /* from run to run */
    uint64_t bytes; /* of a run; of accumulates a number of whole elements */
    uint64_t count; /* runs */
};

#define PIECES_MAX 192u

struct pieces {
    uint32_t n;
    struct piece at[PIECES_MAX];
};

/* Walks the target's side of an operation. */
struct pieces_cursor {
    struct type_cursor type;
    const struct datatype *element; /* runs are whole ones of it; NULL: bytes */
};

/* The stream of `count` elements of type at `offset`. */
void pieces_begin(struct pieces_cursor *c, int64_t offset, MPI_Count count,
                  const struct datatype *type, const struct datatype *element);
/* The next pieces of at most max_bytes; the bytes that they have. 0 at the end. */
MPI_Count pieces_next(struct pieces_cursor *c, MPI_Count max_bytes, struct pieces *ret_pieces);

/* Lowest byte and the one behind the highest of a piece; false when its numbers make no sense. */
bool piece_span(const struct piece *p, int64_t *ret_low, int64_t *ret_high);

#endif
