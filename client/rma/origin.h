/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations as their origin sees them: described once, carried out here if the target's memory is
 * within reach, else cut into parts and sent (message.h).
 */
#ifndef MOTET_CLIENT_RMA_ORIGIN_H
#define MOTET_CLIENT_RMA_ORIGIN_H

#include "client/coll/op/op.h"
#include "client/rma/message.h"

/* An operation, checked. A value; what lives longer takes references to the types. */
struct operation_call {
    struct win *win;
    int target;
    uint8_t kind;   /* MESSAGE_PUT, GET, ACCUMULATE or COMPARE */
    int64_t offset; /* in the target's window */
    MPI_Count target_count;
    struct datatype *target_type;
    struct buffer origin; /* GET: where the data go; COMPARE: the new value */
    struct buffer result; /* of ACCUMULATE with result and COMPARE; type NULL: none */
    const void *compare;
    const struct op *op;      /* ACCUMULATE */
    struct datatype *element; /* ACCUMULATE, COMPARE: predefined */
    MPI_Count bytes;          /* to be moved or combined: of the shorter side */
    bool nothing;             /* ACCUMULATE without operand (MPI_NO_OP) */
};

/* Starts it. With ret_request: a request for its local completion. */
int origin_start(const struct operation_call *call, struct request **ret_request);

/* Waits until everything to a target (rank -1: to all) is complete here, or there as well. */
void origin_wait_here(struct win *win, int rank);
void origin_wait_there(struct win *win, int rank);
/* Waits until nothing to this target is left to be sent. */
void origin_wait_sent(struct link *link);
/* Gives a lock back that was asked for by message, after all earlier operations;
 * origin_wait_there() waits until the target says so. */
void origin_unlock(struct link *link);

#endif
