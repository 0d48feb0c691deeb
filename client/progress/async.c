/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/progress/async.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "client/client.h"
#include "client/process/phase.h"
#include "client/process/setting.h"
#include "client/progress/progress.h"
#include "client/progress/sleepers.h"
#include "client/progress/vci.h"
#include "client/transport/transport.h"

/* Between two looks: short after a takeover or new work, longer while the application is busy with
 * the library itself. */
#define LOOK_MIN_NS (100 * CLOCK_NS_PER_US)
#define LOOK_MAX_NS (2 * CLOCK_NS_PER_MS)
/* Looks without work before the helper sleeps until it is woken: a window of transfers follows the
 * other. */
#define LINGER 50

static struct async async_first;
struct async *async_here = &async_first;
CLIENT_PART(async_here, async_first);

static bool async_work(void)
{
    return atomic_load_explicit(&async_here->n_work, memory_order_seq_cst) > 0;
}

/* Waits in the application's place until it calls or nothing is left to do. */
static void take_over(void)
{
    lock_take();
    while (async_work() && lock_n_inside() == 1 && !lock_is_wanted() &&
           !atomic_load_explicit(&async_here->stopping, memory_order_relaxed))
        if (progress_poll() == 0)
            progress_sleep(NULL);
    lock_give();
}

static void *async_run(void *arg)
{
    uint64_t look_ns = LOOK_MIN_NS;
    uint32_t seen = lock_n_calls(), n_idle = 0;

    (void)arg;
    thread_set_name("motet-progress");
    while (!atomic_load_explicit(&async_here->stopping, memory_order_relaxed)) {
        if (async_work()) {
            n_idle = 0;
        } else if (++n_idle > LINGER) {
            atomic_store_explicit(&async_here->kick, 1, memory_order_seq_cst);
            if (!async_work() && !atomic_load_explicit(&async_here->stopping, memory_order_seq_cst))
                thread_futex_wait(&async_here->kick, 1, CLOCK_NS_PER_S);
            atomic_store_explicit(&async_here->kick, 0, memory_order_relaxed);
            look_ns = LOOK_MIN_NS;
        }
        thread_futex_wait(&async_here->kick, 0, look_ns);
        bool outside = async_work() && lock_n_inside() == 0;
        if (outside && lock_n_calls() == seen)
            take_over();
        if (outside)
            look_ns = LOOK_MIN_NS;
        else if (look_ns < LOOK_MAX_NS)
            look_ns *= 2;
        seen = lock_n_calls();
    }
    return NULL;
}

/* True if the helper runs. */
static bool async_start(void)
{
    sigset_t all, before;
    const char *mode = setting_of("MOTET_PROGRESS");

    if (!transport_here->base || phase_now() != PHASE_ACTIVE ||
        (mode && strcmp(mode, "none") == 0)) {
        async_here->state = ASYNC_FORBIDDEN;
        return false;
    }
    atomic_store_explicit(&async_here->stopping, false, memory_order_relaxed);
    /* Signals are the application's. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    async_here->state = pthread_create(&async_here->thread, NULL, async_run, NULL) == 0
                            ? ASYNC_RUNS
                            : ASYNC_FORBIDDEN;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return async_here->state == ASYNC_RUNS;
}

void async_wake(void)
{
    struct vci *alone = vci_alone();
    int depth = alone ? vci_step_out(alone) : 0;

    if (alone)
        lock_take();
    if (async_here->state == ASYNC_RUNS) {
        if (atomic_load_explicit(&async_here->kick, memory_order_seq_cst) != 0) {
            atomic_store_explicit(&async_here->kick, 0, memory_order_relaxed);
            thread_futex_wake(&async_here->kick, 1);
        }
    } else if (async_here->state == ASYNC_NONE) {
        if (lock_here->mode == LOCK_THREADED)
            async_start();
        else
            lock_want(async_start);
    }
    if (alone) {
        lock_give();
        vci_step_in(alone, depth);
    }
}

void async_stop(void)
{
    atomic_store_explicit(&async_here->n_work, 0, memory_order_relaxed);
    if (async_here->state != ASYNC_RUNS) {
        async_here->state = ASYNC_NONE;
        return;
    }
    atomic_store_explicit(&async_here->stopping, true, memory_order_seq_cst);
    atomic_store_explicit(&async_here->kick, 2, memory_order_seq_cst);
    thread_futex_wake(&async_here->kick, 1);
    sleepers_wake_now();
    int depth = lock_release();
    pthread_join(async_here->thread, NULL);
    lock_resume(depth);
    atomic_store_explicit(&async_here->kick, 0, memory_order_relaxed);
    async_here->state = ASYNC_NONE;
}
