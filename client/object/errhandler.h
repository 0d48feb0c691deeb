/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Error handlers: what happens when a semantics function returns something else than MPI_SUCCESS.
 *
 * The generated binding calls raise_on_comm() with the communicator the call was about (NULL
 * where there is none: MPI-5.0 section 9.3 then says MPI_COMM_SELF), and returns to the application
 * what raise_on_comm() returns.
 */
#ifndef MOTET_CLIENT_OBJECT_ERRHANDLER_H
#define MOTET_CLIENT_OBJECT_ERRHANDLER_H

#include "client/object/object.h"
#include "mpi.h"

#include <stdbool.h>
#include <stdint.h>

struct comm;

enum errhandler_action {
    ERRHANDLER_FATAL,  /* print and abort the job */
    ERRHANDLER_ABORT,  /* the same: MPI-5.0 section 9.3 asks for the processes of the communicator,
                          and allows more */
    ERRHANDLER_RETURN, /* hand the class to the caller */
    ERRHANDLER_USER    /* call a function of the application */
};

enum errhandler_target {
    ERRHANDLER_ANY, /* the predefined ones */
    ERRHANDLER_COMM,
    ERRHANDLER_WIN,
    ERRHANDLER_FILE,
    ERRHANDLER_SESSION
};

struct errhandler {
    struct object obj;
    enum errhandler_action action;
    enum errhandler_target target;
    union {
        MPI_Comm_errhandler_function *comm;
        MPI_Win_errhandler_function *win;
        MPI_File_errhandler_function *file;
        MPI_Session_errhandler_function *session;
    } fn;
    int n_user_refs; /* times the application holds the handle: MPI_Comm_get_errhandler gives the
                        same one each time */
};

/* The predefined ones, valid always. */
struct errhandler_state {
    struct errhandler fatal, abort, ret;
    struct errhandler *file; /* of MPI_FILE_NULL: what new files get */
};
extern struct errhandler_state *errhandler_here;

static inline void errhandler_ref(struct errhandler *handler)
{
    object_ref(&handler->obj);
}
void errhandler_unref(struct errhandler *handler); /* NULL is fine */

/* The handler as the result of a call that returns one. */
int errhandler_publish(struct errhandler *handler, struct errhandler **ret_handler);

/* Replaces *slot by handler, with the references; MPI_ERR_ERRHANDLER when the handler was made for
 * another kind of object. */
int errhandler_assign(struct errhandler **slot, struct errhandler *handler,
                      enum errhandler_target target);

/* Carries out an error handler for the error code `err` that `function` met: its object's kind,
 * their handle, their name for the message (may be NULL). */
int errhandler_raise_on(struct errhandler *handler, enum errhandler_target target, uintptr_t handle,
                        const char *object_name, int err, const char *function);

#endif
