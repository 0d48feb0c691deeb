/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An operation that goes by messages, and its parts (message.h): cut, sent, and brought together
 * again as their answers come (part.c). origin.c starts operations and waits for them.
 */
#ifndef MOTET_CLIENT_RMA_OPERATION_H
#define MOTET_CLIENT_RMA_OPERATION_H

#include "client/rma/origin.h"

struct operation {
    struct list link; /* in link.queue while parts are left */
    struct link *peer;
    struct operation_call call;
    struct pieces_cursor at;
    MPI_Count total, sent;
    uint32_t n_parts; /* under way */
    bool one_run;     /* the target's side is one run */
    struct request *request;
    int error;
};

/* Sends what may be sent of an operation. True: nothing is left of it to be sent, and perhaps
 * nothing of it at all. */
bool part_send(struct operation *o);

#endif
