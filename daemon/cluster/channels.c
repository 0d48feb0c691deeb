/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/cluster/channels.h"

#include <errno.h>
#include <event2/event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "daemon/channel/channel.h"
#include "daemon/config.h"
#include "daemon/net/net_none.h"

/* The log has one line of what a channel refused in this time. */
#define COMPLAIN_NS (30 * CLOCK_NS_PER_S)
/* For what waits between jobs of a node without networks. */
#define NONE_BLOCKS 1024u
/* Two nodes know each other within this time. */
#define EARLY_NS (2 * CLOCK_NS_PER_S)

/* A command that found its channel's ring full; they go out in order. */
struct channels_waiting {
    struct list link;
    struct cmd cmd;
};

struct channels_end {
    struct channels *channels;
    struct channel *channel;
    struct event *readable; /* the channel has events */
    struct list waiting;
    struct net_info info;
    uint64_t last_turn;
    struct net_guard guard; /* refused so far */
    uint64_t rose_ns;       /* since when it is more; 0: it is not */
    uint64_t refused_ns;    /* when it last was more for good; 0: never */
    uint64_t complained_ns; /* when the log last said so */
    uint32_t idx;
    bool failed;
    bool draining;
};

struct channels {
    struct channels_setup setup;
    struct hub *hub;
    uint32_t n_channels; /* those of the configuration, or one that is on no network */
    uint64_t now_ns;     /* of the last tick */
    struct channels_end channels[CONFIG_MAX_CHANNELS];
};

uint32_t channels_count(const struct channels *f)
{
    uint32_t n = (uint32_t)f->setup.config->n_channels;

    return n < f->n_channels ? n : f->n_channels;
}

uint32_t channels_serving(const struct channels *f)
{
    return f->n_channels;
}

struct channel *channels_at(const struct channels *f, uint32_t idx)
{
    return f->channels[idx].channel;
}

const char *channels_driver(const struct channels *f, uint32_t idx)
{
    return f->channels[idx].info.driver;
}

const char *channels_provider(const struct channels *f, uint32_t idx)
{
    return f->channels[idx].info.provider;
}

int channels_address(const struct channels *f, uint32_t idx, uint8_t *buf, uint32_t size)
{
    size_t len = size;
    int rc = channel_address(f->channels[idx].channel, buf, &len);

    return rc < 0 ? rc : (int)len;
}

bool channels_alive(const struct channels *f, uint32_t idx)
{
    return !f->channels[idx].failed;
}

bool channels_moved(struct channels *f)
{
    bool all = true;

    for (uint32_t i = 0; i < f->n_channels; i++) {
        uint64_t turn = channel_heartbeat(f->channels[i].channel);
        all &= turn != f->channels[i].last_turn;
        f->channels[i].last_turn = turn;
    }
    return all;
}

static void channels_flush(struct channels_end *fc)
{
    while (!list_empty(&fc->waiting)) {
        struct channels_waiting *w =
            list_entry(list_first(&fc->waiting), struct channels_waiting, link);
        if (channel_command(fc->channel, &w->cmd) == -EAGAIN)
            return;
        list_remove(&w->link);
        free(w);
    }
}

static void channels_order(struct channels_end *fc, const struct cmd *cmd)
{
    channels_flush(fc);
    if (list_empty(&fc->waiting) && channel_command(fc->channel, cmd) == 0)
        return;
    struct channels_waiting *w = malloc(sizeof *w);
    if (!w) {
        log_error("channel %s: out of memory for a command", channel_name(fc->channel));
        return;
    }
    w->cmd = *cmd;
    list_init(&w->link);
    list_append(&fc->waiting, &w->link);
}

static void channels_on_event(struct channels_end *fc, const struct cmd_event *e)
{
    const struct channels_setup *setup = &fc->channels->setup;
    char text[128];

    switch ((enum event_type)e->type) {
    case EVENT_LINK_ERROR:
        setup->ops->link_error(setup->ctx, fc->idx, e->slot, e->error);
        break;
    case EVENT_LINK:
        setup->ops->link(setup->ctx, fc->idx, e);
        break;
    case EVENT_RTT:
        setup->ops->rtt(setup->ctx, fc->idx, e->slot, e->value);
        break;
    case EVENT_RANK_DETACHED:
        setup->ops->rank_detached(setup->ctx, e->job, e->rank);
        break;
    case EVENT_JOB_DETACHED:
        setup->ops->job_detached(setup->ctx, e->job, fc->idx);
        break;
    case EVENT_FOREIGN_REMOVED:
        setup->ops->foreign_removed(setup->ctx, e->job, e->value, fc->idx);
        break;
    case EVENT_UNREACHABLE:
    case EVENT_RESTARTED:
        log_warn("channel %s dropped %llu packets for node %08x, which %s",
                 channel_name(fc->channel), (unsigned long long)e->value,
                 setup->node_of_slot(setup->ctx, e->slot),
                 e->type == EVENT_RESTARTED ? "was restarted" : "cannot be reached");
        break;
    case EVENT_BACKLOG_OVERFLOW:
        /* It may be stopped in a debugger, and only its own senders wait for it. */
        log_warn("job %016llx rank %u does not take its messages, %llu bytes wait for it",
                 (unsigned long long)e->job, e->rank, (unsigned long long)e->value);
        break;
    case EVENT_POISONED:
        snprintf(text, sizeof text, "its rings hold rubbish (%s)", e->text ? e->text : "?");
        setup->ops->offence(setup->ctx, e->job, e->rank, text);
        break;
    case EVENT_DRAINED:
        fc->draining = false;
        break;
    case EVENT_FAILED:
        fc->failed = true;
        setup->ops->failed(setup->ctx, fc->idx);
        break;
    }
}

static void channels_on_events(evutil_socket_t fd, short what, void *ctx)
{
    struct channels_end *fc = ctx;
    struct cmd_event e;
    uint64_t count;

    (void)what;
    if (read(fd, &count, sizeof count) < 0 && errno != EAGAIN)
        log_error("channel %s: %s", channel_name(fc->channel), strerror(errno));
    while (channel_next_event(fc->channel, &e))
        channels_on_event(fc, &e);
    channels_flush(fc);
}

static void channels_watch(struct channels_end *fc, uint64_t now_ns)
{
    const struct count *counters = channel_counters(fc->channel);
    const struct net_guard guard = {
        .forged = count_get(counters, COUNT_FORGED),
        .replayed = count_get(counters, COUNT_REPLAYED),
        .strangers = count_get(counters, COUNT_STRANGERS),
    };

    if (guard.forged <= fc->guard.forged && guard.replayed <= fc->guard.replayed &&
        guard.strangers <= fc->guard.strangers) {
        fc->rose_ns = 0;
        return;
    }
    /* What comes from a peer that is not known yet is taken back when it is. */
    if (fc->rose_ns == 0)
        fc->rose_ns = now_ns;
    if (now_ns - fc->rose_ns < EARLY_NS)
        return;
    fc->guard = guard;
    fc->rose_ns = 0;
    fc->refused_ns = now_ns;
    if (fc->complained_ns != 0 && now_ns - fc->complained_ns < COMPLAIN_NS)
        return;
    fc->complained_ns = now_ns;
    log_warn(
        "channel %s: somebody sends what is no peer's, refused: %llu packets forged or damaged, "
        "%llu replayed, %llu connections, since the start",
        channel_name(fc->channel), (unsigned long long)guard.forged,
        (unsigned long long)guard.replayed, (unsigned long long)guard.strangers);
}

void channels_tick(struct channels *f, uint64_t now_ns)
{
    f->now_ns = now_ns;
    for (uint32_t i = 0; i < f->n_channels; i++) {
        channels_flush(&f->channels[i]);
        channels_watch(&f->channels[i], now_ns);
    }
}

void channels_refused(const struct channels *f, uint32_t idx, struct net_guard *ret_guard,
                      uint64_t *ret_ago_ns)
{
    const struct channels_end *fc = &f->channels[idx];

    *ret_guard = fc->guard;
    *ret_ago_ns = fc->refused_ns ? f->now_ns - fc->refused_ns : UINT64_MAX;
}

static int channels_make(struct channels *f, uint32_t idx, const struct channel_config *config)
{
    struct channels_end *fc = &f->channels[idx];

    fc->channels = f;
    fc->idx = idx;
    int rc = channel_new(f->hub, config, &fc->channel);
    if (rc < 0)
        return rc;
    f->n_channels = idx + 1;
    channel_info(fc->channel, &fc->info);
    fc->readable = event_new(f->setup.base, channel_event_fd(fc->channel), EV_READ | EV_PERSIST,
                             channels_on_events, fc);
    return fc->readable && event_add(fc->readable, NULL) == 0 ? 0 : -ENOMEM;
}

/* A node without networks: its jobs still send to one another when they are connected. */
static int channels_open_none(struct channels *f)
{
    const struct config *c = f->setup.config;
    struct channel_config config = {
        .name = "node",
        .driver = &net_none,
        .net = {.protect = SEAL_NONE},
        .wait_mode = (enum wait_mode)c->wait_mode,
        .spin_ns = c->sleep_after_ns,
        .probe_ns = UINT64_MAX,
        .relay_limit = (uint32_t)c->relay_queue,
    };

    return channels_make(f, 0, &config);
}

static int channels_open(struct channels *f, uint32_t idx)
{
    const struct config *c = f->setup.config;
    const struct config_channel *cc = &c->channels[idx];
    struct channels_end *fc = &f->channels[idx];
    struct channel_config config = {
        .idx = idx,
        .name = cc->name,
        .net = {.interface = cc->resolved_interface,
                .address = cc->address,
                .port = (uint16_t)cc->data_port,
                .provider = cc->provider,
                .protect = (enum seal_mode)cc->protect},
        .fault = cc->fault[0] ? cc->fault : NULL,
        .wait_mode =
            (enum wait_mode)(cc->wait_mode == CONFIG_WAIT_INHERIT ? c->wait_mode : cc->wait_mode),
        .spin_ns = c->sleep_after_ns,
        .unreachable_after_ns = c->unreachable_after_ns,
        .relay_limit = (uint32_t)c->relay_queue,
    };

    int rc = channels_make(f, idx, &config);
    if (rc < 0) {
        log_error("channel %s on %s (%s, provider %s): %s", cc->name, cc->resolved_interface,
                  cc->address, cc->provider, strerror(-rc));
        return rc;
    }
    log_info("channel %s: network %s on %s, %s, provider %s", cc->name, cc->network,
             cc->resolved_interface, cc->address, fc->info.provider);
    return 0;
}

int channels_new(const struct channels_setup *setup, struct channels **ret_channels)
{
    struct channels *f = calloc(1, sizeof *f);

    if (!f)
        return -ENOMEM;
    f->setup = *setup;
    for (int i = 0; i < CONFIG_MAX_CHANNELS; i++)
        list_init(&f->channels[i].waiting);
    const struct config *config = setup->config;
    bool none = config->n_channels == 0;
    struct hub_config hub = {.node_id = setup->node_id,
                             .epoch = setup->epoch,
                             .n_channels = none ? 1 : (uint32_t)config->n_channels,
                             .blocks_per_channel =
                                 none ? NONE_BLOCKS : (uint32_t)config->blocks_per_channel,
                             .fenced = setup->fenced,
                             .hops = setup->table};
    int rc = hub_new(&hub, &f->hub);
    if (rc < 0)
        log_error("cannot make the packet buffers: %s", strerror(-rc));
    else if (none)
        rc = channels_open_none(f);
    for (uint32_t i = 0; rc == 0 && i < (uint32_t)config->n_channels; i++)
        rc = channels_open(f, i);
    if (rc < 0) {
        channels_free(f);
        return rc;
    }
    *ret_channels = f;
    return 0;
}

int channels_start(struct channels *f)
{
    for (uint32_t i = 0; i < f->n_channels; i++) {
        int rc = channel_start(f->channels[i].channel);
        if (rc < 0)
            return rc;
    }
    return 0;
}

void channels_free(struct channels *f)
{
    if (!f)
        return;
    /* All threads end before the first channel goes: they hand blocks to one another. */
    for (uint32_t i = 0; i < f->n_channels; i++)
        channel_stop(f->channels[i].channel);
    for (uint32_t i = 0; i < f->n_channels; i++) {
        struct channels_end *fc = &f->channels[i];
        if (fc->readable)
            event_free(fc->readable);
        list_foreach_safe(it, &fc->waiting)
            free(list_entry(it, struct channels_waiting, link));
        channel_free(fc->channel);
    }
    if (f->hub)
        hub_free(f->hub);
    free(f);
}

void channels_add_link(struct channels *f, uint32_t idx, uint16_t slot, const uint8_t *address,
                       uint32_t len, const uint8_t secret[SEAL_SECRET_BYTES])
{
    struct cmd cmd = {.type = CMD_ADD_LINK};

    if (len > sizeof cmd.add_link.address)
        return;
    cmd.add_link.slot = slot;
    cmd.add_link.len = (uint16_t)len;
    memcpy(cmd.add_link.address, address, len);
    memcpy(cmd.add_link.secret, secret, sizeof cmd.add_link.secret);
    channels_order(&f->channels[idx], &cmd);
}

void channels_remove_link(struct channels *f, uint32_t idx, uint16_t slot)
{
    struct cmd cmd = {.type = CMD_REMOVE_LINK};

    cmd.remove_link.slot = slot;
    channels_order(&f->channels[idx], &cmd);
}

int channels_attach_job(struct channels *f, const struct cmd_job *config, const int *event_fds,
                        struct channel_job **ret_jobs)
{
    for (uint32_t i = 0; i < f->n_channels; i++) {
        struct cmd_job one = *config;
        one.event_fd = event_fds[i];
        one.backlog_bytes = (uint32_t)f->setup.config->rank_hold_bytes;
        int rc = channel_job_new(f->channels[i].channel, &one, &ret_jobs[i]);
        if (rc < 0) {
            for (uint32_t made = 0; made < i; made++) {
                channel_job_free(ret_jobs[made]);
                ret_jobs[made] = NULL;
            }
            return rc;
        }
    }
    for (uint32_t i = 0; i < f->n_channels; i++) {
        struct cmd cmd = {.type = CMD_ATTACH_JOB};
        cmd.job = ret_jobs[i];
        channels_order(&f->channels[i], &cmd);
    }
    return 0;
}

void channels_detach_rank(struct channels *f, struct channel_job *const *jobs, uint32_t local,
                          bool dead)
{
    for (uint32_t i = 0; i < f->n_channels; i++) {
        struct cmd cmd = {.type = CMD_DETACH_RANK};
        if (!jobs[i])
            continue;
        cmd.detach_rank.job = jobs[i];
        cmd.detach_rank.local = local;
        cmd.detach_rank.dead = dead;
        channels_order(&f->channels[i], &cmd);
    }
}

void channels_detach_job(struct channels *f, struct channel_job *const *jobs)
{
    for (uint32_t i = 0; i < f->n_channels; i++) {
        struct cmd cmd = {.type = CMD_DETACH_JOB};
        if (!jobs[i])
            continue;
        cmd.job = jobs[i];
        channels_order(&f->channels[i], &cmd);
    }
}

int channels_add_foreign(struct channels *f, struct channel_job *const *jobs, uint64_t out,
                         uint64_t in, uint32_t first, uint32_t n,
                         const struct channel_place *places, struct channel_foreign **ret_foreign)
{
    for (uint32_t i = 0; i < f->n_channels; i++) {
        int rc = channel_foreign_new(jobs[i], out, in, first, n, places, &ret_foreign[i]);
        if (rc < 0) {
            for (uint32_t made = 0; made < i; made++) {
                channel_foreign_free(ret_foreign[made]);
                ret_foreign[made] = NULL;
            }
            return rc;
        }
    }
    for (uint32_t i = 0; i < f->n_channels; i++) {
        struct cmd cmd = {.type = CMD_ADD_FOREIGN};
        cmd.foreign = ret_foreign[i];
        channels_order(&f->channels[i], &cmd);
        /* In the ring before any rank hears of its new peers (channel/tx.c). It empties in every
         * turn. */
        while (!list_empty(&f->channels[i].waiting)) {
            sched_yield();
            channels_flush(&f->channels[i]);
        }
    }
    return 0;
}

void channels_remove_foreign(struct channels *f, struct channel_foreign *const *foreign)
{
    for (uint32_t i = 0; i < f->n_channels; i++) {
        struct cmd cmd = {.type = CMD_REMOVE_FOREIGN};
        if (!foreign[i])
            continue;
        cmd.foreign = foreign[i];
        channels_order(&f->channels[i], &cmd);
    }
}

void channels_foreign_free(struct channel_foreign *foreign)
{
    channel_foreign_free(foreign);
}

void channels_job_free(struct channel_job *job)
{
    channel_job_free(job);
}

void channels_set_wait(struct channels *f, uint32_t idx, uint32_t wait_mode)
{
    struct cmd cmd = {.type = CMD_SET_WAIT};

    cmd.wait_mode = wait_mode;
    channels_order(&f->channels[idx], &cmd);
}

void channels_drain(struct channels *f, uint64_t timeout_ns)
{
    for (uint32_t i = 0; i < f->n_channels; i++) {
        struct cmd cmd = {.type = CMD_DRAIN};
        cmd.timeout_ns = timeout_ns;
        f->channels[i].draining = true;
        channels_order(&f->channels[i], &cmd);
    }
}

bool channels_drained(const struct channels *f)
{
    for (uint32_t i = 0; i < f->n_channels; i++)
        if (f->channels[i].draining)
            return false;
    return true;
}
