/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Carrying out operations on memory of this process: its own window, or one that it shares.
 *
 * Atomicity (MPI-5.0 section 12.7.1): of memory that several processes change (struct apply_place,
 * `shared`), elements of 1, 2, 4 and 8 bytes that lie on a multiple of their size are changed by
 * one atomic instruction or a compare-and-swap loop; all others under the lock of the target's
 * elements. Which of the two follows from type and address alone, so all who accumulate to an
 * element do the same. Memory that only this process changes needs neither: the library lock is
 * held.
 */
#ifndef MOTET_CLIENT_RMA_APPLY_H
#define MOTET_CLIENT_RMA_APPLY_H

#include <stdbool.h>
#include <stdint.h>

#include "client/coll/op/op.h"
#include "client/datatype/datatype.h"
#include "client/rma/pieces.h"
#include "client/rma/ticket.h"

struct apply_place {
    char *base; /* what the pieces' offsets count from */
    struct ticket_lock *lock;
    bool shared;
};

/* Data in the order of the stream, dense, to the pieces and from there. */
void apply_put(const struct apply_place *place, const struct pieces *pieces, const void *data);
void apply_get(const struct apply_place *place, const struct pieces *pieces, void *ret_data);

/* place[i] = data[i] op place[i] for whole elements of a predefined type; result, unless NULL, gets
 * the values before. data may be NULL with MPI_NO_OP. op_check has been asked. */
void apply_accumulate(const struct apply_place *place, const struct pieces *pieces,
                      const struct op *op, struct datatype *element, const void *data,
                      void *ret_result);

/* One element of a dense type at an offset: operand and result of one element. */
void apply_fetch(const struct apply_place *place, int64_t offset, const struct op *op,
                 struct datatype *element, const void *operand, void *ret_result);
void apply_compare(const struct apply_place *place, int64_t offset, struct datatype *element,
                   const void *value, const void *compare, void *ret_result);

/* Whether elements of a type can be compared and swapped; else MPI_ERR_TYPE. */
int apply_check_compare(const struct datatype *type);

#endif
