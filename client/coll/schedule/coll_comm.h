/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the collectives keep per communicator: the tags of its calls, the shape of the cluster under
 * it, its rows of steps in the memory of the node, and what was chosen for short calls.
 *
 * Made on first use, with the library lock held; gone with the communicator.
 */
#ifndef MOTET_CLIENT_COLL_SCHEDULE_COLL_COMM_H
#define MOTET_CLIENT_COLL_SCHEDULE_COLL_COMM_H

#include "client/coll/node/node.h"
#include "client/coll/topology/shape.h"
#include "client/object/comm.h"

struct coll_quick;

/* Blocking calls, nonblocking calls and persistent operations take turns in ranges of this many
 * tags each. A tag comes round after 16 Mi collectives on one communicator, long after its last
 * message is gone. */
#define COLL_TAG_RANGE (1u << 24)

/* The forms of a call. */
enum coll_form { COLL_BLOCKING, COLL_NONBLOCKING, COLL_PERSISTENT, COLL_FORMS };

struct coll_comm {
    uint32_t next_tag[COLL_FORMS]; /* of the next call of each form */
    uint32_t next_check;           /* of the next call of any form, in the checking mode */
    struct node_rows rows;
    struct coll_quick *quick; /* [COLL_FAMILIES] (family/coll.h); NULL: not known yet */
    MPI_Count short_block;    /* algorithms/shared_moves.c; 0: not known yet */
    struct shape *shape;      /* NULL: not known yet */
    struct shape *remote;     /* of an intercommunicator: of its remote group */
};

/* Of a communicator that goes away. */
void coll_release(struct comm *comm);

/* The data of comm, its shape and its rows, made on first use; NULL when memory is missing. */
struct coll_comm *coll_comm_of(struct comm *comm);
struct shape *coll_shape_of(struct comm *comm);
struct node_rows *coll_rows_of(struct comm *comm);
/* The shape of an intercommunicator's remote group, as its members see it. */
const struct shape *coll_remote_shape_of(struct comm *comm);

/* Tags of the collective context. Every collective call takes the next one of its form on all
 * members alike. The forms count apart, so that a program that starts a nonblocking operation here
 * before and there behind a blocking one (not allowed, but seen) still meets its partners. */
int coll_next_tag(struct comm *comm);
int coll_next_nonblocking_tag(struct comm *comm);
int coll_next_persistent_tag(struct comm *comm);
int coll_next_check_tag(struct comm *comm);
/* Node of the job, or NODE_APART, of a member (process index) as the communicator's collectives see
 * it: all members see the same. */
int coll_node_of(const struct comm *comm, int proc);
/* The form of a call by its tag; COLL_FORMS for the tags below. */
static inline enum coll_form coll_form_of(int tag)
{
    uint32_t form = (uint32_t)tag / COLL_TAG_RANGE;
    return form < COLL_FORMS ? (enum coll_form)form : COLL_FORMS;
}
/* Its number among the calls of that form. */
uint32_t coll_sequence_of(int tag);
/* For creation among some members of a communicator under a tag of the user: a range of its own. */
static inline int coll_group_tag(int user_tag)
{
    return 1 << 29 | (user_tag & ((1 << 29) - 1));
}

#endif
