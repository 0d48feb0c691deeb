/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library lock: one recursive lock around the whole library, taken only with MPI_THREAD_MULTIPLE.
 *
 * The generated bindings enter and leave; waits inside the library pause, so that other threads get in. Below
 * MPI_THREAD_MULTIPLE each call is one untaken branch. It is recursive because callbacks of the application (user
 * operations, attribute copies, error handlers) may call MPI again.
 */
#ifndef MOTET_CLIENT_CORE_LOCK_H
#define MOTET_CLIENT_CORE_LOCK_H

#include <stdbool.h>

extern bool lock_threaded; /* set once by lock_init, before a second thread may call */

/* threaded: MPI_THREAD_MULTIPLE was granted. Called by initialization while no other thread is inside. */
void lock_init(bool threaded);

void lock_take(void);
void lock_give(void);
void lock_give_turn(void);

static inline void lock_enter(void)
{
    if (__builtin_expect(lock_threaded, 0))
        lock_take();
}

static inline void lock_leave(void)
{
    if (__builtin_expect(lock_threaded, 0))
        lock_give();
}

/* Inside a wait, between two polls: gives the lock up completely, lets waiting threads in, and takes it again as deep
 * as it was. Whatever the caller knows of shared objects may have changed. */
static inline void lock_pause(void)
{
    if (__builtin_expect(lock_threaded, 0))
        lock_give_turn();
}

/* For a wait that sleeps: lock_release() before, lock_resume(depth) after it. */
int lock_release(void);
void lock_resume(int depth);

#endif
