/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/object/errhandler.h"

#include "client/abi/semantics.h"
#include "client/client.h"
#include "client/object/err.h"
#include "client/object/errcode.h"
#include "client/object/handle.h"
#include "client/process/job.h"
#include "client/transport/end.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct errhandler_state errhandler_first;
struct errhandler_state *errhandler_here = &errhandler_first;

static void make_predefined(struct errhandler *handler, enum errhandler_action action,
                            MPI_Errhandler handle)
{
    *handler = (struct errhandler){.obj = {.refs = 1, .kind = OBJECT_ERRHANDLER}, .action = action};
    handle_set_predefined((uintptr_t)handle, &handler->obj);
}

/* Before main(): error handlers may be made and named before MPI_Init. */
static void errhandler_part_init(void)
{
    make_predefined(&errhandler_here->fatal, ERRHANDLER_FATAL, MPI_ERRORS_ARE_FATAL);
    make_predefined(&errhandler_here->abort, ERRHANDLER_ABORT, MPI_ERRORS_ABORT);
    make_predefined(&errhandler_here->ret, ERRHANDLER_RETURN, MPI_ERRORS_RETURN);
    errhandler_here->file = &errhandler_here->ret; /* MPI-5.0 section 14.7 */
}
CLIENT_PART(errhandler_here, errhandler_first, .init = errhandler_part_init);

void errhandler_unref(struct errhandler *handler)
{
    if (!handler || !object_unref(&handler->obj) || handler->obj.predefined)
        return;
    handle_free(&handler->obj);
    free(handler);
}

int errhandler_publish(struct errhandler *handler, struct errhandler **ret_handler)
{
    if (!handler->obj.handle && !handle_new(&handler->obj))
        return err_set(MPI_ERR_NO_MEM, "no handle is left for an error handler");
    errhandler_ref(handler);
    handler->n_user_refs++;
    *ret_handler = handler;
    return MPI_SUCCESS;
}

int errhandler_assign(struct errhandler **slot, struct errhandler *handler,
                      enum errhandler_target target)
{
    static const char *const names[] = {"any object", "communicators", "windows", "files",
                                        "sessions"};
    if (handler->target != ERRHANDLER_ANY && handler->target != target)
        return err_set(MPI_ERR_ERRHANDLER, "the error handler was made for %s, not for %s",
                       names[handler->target], names[target]);
    errhandler_ref(handler);
    errhandler_unref(*slot);
    *slot = handler;
    return MPI_SUCCESS;
}

/* ---- raising ---- */

/* The one message of an error that ends the job. Written by the rank itself, so that it is whole
 * and in order with what the rank printed before. */
static void errhandler_report(int err, const char *function, const char *object_name)
{
    int mpi_class = errcode_class(err);
    const char *text = errcode_text(err), *detail = err_detail(err);
    char place[256];
    if (job_attached())
        snprintf(place, sizeof place, "rank %d on node %s", job_rank(),
                 job_node_name(job_node_of(job_rank())));
    else
        snprintf(place, sizeof place, "process %d", (int)getpid());
    fflush(stdout);
    fprintf(stderr, "motet: %s: %s%s%s failed: %s (%s)%s%s\n", place, function,
            *object_name ? " on " : "", object_name, text ? text : "unknown error code",
            errcode_name(mpi_class), *detail ? ": " : "", detail);
    fflush(stderr);
}

static _Noreturn void raise_fatal(int err, const char *function, const char *object_name)
{
    char text[128];
    errhandler_report(err, function, object_name);
    snprintf(text, sizeof text, "error in %s", function);
    int code = errcode_class(err) & 0xff; /* what an exit status can carry */
    end_job(code ? code : EXIT_FAILURE, text);
}

static void call_user(const struct errhandler *handler, uintptr_t handle, int err)
{
    switch (handler->target) {
    case ERRHANDLER_WIN: {
        MPI_Win win = (MPI_Win)handle;
        handler->fn.win(&win, &err);
        break;
    }
    case ERRHANDLER_FILE: {
        MPI_File file = (MPI_File)handle;
        handler->fn.file(&file, &err);
        break;
    }
    case ERRHANDLER_SESSION: {
        MPI_Session session = (MPI_Session)handle;
        handler->fn.session(&session, &err);
        break;
    }
    default: {
        MPI_Comm comm = (MPI_Comm)handle;
        handler->fn.comm(&comm, &err);
        break;
    }
    }
}

int errhandler_raise_on(struct errhandler *handler, enum errhandler_target target, uintptr_t handle,
                        const char *object_name, int err, const char *function)
{
    (void)target;
    if (handler->action == ERRHANDLER_RETURN || handler->action == ERRHANDLER_USER)
        err_keep(err, function, object_name ? object_name : "");
    switch (handler->action) {
    case ERRHANDLER_RETURN:
        break;
    case ERRHANDLER_USER:
        errhandler_ref(handler); /* the application may free it from within */
        call_user(handler, handle, err);
        errhandler_unref(handler);
        break;
    case ERRHANDLER_FATAL:
    case ERRHANDLER_ABORT:
        raise_fatal(err, function, object_name ? object_name : "");
    }
    return err;
}

/* ---- MPI functions ---- */

static int errhandler_create(enum errhandler_target target, struct errhandler **ret_handler)
{
    struct errhandler *handler = calloc(1, sizeof *handler);
    if (!handler)
        return err_set(MPI_ERR_NO_MEM, "no memory for an error handler");
    handler->obj.kind = OBJECT_ERRHANDLER;
    handler->action = ERRHANDLER_USER;
    handler->target = target;
    int err = errhandler_publish(handler, ret_handler); /* takes the one reference there is */
    if (err)
        free(handler);
    return err;
}

int mpi_comm_create_errhandler(MPI_Comm_errhandler_function *comm_errhandler_fn,
                               struct errhandler **ret_errhandler)
{
    int err = errhandler_create(ERRHANDLER_COMM, ret_errhandler);
    if (!err)
        (*ret_errhandler)->fn.comm = comm_errhandler_fn;
    return err;
}

int mpi_win_create_errhandler(MPI_Win_errhandler_function *win_errhandler_fn,
                              struct errhandler **ret_errhandler)
{
    int err = errhandler_create(ERRHANDLER_WIN, ret_errhandler);
    if (!err)
        (*ret_errhandler)->fn.win = win_errhandler_fn;
    return err;
}

int mpi_file_create_errhandler(MPI_File_errhandler_function *file_errhandler_fn,
                               struct errhandler **ret_errhandler)
{
    int err = errhandler_create(ERRHANDLER_FILE, ret_errhandler);
    if (!err)
        (*ret_errhandler)->fn.file = file_errhandler_fn;
    return err;
}

int mpi_session_create_errhandler(MPI_Session_errhandler_function *session_errhandler_fn,
                                  struct errhandler **ret_errhandler)
{
    int err = errhandler_create(ERRHANDLER_SESSION, ret_errhandler);
    if (!err)
        (*ret_errhandler)->fn.session = session_errhandler_fn;
    return err;
}

int mpi_errhandler_free(struct errhandler **errhandler)
{
    struct errhandler *freed = *errhandler;
    *errhandler = NULL;
    if (--freed->n_user_refs == 0)
        handle_free(&freed->obj);
    errhandler_unref(freed);
    return MPI_SUCCESS;
}
