/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/progress/lock.h"

#include <stdatomic.h>

#include "client/progress/mutex.h"

uint8_t lock_mode;
int lock_depth;
bool lock_multiple;

static struct mutex library;
static _Atomic uint32_t n_inside, n_calls; /* changed by the holder alone */
static bool (*wanted_fn)(void);

void lock_init(bool threaded)
{
    lock_mode = threaded ? LOCK_THREADED : LOCK_SINGLE;
    lock_multiple = threaded;
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

static void add(_Atomic uint32_t *counter, uint32_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static void count_entry(void)
{
    add(&n_inside, 1);
    add(&n_calls, 1);
}

void lock_take(void)
{
    if (mutex_take(&library) == 1)
        count_entry();
}

bool lock_try(void)
{
    bool inside = mutex_is_mine(&library);

    if (!mutex_try(&library))
        return false;
    if (!inside)
        count_entry();
    return true;
}

void lock_give(void)
{
    /* While it is still ours, hence before. */
    if (library.depth == 1)
        add(&n_inside, UINT32_MAX);
    mutex_give(&library);
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
    return mutex_is_wanted(&library);
}

bool lock_is_mine(void)
{
    return mutex_is_mine(&library);
}

void lock_give_turn(void)
{
    mutex_give_turn(&library);
}

int lock_release(void)
{
    return lock_mode == LOCK_THREADED ? mutex_release(&library) : 0;
}

void lock_resume(int depth)
{
    mutex_resume(&library, depth);
}
