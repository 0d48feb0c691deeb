/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/lock/mutex.h"

#include <assert.h>

#include "base/clock.h"
#include "base/thread.h"

/* Looks at the lock before sleeping: one or two microseconds. */
#define SPINS 40
/* A turn is waited for no longer than this: its taker may have changed its mind. */
#define TURN_NS CLOCK_NS_PER_MS

enum { FREE, HELD, CONTENDED };

/* Its address names the thread. The model needs a few bytes of room that libc keeps for libraries
 * opened at run time. */
static _Thread_local char self __attribute__((tls_model("initial-exec")));

bool mutex_is_mine(const struct mutex *m)
{
    return atomic_load_explicit(&m->owner, memory_order_relaxed) == (uintptr_t)&self;
}

bool mutex_is_wanted(const struct mutex *m)
{
    return atomic_load_explicit(&m->n_waiting, memory_order_relaxed) > 0;
}

static bool grab(struct mutex *m)
{
    uint32_t expected = FREE;

    return atomic_compare_exchange_strong_explicit(&m->word, &expected, HELD, memory_order_acquire,
                                                   memory_order_relaxed);
}

static void acquire_slowly(struct mutex *m)
{
    bool got = false;

    atomic_fetch_add_explicit(&m->n_waiting, 1, memory_order_relaxed);
    for (int i = 0; i < SPINS && !got; i++) {
        thread_pause();
        got = atomic_load_explicit(&m->word, memory_order_relaxed) == FREE && grab(m);
    }
    if (!got)
        while (atomic_exchange_explicit(&m->word, CONTENDED, memory_order_acquire) != FREE)
            thread_futex_wait(&m->word, CONTENDED, UINT64_MAX);
    atomic_fetch_sub_explicit(&m->n_waiting, 1, memory_order_relaxed);
}

/* The caller has the word: the rest of taking it. */
static void own(struct mutex *m, int depth)
{
    atomic_store_explicit(&m->owner, (uintptr_t)&self, memory_order_relaxed);
    m->depth = depth;
    /* seq_cst: pairs with n_passing in mutex_give_turn. */
    atomic_store_explicit(&m->n_taken, atomic_load_explicit(&m->n_taken, memory_order_relaxed) + 1,
                          memory_order_seq_cst);
    if (__builtin_expect(atomic_load_explicit(&m->n_passing, memory_order_seq_cst) > 0, 0))
        thread_futex_wake(&m->n_taken, INT32_MAX);
}

static void acquire(struct mutex *m, int depth)
{
    if (!grab(m))
        acquire_slowly(m);
    own(m, depth);
}

static void release(struct mutex *m)
{
    atomic_store_explicit(&m->owner, 0, memory_order_relaxed);
    if (atomic_exchange_explicit(&m->word, FREE, memory_order_release) == CONTENDED)
        thread_futex_wake(&m->word, 1);
}

int mutex_take(struct mutex *m)
{
    if (mutex_is_mine(m))
        return ++m->depth;
    acquire(m, 1);
    return 1;
}

bool mutex_try(struct mutex *m)
{
    if (mutex_is_mine(m)) {
        m->depth++;
        return true;
    }
    if (atomic_load_explicit(&m->word, memory_order_relaxed) != FREE || !grab(m))
        return false;
    own(m, 1);
    return true;
}

int mutex_give(struct mutex *m)
{
    assert(mutex_is_mine(m));
    int left = --m->depth;
    if (left == 0)
        release(m);
    return left;
}

void mutex_give_turn(struct mutex *m)
{
    assert(mutex_is_mine(m));
    if (!mutex_is_wanted(m))
        return;
    uint32_t before = atomic_load_explicit(&m->n_taken, memory_order_relaxed);
    int was = m->depth;

    release(m);
    for (int i = 0; i < SPINS && atomic_load_explicit(&m->n_taken, memory_order_relaxed) == before;
         i++)
        thread_pause();
    if (atomic_load_explicit(&m->n_taken, memory_order_relaxed) == before) {
        atomic_fetch_add_explicit(&m->n_passing, 1, memory_order_seq_cst);
        if (atomic_load_explicit(&m->n_taken, memory_order_seq_cst) == before && mutex_is_wanted(m))
            thread_futex_wait(&m->n_taken, before, TURN_NS);
        atomic_fetch_sub_explicit(&m->n_passing, 1, memory_order_relaxed);
    }
    acquire(m, was);
}

int mutex_release(struct mutex *m)
{
    if (!mutex_is_mine(m))
        return 0;
    int was = m->depth;
    release(m);
    return was;
}

void mutex_resume(struct mutex *m, int depth)
{
    if (depth > 0)
        acquire(m, depth);
}
