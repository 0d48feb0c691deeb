/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The waiting policy. A poll without event is followed by
 *  - a pause while another core can be expected to answer at once (the first microseconds, node not crowded),
 *  - sched_yield afterwards, and from the start when the node has more runnable threads than cores,
 *  - sleep on the bell when nothing has come for long.
 * Yields that take long, one soon after the other, mean that a stranger computes on this core (base/stranger.h); for a while waits then
 * sleep at once. Figures behind the limits: doc/architecture.md.
 */
#include "client/core/progress.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/stranger.h"
#include "base/thread.h"
#include "client/core/job.h"
#include "client/core/lock.h"
#include "client/link/link.h"

#define MAX_POLLERS 8

/* Polls before the first yield when not crowded: 2 to 3 us, ten times what a rank of this node takes to answer. Whoever takes longer
 * does not notice the half microsecond of a yield, and may need this core: node and job do not know who else runs here. */
#define SPIN_POLLS 50u
/* Without news for this long, sleep. A wake-up costs 15 to 45 us, so waiting ten times that before loses at most a tenth. */
#define SLEEP_AFTER_NS (400 * CLOCK_NS_PER_US)
/* The same on a crowded node, where every yield takes the place of somebody who may have work. */
#define SLEEP_AFTER_CROWDED_NS (200 * CLOCK_NS_PER_US)
/* The clock is read once in so many idle polls. */
#define POLLS_PER_CLOCK 64u
/* Whoever only spins shows after so many polls, tens of microseconds, what it waits for. */
#define SPIN_SHOW_POLLS 1000u
/* Sleep is cut into pieces to notice the daemon's death. */
#define SLEEP_PIECE_NS CLOCK_NS_PER_S

static struct {
    int (*poll)(void);
    const int *n_active;
    bool impatient;
} pollers[MAX_POLLERS];
static int n_pollers;
static void (*idle_fn)(void);
static enum progress_news (*news_fn)(void);
int progress_n_sleepers;

void progress_wake_now(void)
{
    inbox_wake_all();
}

void progress_register(int (*poll)(void), const int *n_active, bool impatient)
{
    for (int i = 0; i < n_pollers; i++)
        if (pollers[i].poll == poll)
            return;
    if (n_pollers == MAX_POLLERS)
        abort(); /* a table that one of our own modules outgrew */
    pollers[n_pollers].poll = poll;
    pollers[n_pollers].impatient = impatient;
    pollers[n_pollers++].n_active = n_active;
}

void progress_on_idle(void (*fn)(void))
{
    idle_fn = fn;
}

void progress_on_sleep(enum progress_news (*fn)(void))
{
    news_fn = fn;
}

int progress_poll(void)
{
    int n = 0;

    if (link_self.base)
        n += inbox_poll();
    for (int i = 0; i < n_pollers; i++)
        if (*pollers[i].n_active > 0)
            n += pollers[i].poll();
    if (n > 0)
        progress_wake_sleepers();
    return n;
}

static bool someone_is_impatient(void)
{
    for (int i = 0; i < n_pollers; i++)
        if (pollers[i].impatient && *pollers[i].n_active > 0)
            return true;
    return false;
}

static void idle(struct progress_wait *w)
{
    if (!w->record)
        calls_show(&w->record);
    if (idle_fn)
        idle_fn();
}

static bool crowded(void)
{
    return atomic_load_explicit(&link_self.hops->crowded, memory_order_relaxed) != 0;
}

static enum wait_mode mode(void)
{
    const struct segment_header *header = link_self.base;
    return (enum wait_mode)atomic_load_explicit(&header->wait_mode, memory_order_relaxed);
}

void progress_sleep(void)
{
    struct segment_rank *me = link_self.me;
    uint64_t before_ns = clock_now_ns();

    atomic_store_explicit(&me->waiting_since_ns, clock_coarse_ns(), memory_order_relaxed);
    atomic_store_explicit(&me->waiting, 1, memory_order_relaxed);
    atomic_store_explicit(&me->sleeps, atomic_load_explicit(&me->sleeps, memory_order_relaxed) + 1, memory_order_relaxed);
    enum progress_news news = PROGRESS_NEWS;
    if (inbox_sleep_begin())
        news = news_fn ? news_fn() : PROGRESS_NO_NEWS;
    if (news != PROGRESS_NEWS) {
        /* What waits in our own memory (a full ring) is retried soon; everything else rings the bell. */
        uint64_t piece_ns = news == PROGRESS_SOON || someone_is_impatient() ? CLOCK_NS_PER_MS : SLEEP_PIECE_NS;
        progress_n_sleepers++;
        int depth = lock_release();
        inbox_sleep(piece_ns);
        lock_resume(depth);
        progress_n_sleepers--;
    }
    /* The announcement is everybody's: it stands while others sleep, and when it was used up, they must make it anew. */
    if (progress_n_sleepers == 0)
        inbox_sleep_end();
    else if (!inbox_sleep_announced())
        progress_wake_now();
    if (clock_now_ns() - before_ns > SLEEP_PIECE_NS / 2 && !link_alive()) {
        fprintf(stderr, "motet: rank %u: the daemon of this node is gone, ending\n", link_self.world_rank);
        _Exit(EXIT_FAILURE);
    }
    atomic_store_explicit(&me->waiting, 0, memory_order_relaxed);
}

static struct stranger stranger;
static uint64_t last_lost_ns;

/* One loss is an accident; whoever computes here takes the core again soon. */
#define STRANGER_AGAIN_NS (64 * CLOCK_NS_PER_MS)

/* How long a yield may take: as long as our own kind needs when all the ranks that share this core copy something. */
static uint64_t patience_ns(void)
{
    static uint64_t patience;

    if (patience == 0) {
        uint32_t n_cores = (uint32_t)thread_n_cores(), n_sharing = (link_self.n_local + n_cores - 1) / n_cores;
        patience = STRANGER_LOST_NS * (n_sharing > 0 ? n_sharing : 1);
    }
    return patience;
}

static void yield_once(void)
{
    int depth = lock_release();
    uint64_t before_ns = clock_now_ns();

    sched_yield();
    uint64_t after_ns = clock_now_ns();
    lock_resume(depth);
    if (after_ns - before_ns > patience_ns()) {
        if (after_ns - last_lost_ns < STRANGER_AGAIN_NS)
            stranger_met(&stranger, after_ns);
        last_lost_ns = after_ns;
    }
}

/* Reads the clock once in a while. Returns how long this wait has been idle. */
static uint64_t idle_ns(struct progress_wait *w)
{
    uint64_t now_ns = clock_now_ns();

    if (w->idle_since_ns == 0) {
        w->idle_since_ns = now_ns;
        idle(w);
    }
    return now_ns - w->idle_since_ns;
}

void progress_wait_idle(struct progress_wait *w)
{
    w->idle_polls++;
    if (!link_self.base) {
        lock_pause();
        sched_yield();
        return;
    }
    if (mode() == WAIT_SPIN) {
        if (w->idle_polls % SPIN_SHOW_POLLS == 0) {
            idle(w);
            if (news_fn)
                news_fn(); /* shows what the collectives wait for */
        }
        lock_pause();
        thread_pause();
        return;
    }
    if (mode() == WAIT_EVENT) {
        idle(w);
        progress_sleep();
        return;
    }
    bool many = crowded();
    if (stranger.until_ns != 0 && (many || w->idle_polls > SPIN_POLLS) && stranger_near(&stranger, clock_coarse_ns())) {
        idle(w);
        progress_sleep();
        return;
    }
    if (w->idle_polls == 1) {
        w->idle_since_ns = 0;
    } else if (w->idle_polls % POLLS_PER_CLOCK == 0 && idle_ns(w) > (many ? SLEEP_AFTER_CROWDED_NS : SLEEP_AFTER_NS)) {
        progress_sleep();
        return;
    }
    /* Another thread of this process that is inside waits for the lock, and perhaps for this core. */
    if (many || outbox_needs_channel || w->idle_polls > SPIN_POLLS || lock_n_inside() > 1) {
        yield_once();
    } else {
        lock_pause();
        thread_pause();
    }
}
