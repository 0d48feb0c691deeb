/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The head of every MPI object (communicator, datatype, request, ...).
 *
 * It is the first member of each object's struct, so that the handle table and the bindings can
 * tell what they hold. Owned by whoever holds the library lock; only references are also taken and
 * given by threads that hold a vci alone (vci.h).
 */
#ifndef MOTET_CLIENT_OBJECT_OBJECT_H
#define MOTET_CLIENT_OBJECT_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/lock/lock.h"

enum object_kind {
    OBJECT_NONE = 0,
    OBJECT_COMM,
    OBJECT_GROUP,
    OBJECT_DATATYPE,
    OBJECT_OP,
    OBJECT_REQUEST,
    OBJECT_MESSAGE,
    OBJECT_ERRHANDLER,
    OBJECT_INFO,
    OBJECT_WIN,
    OBJECT_FILE,
    OBJECT_SESSION,
    OBJECT_KINDS
};

struct handle_slot;

struct object {
    uintptr_t handle; /* what the application holds; 0 while the object has no handle */
    struct handle_slot
        *place; /* in the handle table, that it has for good (handle_reserve), or NULL */
    _Atomic int32_t refs;
    uint8_t kind; /* enum object_kind */
    bool predefined;
};

static inline int32_t object_n_refs(const struct object *o)
{
    return atomic_load_explicit(&o->refs, memory_order_relaxed);
}

static inline void object_ref(struct object *o)
{
    if (__builtin_expect(lock_here->multiple, 0))
        atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
    else
        atomic_store_explicit(&o->refs, object_n_refs(o) + 1, memory_order_relaxed);
}

/* True when it was the last one. */
static inline bool object_unref(struct object *o)
{
    if (__builtin_expect(lock_here->multiple, 0))
        /* acq_rel: what others did with the object comes before its end. */
        return atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) == 1;
    int32_t left = object_n_refs(o) - 1;
    atomic_store_explicit(&o->refs, left, memory_order_relaxed);
    return left == 0;
}

/* Name of a kind for messages: "communicator", "datatype", ... */
const char *object_kind_name(enum object_kind kind);

#endif
