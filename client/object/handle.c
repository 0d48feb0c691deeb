/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/object/handle.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>

#include "client/client.h"

static struct handle_state handle_first;
struct handle_state *handle_here = &handle_first;

static void handle_part_init(void)
{
    handle_here->chunks[0] = handle_here->predefined;
    handle_here->first_unused = HANDLE_PREDEFINED_MAX;
}

static void handle_part_deinit(void)
{
    for (uint32_t i = 1; i < HANDLE_CHUNKS && handle_here->chunks[i]; i++)
        free(handle_here->chunks[i]);
}
CLIENT_PART(handle_here, handle_first, .init = handle_part_init, .deinit = handle_part_deinit);

const char *object_kind_name(enum object_kind kind)
{
    static const char *const names[OBJECT_KINDS] = {
        [OBJECT_NONE] = "object",      [OBJECT_COMM] = "communicator",
        [OBJECT_GROUP] = "group",      [OBJECT_DATATYPE] = "datatype",
        [OBJECT_OP] = "operation",     [OBJECT_REQUEST] = "request",
        [OBJECT_MESSAGE] = "message",  [OBJECT_ERRHANDLER] = "error handler",
        [OBJECT_INFO] = "info object", [OBJECT_WIN] = "window",
        [OBJECT_FILE] = "file",        [OBJECT_SESSION] = "session",
    };

    return kind < OBJECT_KINDS ? names[kind] : "object";
}

static struct handle_slot *slot_at(uint32_t index)
{
    return &handle_here->chunks[index / HANDLE_CHUNK_SLOTS][index % HANDLE_CHUNK_SLOTS];
}

/* A free slot, 0 when there is none. Freed slots are used again last in, first out: they are warm
 * in the cache, and the generation tells old handles from new ones. */
static uint32_t take_slot(void)
{
    uint32_t index = handle_here->first_free;

    if (index) {
        handle_here->first_free = (uint32_t)slot_at(index)->next_free;
        return index;
    }
    index = handle_here->first_unused;
    if (index / HANDLE_CHUNK_SLOTS >= HANDLE_CHUNKS)
        return 0;
    if (!handle_here->chunks[index / HANDLE_CHUNK_SLOTS]) {
        struct handle_slot *chunk = calloc(HANDLE_CHUNK_SLOTS, sizeof(*chunk));

        if (!chunk)
            return 0;
        handle_here->chunks[index / HANDLE_CHUNK_SLOTS] = chunk;
    }
    handle_here->first_unused++;
    slot_at(index)->stamp = index;
    return index;
}

static uint32_t take_slot_locked(void)
{
    if (!lock_here->multiple)
        return take_slot();
    mutex_take(&handle_here->lock);
    uint32_t index = take_slot();
    mutex_give(&handle_here->lock);
    return index;
}

static void give_slot(uint32_t index)
{
    if (lock_here->multiple)
        mutex_take(&handle_here->lock);
    slot_at(index)->next_free = handle_here->first_free;
    handle_here->first_free = index;
    if (lock_here->multiple)
        mutex_give(&handle_here->lock);
}

bool handle_reserve(struct object *object)
{
    uint32_t index = take_slot_locked();

    object->place = index ? slot_at(index) : NULL;
    return index != 0;
}

void handle_unreserve(struct object *object)
{
    assert(!object->handle);
    if (object->place)
        give_slot((uint32_t)object->place->stamp);
    object->place = NULL;
}

uintptr_t handle_new_anywhere(struct object *object)
{
    uint32_t index = object->place ? (uint32_t)object->place->stamp : take_slot_locked();
    struct handle_slot *slot;

    assert(object->kind > OBJECT_NONE && object->kind < OBJECT_KINDS && !object->handle);
    if (!index)
        return 0;
    slot = slot_at(index);
    slot->handle = (uintptr_t)object->kind << 56 | slot->stamp;
    slot->object = object;
    object->handle = slot->handle;
    if (__builtin_expect(handle_here->on_new != NULL, 0))
        handle_here->on_new(index);
    return slot->handle;
}

void handle_free_anywhere(struct object *object)
{
    uint32_t index = (uint32_t)object->handle;
    struct handle_slot *slot = slot_at(index);

    assert(slot->object == object);
    slot->handle = object->handle = 0;
    slot->stamp = handle_next_stamp(slot->stamp);
    give_slot(index);
}

void handle_set_predefined(uintptr_t value, struct object *object)
{
    assert(value > 0 && value < HANDLE_PREDEFINED_MAX);
    handle_here->predefined[value].handle = object ? value : 0;
    handle_here->predefined[value].object = object;
    if (object) {
        object->predefined = true;
        if (!object->handle)
            object->handle = value;
    }
}

int handle_toint(uintptr_t handle)
{
    static_assert(HANDLE_CHUNKS * HANDLE_CHUNK_SLOTS <= (uint32_t)INT_MAX,
                  "every slot index is an int");
    return (int)(uint32_t)handle;
}

uintptr_t handle_fromint(enum object_kind kind, int number, uintptr_t null_handle)
{
    uint32_t index = (uint32_t)number;
    const struct handle_slot *slot;

    /* Also null handles and other predefined values that have no object: they keep their value. */
    if (index < HANDLE_PREDEFINED_MAX)
        return index;
    if (index >= handle_here->first_unused)
        return null_handle;
    slot = slot_at(index);
    return slot->handle && slot->object->kind == kind ? slot->handle : null_handle;
}

size_t handle_count(void)
{
    size_t n = 0;

    for (uint32_t index = HANDLE_PREDEFINED_MAX; index < handle_here->first_unused; index++)
        n += slot_at(index)->handle != 0;
    return n;
}

void handle_each(void (*fn)(struct object *object, void *arg), void *arg)
{
    for (uint32_t index = HANDLE_PREDEFINED_MAX; index < handle_here->first_unused; index++) {
        struct handle_slot *slot = slot_at(index);

        if (slot->handle)
            fn(slot->object, arg);
    }
}
