/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions (MPI-5.0 section 11.3): handles under which independent parts of a program use MPI.
 *
 * All sessions and the world model share one instance of the library (init.c); a session is a user
 * of it with an error handler, a thread level and a buffer of its own.
 */
#include "client/object/session.h"

#include "client/abi/semantics.h"
#include "client/comm/pset.h"
#include "client/init/init.h"
#include "client/lock/lock.h"
#include "client/object/err.h"
#include "client/object/errhandler.h"
#include "client/object/group.h"
#include "client/object/handle.h"
#include "client/object/info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Without a wish in the info: the part of the program that asks cannot know what threads the others
 * have. */
#define DEFAULT_LEVEL MPI_THREAD_MULTIPLE

static int new_session(int level, struct errhandler *errhandler, struct session **ret_session)
{
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        return err_set(MPI_ERR_NO_MEM, "no memory for a session");
    session->obj = (struct object){.refs = 1, .kind = OBJECT_SESSION};
    session->thread_level = level;
    int err = errhandler_assign(&session->errhandler, errhandler, ERRHANDLER_SESSION);
    if (!err && !handle_new(&session->obj))
        err = err_set(MPI_ERR_NO_MEM, "no handle is left for a session");
    if (err)
        session_unref(session);
    else
        *ret_session = session;
    return err;
}

/* Not under the lock: it may not have been set up yet. */
int mpi_session_init(struct info *info, struct errhandler *errhandler, struct session **ret_session)
{
    const char *wanted = info_get(info, "thread_level");
    int level = wanted ? init_level_of(wanted) : DEFAULT_LEVEL;
    if (level < 0)
        return err_set(MPI_ERR_INFO_VALUE, "thread_level is %s, no name of a thread level", wanted);
    int err = init_acquire(&level, NULL);
    if (err)
        return err;
    init_linger();
    lock_enter();
    err = new_session(level, errhandler, ret_session);
    if (err)
        init_release();
    lock_leave();
    return err;
}

int mpi_session_finalize(struct session **session)
{
    void *address;
    MPI_Count size;
    struct session *ended = *session;
    int err = mpi_session_detach_buffer(ended, &address, &size); /* waits for what is still in it */
    if (err)
        return err;
    *session = NULL;
    handle_free(&ended->obj);
    session_unref(ended);
    init_release();
    return MPI_SUCCESS;
}

static const char *name_of_level(int level)
{
    switch (level) {
    case MPI_THREAD_SINGLE:
        return "MPI_THREAD_SINGLE";
    case MPI_THREAD_FUNNELED:
        return "MPI_THREAD_FUNNELED";
    case MPI_THREAD_SERIALIZED:
        return "MPI_THREAD_SERIALIZED";
    default:
        return "MPI_THREAD_MULTIPLE";
    }
}

/* An info of pairs of key and value, ended by a NULL, with a handle. */
static int publish_pairs(const char *const *pairs, struct info **ret_info)
{
    struct info *info;
    int err = info_new(&info);
    if (err)
        return err;
    for (; !err && *pairs; pairs += 2)
        err = info_put(info, pairs[0], pairs[1]);
    return info_publish(err, info, ret_info);
}

int mpi_session_get_info(struct session *session, struct info **ret_info_used)
{
    return publish_pairs(
        (const char *[]){"thread_level", name_of_level(session->thread_level), NULL},
        ret_info_used);
}

/* ---- process sets ---- */

int mpi_session_get_num_psets(struct session *session, struct info *info, int *npset_names)
{
    (void)session;
    (void)info;
    *npset_names = pset_count();
    return MPI_SUCCESS;
}

int mpi_session_get_nth_pset(struct session *session, struct info *info, int n, int *pset_len,
                             char *pset_name_out)
{
    (void)session;
    (void)info;
    char name[MPI_MAX_PSET_NAME_LEN];
    if (n < 0 || n >= pset_count())
        return err_set(MPI_ERR_ARG, "n is %d, but there are %d process sets", n, pset_count());
    pset_name(n, name);
    int length = (int)strlen(name) + 1, room = *pset_len;
    if (room > 0) {
        if (!pset_name_out)
            return err_set(MPI_ERR_ARG, "pset_name is a null pointer");
        size_t n_copy = (size_t)(length < room ? length : room);
        memcpy(pset_name_out, name, n_copy);
        pset_name_out[n_copy - 1] = '\0';
    }
    *pset_len = length;
    return MPI_SUCCESS;
}

int mpi_session_get_pset_info(struct session *session, const char *name, struct info **ret_info)
{
    (void)session;
    struct group *group;
    char size[16];
    int idx = pset_find(name);
    if (idx < 0)
        return err_set(MPI_ERR_ARG, "there is no process set %s", name);
    int err = pset_group(idx, &group);
    if (err)
        return err;
    snprintf(size, sizeof size, "%d", group->size);
    group_unref(group);
    const char *of, *kind = pset_kind(idx, &of);
    const char *pairs[] = {"mpi_size", size, "motet_kind", kind, *of ? "motet_name" : NULL,
                           of,         NULL};
    return publish_pairs(pairs, ret_info);
}

int mpi_group_from_session_pset(struct session *session, const char *name,
                                struct group **ret_newgroup)
{
    int idx = pset_find(name);
    if (idx < 0)
        return err_set(MPI_ERR_ARG, "there is no process set %s", name);
    struct group *group;
    int err = pset_group(idx, &group);
    if (err)
        return err;
    group_set_session(group, session);
    return group_publish(group, ret_newgroup);
}

/* ---- error handlers ---- */

int mpi_session_set_errhandler(struct session *session, struct errhandler *errhandler)
{
    return errhandler_assign(&session->errhandler, errhandler, ERRHANDLER_SESSION);
}

int mpi_session_get_errhandler(struct session *session, struct errhandler **ret_errhandler)
{
    return errhandler_publish(session->errhandler, ret_errhandler);
}

int mpi_session_call_errhandler(struct session *session, int errorcode)
{
    err_clear();
    errhandler_raise_on(session->errhandler, ERRHANDLER_SESSION, session->obj.handle, NULL,
                        errorcode, "MPI_Session_call_errhandler");
    return MPI_SUCCESS;
}
