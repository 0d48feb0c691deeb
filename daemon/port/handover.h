/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handover rings: between two channels of a node. They carry block indices with two bits of
 * meaning. There are three per ordered pair: two `give` rings hand packets over, one for each
 * class, the quick one looked at first; `back` brings a block home to its owner. `back` has a place
 * for every block of the owner and so never fills; a full `give` ring drops the packet, as a
 * network would.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define HANDOVER_BLOCK_MASK 0x3fffffffu
/* give: deliver here (else: send it on); back: sending failed (else: done) */
#define HANDOVER_BIT 0x40000000u

struct handover {
    _Alignas(64) _Atomic uint32_t head; /* taken; written by the consumer */
    _Alignas(64) _Atomic uint32_t tail; /* pushed; written by the producer */
    _Alignas(64) uint32_t head_seen;    /* producer's */
    _Alignas(64) uint32_t mask;         /* read-only */
    uint32_t *entries;
};

/* False when full. */
static inline bool handover_push(struct handover *l, uint32_t value, bool fenced)
{
    uint32_t tail = atomic_load_explicit(&l->tail, memory_order_relaxed);

    if (tail - l->head_seen > l->mask) {
        /* acquire: pairs with the release in handover_pop. */
        l->head_seen = atomic_load_explicit(&l->head, memory_order_acquire);
        if (tail - l->head_seen > l->mask)
            return false;
    }
    l->entries[tail & l->mask] = value;
    if (fenced)
        /* seq_cst: pairs with the exchange in bell_sleep_begin; see proto/bell.h. */
        atomic_exchange_explicit(&l->tail, tail + 1, memory_order_seq_cst);
    else
        /* release: pairs with the acquire in handover_pop. */
        atomic_store_explicit(&l->tail, tail + 1, memory_order_release);
    return true;
}

static inline bool handover_empty(const struct handover *l)
{
    return atomic_load_explicit(&l->tail, memory_order_acquire) ==
           atomic_load_explicit(&l->head, memory_order_relaxed);
}

static inline bool handover_pop(struct handover *l, uint32_t *ret_value)
{
    uint32_t head = atomic_load_explicit(&l->head, memory_order_relaxed);

    /* acquire: pairs with the release in handover_push; the block's holder half and bytes are seen
     * with it. */
    if (atomic_load_explicit(&l->tail, memory_order_acquire) == head)
        return false;
    *ret_value = l->entries[head & l->mask];
    /* release: pairs with the acquire in handover_push. */
    atomic_store_explicit(&l->head, head + 1, memory_order_release);
    return true;
}
