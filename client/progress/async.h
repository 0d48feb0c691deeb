/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Progress while the application computes: a helper thread that advances large transfers and
 * nonblocking collectives when no thread of the application is inside the library.
 *
 * It exists from the first such operation that a call leaves unfinished. It does not compete with
 * an application that waits in the library: it looks every 0.1 to 2 ms whether anybody has called
 * since the last look, and only when nobody has does it take the lock and wait in the application's
 * place, asleep on the rank's bell between events. MOTET_PROGRESS=none forbids it.
 *
 * Callbacks of the application (operations of its own in nonblocking reductions) may then run on
 * the helper thread.
 */
#ifndef MOTET_CLIENT_PROGRESS_ASYNC_H
#define MOTET_CLIENT_PROGRESS_ASYNC_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Transfers from this size on are worth it: smaller ones are in the rings when the call returns. */
#define ASYNC_MIN_BYTES (32 << 10)

struct async {
    _Atomic int n_work; /* operations under way that the helper may advance */
    /* The helper's: async.c. */
    enum async_state {
        ASYNC_NONE,
        ASYNC_RUNS,
        ASYNC_FORBIDDEN
    } state; /* with the lock held, or
                one thread */
    pthread_t thread;
    _Atomic uint32_t kick; /* 1: the helper sleeps without a time limit */
    atomic_bool stopping;
};
extern struct async *async_here;

void async_wake(void);

static inline void async_begin(void)
{
    if (atomic_fetch_add_explicit(&async_here->n_work, 1, memory_order_seq_cst) == 0)
        async_wake();
}

static inline void async_end(void)
{
    atomic_fetch_sub_explicit(&async_here->n_work, 1, memory_order_relaxed);
}

/* Ends the helper, if there is one; the lock may be held. A later operation makes a new one. */
void async_stop(void);

#endif
