/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/rma/win.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/abi/semantics.h"
#include "client/client.h"
#include "client/coll/op/op.h"
#include "client/comm/create.h"
#include "client/datatype/datatype.h"
#include "client/object/attr.h"
#include "client/object/err.h"
#include "client/object/errcode.h"
#include "client/object/errhandler.h"
#include "client/object/group.h"
#include "client/object/raise.h"
#include "client/progress/async.h"
#include "client/progress/progress.h"
#include "client/progress/vci.h"
#include "client/rma/memory.h"
#include "client/rma/message.h"

static struct win_state win_first;
struct win_state *win_here = &win_first;
CLIENT_PART(win_here, win_first);

struct win *win_of_context(uint32_t context)
{
    struct win **at = &win_here->all;
    while (*at && (*at)->comm->context_id != (context & ~UINT32_C(3)))
        at = &(*at)->next;
    struct win *found = *at;
    if (found && found != win_here->all) {
        /* To the front: the next message is likely one of the same. */
        *at = found->next;
        found->next = win_here->all;
        win_here->all = found;
    }
    return found;
}

const char *win_text(const struct win *win)
{
    static _Thread_local char text[MPI_MAX_OBJECT_NAME + 16];
    if (!win->name[0])
        return "the window";
    snprintf(text, sizeof text, "window %s", win->name);
    return text;
}

int raise_on_win(struct win *win, int err, const char *function)
{
    if (!win)
        return raise_on_comm(NULL, err, function);
    return errhandler_raise_on(win->errhandler, ERRHANDLER_WIN, win->obj.handle, win->name, err,
                               function);
}

/* ---- life ---- */

int win_new(struct comm *comm, const struct info *info, int flavor, struct win **ret_win)
{
    struct win *win = calloc(1, sizeof *win);
    if (!win)
        return err_set(MPI_ERR_NO_MEM, "no memory for a window");
    win->obj = (struct object){.refs = 1, .kind = OBJECT_WIN};
    win->flavor = flavor;
    win->model = MPI_WIN_UNIFIED;
    win->errhandler = &errhandler_here->fatal;
    errhandler_ref(win->errhandler);
    list_init(&win->parts);
    hints_init(&win->hints);
    int err = comm_is_inter(comm) ? err_set(MPI_ERR_COMM,
                                            "%s is an intercommunicator: windows are made over "
                                            "intracommunicators",
                                            comm->name)
                                  : hints_take(&win->hints, info, false);
    if (!err)
        err = create_private(comm, &win->comm);
    if (!err) {
        win->comm->vci = &vci_here->table[0]; /* progress and helper thread serve that one */
        win->targets = calloc((size_t)comm->size, sizeof *win->targets);
        win->epochs.in_start = calloc((size_t)comm->size, 1);
        if (!win->targets || !win->epochs.in_start)
            err = err_set(MPI_ERR_NO_MEM, "no memory for a window");
    }
    if (err)
        win_destroy(win);
    else
        *ret_win = win;
    return err;
}

/* Passive targets are served also while their application computes. */
static bool wants_helper(const struct win *win)
{
    return win->by_messages && !win->hints.no_locks;
}

/* Nobody sends to a window that is not there, and none is there that some rank could not make. */
static int agree(const struct win *win, int err)
{
    int worst = err;
    int failed = mpi_allreduce(MPI_IN_PLACE, &worst, 1, datatype_predefined(MPI_INT),
                               op_predefined(MPI_MAX), win->comm);
    if (err || failed)
        return err ? err : failed;
    return worst ? err_set(worst, "another rank could not make its part of the window")
                 : MPI_SUCCESS;
}

int win_open(int err, struct win *win, struct win **ret_win)
{
    for (int i = 0; !err && i < win->comm->size; i++)
        win->by_messages = win->by_messages || !win->targets[i].direct;
    if (!err && !handle_new(&win->obj))
        err = err_set(MPI_ERR_NO_MEM, "no handle is left for a window");
    message_init();
    win->next = win_here->all;
    win_here->all = win;
    win->helped = wants_helper(win);
    if (win->helped)
        async_begin();
    err = agree(win, err);
    if (err)
        win_destroy(win);
    else
        *ret_win = win;
    return err;
}

void win_destroy(struct win *win)
{
    struct win **at = &win_here->all;
    while (*at && *at != win)
        at = &(*at)->next;
    if (*at) {
        *at = win->next;
        if (win->helped)
            async_end();
    }
    for (int i = 0; win->targets && i < win->comm->size; i++)
        link_free(win->targets[i].link);
    memory_release(win);
    handle_free(&win->obj);
    errhandler_unref(win->errhandler);
    group_unref(win->epochs.start);
    group_unref(win->epochs.exposed);
    if (win->comm)
        comm_unref(win->comm);
    free(win->own_memory);
    free(win->regions);
    free(win->targets);
    free(win->epochs.in_start);
    free(win);
}

/* Whether a result still goes out of the window here: its origin may have it and be done, and this
 * process not know yet. */
static bool win_reads(const struct win *win)
{
    for (int i = 0; i < win->comm->size; i++)
        if (win->targets[i].link && win->targets[i].link->n_reading > 0)
            return true;
    return false;
}

static void win_settle(const struct win *win)
{
    struct progress_wait wait;

    progress_wait_begin(&wait);
    while (win_reads(win))
        progress_wait_step(&wait);
    progress_wait_end(&wait);
}

int mpi_win_free(struct win **at)
{
    struct win *win = *at;
    const struct win_epochs *e = &win->epochs;
    if (e->access > ACCESS_FENCE || e->exposed)
        return err_set(MPI_ERR_RMA_SYNC, "%s has an open epoch of %s", win_text(win),
                       e->exposed                     ? "MPI_Win_post"
                       : e->access == ACCESS_START    ? "MPI_Win_start"
                       : e->access == ACCESS_LOCK_ALL ? "MPI_Win_lock_all"
                                                      : "MPI_Win_lock");
    int err = attr_delete_all(&win->attrs, ATTR_WIN, win->obj.handle);
    if (!err)
        err = mpi_barrier(win->comm);
    if (err)
        return err;
    win_settle(win);
    win_destroy(win);
    *at = NULL;
    return MPI_SUCCESS;
}

/* ---- what it tells of itself ---- */

int mpi_win_get_group(struct win *win, struct group **ret_group)
{
    group_ref(win->comm->group);
    return group_publish(win->comm->group, ret_group);
}

int mpi_win_set_info(struct win *win, struct info *info)
{
    return hints_take(&win->hints, info, true);
}

int mpi_win_get_info(struct win *win, struct info **ret_info_used)
{
    return hints_show(&win->hints, ret_info_used);
}

int mpi_win_set_name(struct win *win, const char *win_name)
{
    snprintf(win->name, sizeof win->name, "%s", win_name);
    return MPI_SUCCESS;
}

int mpi_win_get_name(struct win *win, char *win_name, int *resultlen)
{
    const char *name = win ? win->name : "MPI_WIN_NULL";
    strcpy(win_name, name);
    *resultlen = (int)strlen(name);
    return MPI_SUCCESS;
}

/* ---- error handlers ---- */

int mpi_win_set_errhandler(struct win *win, struct errhandler *errhandler)
{
    return errhandler_assign(&win->errhandler, errhandler, ERRHANDLER_WIN);
}

int mpi_win_get_errhandler(struct win *win, struct errhandler **ret_errhandler)
{
    return errhandler_publish(win->errhandler, ret_errhandler);
}

int mpi_win_call_errhandler(struct win *win, int errorcode)
{
    if (!errcode_text(errorcode))
        return err_set(MPI_ERR_ARG, "%d is no error code", errorcode);
    err_clear();
    raise_on_win(win, errorcode, "MPI_Win_call_errhandler");
    return MPI_SUCCESS;
}

/* ---- attributes ---- */

/* Address of what a predefined attribute names, or NULL for other keyvals. */
static void *predefined_attr(struct win *win, int keyval)
{
    switch (keyval) {
    case MPI_WIN_BASE:
        return win->base;
    case MPI_WIN_SIZE:
        return &win->bytes;
    case MPI_WIN_DISP_UNIT:
        return &win->disp_unit;
    case MPI_WIN_CREATE_FLAVOR:
        return &win->flavor;
    case MPI_WIN_MODEL:
        return &win->model;
    default:
        return NULL;
    }
}

static bool is_predefined(int keyval)
{
    return keyval == MPI_WIN_BASE || keyval == MPI_WIN_SIZE || keyval == MPI_WIN_DISP_UNIT ||
           keyval == MPI_WIN_CREATE_FLAVOR || keyval == MPI_WIN_MODEL;
}

int mpi_win_set_attr(struct win *win, int win_keyval, void *attribute_val)
{
    if (is_predefined(win_keyval))
        return err_set(MPI_ERR_KEYVAL, "a predefined attribute cannot be set");
    return attr_put(&win->attrs, ATTR_WIN, win->obj.handle, win_keyval, attribute_val);
}

int mpi_win_get_attr(struct win *win, int win_keyval, void *attribute_val, int *flag)
{
    if (!is_predefined(win_keyval))
        return attr_get(win->attrs, ATTR_WIN, win_keyval, attribute_val, flag);
    *(void **)attribute_val = predefined_attr(win, win_keyval);
    *flag = 1;
    return MPI_SUCCESS;
}

int mpi_win_delete_attr(struct win *win, int win_keyval)
{
    if (is_predefined(win_keyval))
        return err_set(MPI_ERR_KEYVAL, "a predefined attribute cannot be deleted");
    return attr_delete(&win->attrs, ATTR_WIN, win->obj.handle, win_keyval);
}
