/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who waits for whom in a job that does not go on: deadlocks, receives whose message is of another
 * tag, ranks that wait for one that has left. Made from what the daemons show of ranks and queues;
 * knows no socket. Used by motetctl.
 *
 * Idea: a rank that waits can go on if any of the ranks it waits for can (it may have more requests
 * open than it waits for, so this is the weakest assumption). Ranks that compute can go on. Whoever
 * is not reached from those by this rule never goes on: that is a deadlock for certain, whatever
 * the program does (knot detection in the OR model; Knapp, Deadlock Detection in Distributed
 * Databases, 1987). Circles of which a member has another way out are named apart.
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

/* The rows of these subjects, of any number of jobs. NULL: not known. */
struct waits_rows {
    const json_t *ranks, *queues, *communicators;
    /* ranks and queues once more, half a second later: who has sent or received meanwhile, and what
     * a transfer has moved, does not hang. */
    const json_t *later, *later_queues;
    const json_t *links; /* of the cluster */
};

/* Returns an array of objects, one for each job with ranks; NULL: no memory. */
json_t *waits_find(const struct waits_rows *rows);
/* 0 or -ENOMEM. */
int waits_show(const json_t *waits, FILE *to);
