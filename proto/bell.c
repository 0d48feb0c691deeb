/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/bell.h"

#include <unistd.h>

#include "base/thread.h"

void bell_wake(const struct bell_ref *ref)
{
    /* Only the producer that turns the word wakes: a sleeper costs one system call, however many
     * producers see it. */
    if (atomic_exchange_explicit(&ref->bell->sleeping, 0, memory_order_acq_rel) == 0)
        return;
    if (ref->event_fd >= 0) {
        uint64_t one = 1;
        /* Fails only when the counter is full, and then the reader is awake already. */
        ssize_t rc = write(ref->event_fd, &one, sizeof one);
        (void)rc;
    } else {
        thread_futex_wake(&ref->bell->sleeping, 1);
    }
}

void bell_sleep_begin(struct bell *bell, bool fenced)
{
    /* seq_cst: pairs with the seq_cst exchange in ring_publish when fenced. */
    atomic_exchange_explicit(&bell->sleeping, 1, memory_order_seq_cst);
    if (!fenced) {
        thread_barrier_all();
    } else {
#if !defined(__SANITIZE_THREAD__)
        /* The second look at bell and rings uses acquire and relaxed loads, which C11 lets pass the
         * exchange (and some machines do so). No other protocol here has a stand-alone fence: the
         * race detector needs no help from this one, since what it checks is ordered by `turn`. */
        atomic_thread_fence(memory_order_seq_cst);
#endif
    }
}

void bell_sleep(struct bell *bell, uint64_t timeout_ns)
{
    thread_futex_wait(&bell->sleeping, 1, timeout_ns);
}

void bell_sleep_end(struct bell *bell)
{
    atomic_store_explicit(&bell->sleeping, 0, memory_order_relaxed);
}
