/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions: the object. What they do is in client/init/session.c.
 *
 * Groups and communicators that come from a session keep it alive, and through it find the buffer
 * that was attached to it (MPI-5.0 section 3.6). Protected by the library lock.
 */
#ifndef MOTET_CLIENT_OBJECT_SESSION_H
#define MOTET_CLIENT_OBJECT_SESSION_H

#include "client/object/object.h"

struct buffer_pool;
struct errhandler;

struct session {
    struct object obj;
    struct errhandler *errhandler;
    struct buffer_pool *buffer; /* p2p's, of MPI_Session_attach_buffer, or NULL */
    int thread_level;
};

static inline void session_ref(struct session *session) /* NULL is fine */
{
    if (session)
        object_ref(&session->obj);
}
void session_unref(struct session *session); /* NULL is fine */

#endif
