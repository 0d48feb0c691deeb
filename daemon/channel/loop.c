/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/channel/loop.h"

#include <errno.h>
#include <sched.h>

#include "base/stranger.h"
#include "base/thread.h"

#define SLEEP_MIN_NS CLOCK_NS_PER_MS
#define SLEEP_MAX_NS CLOCK_NS_PER_S
/* Without a wait descriptor this is how late a packet may be noticed by a sleeping channel. */
#define SLEEP_BLIND_NS (2 * CLOCK_NS_PER_MS)
/* Turns without work before sleeping, besides the time: a thread that was off its core for a while
 * was not idle. */
#define IDLE_TURNS 32u
/* Pauses between two turns of a spinning thread. */
#define PAUSES 8

void loop_init(struct loop *l, struct turn *turn, uint64_t spin_ns)
{
    *l = (struct loop){.turn = turn, .spin_ns = spin_ns};
}

static void loop_sleep_begin(const struct turn *t)
{
    bool barrier = !t->port.fenced;

    /* One barrier serves all bells: fenced = true sets the word alone. */
    bell_sleep_begin(&t->port.hub->wake[t->port.idx].bell, true);
    list_foreach(it, &t->jobs.all) {
        struct channel_job *job = list_entry(it, struct channel_job, node);
        bell_sleep_begin(job->bell, true);
        barrier |= !job->config.fenced;
    }
    if (barrier)
        thread_barrier_all();
}

static void loop_sleep_end(const struct turn *t)
{
    bell_sleep_end(&t->port.hub->wake[t->port.idx].bell);
    list_foreach(it, &t->jobs.all)
        bell_sleep_end(list_entry(it, struct channel_job, node)->bell);
}

/* How long to sleep at most; 0: not at all. */
static uint64_t loop_sleep_ns(const struct loop *l, uint64_t now_ns)
{
    const struct turn *t = l->turn;
    uint64_t due = turn_next_ns(t);
    uint64_t idle = now_ns - l->idle_ns;
    uint64_t limit = idle / 4 < SLEEP_MIN_NS   ? SLEEP_MIN_NS
                     : idle / 4 > SLEEP_MAX_NS ? SLEEP_MAX_NS
                                               : idle / 4;

    if (!(t->port.info.caps & NET_CAP_WAIT) && !t->port.net_lost && limit > SLEEP_BLIND_NS)
        limit = SLEEP_BLIND_NS;
    if (due <= now_ns)
        return 0;
    return due - now_ns < limit ? due - now_ns : limit;
}

static void loop_sleep(struct loop *l, uint64_t now_ns)
{
    struct turn *t = l->turn;
    bool can_wait = (t->port.info.caps & NET_CAP_WAIT) && !t->port.net_lost;
    uint64_t timeout = loop_sleep_ns(l, now_ns);

    if (timeout == 0)
        return;
    if (can_wait)
        watch_add(&t->watch, t->port.driver->wait_fd(t->port.net));
    loop_sleep_begin(t);
    if (!turn_has_work(t) && (!can_wait || t->port.driver->wait_ready(t->port.net) == 0)) {
        count_add(&t->port.count, COUNT_SLEEPS, 1);
        watch_sleep(&t->watch, timeout);
    }
    loop_sleep_end(t);
}

static void *loop_main(void *arg)
{
    struct loop *l = arg;
    struct turn *t = l->turn;
    uint32_t beat = 0, n_idle = 0;
    uint64_t yielded_ns = 0;
    struct stranger strangers = {0};

    thread_set_name(t->port.name);
    l->idle_ns = clock_now_ns();
    while (!t->stop) {
        uint64_t now = clock_now_ns();
        /* A long yield gave the core to somebody who computes: whoever yields to it waits for its
         * time slice, while a sleeper is woken at once. */
        if (yielded_ns != 0 && now - yielded_ns > STRANGER_LOST_NS)
            stranger_met(&strangers, now);
        bool stranger = stranger_near(&strangers, now);
        yielded_ns = 0;
        uint32_t n = turn_run(t, now);
        atomic_store_explicit(&l->heartbeat, ++beat, memory_order_relaxed);
        uint32_t mode = t->wait_mode;
        if (n > 0) {
            l->idle_ns = now;
            l->resting = false;
            n_idle = 0;
            /* Whoever waits for what this turn did may wait for this core, too. */
            if (mode != WAIT_SPIN && !stranger) {
                yielded_ns = clock_now_ns();
                sched_yield();
            }
            continue;
        }
        bool idle = ++n_idle >= IDLE_TURNS && now - l->idle_ns >= l->spin_ns;
        if (mode == WAIT_EVENT || (mode == WAIT_ADAPTIVE && (stranger || idle || l->resting))) {
            /* Nothing will come to join them. */
            if (ack_poll(&t->acks, true) == 0)
                loop_sleep(l, now);
            /* A turn that finds nothing but the channel's own probes does not wake the rest of
             * it. */
            l->resting = true;
        } else if (mode == WAIT_SPIN) {
            for (int i = 0; i < PAUSES; i++)
                thread_pause();
        } else {
            /* Also on a node not known to be crowded: others than its ranks may need the core, and
             * a rank that has just been given something often does. Alone on the core this costs a
             * fraction of what the turn itself does. */
            yielded_ns = clock_now_ns();
            sched_yield();
        }
    }
    return NULL;
}

int loop_start(struct loop *l)
{
    if (l->running)
        return -EALREADY;
    l->turn->stop = false;
    int rc = pthread_create(&l->thread, NULL, loop_main, l);
    if (rc != 0)
        return -rc;
    l->running = true;
    return 0;
}

void loop_join(struct loop *l)
{
    if (!l->running)
        return;
    pthread_join(l->thread, NULL);
    l->running = false;
}
