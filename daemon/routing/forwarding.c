/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/routing/forwarding.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <uthash.h>

#include "base/fd.h"

struct forwarding_slot {
    UT_hash_handle hh;
    uint32_t node_id;
    uint32_t slot;
};

struct forwarding {
    int fd;
    struct hop_table *table;
    struct forwarding_slot *by_id;
};

int forwarding_new(uint32_t packet_bytes, uint32_t n_channels, uint32_t node_id, uint32_t epoch,
                   struct forwarding **ret_forwarding)
{
    struct forwarding *h = calloc(1, sizeof *h);
    void *map;

    if (!h)
        return -ENOMEM;
    h->fd = fd_memory("motet-node", sizeof *h->table, true, &map);
    if (h->fd < 0) {
        int rc = h->fd;
        free(h);
        return rc;
    }
    h->table = map;
    h->table->packet_bytes = packet_bytes;
    h->table->n_channels = n_channels;
    h->table->version = HOP_VERSION;
    int rc = forwarding_slot(h, node_id);
    if (rc < 0) {
        forwarding_free(h);
        return rc;
    }
    atomic_store_explicit(&h->table->entries[0].epoch, epoch, memory_order_relaxed);
    h->table->magic = HOP_MAGIC;
    *ret_forwarding = h;
    return 0;
}

void forwarding_free(struct forwarding *h)
{
    struct forwarding_slot *s, *next;

    if (!h)
        return;
    HASH_ITER(hh, h->by_id, s, next) {
        HASH_DEL(h->by_id, s);
        free(s);
    }
    munmap(h->table, sizeof *h->table);
    close(h->fd);
    free(h);
}

int forwarding_fd(const struct forwarding *h)
{
    return h->fd;
}

struct hop_table *forwarding_table(const struct forwarding *h)
{
    return h->table;
}

int forwarding_find(const struct forwarding *h, uint32_t node_id)
{
    struct forwarding_slot *s;

    HASH_FIND(hh, h->by_id, &node_id, sizeof node_id, s);
    return s ? (int)s->slot : -ENOENT;
}

int forwarding_slot(struct forwarding *h, uint32_t node_id)
{
    int found = forwarding_find(h, node_id);
    uint32_t slot = forwarding_n_slots(h);

    if (found >= 0)
        return found;
    if (slot == HOP_MAX_NODES)
        return -ENOSPC;
    struct forwarding_slot *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->node_id = node_id;
    s->slot = slot;
    HASH_ADD(hh, h->by_id, node_id, sizeof s->node_id, s);
    atomic_store_explicit(&h->table->entries[slot].node_id, node_id, memory_order_relaxed);
    /* release: pairs with the acquire of readers that walk the table; the entry is seen with the
     * count. */
    atomic_store_explicit(&h->table->n_slots, slot + 1, memory_order_release);
    return (int)slot;
}

uint32_t forwarding_node_id(const struct forwarding *h, uint32_t slot)
{
    return slot < HOP_MAX_NODES
               ? atomic_load_explicit(&h->table->entries[slot].node_id, memory_order_relaxed)
               : 0;
}

uint32_t forwarding_n_slots(const struct forwarding *h)
{
    return atomic_load_explicit(&h->table->n_slots, memory_order_relaxed);
}

static bool store_changed(_Atomic uint64_t *word, uint64_t value)
{
    if (atomic_load_explicit(word, memory_order_relaxed) == value)
        return false;
    /* release: a reader that sees this route also sees the slots and links made before. */
    atomic_store_explicit(word, value, memory_order_release);
    return true;
}

bool forwarding_set(struct forwarding *h, uint32_t slot, uint32_t epoch, hop_word quick,
                    const hop_word *wide, uint32_t n_wide)
{
    struct hop_entry *e = &h->table->entries[slot];
    bool changed = false;

    if (atomic_load_explicit(&e->epoch, memory_order_relaxed) != epoch) {
        atomic_store_explicit(&e->epoch, epoch, memory_order_release);
        changed = true;
    }
    changed |= store_changed(&e->quick, quick);
    for (uint32_t i = 0; i < HOP_MAX_WIDE; i++)
        changed |= store_changed(&e->wide[i], i < n_wide ? wide[i] : HOP_NONE);
    return changed;
}

void forwarding_publish(struct forwarding *h)
{
    /* release: pairs with the acquire of the channels, which then look their routes up again. */
    atomic_fetch_add_explicit(&h->table->generation, 1, memory_order_release);
}

void forwarding_set_crowded(struct forwarding *h, bool crowded)
{
    atomic_store_explicit(&h->table->crowded, crowded ? 1u : 0u, memory_order_relaxed);
}
