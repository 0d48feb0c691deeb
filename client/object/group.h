/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups: ordered sets of processes.
 *
 * A group is immutable after it was made, so communicators and group handles share it by reference.
 * A process is named by its index in the job (world rank). Translation goes through an inverse map,
 * made at first need, or plain arithmetic when the members are an unbroken row, so that groups of
 * thousands stay fast.
 */
#ifndef MOTET_CLIENT_OBJECT_GROUP_H
#define MOTET_CLIENT_OBJECT_GROUP_H

#include "client/object/object.h"
#include "mpi.h"

#include <stdbool.h>

struct group {
    struct object obj;
    int size, rank; /* rank: of this process, or MPI_UNDEFINED */
    int *procs;     /* [size] process index in the job of each member */
    bool row;       /* procs[i] == procs[0] + i */
    int *index;     /* inverse of procs: [n_index] rank or MPI_UNDEFINED; NULL until needed */
    int n_index;
    struct session *session; /* that it comes from, or NULL; a reference */
    int n_user_refs; /* times the application holds the handle: MPI_Comm_group gives the same one
                        each time */
};

struct session;

struct group_state {
    struct group empty; /* MPI_GROUP_EMPTY; valid always */
    int own_proc;       /* index of this process in the job; -1: not known yet */
};
extern struct group_state *group_here;

/* proc: index of this process in the job; from then on groups know its rank. Called by MPI_Init. */
void group_set_own_proc(int proc);

/* Gives the group a user handle, for which the caller's reference is taken over: the result of a
 * call that returns a group. On MPI_ERR_NO_MEM the reference is dropped. */
int group_publish(struct group *group, struct group **ret_group);

/* A group of `size` members, procs is copied. One reference for the caller. size 0 gives
 * MPI_GROUP_EMPTY. MPI_ERR_NO_MEM. */
int group_new(int size, const int *procs, struct group **ret_group);
/* The same for the processes first, first + 1, ..., first + size - 1. */
int group_new_row(int first, int size, struct group **ret_group);

static inline void group_ref(struct group *group)
{
    object_ref(&group->obj);
}
void group_unref(struct group *group); /* NULL is fine */

/* Says that a group nobody shares yet comes from a session (NULL: from none). The empty group
 * belongs to all. */
void group_set_session(struct group *group, struct session *session);

/* Rank of the process in the group or MPI_UNDEFINED. */
int group_rank_of(struct group *group, int proc);

/* MPI_IDENT, MPI_SIMILAR or MPI_UNEQUAL. */
int group_compare(struct group *a, struct group *b);

#endif
