/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Progress: the one place that makes things move, and the one that waits.
 *
 * progress_poll looks at the rings, advances what is pending, and calls the pollers that other
 * modules registered. A wait is
 *
 *     struct progress_wait wait;
 *     progress_wait_begin(&wait);
 *     while (!done)
 *         progress_wait_step(&wait);
 *     progress_wait_end(&wait);
 *
 * whose steps poll and, when nothing happens, go from spinning through yielding to sleeping, as the
 * job's wait mode and the crowding of the node's cores ask (doc/architecture.md, Waiting). Runs on
 * the calling thread with the library lock held; the lock is given up between polls and while
 * asleep. A thread that holds a vci alone (vci.h) polls that vci, and everything else only when
 * it has found nothing for long.
 */
#ifndef MOTET_CLIENT_PROGRESS_PROGRESS_H
#define MOTET_CLIENT_PROGRESS_PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/stranger.h"
#include "client/progress/calls.h"

/* Handles what has arrived and advances what can move. Returns the number of events; never
 * blocks. */
int progress_poll(void);

/* progress_poll for a call that does not wait, as test and probe do: now and then a program that
 * does nothing but ask again and again gives its core to those whom it asks about. */
void progress_ask(void);

/*
 * A module's own poller: returns the number of things it advanced. While `*n_active` is 0 it is not
 * called. `impatient`: what it waits for may come without a message (room in a ring), so while it
 * is active nobody sleeps longer than a millisecond. At most 8 pollers; registering one again
 * changes nothing.
 */
void progress_register(int (*poll)(void), const int *n_active, bool impatient);

/*
 * Asked before a thread falls asleep, after it has announced that to everybody: has something come
 * that is in no ring? PROGRESS_NEWS: yes, nobody sleeps. PROGRESS_SOON: no, but it may come without
 * a wake-up, so sleep a millisecond at most. Asking twice for one function changes nothing.
 */
enum progress_news { PROGRESS_NO_NEWS, PROGRESS_SOON, PROGRESS_NEWS };
void progress_on_sleep(enum progress_news (*fn)(void));

#define PROGRESS_MAX_POLLERS 8
#define PROGRESS_MAX_NEWS    2 /* collectives, files */
struct progress {
    int n_pollers;
    struct {
        int (*poll)(void);
        const int *n_active;
        bool impatient;
    } pollers[PROGRESS_MAX_POLLERS];
    enum progress_news (*news_fns[PROGRESS_MAX_NEWS])(void);
    struct stranger stranger;
    uint64_t last_lost_ns, patience_ns;
    uint64_t slept_ns; /* by all waits so far */
};
extern struct progress *progress_here;

struct progress_wait {
    uint64_t idle_since_ns; /* 0: not measured yet */
    uint32_t idle_polls;
    struct calls_record *record; /* of the call that waits, once it has waited for long */
    uint32_t n_done; /* vci_n_done() before the caller last looked whether its wait is over */
};

static inline void progress_wait_begin(struct progress_wait *w)
{
    w->idle_since_ns = 0;
    w->idle_polls = 0;
    w->record = NULL;
    w->n_done = 0;
}
/* Sleeps until something arrives, somebody wakes the sleepers, or a bounded time is over; with the
 * lock given up. `w` may be NULL for who waits for no request. */
void progress_sleep(struct progress_wait *w);
void progress_wait_idle(struct progress_wait *w);
static inline void progress_wait_end(struct progress_wait *w)
{
    if (__builtin_expect(w->record != NULL, 0))
        calls_hide(&w->record);
}

/* One poll; after a poll without event, one step of the waiting policy. */
static inline void progress_wait_step(struct progress_wait *w)
{
    if (progress_poll() > 0)
        w->idle_polls = 0;
    else
        progress_wait_idle(w);
}

#endif
