/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A futex of three states (Drepper, "Futexes Are Tricky", mutex 2) with an owner and a depth on top. Such a lock alone would
 * starve: the thread that polls unlocks and locks again before a woken waiter runs. So waiting threads are counted, and
 * lock_give_turn() stays out until one of those it saw waiting has had the lock. A thread that waits may itself be
 * polling; turns then alternate, and both spin a little before they sleep, so that an alternation costs no wake-up.
 */
#include "client/core/lock.h"

#include <assert.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/thread.h"

/* Looks at the lock before sleeping: one or two microseconds. */
#define SPINS 40
/* A turn is waited for no longer than this: its taker may have changed its mind. */
#define TURN_NS CLOCK_NS_PER_MS

enum { FREE, HELD, CONTENDED };

uint8_t lock_mode;
int lock_depth;

static _Atomic uint32_t word;
static _Atomic uint32_t n_taken, n_inside, n_calls; /* changed by the holder alone */
static _Atomic uint32_t n_waiting, n_passing;
static _Atomic uintptr_t owner; /* address of the holder's `self` */
static int depth;               /* the holder's */
static _Thread_local char self;
static bool (*wanted_fn)(void);

static bool mine(void)
{
    return atomic_load_explicit(&owner, memory_order_relaxed) == (uintptr_t)&self;
}

void lock_init(bool threaded)
{
    lock_mode = threaded ? LOCK_THREADED : LOCK_SINGLE;
}

void lock_want(bool (*fn)(void))
{
    if (lock_mode != LOCK_SINGLE)
        return;
    wanted_fn = fn;
    lock_mode = LOCK_WANTED;
}

void lock_leave_wanted(void)
{
    if (--lock_depth > 0)
        return;
    /* Before the second thread exists, which reads it. */
    lock_mode = LOCK_THREADED;
    if (!wanted_fn())
        lock_mode = LOCK_SINGLE;
}

static bool try(void)
{
    uint32_t expected = FREE;

    return atomic_compare_exchange_strong_explicit(&word, &expected, HELD, memory_order_acquire, memory_order_relaxed);
}

static void acquire_slowly(void)
{
    bool got = false;

    atomic_fetch_add_explicit(&n_waiting, 1, memory_order_relaxed);
    for (int i = 0; i < SPINS && !got; i++) {
        thread_pause();
        got = atomic_load_explicit(&word, memory_order_relaxed) == FREE && try();
    }
    if (!got)
        while (atomic_exchange_explicit(&word, CONTENDED, memory_order_acquire) != FREE)
            thread_futex_wait(&word, CONTENDED, UINT64_MAX);
    atomic_fetch_sub_explicit(&n_waiting, 1, memory_order_relaxed);
}

static void acquire(int new_depth)
{
    if (!try())
        acquire_slowly();
    atomic_store_explicit(&owner, (uintptr_t)&self, memory_order_relaxed);
    depth = new_depth;
    /* seq_cst: pairs with n_passing in lock_give_turn. */
    atomic_store_explicit(&n_taken, atomic_load_explicit(&n_taken, memory_order_relaxed) + 1, memory_order_seq_cst);
    if (__builtin_expect(atomic_load_explicit(&n_passing, memory_order_seq_cst) > 0, 0))
        thread_futex_wake(&n_taken, INT32_MAX);
}

static void release(void)
{
    atomic_store_explicit(&owner, 0, memory_order_relaxed);
    if (atomic_exchange_explicit(&word, FREE, memory_order_release) == CONTENDED)
        thread_futex_wake(&word, 1);
}

static void add(_Atomic uint32_t *counter, uint32_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
}

void lock_take(void)
{
    if (mine()) {
        depth++;
        return;
    }
    acquire(1);
    add(&n_inside, 1);
    add(&n_calls, 1);
}

void lock_give(void)
{
    assert(mine());
    if (--depth > 0)
        return;
    add(&n_inside, UINT32_MAX);
    release();
}

uint32_t lock_n_inside(void)
{
    return atomic_load_explicit(&n_inside, memory_order_relaxed);
}

uint32_t lock_n_calls(void)
{
    return atomic_load_explicit(&n_calls, memory_order_relaxed);
}

bool lock_is_wanted(void)
{
    return atomic_load_explicit(&n_waiting, memory_order_relaxed) > 0;
}

void lock_give_turn(void)
{
    assert(mine());
    if (!lock_is_wanted())
        return;
    uint32_t before = atomic_load_explicit(&n_taken, memory_order_relaxed);
    int was = depth;

    release();
    for (int i = 0; i < SPINS && atomic_load_explicit(&n_taken, memory_order_relaxed) == before; i++)
        thread_pause();
    if (atomic_load_explicit(&n_taken, memory_order_relaxed) == before) {
        atomic_fetch_add_explicit(&n_passing, 1, memory_order_seq_cst);
        if (atomic_load_explicit(&n_taken, memory_order_seq_cst) == before && lock_is_wanted())
            thread_futex_wait(&n_taken, before, TURN_NS);
        atomic_fetch_sub_explicit(&n_passing, 1, memory_order_relaxed);
    }
    acquire(was);
}

int lock_release(void)
{
    if (lock_mode != LOCK_THREADED || !mine())
        return 0;
    int was = depth;
    release();
    return was;
}

void lock_resume(int was)
{
    if (was > 0)
        acquire(was);
}
