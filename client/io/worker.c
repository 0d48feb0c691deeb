/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/io/worker.h"

#include <pthread.h>
#include <signal.h>

#include "base/thread.h"
#include "client/client.h"
#include "client/progress/sleepers.h"

/* More wait for one another in the file system. */
#define MAX_WORKERS 4

struct worker {
    pthread_mutex_t mutex; /* of all below but n_ended */
    pthread_cond_t more;
    struct job *first, **last;
    int n_threads, n_idle;
    bool stopping;
    pthread_t threads[MAX_WORKERS];
    atomic_uint n_ended;
};

static struct worker worker_first;
static struct worker *worker_here = &worker_first;

static void worker_part_init(void)
{
    pthread_mutex_init(&worker_here->mutex, NULL);
    pthread_cond_init(&worker_here->more, NULL);
    worker_here->last = &worker_here->first;
}
CLIENT_PART(worker_here, worker_first, .init = worker_part_init);

void worker_run(struct job *job)
{
    job->run(job);
    /* release: pairs with the acquire in worker_done. */
    atomic_store_explicit(&job->done, true, memory_order_release);
}

static void *worker_loop(void *arg)
{
    struct worker *w = arg;
    thread_set_name("motet-file");
    pthread_mutex_lock(&w->mutex);
    while (!w->stopping || w->first) {
        struct job *job = w->first;
        if (!job) {
            w->n_idle++;
            pthread_cond_wait(&w->more, &w->mutex);
            w->n_idle--;
            continue;
        }
        w->first = job->next;
        if (!w->first)
            w->last = &w->first;
        pthread_mutex_unlock(&w->mutex);
        worker_run(job);
        /* seq_cst: before the look at the sleepers, who look here after they have announced
         * themselves (fileop_news). */
        atomic_fetch_add_explicit(&w->n_ended, 1, memory_order_seq_cst);
        sleepers_wake();
        pthread_mutex_lock(&w->mutex);
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

unsigned worker_n_ended(void)
{
    return atomic_load_explicit(&worker_here->n_ended, memory_order_seq_cst);
}

/* With the mutex held. */
static void worker_start(struct worker *w)
{
    sigset_t all, before;
    if (w->n_threads == MAX_WORKERS)
        return;
    /* Signals are the application's. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&w->threads[w->n_threads], NULL, worker_loop, w) == 0)
        w->n_threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void worker_submit(struct job *job)
{
    struct worker *w = worker_here;
    atomic_store_explicit(&job->done, false, memory_order_relaxed);
    job->next = NULL;
    pthread_mutex_lock(&w->mutex);
    if (w->n_idle == 0 || w->first)
        worker_start(w);
    bool queued = w->n_threads > 0;
    if (queued) {
        *w->last = job;
        w->last = &job->next;
        pthread_cond_signal(&w->more);
    }
    pthread_mutex_unlock(&w->mutex);
    if (!queued) {
        worker_run(job);
        atomic_fetch_add_explicit(&w->n_ended, 1, memory_order_seq_cst);
    }
}

void worker_stop(void)
{
    struct worker *w = worker_here;
    pthread_mutex_lock(&w->mutex);
    w->stopping = true;
    pthread_cond_broadcast(&w->more);
    pthread_mutex_unlock(&w->mutex);
    while (w->n_threads > 0)
        pthread_join(w->threads[--w->n_threads], NULL);
    w->stopping = false;
}
