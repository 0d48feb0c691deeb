/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tool information interface (MPI-5.0 section 15.3): MPI_T_init_thread and MPI_T_finalize, and
 * what all of its parts share. The parts: control variables (cvar.h), performance variables
 * (pvar.h), events (event.h), categories (category.h), enumerations (enumeration.h).
 *
 * Nothing of this costs anything while no tool uses it: variables are counters and lists that the
 * rooms below have anyway, read when asked for, and events are told of by their slow paths
 * (client/progress/notice.h). Called by the bindings with the library lock, before MPI_Init and
 * after MPI_Finalize as well; errors are codes and are never raised.
 */
#ifndef MOTET_CLIENT_TOOLS_TOOLS_H
#define MOTET_CLIENT_TOOLS_TOOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "client/tools/registry.h"

struct comm;
struct win;

struct tools {
    int n_users; /* calls of MPI_T_init_thread that have not met their MPI_T_finalize */
    struct registry handles[REGISTRY_KINDS];
};
extern struct tools *tools_here;

static inline bool tools_are_ready(void)
{
    return tools_here->n_users > 0;
}

/* Gives a text to the application (MPI-5.0 section 15.3.3): cut to *length characters with the null
 * at its end; *length becomes what the whole text needs. Without room only that. */
void tools_give_text(const char *text, char *out, int *length);

/* Stores where the caller wants to know. */
static inline void tools_give_int(int *out, int value)
{
    if (out)
        *out = value;
}

/* ---- handles ---- */

static inline void *tools_get(enum registry_kind kind, const void *handle)
{
    return registry_get(&tools_here->handles[kind], kind, (uintptr_t)handle);
}
/* NULL: no memory. */
void *tools_add(enum registry_kind kind, void *object);
void tools_remove(enum registry_kind kind, const void *handle);
/* Calls fn for each object of a kind. */
void tools_each(enum registry_kind kind, void (*fn)(void *object, void *arg), void *arg);

/* ---- MPI objects that a variable or event is bound to ---- */

struct tools_bound {
    int bind; /* MPI_T_BIND_* */
    uintptr_t handle;
};

/* Reads the handle at `object`, as `bind` says of which kind. MPI_T_ERR_INVALID_HANDLE: there is no
 * such object. */
int tools_bind(int bind, const void *object, struct tools_bound *ret_bound);
/* NULL once it was freed. */
struct comm *tools_comm(const struct tools_bound *bound);
struct win *tools_win(const struct tools_bound *bound);

#endif
