/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows: the memory that the ranks of a communicator open to one another (MPI-5.0 chapter 12).
 *
 * Called by the bindings and by progress, with the library lock held. A window has a private
 * communicator, whose contexts carry its messages. How a target is reached is decided once, when
 * the window is made:
 *  - memory of a rank of this node that the library allocated, and the own memory: by load, store
 *    and atomic instructions of this process (apply.h). `local` of the target is its address here;
 *  - everything else: by messages to the target's library (message.h), which carries them out
 *    whenever any of its threads is inside, or the helper thread is (client/progress/async.h).
 *
 * Rule of atomicity: whoever accumulates does so as apply.h says, whichever process it is, so that
 * accumulates by messages and by instructions agree. Accumulates of one origin to one target always
 * take the same of the two ways, in the order of the calls.
 */
#ifndef MOTET_CLIENT_RMA_WIN_H
#define MOTET_CLIENT_RMA_WIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpi.h"

#include "base/list.h"
#include "client/object/comm.h"
#include "client/object/object.h"
#include "client/rma/hints.h"
#include "client/rma/ticket.h"

struct attr_table;
struct errhandler;
struct group;
struct link;

/* What a rank knows of another one in a window. */
struct win_target {
    MPI_Aint bytes;           /* size of its memory; dynamic windows: 0 */
    MPI_Aint disp_unit;       /* of the displacements that name places in it */
    bool direct;              /* by load and store of this process; else by messages */
    char *local;              /* direct: its memory in this process; NULL in dynamic windows */
    struct ticket_lock *lock; /* in memory shared with it, or the own; NULL: by messages */
    struct link *link;        /* made at the first message either way */
    uint8_t locked;           /* enum win_locked: what this rank holds there */
};

enum win_locked { WIN_UNLOCKED, WIN_LOCKED_SHARED, WIN_LOCKED_EXCLUSIVE, WIN_LOCKED_NOCHECK };

/* An attached piece of memory of a dynamic window. */
struct win_region {
    uintptr_t start;
    size_t n_bytes;
};

/* The epochs that this rank has open as origin ... */
enum win_access { ACCESS_NONE, ACCESS_FENCE, ACCESS_START, ACCESS_LOCK, ACCESS_LOCK_ALL };

struct win_epochs {
    uint8_t access;        /* enum win_access; FENCE: something was accessed since the fence */
    bool fenced;           /* a fence opened an epoch that none has closed */
    bool lock_all_nocheck; /* MPI_Win_lock_all with MPI_MODE_NOCHECK */
    int n_locks;           /* targets locked by MPI_Win_lock */
    struct group *start;   /* of ACCESS_START */
    uint8_t *in_start;     /* [size] its members */
    struct group *exposed; /* of MPI_Win_post, or NULL */
};

struct win_mapping {
    void *base;
    size_t n_bytes;
};

struct win {
    struct object obj;
    struct comm *comm; /* private */
    struct win *next;  /* in win_here->all */
    struct errhandler *errhandler;
    struct attr_table *attrs;
    struct win_hints hints;
    char name[MPI_MAX_OBJECT_NAME];

    /* Read through pointers by MPI_Win_get_attr. */
    void *base;
    MPI_Aint bytes;
    int disp_unit; /* of MPI_WIN_DISP_UNIT: cut to an int */
    int flavor, model;

    struct win_target *targets;  /* [comm->size] */
    bool shared;                 /* other processes load and store this rank's memory */
    bool helped;                 /* the helper thread serves it: async_begin() was called */
    bool by_messages;            /* some target is reached by messages */
    void *own_memory;            /* of MPI_Win_allocate without a mapping */
    struct win_mapping mapping;  /* the node's memory of this window */
    struct ticket_lock own_lock; /* where there is no mapping */
    struct win_region *regions;  /* attached, by address */
    int n_regions, max_regions;
    struct win_epochs epochs;

    struct list parts; /* message.h: of this window, under way */
    int error; /* of an operation that a target refused; raised by the next synchronisation */
    int error_target;
};

struct win_state {
    struct win *all;
};
extern struct win_state *win_here;

/* The window whose private communicator has this context id (any of its four), or NULL. */
struct win *win_of_context(uint32_t context);

static inline struct win_target *win_own(struct win *win)
{
    return &win->targets[win->comm->rank];
}

/* The window's name in messages: "window NAME", or "a window". */
const char *win_text(const struct win *win);

/* Raises an error on a window's error handler; on that for calls without an object where win is
 * NULL. */
int raise_on_win(struct win *win, int err, const char *function);

/* ---- making windows (win_create.c uses these) ---- */

int win_new(struct comm *comm, const struct info *info, int flavor, struct win **ret_win);
/* Everything is agreed on: gives it a handle and opens it for messages. Collective. */
int win_open(int err, struct win *win, struct win **ret_win);
void win_destroy(struct win *win);

#endif
