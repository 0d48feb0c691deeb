/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library lock: one recursive lock around the whole library, taken only where a second thread
 * may be inside: with MPI_THREAD_MULTIPLE, and once the helper thread runs
 * (client/progress/async.h).
 *
 * The generated bindings enter and leave, but for the short path of communicators that have a vci
 * (vci.h); waits inside the library pause, so that other threads get in. With one thread each call
 * counts its depth and takes one untaken branch. The lock is recursive because callbacks of the
 * application (user operations, attribute copies, error handlers) may call MPI again.
 */
#ifndef MOTET_CLIENT_LOCK_LOCK_H
#define MOTET_CLIENT_LOCK_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "client/lock/mutex.h"

enum lock_mode {
    LOCK_SINGLE = 0,
    LOCK_THREADED, /* for good */
    LOCK_WANTED, /* one thread still; lock_on_leave's function is called when it leaves the library
                  */
};

struct lock {
    uint8_t mode;  /* changed by lock_init, lock_want and, while no other thread is inside, by
                      lock_leave */
    bool multiple; /* the application has MPI_THREAD_MULTIPLE */
    int depth;     /* LOCK_SINGLE, LOCK_WANTED: calls of the library that are open */
    struct mutex library;
    _Atomic uint32_t n_inside, n_calls; /* changed by the holder alone */
    bool (*wanted_fn)(void);
};
extern struct lock *lock_here;

/* threaded: more than one thread will call. Called while no thread is inside. */
void lock_init(bool threaded);
/* Calls fn when the only thread leaves the library next; true from it: other threads will come from
 * now on. Without effect in LOCK_THREADED. */
void lock_want(bool (*fn)(void));

void lock_take(void);
bool lock_try(void);
void lock_give(void);
void lock_give_turn(void);
void lock_leave_wanted(void);
/* LOCK_THREADED: calls that are open, those asleep or yielding in a wait included; and how many
 * there have been. */
uint32_t lock_n_inside(void);
uint32_t lock_n_calls(void);
/* Does another thread wait for the lock? */
bool lock_is_wanted(void);
/* LOCK_THREADED: does the calling thread hold it? */
bool lock_is_mine(void);

static inline void lock_enter(void)
{
    if (__builtin_expect(lock_here->mode == LOCK_THREADED, 0))
        lock_take();
    else
        lock_here->depth++;
}

static inline void lock_leave(void)
{
    if (__builtin_expect(lock_here->mode == LOCK_SINGLE, 1))
        lock_here->depth--;
    else if (lock_here->mode == LOCK_THREADED)
        lock_give();
    else
        lock_leave_wanted();
}

/* Inside a wait, between two polls: gives the lock up completely, lets waiting threads in, and
 * takes it again as deep as it was. Whatever the caller knows of shared objects may have
 * changed. */
static inline void lock_pause(void)
{
    if (__builtin_expect(lock_here->mode == LOCK_THREADED, 0))
        lock_give_turn();
}

/* For a wait that sleeps: lock_release() before, lock_resume(depth) after it. */
int lock_release(void);
void lock_resume(int depth);

#endif
