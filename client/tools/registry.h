/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles of the tool interface: numbers that look like pointers, of which each can be told from
 * those that were freed, of another kind, or invented. With the library lock.
 *
 *     bits 0..31 index, from 1 on | 32..55 generation | 56..63 kind
 */
#ifndef MOTET_CLIENT_TOOLS_REGISTRY_H
#define MOTET_CLIENT_TOOLS_REGISTRY_H

#include <stdint.h>

enum registry_kind {
    REGISTRY_CVAR = 1, /* never 0: the null handle, and MPI_T_PVAR_ALL_HANDLES, are none of ours */
    REGISTRY_SESSION,
    REGISTRY_PVAR,
    REGISTRY_REGISTRATION,
    REGISTRY_INSTANCE,
    REGISTRY_KINDS
};

struct registry_entry {
    void *object; /* NULL: free */
    uint32_t generation;
};

struct registry {
    struct registry_entry *entries;
    uint32_t n;
};

/* The handle of a new object, or 0: no memory. */
uintptr_t registry_add(struct registry *r, enum registry_kind kind, void *object);
/* The object behind a handle of this kind, or NULL. */
void *registry_get(const struct registry *r, enum registry_kind kind, uintptr_t handle);
/* The handle of entry i, which has an object. */
uintptr_t registry_handle(const struct registry *r, enum registry_kind kind, uint32_t i);
void registry_remove(struct registry *r, uintptr_t handle);
/* Forgets all handles; the objects are the caller's. */
void registry_clear(struct registry *r);

#endif
