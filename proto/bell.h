/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bell: how a consumer of many rings finds the one that has news, and how it sleeps.
 *
 * A consumer polls the rings it counts as active by looking at their next slot; a ring that was
 * silent for long is quiet, and its producer sets the ring's bit in the bell when it publishes.
 * Untouched rings are quiet (all zero), so a pair of ranks that never talks costs no memory and no
 * polling.
 *
 * Sleeping is a Dekker hand-shake: the producer publishes and then looks at `sleeping`; the
 * consumer sets `sleeping` and then looks at the rings. Each needs its store seen before its load.
 * Normally the consumer, who is about to pay microseconds anyway, pays for both sides
 * (membarrier(2), see base/thread.h); where the kernel lacks that, `fenced` makes both sides use
 * sequentially consistent exchanges. Model: tests/model/bell.pml.
 *
 * The change from active to quiet has the same race (producer read `active` before the consumer
 * cleared it); a consumer therefore keeps looking at quiet rings it has known, one per poll and all
 * of them before it sleeps.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define BELL_MAX_RINGS 512u

/* Shared part, one per consumer. */
struct bell {
    _Alignas(64) _Atomic uint32_t
        sleeping; /* futex word: 1 while the consumer sleeps or is about to; set by the consumer */
    _Alignas(64) _Atomic uint64_t
        rung[BELL_MAX_RINGS / 64]; /* bit per ring: published while quiet; set by producers */
};

/* A producer's view of one ring's place in its consumer's bell. */
struct bell_ref {
    struct bell *bell;
    uint32_t bit;
    int event_fd; /* >= 0: eventfd that wakes a channel thread; -1: futex on `sleeping` wakes a rank
                   */
    bool fenced;
};

/* Slow path: wakes the consumer. */
void bell_wake(const struct bell_ref *ref);

/* After publishing: rings if the ring is quiet, wakes if the consumer sleeps. */
static inline void bell_notify(const struct bell_ref *ref, _Atomic uint32_t *active)
{
    /* Without `fenced` the machine may delay the published turn past these loads, the sleeper's
     * barrier sees to that; but the compiler must keep the order of the program, or there is no
     * point at which a barrier would be right. */
    atomic_signal_fence(memory_order_seq_cst);
    /* seq_cst on both loads: with `fenced` they must come after ring_publish's exchange in the one
     * total order. */
    if (__builtin_expect(!atomic_load_explicit(active, memory_order_seq_cst), 0)) {
        /* release: pairs with the acquire exchange in bell_collect; the published slot is seen with
         * the bit. */
        atomic_fetch_or_explicit(&ref->bell->rung[ref->bit / 64], 1ull << (ref->bit % 64),
                                 memory_order_seq_cst);
    }
    if (__builtin_expect(atomic_load_explicit(&ref->bell->sleeping, memory_order_seq_cst), 0))
        bell_wake(ref);
}

/* Takes the bits of one word that are in the mask: of rings that the calling thread consumes. */
static inline uint64_t bell_collect_of(struct bell *bell, uint32_t word, uint64_t mask)
{
    if ((atomic_load_explicit(&bell->rung[word], memory_order_relaxed) & mask) == 0)
        return 0;
    /* acquire: pairs with the fetch_or in bell_notify. */
    return atomic_fetch_and_explicit(&bell->rung[word], ~mask, memory_order_acq_rel) & mask;
}

/* Takes all bits of one word. */
static inline uint64_t bell_collect(struct bell *bell, uint32_t word)
{
    return bell_collect_of(bell, word, ~UINT64_C(0));
}

/*
 * Consumer, before sleeping: after this returns the consumer must look at the bell and at all rings
 * it knows once more; if there is nothing it sleeps (bell_sleep for a rank; on its event fd for a
 * channel thread), then calls bell_sleep_end.
 */
void bell_sleep_begin(struct bell *bell, bool fenced);
/* Sleeps on the futex until rung or timeout_ns is over. */
void bell_sleep(struct bell *bell, uint64_t timeout_ns);
void bell_sleep_end(struct bell *bell);
