/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The channel's thread: turns, and what to do between turns that found no work. It passes through
 * three stages. After every turn it gives its core to the next thread; after some time without work
 * it sleeps, on one epoll set of the network's wait descriptor, the jobs' bells and the channel's
 * own wake word.
 *
 * Sleep is bounded: by the next timer, and, as wait descriptors of networks have been seen to miss
 * a packet, by a time that grows with the time without work (from 1 ms up to 1 s), so that a miss
 * costs little when anything is going on and nothing when nothing is.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/log.h"
#include "base/stranger.h"
#include "base/thread.h"
#include "daemon/channel/state.h"

#define SLEEP_MIN_NS CLOCK_NS_PER_MS
#define SLEEP_MAX_NS CLOCK_NS_PER_S
/* Without a wait descriptor this is how late a packet may be noticed by a sleeping channel. */
#define SLEEP_BLIND_NS (2 * CLOCK_NS_PER_MS)
/* Turns without work before sleeping, besides the time: a thread that was off its core for a while
 * was not idle. */
#define IDLE_TURNS 32u
/* Pauses between two turns of a spinning thread. */
#define PAUSES 8

int loop_init(struct channel *ch)
{
    ch->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (ch->epoll_fd < 0)
        return -errno;
    loop_add_fd(ch, ch->hub->wake[ch->idx].event_fd);
    return 0;
}

void loop_deinit(struct channel *ch)
{
    if (ch->epoll_fd >= 0)
        close(ch->epoll_fd);
    ch->epoll_fd = -1;
}

void loop_add_fd(struct channel *ch, int fd)
{
    /* Edge-triggered: every ring of the bell is an edge, and nobody has to read the counter. */
    struct epoll_event ev = {.events = EPOLLIN | EPOLLET};

    if (fd >= 0 && epoll_ctl(ch->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 && errno != EEXIST)
        log_warn("channel %s: cannot watch a job's bell: %s", ch->name, strerror(errno));
}

void loop_remove_fd(struct channel *ch, int fd)
{
    epoll_ctl(ch->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

/* Watches the network's descriptor; once more does no harm. */
static void watch_net(struct channel *ch)
{
    /* Edge-triggered: libfabric 1.17 leaves its descriptor readable after the first completion, for
     * ever. What arrives makes an edge all the same; what an edge might miss is found by the bound
     * on sleep. */
    struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
    int fd = ch->driver->wait_fd(ch->net);

    if (fd >= 0)
        epoll_ctl(ch->epoll_fd, EPOLL_CTL_ADD, fd, &ev);
}

/* Sleeps until something rings or the time is over. */
static void wait_for(struct channel *ch, uint64_t timeout_ns)
{
    struct epoll_event events[8];
    struct timespec ts = {.tv_sec = (time_t)(timeout_ns / CLOCK_NS_PER_S),
                          .tv_nsec = (long)(timeout_ns % CLOCK_NS_PER_S)};

    if (epoll_pwait2(ch->epoll_fd, events, 8, &ts, NULL) < 0 && errno == ENOSYS)
        epoll_wait(ch->epoll_fd, events, 8,
                   (int)((timeout_ns + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS));
}

static void sleep_begin(struct channel *ch)
{
    bool barrier = !ch->fenced;

    /* One barrier serves all bells: fenced = true sets the word alone. */
    bell_sleep_begin(&ch->hub->wake[ch->idx].bell, true);
    list_foreach(it, &ch->jobs) {
        struct channel_job *job = list_entry(it, struct channel_job, node);
        bell_sleep_begin(job->bell, true);
        barrier |= !job->config.fenced;
    }
    if (barrier)
        thread_barrier_all();
}

static void sleep_end(struct channel *ch)
{
    bell_sleep_end(&ch->hub->wake[ch->idx].bell);
    list_foreach(it, &ch->jobs)
        bell_sleep_end(list_entry(it, struct channel_job, node)->bell);
}

/* How long to sleep at most; 0: not at all. */
static uint64_t sleep_ns(const struct channel *ch, uint64_t now_ns)
{
    uint64_t due = channel_next_ns(ch);
    uint64_t idle = now_ns - ch->idle_ns;
    uint64_t limit = idle / 4 < SLEEP_MIN_NS   ? SLEEP_MIN_NS
                     : idle / 4 > SLEEP_MAX_NS ? SLEEP_MAX_NS
                                               : idle / 4;

    if (!(ch->info.caps & NET_CAP_WAIT) && !ch->net_lost && limit > SLEEP_BLIND_NS)
        limit = SLEEP_BLIND_NS;
    if (due <= now_ns)
        return 0;
    return due - now_ns < limit ? due - now_ns : limit;
}

static void go_to_sleep(struct channel *ch, uint64_t now_ns)
{
    uint64_t timeout = sleep_ns(ch, now_ns);

    if (timeout == 0)
        return;
    if ((ch->info.caps & NET_CAP_WAIT) && !ch->net_lost)
        watch_net(ch);
    sleep_begin(ch);
    if (!channel_has_work(ch) &&
        (!(ch->info.caps & NET_CAP_WAIT) || ch->net_lost || ch->driver->wait_ready(ch->net) == 0)) {
        count_add(&ch->count, COUNT_SLEEPS, 1);
        wait_for(ch, timeout);
    }
    sleep_end(ch);
}

static void *thread_main(void *arg)
{
    struct channel *ch = arg;
    uint32_t beat = 0, n_idle = 0;
    uint64_t yielded_ns = 0;
    struct stranger strangers = {0};

    thread_set_name(ch->name);
    ch->idle_ns = clock_now_ns();
    while (!ch->stop) {
        uint64_t now = clock_now_ns();
        /* A long yield gave the core to somebody who computes: whoever yields to it waits for its
         * time slice, while a sleeper is woken at once. */
        if (yielded_ns != 0 && now - yielded_ns > STRANGER_LOST_NS)
            stranger_met(&strangers, now);
        bool stranger = stranger_near(&strangers, now);
        yielded_ns = 0;
        uint32_t n = channel_turn(ch, now);
        atomic_store_explicit(&ch->heartbeat, ++beat, memory_order_relaxed);
        uint32_t mode = atomic_load_explicit(&ch->wait_mode, memory_order_relaxed);
        if (n > 0) {
            ch->idle_ns = now;
            ch->resting = false;
            n_idle = 0;
            /* Whoever waits for what this turn did may wait for this core, too. */
            if (mode != WAIT_SPIN && !stranger) {
                yielded_ns = clock_now_ns();
                sched_yield();
            }
            continue;
        }
        bool idle = ++n_idle >= IDLE_TURNS && now - ch->idle_ns >= ch->config.spin_ns;
        if (mode == WAIT_EVENT || (mode == WAIT_ADAPTIVE && (stranger || idle || ch->resting))) {
            /* Nothing will come to join them. */
            if (rx_acks(ch, true) == 0)
                go_to_sleep(ch, now);
            /* A turn that finds nothing but the channel's own probes does not wake the rest of
             * it. */
            ch->resting = true;
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

int channel_start(struct channel *ch)
{
    if (ch->running)
        return -EALREADY;
    ch->stop = false;
    int rc = pthread_create(&ch->thread, NULL, thread_main, ch);
    if (rc != 0)
        return -rc;
    ch->running = true;
    return 0;
}

void channel_stop(struct channel *ch)
{
    struct cmd cmd = {.type = CMD_STOP};

    if (!ch->running)
        return;
    /* The ring empties in every turn. */
    while (cmd_send(ch, &cmd) == -EAGAIN)
        sched_yield();
    pthread_join(ch->thread, NULL);
    ch->running = false;
}
