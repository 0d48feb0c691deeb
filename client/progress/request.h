/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests: what every kind of pending operation has in common, and the wait and test families over
 * them.
 *
 * A request is made by point-to-point, by a collective schedule, or by the user (generalized). Each
 * kind embeds `struct request` as its first member and gives it a table of the few things that
 * differ. Completion is one store, `complete`, made by progress; waiting polls progress until it is
 * seen. All fields belong to whoever holds the library lock, but for requests of a vci, which are
 * made and completed under that vci's lock; the thread that sees one complete may read and finish
 * it.
 *
 * Life: born with one reference, the user's or the library's; request_finish consumes it. A
 * persistent request stays until it is freed. A request freed while active (MPI_Request_free) lives
 * until it completes.
 */
#ifndef MOTET_CLIENT_PROGRESS_REQUEST_H
#define MOTET_CLIENT_PROGRESS_REQUEST_H

#include "mpi.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/object/err.h"
#include "client/object/handle.h"
#include "client/object/object.h"
#include "client/progress/progress.h"
#include "client/progress/sleepers.h"
#include "client/progress/vci.h"

struct comm;
struct request;

struct request_ops {
    /* Releases the kind's own memory, the request included; called once, when nothing refers to it
     * any more. */
    void (*destroy)(struct request *r);
    /* Tries to cancel, also when complete; sets `cancelled` and completes it if that succeeds.
     * NULL: cannot be cancelled. */
    int (*cancel)(struct request *r);
    /* Starts an inactive persistent request. NULL: not persistent. */
    int (*start)(struct request *r);
    /* Fills what only the user knows, before the status is read (generalized requests). NULL:
     * nothing. */
    int (*query)(struct request *r, MPI_Status *status);
    /* Called before destroy, for kinds whose user wants to know and may fail (generalized
     * requests). NULL: nothing. */
    int (*free)(struct request *r);
};

struct request {
    struct object obj;
    const struct request_ops *ops;
    struct comm *comm; /* the error handler's; NULL: that of MPI_COMM_SELF. Referenced by the kind
                          that set it. */
    struct vci *vci;   /* a further vci's send or receive, which needs no other lock to be waited
                            for; else NULL */
    atomic_bool complete; /* request_is_complete, request_set_complete */
    bool persistent;
    bool active; /* a persistent request between start and completion seen; others: always */
    bool cancelled;
    bool orphan;     /* freed by the user while active: progress destroys it at completion */
    int error;       /* MPI error class of the operation */
    int source, tag; /* of the message received; MPI_ANY_SOURCE, MPI_ANY_TAG for others (the empty
                        status) */
    uint32_t detail; /* what is known of the error: err_stow() */
    MPI_Count bytes; /* received */
};

/* Sets up the common part: not complete, one reference, active unless persistent. */
void request_init(struct request *r, const struct request_ops *ops, struct comm *comm,
                  bool persistent);

/* The same for one from a pool, whose head (obj) stays what it is. */
static inline void request_renew(struct request *r, const struct request_ops *ops,
                                 struct comm *comm, bool persistent)
{
    r->ops = ops;
    r->comm = comm;
    r->vci = NULL;
    atomic_store_explicit(&r->complete, false, memory_order_relaxed);
    r->persistent = persistent;
    r->active = !persistent;
    r->cancelled = false;
    r->orphan = false;
    r->error = MPI_SUCCESS;
    r->detail = 0;
    r->source = MPI_ANY_SOURCE;
    r->tag = MPI_ANY_TAG;
    r->bytes = 0;
}

static inline bool request_is_complete(const struct request *r)
{
    /* acquire: pairs with the release in request_set_complete. */
    return atomic_load_explicit(&r->complete, memory_order_acquire);
}
static inline void request_set_complete(struct request *r, bool complete)
{
    atomic_store_explicit(&r->complete, complete, memory_order_release);
}

void request_destroy_orphan(struct request *r);

/* Completes it: the operation is over, `error` is its result. Frees it if it is an orphan. Called
 * from progress. */
static inline void request_complete(struct request *r, int error)
{
    struct vci *vci = r->vci;
    bool orphan = r->orphan;

    r->error = error;
    if (__builtin_expect(error != MPI_SUCCESS, 0))
        err_stow(error, &r->detail);
    /* From here on another thread may finish it, unless nobody knows it any more. */
    request_set_complete(r, true);
    if (__builtin_expect(vci != NULL, 0))
        /* seq_cst: before the look at the sleepers; see progress_sleep. */
        atomic_fetch_add_explicit(&vci->n_done, 1, memory_order_seq_cst);
    sleepers_wake();
    if (__builtin_expect(orphan, 0))
        request_destroy_orphan(r);
}

/* A request that is complete from the start (operations with MPI_PROC_NULL, short sends).
 * MPI_ERR_NO_MEM. */
int request_new_complete(struct comm *comm, int source, int tag, MPI_Count bytes,
                         struct request **ret_request);

/*
 * The request that all sends of a vci share which were over when they returned: complete for good,
 * and nothing is ever stored in it. vci: one of the further ones, or NULL. False: each send needs
 * a request of its own, since none can be shared (no handle is left) or each is to be told from the
 * others (MOTET_DEBUG=handles).
 */
bool request_init_sent(struct request *r, struct vci *vci);
void request_deinit_sent(struct request *r);

/* Gives the request that a semantics function made, with the result `err`, the handle that the user
 * will hold; on failure, or without a handle left, *request is NULL. Returns the error. */
int request_publish(int err, struct request **request);

/* Blocks until r is complete, fills status, and releases r (a persistent one becomes inactive).
 * Returns the operation's error. */
int request_wait(struct request *r, MPI_Status *status);
/* The same for a request that is complete already. */
int request_finish(struct request *r, MPI_Status *status);
/* Polls progress once unless it is complete. */
bool request_test(struct request *r);
/* Blocks until all n are complete; releases each, stores NULL in its place. The first error is
 * returned. */
int request_wait_all(int n, struct request **requests);
/* Drops the user's reference: at once, or when it completes. Returns the error of the kind's
 * `free`. */
int request_release(struct request *r);

/* The object behind a handle, or NULL. */
static inline struct request *request_from_handle(MPI_Request handle)
{
    return (struct request *)handle_get(OBJECT_REQUEST, (uintptr_t)handle);
}

#endif
