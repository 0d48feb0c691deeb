/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A recursive lock that lets waiting threads in: the library lock (lock.h) and the locks of the
 * vcis (vci.h) are of this kind.
 *
 * A futex of three states (Drepper, "Futexes Are Tricky", mutex 2) with an owner and a depth on
 * top. Such a lock alone would starve: the thread that polls unlocks and locks again before a woken
 * waiter runs. So waiting threads are counted, and mutex_give_turn() stays out until one of those
 * it saw waiting has had the lock. A thread that waits may itself be polling; turns then alternate,
 * and both spin a little before they sleep, so that an alternation costs no wake-up.
 */
#ifndef MOTET_CLIENT_LOCK_MUTEX_H
#define MOTET_CLIENT_LOCK_MUTEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* All zero: free. */
struct mutex {
    _Alignas(64) _Atomic uint32_t word;
    _Atomic uint32_t n_taken; /* changed by the holder alone */
    _Atomic uintptr_t owner;  /* of the thread that holds it; 0: free */
    int depth;                /* the holder's */
    _Alignas(64) _Atomic uint32_t n_waiting;
    _Atomic uint32_t n_passing;
};

/* Takes it, or takes it once more. Returns how deep the caller is in it now: 1 the first time. */
int mutex_take(struct mutex *m);
/* Takes it if it is free or the caller's. */
bool mutex_try(struct mutex *m);
/* Returns how deep the caller is still in it. */
int mutex_give(struct mutex *m);
/* Gives it up completely, lets waiting threads in, if there are any, and takes it again as deep as
 * it was. */
void mutex_give_turn(struct mutex *m);
/* Gives it up completely. Returns the depth for mutex_resume; 0 if it was not the caller's. */
int mutex_release(struct mutex *m);
void mutex_resume(struct mutex *m, int depth);
/* Does the calling thread hold it? */
bool mutex_is_mine(const struct mutex *m);
/* At this moment; for guesses. */
static inline bool mutex_is_free(const struct mutex *m)
{
    return atomic_load_explicit(&m->word, memory_order_relaxed) == 0;
}
/* Does another thread wait for it? */
bool mutex_is_wanted(const struct mutex *m);

#endif
