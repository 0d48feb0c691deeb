/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The waiting policy. A poll without event is followed by
 *  - a pause while another core can be expected to answer at once (the first microseconds, node not
 *    crowded),
 *  - sched_yield afterwards, and from the start when the node has more runnable threads than cores,
 *  - sleep on the bell when nothing has come for long. Yields that take long, one soon after the
 *    other, mean that a stranger computes on this core (base/stranger.h); for a while waits then
 *    sleep at once. Figures behind the limits: doc/architecture.md.
 */
#include "client/progress/progress.h"

#include <assert.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"
#include "client/client.h"
#include "client/process/job.h"
#include "client/progress/notice.h"
#include "client/progress/sleepers.h"
#include "client/progress/vci.h"
#include "client/transport/end.h"
#include "client/transport/transport.h"

/* Polls before the first yield when not crowded: 2 to 3 us, ten times what a rank of this node
 * takes to answer. Whoever takes longer does not notice the half microsecond of a yield, and may
 * need this core: node and job do not know who else runs here. */
#define SPIN_POLLS 50u
/* Without news for this long, sleep. A wake-up costs 15 to 45 us, so waiting ten times that before
 * loses at most a tenth. */
#define SLEEP_AFTER_NS (400 * CLOCK_NS_PER_US)
/* The same on a crowded node, where every yield takes the place of somebody who may have work. */
#define SLEEP_AFTER_CROWDED_NS (200 * CLOCK_NS_PER_US)
/* The clock is read once in so many idle polls. */
#define POLLS_PER_CLOCK 64u
/* Whoever only spins shows after so many polls, tens of microseconds, what it waits for. */
#define SPIN_SHOW_POLLS 1000u
/* A thread that polls a vci alone looks at everything else once in so many polls without event. */
#define POLLS_PER_LOOK_AROUND 256u
/* So many calls in a row that asked and got nothing are looked at together. If they took less than
 * this each, the program does nothing between them, and what it asks for may need this core: also
 * where the node is not known to be crowded, as in waits. */
#define ASKS_PER_CLOCK 32u
#define ASK_AGAIN_NS   1000u
/* Sleep is cut into pieces to notice the daemon's death. */
#define SLEEP_PIECE_NS CLOCK_NS_PER_S

static struct progress progress_first;
struct progress *progress_here = &progress_first;
CLIENT_PART(progress_here, progress_first);

void progress_register(int (*poll)(void), const int *n_active, bool impatient)
{
    for (int i = 0; i < progress_here->n_pollers; i++)
        if (progress_here->pollers[i].poll == poll)
            return;
    assert(progress_here->n_pollers < PROGRESS_MAX_POLLERS);
    progress_here->pollers[progress_here->n_pollers].poll = poll;
    progress_here->pollers[progress_here->n_pollers].impatient = impatient;
    progress_here->pollers[progress_here->n_pollers++].n_active = n_active;
}

void progress_on_sleep(enum progress_news (*fn)(void))
{
    int i = 0;
    while (i < PROGRESS_MAX_NEWS && progress_here->news_fns[i] && progress_here->news_fns[i] != fn)
        i++;
    assert(i < PROGRESS_MAX_NEWS);
    progress_here->news_fns[i] = fn;
}

/* All are asked: some show what they wait for. */
static enum progress_news modules_news(void)
{
    enum progress_news news = PROGRESS_NO_NEWS;

    for (int i = 0; i < PROGRESS_MAX_NEWS && progress_here->news_fns[i]; i++) {
        enum progress_news one = progress_here->news_fns[i]();
        news = one > news ? one : news;
    }
    return news;
}

/* The further vcis that no thread holds, for a thread with the library lock. */
static int poll_vcis(void)
{
    int n = 0;

    for (uint32_t i = 1; i < vci_n_used(); i++) {
        struct vci *vci = &vci_here->table[i];
        if (!mutex_try(&vci->mutex))
            continue;
        n += vci_here->ops->poll(vci);
        mutex_give(&vci->mutex);
    }
    if (atomic_load_explicit(&vci_here->has_dead, memory_order_relaxed))
        vci_bury_now();
    return n;
}

/* For a thread that holds this vci alone: everything else has its turn when nothing has come here
 * for some polls. */
static int poll_alone(struct vci *vci)
{
    int n = vci_here->ops->poll(vci);

    if (n > 0) {
        vci->n_idle_polls = 0;
        sleepers_wake();
    } else if (++vci->n_idle_polls >= POLLS_PER_LOOK_AROUND) {
        vci->n_idle_polls = 0;
        int depth = vci_step_out(vci);
        if (lock_try()) {
            n = progress_poll();
            lock_give();
        }
        vci_step_in(vci, depth);
    }
    return n;
}

int progress_poll(void)
{
    int n = 0;

    if (__builtin_expect(vci_n_used() > 1, 0)) {
        struct vci *alone = vci_alone();
        if (alone)
            return poll_alone(alone);
        n = poll_vcis();
    }
    if (vci_here->ops)
        n += vci_here->ops->poll(&vci_here->table[0]);
    for (int i = 0; i < progress_here->n_pollers; i++)
        if (*progress_here->pollers[i].n_active > 0)
            n += progress_here->pollers[i].poll();
    if (n > 0)
        sleepers_wake();
    return n;
}

/* What vci i has to say; `busy` if another thread is in it. */
static bool ask_vci(uint32_t i, bool (*question)(struct vci *vci), bool busy)
{
    struct vci *vci = &vci_here->table[i];

    if (i == 0)
        return question(vci);
    if (!mutex_try(&vci->mutex))
        return busy;
    bool answer = question(vci);
    mutex_give(&vci->mutex);
    return answer;
}

static bool someone_is_impatient(void)
{
    for (int i = 0; i < progress_here->n_pollers; i++)
        if (progress_here->pollers[i].impatient && *progress_here->pollers[i].n_active > 0)
            return true;
    /* The thread in a vci may be about to leave it, with a message there that it has not seen. */
    for (uint32_t i = 0; i < vci_n_used(); i++)
        if (ask_vci(i, vci_here->ops->impatient, true))
            return true;
    return false;
}

static bool lanes_have_news(void)
{
    for (uint32_t i = 0; i < vci_n_used(); i++)
        if (ask_vci(i, vci_here->ops->has_news, false))
            return true;
    return false;
}

static void progress_idle(struct progress_wait *w)
{
    if (!w->record)
        calls_show(&w->record);
    if (!vci_here->ops || !transport_here->base)
        return;
    vci_here->ops->idle(&vci_here->table[0]);
    for (uint32_t i = 1; i < vci_n_used(); i++) {
        if (mutex_try(&vci_here->table[i].mutex)) {
            vci_here->ops->idle(&vci_here->table[i]);
            mutex_give(&vci_here->table[i].mutex);
        }
    }
}

static bool progress_crowded(void)
{
    return atomic_load_explicit(&transport_here->hops->crowded, memory_order_relaxed) != 0;
}

static enum wait_mode progress_mode(void)
{
    const struct segment_header *header = transport_here->base;
    return (enum wait_mode)atomic_load_explicit(&header->wait_mode, memory_order_relaxed);
}

/* Did a thread that held a vci alone complete something since the caller last looked? */
static bool lanes_have_done(struct progress_wait *w)
{
    uint32_t n = vci_n_done(), before = w ? w->n_done : n;

    if (w)
        w->n_done = n;
    return n != before;
}

void progress_sleep(struct progress_wait *w)
{
    struct segment_rank *me = transport_here->me;
    uint64_t before_ns = clock_now_ns();

    atomic_store_explicit(&me->waiting_since_ns, clock_coarse_ns(), memory_order_relaxed);
    atomic_store_explicit(&me->waiting, 1, memory_order_relaxed);
    atomic_store_explicit(&me->sleeps, atomic_load_explicit(&me->sleeps, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    /* seq_cst: who completes a request in a vci counts it and then looks for sleepers; here it is
     * the other way round. */
    atomic_fetch_add_explicit(&sleepers_here->n, 1, memory_order_seq_cst);
    inbox_sleep_begin();
    enum progress_news news = PROGRESS_NEWS;
    if (!lanes_have_news() && !lanes_have_done(w))
        news = modules_news();
    if (news != PROGRESS_NEWS) {
        /* What waits in our own memory (a full ring) is retried soon; everything else rings the
         * bell. */
        uint64_t piece_ns =
            news == PROGRESS_SOON || someone_is_impatient() ? CLOCK_NS_PER_MS : SLEEP_PIECE_NS;
        int depth = lock_release();
        inbox_sleep(piece_ns);
        lock_resume(depth);
    }
    /* The announcement is everybody's: it stands while others sleep, and when it was used up, they
     * must make it anew. */
    if (atomic_fetch_sub_explicit(&sleepers_here->n, 1, memory_order_relaxed) == 1)
        inbox_sleep_end();
    else if (!inbox_sleep_announced())
        sleepers_wake_now();
    uint64_t slept_ns = clock_now_ns() - before_ns;
    progress_here->slept_ns += slept_ns;
    notice_tell(NOTICE_SLEPT, 0, 0, 0, (int64_t)slept_ns);
    if (slept_ns > SLEEP_PIECE_NS / 2 && !transport_alive()) {
        fprintf(stderr, "motet: rank %u: the daemon of this node is gone, ending\n",
                transport_here->world_rank);
        end_job(EXIT_FAILURE, NULL);
    }
    atomic_store_explicit(&me->waiting, 0, memory_order_relaxed);
}

/* One loss is an accident; whoever computes here takes the core again soon. */
#define STRANGER_AGAIN_NS (64 * CLOCK_NS_PER_MS)

/* How long a yield may take: as long as our own kind needs when all the ranks that share this core
 * copy something. */
static uint64_t patience_ns(void)
{
    if (progress_here->patience_ns == 0) {
        uint32_t n_cores = (uint32_t)thread_n_cores(),
                 n_sharing = (transport_here->n_local + n_cores - 1) / n_cores;
        progress_here->patience_ns = STRANGER_LOST_NS * (n_sharing > 0 ? n_sharing : 1);
    }
    return progress_here->patience_ns;
}

static void yield_once(void)
{
    int depth = lock_release();
    uint64_t before_ns = clock_now_ns();

    sched_yield();
    uint64_t after_ns = clock_now_ns();
    lock_resume(depth);
    if (after_ns - before_ns > patience_ns()) {
        if (after_ns - progress_here->last_lost_ns < STRANGER_AGAIN_NS)
            stranger_met(&progress_here->stranger, after_ns);
        progress_here->last_lost_ns = after_ns;
    }
}

static _Thread_local struct {
    uint64_t since_ns;
    uint32_t n_in_vain;
} asks __attribute__((tls_model("initial-exec")));

static bool only_asks(void)
{
    if (asks.n_in_vain < ASKS_PER_CLOCK)
        return false;
    uint64_t now_ns = clock_now_ns(), since_ns = asks.since_ns;
    asks.since_ns = now_ns;
    asks.n_in_vain = 0;
    return now_ns - since_ns < ASKS_PER_CLOCK * ASK_AGAIN_NS;
}

void progress_ask(void)
{
    if (progress_poll() > 0) {
        asks.n_in_vain = 0;
        return;
    }
    asks.n_in_vain++;
    if (!transport_here->base || !only_asks() || progress_mode() == WAIT_SPIN)
        return;
    /* How long it takes says nothing of strangers: who is asked may be computing. */
    struct vci *alone = vci_alone();
    int depth = alone ? vci_step_out(alone) : lock_release();
    sched_yield();
    if (alone)
        vci_step_in(alone, depth);
    else
        lock_resume(depth);
    progress_poll();
}

/* Reads the clock once in a while. Returns how long this wait has been idle. */
static uint64_t idle_ns(struct progress_wait *w)
{
    uint64_t now_ns = clock_now_ns();

    if (w->idle_since_ns == 0) {
        w->idle_since_ns = now_ns;
        progress_idle(w);
    }
    return now_ns - w->idle_since_ns;
}

/* Are more threads inside the library than the node has cores, if the other ranks do as this one
 * does? */
static bool threads_crowd(const struct vci *own)
{
    uint32_t n = 1 + (lock_n_inside() > 0);

    for (uint32_t i = 1; i < vci_n_used(); i++)
        n += &vci_here->table[i] != own && !mutex_is_free(&vci_here->table[i].mutex);
    return n * transport_here->n_local > (uint32_t)thread_n_cores();
}

/* The step of a thread that holds a vci alone: it looks at that vci for a while, then at
 * everything, with the library lock if that is to be had, and waits as others do. */
static void idle_in_vci(struct vci *vci, struct progress_wait *w)
{
    bool spins = progress_mode() == WAIT_SPIN,
         look_around = w->idle_polls % SPIN_POLLS == SPIN_POLLS - 1;

    if (spins ? !look_around
              : w->idle_polls < SPIN_POLLS && !progress_crowded() && !threads_crowd(vci)) {
        w->idle_polls++;
        mutex_give_turn(&vci->mutex);
        thread_pause();
        return;
    }
    int depth = vci_step_out(vci);
    if ((look_around || w->idle_polls > SPIN_POLLS) && lock_try()) {
        progress_wait_step(w);
        lock_give();
    } else {
        w->idle_polls++;
        sched_yield();
    }
    vci_step_in(vci, depth);
}

void progress_wait_idle(struct progress_wait *w)
{
    struct vci *alone = vci_alone();

    if (alone) {
        idle_in_vci(alone, w);
        return;
    }
    w->idle_polls++;
    if (!transport_here->base) {
        lock_pause();
        sched_yield();
        return;
    }
    if (progress_mode() == WAIT_SPIN) {
        if (w->idle_polls % SPIN_SHOW_POLLS == 0) {
            progress_idle(w);
            modules_news(); /* shows what the collectives wait for */
        }
        lock_pause();
        thread_pause();
        return;
    }
    if (progress_mode() == WAIT_EVENT) {
        progress_idle(w);
        progress_sleep(w);
        return;
    }
    bool many = progress_crowded();
    if (progress_here->stranger.until_ns != 0 && (many || w->idle_polls > SPIN_POLLS) &&
        stranger_near(&progress_here->stranger, clock_coarse_ns())) {
        progress_idle(w);
        progress_sleep(w);
        return;
    }
    if (w->idle_polls == 1) {
        w->idle_since_ns = 0;
    } else if (w->idle_polls % POLLS_PER_CLOCK == 0 &&
               idle_ns(w) > (many ? SLEEP_AFTER_CROWDED_NS : SLEEP_AFTER_NS)) {
        progress_sleep(w);
        return;
    }
    /* Another thread of this process that is inside waits for the lock, and perhaps for this
     * core. */
    if (many || transport_here->needs_channel || w->idle_polls > SPIN_POLLS ||
        lock_n_inside() > 1) {
        yield_once();
    } else {
        lock_pause();
        thread_pause();
    }
}
