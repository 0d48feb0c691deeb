/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Context ids: the number by which the messages of one communicator are told from those of all
 * others.
 *
 * A new id must be free at every member. Each member keeps a bitmap of the ids it uses; to agree on
 * one, every member offers the free ids of one word of the bitmap, the offers are ANDed over the
 * members, and the lowest common bit wins. Which word is tried depends only on what the members
 * share (the parent's context, a tag, the number of the attempt).
 *
 * Several agreements may be under way in one process at the same time (threads, nonblocking
 * duplication). A word that one of them has on offer is not offered by another; that one then
 * offers nothing, its members all see that they collided, and try the next word. No agreement ever
 * waits for another one, so none can be part of a deadlock; an id is never handed out twice because
 * no bit is on offer twice. (A whole mask owned by one agreement at a time, the usual way, makes
 * the agreements of a process wait for each other.)
 *
 * An id is given back when its communicator is destroyed; it is reused once every member of the new
 * one has done so.
 */
#ifndef MOTET_CLIENT_COMM_CONTEXT_H
#define MOTET_CLIENT_COMM_CONTEXT_H

#include "client/coll/schedule/schedule.h"

#include <stdint.h>

#define CONTEXT_AGAIN SCHEDULE_AGAIN

/* The last two words of a vote, over intracommunicators only: a communicator gets a slot of the
 * cells along with its id (client/coll/node/node.h), and a vci (client/progress/vci.h). */
struct context_try {
    uint64_t vote[4]; /* free ids offered; the highest bit: the word was not on offer elsewhere,
                         below it vci_offer(); free slots of cells: ANDed over the members.
                         Highest step of the cells: the maximum over the members. */
    bool with_slot;   /* the new one gets a slot; set before the first offer */
    bool holds;       /* this attempt has the word on offer */
    uint64_t offered; /* slots that this attempt has on offer */
    uint32_t word;    /* of this attempt */
    uint32_t start;   /* word of the first attempt */
    uint32_t n_full;  /* attempts that found the word free of collisions, but no common id */
    uint32_t attempt;
    uint32_t id; /* the result */
};

/* Once, before the first communicator. */
void context_init(void);

/* The members must agree on parent_id and tag, and should make them differ from those of agreements
 * at the same time. */
void context_begin(struct context_try *t, uint32_t parent_id, int tag);

/* Fills vote for the next attempt. */
void context_offer(struct context_try *t);

/* Takes the ANDed vote: MPI_SUCCESS with t->id, which is now in use here, CONTEXT_AGAIN to offer
 * and vote once more, or MPI_ERR_OTHER when no id is left. */
int context_settle(struct context_try *t);

/* Gives up after an error between offer and settlement. */
void context_withdraw(struct context_try *t);

/* Gives an id back that was agreed on and is not used here. */
void context_give_back(uint32_t id);

/* Writes the vote into a schedule: over its view, and for intercommunicators over both groups. */
void context_vote(struct schedule *s, struct context_try *t);

/* Agrees over all of the schedule's view (mode now). */
int context_agree(struct schedule *s, uint32_t *ret_id);

#endif
