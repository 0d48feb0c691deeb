/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/tools/tools.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "client/abi/semantics.h"
#include "client/client.h"
#include "client/lock/lock.h"
#include "client/object/handle.h"
#include "client/process/phase.h"
#include "client/progress/notice.h"
#include "client/tools/counts.h"
#include "client/tools/event.h"
#include "client/tools/pvar.h"
#include "mpi.h"

static struct tools tools_first;
struct tools *tools_here = &tools_first;

static void tools_free_object(void *object, void *arg)
{
    (void)arg;
    free(object);
}

static void tools_free_handles(void)
{
    for (enum registry_kind kind = REGISTRY_CVAR; kind < REGISTRY_KINDS; kind++) {
        if (kind != REGISTRY_INSTANCE) /* of the stack */
            tools_each(kind, tools_free_object, NULL);
        registry_clear(&tools_here->handles[kind]);
    }
}

CLIENT_PART(tools_here, tools_first, .deinit = tools_free_handles);

/* ---- beginning and end ---- */

static int tools_level(int required)
{
    return required < MPI_THREAD_SINGLE
               ? MPI_THREAD_SINGLE
               : (required > MPI_THREAD_MULTIPLE ? MPI_THREAD_MULTIPLE : required);
}

static void tools_mpi_ends(void)
{
    event_deliver();
    pvar_mpi_changes();
    counts_keep();
}

/* Before MPI_Init, and after MPI_Finalize, a tool gets what it asks for: the library lock is then
 * taken for good, whatever level MPI_Init is asked for. While MPI is there, at most what MPI has.
 */
int mpi_t_init_thread(int required, int *provided)
{
    int level = tools_level(required), has = MPI_THREAD_SINGLE;

    if (!provided)
        return MPI_T_ERR_INVALID;
    if (phase_now() == PHASE_ACTIVE) {
        int err = mpi_query_thread(&has);
        if (err)
            return MPI_T_ERR_CANNOT_INIT;
        if (level > has)
            level = has;
    } else if (level == MPI_THREAD_MULTIPLE && !lock_here->multiple) {
        lock_init(true);
    }
    lock_enter();
    if (tools_here->n_users++ == 0) {
        notice_here->begin = pvar_mpi_changes;
        notice_here->end = tools_mpi_ends;
    }
    lock_leave();
    *provided = level;
    return MPI_SUCCESS;
}

int mpi_t_finalize(void)
{
    if (--tools_here->n_users > 0)
        return MPI_SUCCESS;
    notice_here->begin = notice_here->end = NULL;
    event_stop();
    pvar_stop();
    tools_free_handles();
    return MPI_SUCCESS;
}

/* ---- what the parts share ---- */

void tools_give_text(const char *text, char *out, int *length)
{
    size_t n = strlen(text);

    if (!length)
        return;
    if (out && *length > 0) {
        size_t room = (size_t)*length - 1;
        size_t some = n < room ? n : room;
        memcpy(out, text, some);
        out[some] = '\0';
    }
    *length = (int)n + 1;
}

void *tools_add(enum registry_kind kind, void *object)
{
    return (void *)registry_add(&tools_here->handles[kind], kind, object);
}

void tools_remove(enum registry_kind kind, const void *handle)
{
    registry_remove(&tools_here->handles[kind], (uintptr_t)handle);
}

void tools_each(enum registry_kind kind, void (*fn)(void *object, void *arg), void *arg)
{
    for (uint32_t i = 0; i < tools_here->handles[kind].n; i++) {
        void *object = tools_here->handles[kind].entries[i].object;
        if (object)
            fn(object, arg);
    }
}

static enum object_kind tools_object_kind(int bind)
{
    return bind == MPI_T_BIND_MPI_COMM ? OBJECT_COMM : OBJECT_WIN;
}

int tools_bind(int bind, const void *object, struct tools_bound *ret_bound)
{
    struct tools_bound bound = {.bind = bind};

    if (bind != MPI_T_BIND_NO_OBJECT) {
        if (!object)
            return MPI_T_ERR_INVALID_HANDLE;
        memcpy(&bound.handle, object, sizeof bound.handle);
        if (!handle_get(tools_object_kind(bind), bound.handle))
            return MPI_T_ERR_INVALID_HANDLE;
    }
    *ret_bound = bound;
    return MPI_SUCCESS;
}

struct comm *tools_comm(const struct tools_bound *bound)
{
    return (struct comm *)handle_get(OBJECT_COMM, bound->handle);
}

struct win *tools_win(const struct tools_bound *bound)
{
    return (struct win *)handle_get(OBJECT_WIN, bound->handle);
}
