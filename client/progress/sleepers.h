/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads of this process that sleep in a wait (MPI_THREAD_MULTIPLE; with one thread nobody sleeps
 * beside it). Whoever completes what one of them may wait for wakes them.
 */
#ifndef MOTET_CLIENT_PROGRESS_SLEEPERS_H
#define MOTET_CLIENT_PROGRESS_SLEEPERS_H

#include <stdatomic.h>

struct sleepers {
    _Atomic int n; /* counted by progress_sleep */
};
extern struct sleepers *sleepers_here;

void sleepers_wake_now(void);

static inline void sleepers_wake(void)
{
    /* seq_cst: after what the caller has just completed; see progress_sleep. */
    if (__builtin_expect(atomic_load_explicit(&sleepers_here->n, memory_order_seq_cst) > 0, 0))
        sleepers_wake_now();
}

#endif
