/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles: the values that applications hold in place of objects.
 *
 * Called by the bindings and by everyone who makes objects, with the library lock held; look-ups of
 * handles that live, and handles of objects that have a reserved slot, need only the lock under
 * which the object is. Predefined handles have the constant values of the standard ABI, all below
 * HANDLE_PREDEFINED_MAX; a user handle is
 *
 *     bits 0..31 slot index (from HANDLE_PREDEFINED_MAX on) | 32..55 generation | 56..63 kind
 *
 * Both kinds of index live in one table made of chunks that never move, so a look-up is one load of
 * the chunk's address and one compare of the whole handle with the one that the slot has now: a
 * freed, reused or invented handle is found out, and no look-up touches memory outside the table.
 * The generation grows with each reuse of a slot.
 */
#ifndef MOTET_CLIENT_OBJECT_HANDLE_H
#define MOTET_CLIENT_OBJECT_HANDLE_H

#include "client/lock/mutex.h"
#include "client/object/object.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* MPI-5.0 section 20.3: predefined handles fit into 12 bits */
#define HANDLE_PREDEFINED_MAX 4096u
#define HANDLE_CHUNK_SLOTS    4096u
/* 64 Mi handles: 1 GiB of table, more than any program's requests */
#define HANDLE_CHUNKS 16384u

struct handle_slot {
    uintptr_t handle; /* 0: the slot is free */
    union {
        struct object *object;
        uintptr_t next_free; /* index of the next free slot, 0 for none */
    };
    uint64_t stamp; /* index and generation, as in the next handle */
};

struct handle_state {
    struct handle_slot predefined[HANDLE_PREDEFINED_MAX];
    struct handle_slot *chunks[HANDLE_CHUNKS]; /* [0] is `predefined`; unused ones are NULL */
    /* When not NULL, called with the slot index of each new handle: for whoever looks for leaks.
     * Set before main(). */
    void (*on_new)(uint32_t index);
    struct mutex lock;     /* of the free slots: vcis reserve some without the library lock */
    uint32_t first_free;   /* 0: no freed slot waits for reuse */
    uint32_t first_unused; /* slots from here on have never been used */
};
extern struct handle_state *handle_here;

/* Reserves a slot of the table for an object that gets a handle again and again, and stores it in
 * object->place. False: no slot is left. */
bool handle_reserve(struct object *object);
void handle_unreserve(struct object *object);

/* Enters a predefined object under its constant value (< HANDLE_PREDEFINED_MAX), or removes it
 * (object NULL). Sets object->handle and object->predefined. One object may be entered under
 * several values: object->handle is then the first. */
void handle_set_predefined(uintptr_t value, struct object *object);

/* The object behind a handle of any kind, or NULL for null handles, freed handles and rubbish. */
static inline struct object *handle_object(uintptr_t handle)
{
    const struct handle_slot *chunk;
    const struct handle_slot *slot;

    if (__builtin_expect(handle < HANDLE_PREDEFINED_MAX, 1))
        return handle_here->predefined[handle].object;
    if ((uint32_t)handle / HANDLE_CHUNK_SLOTS >= HANDLE_CHUNKS)
        return NULL;
    chunk = handle_here->chunks[(uint32_t)handle / HANDLE_CHUNK_SLOTS];
    if (!chunk)
        return NULL;
    slot = &chunk[(uint32_t)handle % HANDLE_CHUNK_SLOTS];
    return slot->handle == handle ? slot->object : NULL;
}

/* The object if it is of this kind, else NULL. */
static inline struct object *handle_get(enum object_kind kind, uintptr_t handle)
{
    struct object *object = handle_object(handle);

    return object && object->kind == kind ? object : NULL;
}

/* Handle to Fortran-style integer and back (MPI_Comm_toint, MPI_Comm_fromint): predefined and null
 * handles keep their value, user handles give their slot index. A number that names no live object
 * of the kind gives the kind's null handle value `null_handle`. */
int handle_toint(uintptr_t handle);
uintptr_t handle_fromint(enum object_kind kind, int number, uintptr_t null_handle);

/* Number of user handles in use, for leak reports. */
size_t handle_count(void);

uintptr_t handle_new_anywhere(struct object *object);
void handle_free_anywhere(struct object *object);

/* What a slot whose handle goes will have as its next one's index and generation. */
static inline uint64_t handle_next_stamp(uint64_t stamp)
{
    return (stamp + (UINT64_C(1) << 32)) & ((UINT64_C(1) << 56) - 1);
}

/* Gives the object a handle of its kind (object->kind must be set) and writes it to object->handle
 * as well. Returns 0 when no slot is left or memory is out. */
static inline uintptr_t handle_new(struct object *object)
{
    struct handle_slot *slot = object->place;

    if (__builtin_expect(!slot || handle_here->on_new != NULL, 0))
        return handle_new_anywhere(object);
    slot->handle = object->handle = (uintptr_t)object->kind << 56 | slot->stamp;
    slot->object = object;
    return object->handle;
}

/* Takes the object's handle back: from now on look-ups of it fail. Clears object->handle. Objects
 * without a handle and predefined ones are left as they are. */
static inline void handle_free(struct object *object)
{
    struct handle_slot *slot = object->place;

    if (object->predefined || !object->handle)
        return;
    if (__builtin_expect(!slot, 0)) {
        handle_free_anywhere(object);
        return;
    }
    slot->handle = object->handle = 0;
    slot->stamp = handle_next_stamp(slot->stamp);
}

/* Calls fn for each live user handle. */
void handle_each(void (*fn)(struct object *object, void *arg), void *arg);

#endif
