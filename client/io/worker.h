/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that carry out accesses of files while the application computes.
 *
 * A few of them, made as they are needed and kept; they take no lock of the library. Whoever
 * submits a job finds it done at some later poll: a finished job wakes the threads of this process
 * that sleep in a wait. Library lock held by all callers but for worker_run().
 */
#ifndef MOTET_CLIENT_IO_WORKER_H
#define MOTET_CLIENT_IO_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>

struct job {
    struct job *next;
    void (*run)(struct job *job);
    atomic_bool done;
};

/* Has the job run by one of the threads; here and now where none can be made. */
void worker_submit(struct job *job);
/* Runs it on the calling thread; true from then on: worker_done(). */
void worker_run(struct job *job);

static inline bool worker_done(const struct job *job)
{
    /* acquire: pairs with the release in worker_run. */
    return atomic_load_explicit(&job->done, memory_order_acquire);
}

/* Jobs that were submitted and have ended so far. */
unsigned worker_n_ended(void);
/* Ends the threads, which have nothing to do. */
void worker_stop(void);

#endif
