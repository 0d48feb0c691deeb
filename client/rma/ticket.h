/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lock of one rank's window memory, shared or exclusive, in memory that all who take it by
 * instructions map: the ranks of its node, and its own process for those of other nodes, which ask
 * by message.
 *
 * A ticket lock for readers and writers (Mellor-Crummey and Scott's fair queue in three counters):
 * everybody draws a number and is served in that order, so none starves. A reader that is served
 * lets the next number look at once; a writer when it unlocks.
 *
 * `next` is drawn by all; `readers` and `writers` are the numbers that may enter. Who waits polls:
 * the unlocking process does not know whom to wake.
 */
#ifndef MOTET_CLIENT_RMA_TICKET_H
#define MOTET_CLIENT_RMA_TICKET_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ticket_lock {
    _Atomic uint32_t next, readers, writers;
    _Atomic uint32_t elements; /* of accumulates for which there is no instruction (apply.h) */
    uint8_t pad[48];
};
static_assert(sizeof(struct ticket_lock) == 64, "a cache line");

static inline uint32_t ticket_draw(struct ticket_lock *l)
{
    return atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed);
}

/* Whether the number's turn has come; true once only. */
static inline bool ticket_enter_shared(struct ticket_lock *l, uint32_t number)
{
    /* acquire: pairs with the release in ticket_exit. */
    if (atomic_load_explicit(&l->readers, memory_order_acquire) != number)
        return false;
    atomic_store_explicit(&l->readers, number + 1, memory_order_release);
    return true;
}

static inline bool ticket_enter_exclusive(struct ticket_lock *l, uint32_t number)
{
    return atomic_load_explicit(&l->writers, memory_order_acquire) == number;
}

static inline bool ticket_enter_as(struct ticket_lock *l, uint32_t number, bool exclusive)
{
    return exclusive ? ticket_enter_exclusive(l, number) : ticket_enter_shared(l, number);
}

static inline void ticket_exit(struct ticket_lock *l, bool exclusive)
{
    /* While a writer is inside nobody else changes these two. */
    if (exclusive)
        atomic_fetch_add_explicit(&l->readers, 1, memory_order_release);
    atomic_fetch_add_explicit(&l->writers, 1, memory_order_release);
}

#endif
