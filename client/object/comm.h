/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators: the object, its life, and everything that needs no communication.
 *
 * Creation that communicates (dup, split, create, intercommunicators, context agreement) is in
 * client/comm/, above the collectives; this module is below p2p, which needs only the fields. Every
 * field is protected by the library lock; references are also taken and given by threads that hold
 * its vci alone (vci.h). A communicator lives until its handle is freed and the last request on
 * it has completed; only then is its context id given back, so a late message can never meet a new
 * communicator.
 */
#ifndef MOTET_CLIENT_OBJECT_COMM_H
#define MOTET_CLIENT_OBJECT_COMM_H

#include "client/object/object.h"
#include "mpi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct attr_table;
struct calls_comm;
struct errhandler;
struct group;
struct info;
struct vci;
struct session;
struct topo;

#define COMM_CONTEXT_WORLD 0
#define COMM_CONTEXT_SELF  4
#define COMM_CONTEXT_HELLO 8  /* between two processes whose jobs become connected */
#define COMM_CONTEXT_FIRST 12 /* first id that comm/context.c hands out */

struct comm {
    struct object obj;
    uint32_t context_id; /* multiple of 4; +0 user p2p, +1 collectives, +2 partitioned; equal on all
                          * members; < 2^31. Local communicators: 2 above, so that only their +1 is
                          * used. */
    struct vci *vci;     /* that carries its messages; client/progress/vci.h */
    int rank, size;      /* in the local group */
    struct group
        *group; /* local group; group->procs[rank] = process index in the job (world rank) */
    struct group *remote_group; /* NULL for an intracommunicator */
    bool foreign;               /* it has processes of several jobs, or is the local one of such an
                                   intercommunicator: where they run is not known to all in the same way */
    struct comm *
        local_comm; /* of an intercommunicator: intracommunicator over the local group, no handle */
    struct errhandler *errhandler;
    struct attr_table *attrs;
    struct info *info;          /* hints given by the user, or NULL */
    struct session *session;    /* that it comes from, or NULL */
    struct topo *topo;          /* NULL, or what client/topo made; shared by duplicates */
    struct coll_comm *coll;     /* collective engine's data, made on first use */
    struct calls_comm *shown;   /* what others see of it, or NULL */
    const char *shown_last[3];  /* the function that it shows as the last collective of each form
                                   (enum calls_form) */
    void *match;                /* p2p's data, made on first use */
    struct buffer_pool *buffer; /* p2p's buffer of MPI_Comm_attach_buffer, or NULL */
    /* Of a private communicator: the object whose error handler it has, which the handler is given
     * in its place; 0: itself. */
    uintptr_t stands_for;
    char name[MPI_MAX_OBJECT_NAME];
};

/* A communicator without handle over `group` (one reference is taken), remote_group may be NULL.
 * The creator owns the one reference. The error handler is MPI_ERRORS_ARE_FATAL until the caller
 * sets another one. Conditions: MPI_ERR_NO_MEM, MPI_ERR_OTHER. */
int comm_new(uint32_t context_id, struct group *group, struct group *remote_group,
             struct comm **ret_comm);

/* Gives it a user handle (after it is complete). MPI_ERR_NO_MEM when no handle is left. */
int comm_publish(struct comm *comm);

/* References: p2p takes one for each pending request. */
static inline void comm_ref(struct comm *comm)
{
    object_ref(&comm->obj);
}
void comm_last_unref(struct comm *comm);
static inline void comm_unref(struct comm *comm)
{
    if (object_unref(&comm->obj))
        comm_last_unref(comm);
}

/* MPI_Comm_free: attribute callbacks, handle released, last reference of the handle dropped. */
int comm_release(struct comm *comm);

/* fn runs when a communicator is destroyed: for layers above that keep data in it (match, coll,
 * context id). */
void comm_on_destroy(void (*fn)(struct comm *comm));

/* Sizes as seen by p2p: the group that destination and source ranks index. */
static inline const struct group *comm_peers(const struct comm *comm)
{
    return comm->remote_group ? comm->remote_group : comm->group;
}
static inline bool comm_is_inter(const struct comm *comm)
{
    return comm->remote_group != NULL;
}
int comm_remote_size(const struct comm *comm); /* of the group that ranks in p2p calls index */

static inline MPI_Comm comm_handle(const struct comm *comm)
{
    return comm ? (MPI_Comm)comm->obj.handle : MPI_COMM_NULL;
}

/* What the progress room does with communicators (client/progress/vci.c). */
struct comm_life {
    void (*begin)(struct comm *comm); /* gives it a vci, and shows it */
    void (*rename)(const struct comm *comm);
    void (*end)(struct comm *comm);
    /* Has fn(object) called later if that must not be now; false: not needed. */
    bool (*defer)(struct object *object, void (*fn)(struct object *object));
};

/* The predefined ones; NULL before MPI_Init and after MPI_Finalize. */
#define COMM_MAX_HOOKS 8
struct comm_state {
    struct comm *world, *self;
    const struct comm_life *life;
    void (*destroy_hooks[COMM_MAX_HOOKS])(struct comm *comm);
    int n_destroy_hooks;
};
extern struct comm_state *comm_here;

#endif
