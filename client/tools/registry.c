/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/tools/registry.h"

#include <stdlib.h>
#include <string.h>

#define GENERATIONS 0xffffffu

static uint32_t registry_free_index(struct registry *r)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (!r->entries[i].object)
            return i;
    uint32_t more = r->n ? 2 * r->n : 16;
    struct registry_entry *grown = realloc(r->entries, more * sizeof *grown);
    if (!grown)
        return UINT32_MAX;
    memset(grown + r->n, 0, (more - r->n) * sizeof *grown);
    r->entries = grown;
    uint32_t first = r->n;
    r->n = more;
    return first;
}

uintptr_t registry_add(struct registry *r, enum registry_kind kind, void *object)
{
    uint32_t i = registry_free_index(r);

    if (i == UINT32_MAX)
        return 0;
    r->entries[i].object = object;
    return registry_handle(r, kind, i);
}

uintptr_t registry_handle(const struct registry *r, enum registry_kind kind, uint32_t i)
{
    return (uintptr_t)kind << 56 | (uintptr_t)r->entries[i].generation << 32 | (i + 1);
}

static struct registry_entry *registry_entry(const struct registry *r, uintptr_t handle)
{
    uint32_t number = (uint32_t)handle;

    if (number == 0 || number > r->n)
        return NULL;
    struct registry_entry *entry = &r->entries[number - 1];
    return entry->generation == (handle >> 32 & GENERATIONS) ? entry : NULL;
}

void *registry_get(const struct registry *r, enum registry_kind kind, uintptr_t handle)
{
    const struct registry_entry *entry = registry_entry(r, handle);

    return entry && handle >> 56 == (uintptr_t)kind ? entry->object : NULL;
}

void registry_remove(struct registry *r, uintptr_t handle)
{
    struct registry_entry *entry = registry_entry(r, handle);

    if (!entry)
        return;
    entry->object = NULL;
    entry->generation = (entry->generation + 1) & GENERATIONS;
}

void registry_clear(struct registry *r)
{
    free(r->entries);
    *r = (struct registry){0};
}
