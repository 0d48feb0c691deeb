/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/lock/lock.h"

#include <stdatomic.h>

#include "client/client.h"

static struct lock lock_first;
struct lock *lock_here = &lock_first;
CLIENT_PART(lock_here, lock_first);

void lock_init(bool threaded)
{
    lock_here->mode = threaded ? LOCK_THREADED : LOCK_SINGLE;
    lock_here->multiple = threaded;
}

void lock_want(bool (*fn)(void))
{
    if (lock_here->mode != LOCK_SINGLE)
        return;
    lock_here->wanted_fn = fn;
    lock_here->mode = LOCK_WANTED;
}

void lock_leave_wanted(void)
{
    if (--lock_here->depth > 0)
        return;
    /* Before the second thread exists, which reads it. */
    lock_here->mode = LOCK_THREADED;
    if (!lock_here->wanted_fn())
        lock_here->mode = LOCK_SINGLE;
}

static void add(_Atomic uint32_t *counter, uint32_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static void count_entry(void)
{
    add(&lock_here->n_inside, 1);
    add(&lock_here->n_calls, 1);
}

void lock_take(void)
{
    if (mutex_take(&lock_here->library) == 1)
        count_entry();
}

bool lock_try(void)
{
    bool inside = mutex_is_mine(&lock_here->library);

    if (!mutex_try(&lock_here->library))
        return false;
    if (!inside)
        count_entry();
    return true;
}

void lock_give(void)
{
    /* While it is still ours, hence before. */
    if (lock_here->library.depth == 1)
        add(&lock_here->n_inside, UINT32_MAX);
    mutex_give(&lock_here->library);
}

uint32_t lock_n_inside(void)
{
    return atomic_load_explicit(&lock_here->n_inside, memory_order_relaxed);
}

uint32_t lock_n_calls(void)
{
    return atomic_load_explicit(&lock_here->n_calls, memory_order_relaxed);
}

bool lock_is_wanted(void)
{
    return mutex_is_wanted(&lock_here->library);
}

bool lock_is_mine(void)
{
    return mutex_is_mine(&lock_here->library);
}

void lock_give_turn(void)
{
    mutex_give_turn(&lock_here->library);
}

int lock_release(void)
{
    return lock_here->mode == LOCK_THREADED ? mutex_release(&lock_here->library) : 0;
}

void lock_resume(int depth)
{
    mutex_resume(&lock_here->library, depth);
}
