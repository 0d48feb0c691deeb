/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One node's control plane, wired to the world as daemon/control/control.c wires it to sockets,
 * events and processes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/cluster/cluster.h"
#include "daemon/cluster/mail.h"
#include "daemon/jobs/job.h"
#include "daemon/jobs/job_mail.h"
#include "daemon/jobs/manager.h"
#include "daemon/jobs/quota.h"
#include "daemon/port/cmd.h"
#include "daemon/routing/epoch.h"
#include "daemon/routing/forwarding.h"
#include "daemon/routing/node_name.h"
#include "daemon/routing/topology.h"
#include "tests/simcontrol/world.h"

#define TICK_NS      CLOCK_NS_PER_S
#define PROBE_MAIL   60000u
#define DRAIN_LIMITS (20 * CLOCK_NS_PER_S)

struct daemon {
    struct world *world;
    struct host *host;
    struct config config;
    struct cluster *cluster;
    struct forwarding *forwarding;
    struct manager *manager;
    struct jobs *jobs;
    struct quota *quota;
    struct daemon_timer mesh_timer;
    uint64_t mail_due_ns;
    uint64_t drain_since_ns; /* 0: it does not */
};

struct cluster *daemon_cluster(const struct daemon *d)
{
    return d->cluster;
}

struct forwarding *daemon_forwarding(const struct daemon *d)
{
    return d->forwarding;
}

struct manager *daemon_manager(const struct daemon *d)
{
    return d->manager;
}

struct jobs *daemon_jobs(const struct daemon *d)
{
    return d->jobs;
}

struct host *daemon_host(const struct daemon *d)
{
    return d->host;
}

struct world *daemon_world(const struct daemon *d)
{
    return d->world;
}

struct daemon_timer *daemon_timer(struct daemon *d)
{
    return &d->mesh_timer;
}

/* ---- loop ---- */

static void daemon_on_mail(struct world *w, void *object, uint64_t due_ns)
{
    struct daemon *d = object;

    if (due_ns != d->mail_due_ns)
        return;
    d->mail_due_ns = UINT64_MAX;
    manager_run(d->manager, w->now_ns);
    uint64_t when_ns = mail_run(cluster_mail(d->cluster), w->now_ns);
    uint64_t job_ns = manager_deadline(d->manager);
    when_ns = when_ns < job_ns ? when_ns : job_ns;
    if (when_ns < d->mail_due_ns) {
        d->mail_due_ns = when_ns > w->now_ns ? when_ns : w->now_ns + 1;
        world_at(w, d->mail_due_ns, d->host, daemon_on_mail, d, d->mail_due_ns);
    }
}

void daemon_wake(struct daemon *d)
{
    uint64_t now_ns = d->world->now_ns + 1;

    if (d->mail_due_ns <= now_ns)
        return;
    d->mail_due_ns = now_ns;
    world_at(d->world, now_ns, d->host, daemon_on_mail, d, now_ns);
}

static void daemon_on_update(struct world *w, void *object, uint64_t value)
{
    struct daemon *d = object;

    (void)value;
    cluster_update(d->cluster, w->now_ns);
}

static void daemon_end(struct world *w, struct host *host);

static void daemon_on_tick(struct world *w, void *object, uint64_t value)
{
    struct daemon *d = object;

    (void)value;
    jobs_tick(d->jobs, w->now_ns);
    cluster_note_busy(d->cluster);
    if (d->drain_since_ns != 0) {
        uint64_t drained_ns = w->now_ns - d->drain_since_ns;
        bool needed = drained_ns < DRAIN_LIMITS / 2 && cluster_needed(d->cluster);
        if (manager_count(d->manager) == 0 && jobs_count(d->jobs) == 0 && !needed) {
            world_say(w, "%s has drained", d->host->name);
            daemon_end(w, d->host);
            return;
        }
        if (drained_ns >= DRAIN_LIMITS / 2)
            jobs_end_all(d->jobs, "its node is being shut down", w->now_ns);
        if (drained_ns >= DRAIN_LIMITS) {
            daemon_end(w, d->host);
            return;
        }
    }
    world_after(w, TICK_NS, d->host, daemon_on_tick, d, 0);
}

/* ---- what the cluster asks for ---- */

static void daemon_want_update(void *ctx, uint64_t delay_ns)
{
    struct daemon *d = ctx;
    world_after(d->world, delay_ns, d->host, daemon_on_update, d, 0);
}

static void daemon_want_mail(void *ctx)
{
    daemon_wake(ctx);
}

static void daemon_deliver(void *ctx, uint32_t src, uint16_t type, const uint8_t *body,
                           uint32_t len, uint64_t now_ns)
{
    struct daemon *d = ctx;

    if (type == PROBE_MAIL)
        truth_on_probe(d->world, d->host, src, body, len);
    else if (!job_mail_deliver(d->jobs, d->manager, src, type, body, len, now_ns))
        world_fail(d->world, "%s got mail of unknown type %u", d->host->name, type);
}

static void daemon_node_lost(void *ctx, uint32_t node_id, const char *why, uint64_t now_ns)
{
    struct daemon *d = ctx;

    world_say(d->world, "%s: node %08x %s", d->host->name, node_id, why);
    truth_on_lost(d->world, d->host, node_id);
    manager_on_node_lost(d->manager, node_id, why, now_ns);
    jobs_on_node_lost(d->jobs, node_id);
}

static void daemon_given_up(void *ctx, uint32_t node_id, uint64_t now_ns)
{
    struct daemon *d = ctx;

    world_say(d->world, "%s: node %08x had given it up", d->host->name, node_id);
    manager_on_node_lost(d->manager, node_id, "had given this node up", now_ns);
    jobs_on_given_up(d->jobs, node_id, now_ns);
}

static bool daemon_busy(void *ctx)
{
    const struct daemon *d = ctx;

    return jobs_networked(d->jobs) || manager_networked(d->manager);
}

static void daemon_begin_anew(struct world *w, void *object, uint64_t epoch)
{
    struct host *host = object;

    daemon_end(w, host);
    host->after_epoch = (uint32_t)epoch;
    daemon_start(w, host);
}

static void daemon_outlived(void *ctx, uint32_t epoch, uint64_t now_ns)
{
    struct daemon *d = ctx;

    (void)now_ns;
    world_say(d->world, "%s is outlived by epoch %u", d->host->name, epoch);
    world_after(d->world, 1, d->host, daemon_begin_anew, d->host, epoch);
}

static const struct cluster_ops daemon_cluster_ops = {.want_update = daemon_want_update,
                                                      .want_mail = daemon_want_mail,
                                                      .deliver = daemon_deliver,
                                                      .node_lost = daemon_node_lost,
                                                      .given_up = daemon_given_up,
                                                      .outlived = daemon_outlived,
                                                      .busy = daemon_busy};

/* ---- channels: only what the cluster tells them is of interest here ---- */

static const char *daemon_channel_driver(void *ctx, uint32_t channel)
{
    (void)ctx, (void)channel;
    return "sim";
}

static int daemon_channel_address(void *ctx, uint32_t channel, uint8_t *buf, uint32_t size)
{
    const struct daemon *d = ctx;
    return snprintf((char *)buf, size, "%s-%u", d->host->name, channel);
}

static bool daemon_channel_alive(void *ctx, uint32_t channel)
{
    (void)ctx, (void)channel;
    return true;
}

/* The channel has found out whether data passes between it and another host. */
static void daemon_on_look(struct world *w, void *object, uint64_t value)
{
    struct daemon *d = object;
    uint32_t channel = (uint32_t)(value >> 32), other = (uint32_t)value;
    uint32_t network = d->host->networks[channel];
    int slot = forwarding_find(d->forwarding, node_name_id(w->hosts[other].name));
    bool in = wire_data_open(w, other, d->host->idx, network),
         out = wire_data_open(w, d->host->idx, other, network);
    struct neighbour_news news = {.channel = channel,
                                  .slot = (uint32_t)slot,
                                  .verdict = (uint8_t)(in && out ? LINK_ALIVE
                                                       : in      ? LINK_ONE_WAY
                                                                 : LINK_SILENT)};

    if (slot > 0)
        cluster_on_channel_link(d->cluster, &news, w->now_ns);
}

static void daemon_look(struct daemon *d, uint32_t channel, uint32_t other, uint64_t after_ns)
{
    world_after(d->world, after_ns, d->host, daemon_on_look, d, (uint64_t)channel << 32 | other);
}

void daemon_data_changed(struct world *w, uint32_t a, uint32_t b, uint32_t network)
{
    uint32_t ends[] = {a, b};

    for (int i = 0; i < 2; i++) {
        struct host *host = &w->hosts[ends[i]];
        if (host->daemon)
            daemon_look(host->daemon, (uint32_t)wire_channel(host, network), ends[1 - i],
                        (150 + world_draw(w, 600)) * CLOCK_NS_PER_MS);
    }
}

static void daemon_channel_add_link(void *ctx, uint32_t channel, uint16_t slot,
                                    const uint8_t *address, uint32_t len,
                                    const uint8_t secret[SEAL_SECRET_BYTES])
{
    struct daemon *d = ctx;
    struct world *w = d->world;
    uint32_t id = forwarding_node_id(d->forwarding, slot), other = 0;

    (void)address, (void)len, (void)secret;
    while (node_name_id(w->hosts[other].name) != id)
        other++;
    bool open = wire_data_open(w, other, d->host->idx, d->host->networks[channel]) &&
                wire_data_open(w, d->host->idx, other, d->host->networks[channel]);
    /* Where nothing is open the channel says so late. What it finds then is what is so then. */
    daemon_look(d, channel, other,
                open ? 1 + world_draw(w, 3 * CLOCK_NS_PER_MS) : 2 * CLOCK_NS_PER_S);
}

static void daemon_channel_remove_link(void *ctx, uint32_t channel, uint16_t slot)
{
    (void)ctx, (void)channel, (void)slot;
}

static const struct cluster_channel_ops daemon_channel_ops = {.driver = daemon_channel_driver,
                                                              .provider = daemon_channel_driver,
                                                              .address = daemon_channel_address,
                                                              .alive = daemon_channel_alive,
                                                              .add_link = daemon_channel_add_link,
                                                              .remove_link =
                                                                  daemon_channel_remove_link};

/* ---- beginning and end ---- */

static void daemon_configure(struct daemon *d)
{
    struct world *w = d->world;
    struct config *c = &d->config;

    config_defaults(c);
    snprintf(c->name, sizeof c->name, "%s", d->host->name);
    c->max_nodes = MAX_NODES;
    c->n_channels = (int)d->host->n_channels;
    for (uint32_t ch = 0; ch < d->host->n_channels; ch++) {
        struct config_channel *cc = &c->channels[ch];
        uint32_t network = d->host->networks[ch];
        const struct network *n = &w->networks[network];
        snprintf(cc->name, sizeof cc->name, "c%u", ch);
        snprintf(cc->network, sizeof cc->network, "net%u", network);
        snprintf(cc->address, sizeof cc->address, "%u.%u", network, d->host->idx);
        cc->port = 1;
        cc->mbytes_per_s = 1000;
        /* Everybody knows the first two. */
        snprintf(cc->seeds, sizeof cc->seeds, "%u.%u,%u.%u", network, n->members[0], network,
                 n->members[1 % n->n_members]);
    }
}

/* What the host's clock says, which somebody has set at every fourth start: ahead, and so back at
 * the next one. */
static uint32_t daemon_epoch(struct world *w, struct host *host)
{
    uint32_t epoch = epoch_after(1000000 + (uint32_t)(w->now_ns / (10 * CLOCK_NS_PER_MS)));
    uint32_t after = host->after_epoch;

    if (world_chance(w, 25))
        epoch += (uint32_t)world_draw(w, world_chance(w, 50) ? 1000 : EPOCH_HALF / 2);
    if (world_chance(w, 5))
        epoch = host->epoch ? host->epoch : epoch; /* the very same moment */
    host->after_epoch = 0;
    return after && !epoch_newer(epoch, after) ? epoch_after(after) : epoch;
}

void daemon_start(struct world *w, struct host *host)
{
    struct daemon *d = calloc(1, sizeof *d);

    if (!d)
        abort();
    host->incarnation++;
    host->n_starts++;
    host->epoch = daemon_epoch(w, host);
    host->daemon = d;
    d->world = w;
    d->host = host;
    d->mail_due_ns = d->mesh_timer.event_ns = UINT64_MAX;
    daemon_configure(d);
    uint32_t id = node_name_id(host->name);
    if (forwarding_new((uint32_t)d->config.packet_bytes, host->n_channels, id, host->epoch,
                       &d->forwarding) < 0)
        world_fail(w, "no forwarding table");
    const struct cluster_setup setup = {.config = &d->config,
                                        .node_id = id,
                                        .epoch = host->epoch,
                                        .n_cores = 8,
                                        .software = "simulation",
                                        .key = &w->key,
                                        .forwarding = d->forwarding,
                                        .socket_ops = &wire_socket_ops,
                                        .socket_ctx = host,
                                        .channel_ops = &daemon_channel_ops,
                                        .channel_ctx = d,
                                        .ops = &daemon_cluster_ops,
                                        .ctx = d};
    d->cluster = cluster_new(&setup);
    const struct quota_host quota = {.n_files = 100000, .memory_bytes = UINT64_MAX, .own = 0};
    d->quota = quota_new(&d->config, &quota);
    if (!d->quota)
        abort();
    const struct jobs_setup jobs = {
        .config = &d->config, .quota = d->quota, .node_id = id, .ops = &ranks_ops, .ctx = d};
    d->jobs = jobs_new(&jobs);
    d->manager = manager_new(host->name, id, host->epoch, &mpiexec_ops, d);
    if (!d->cluster || !d->jobs || !d->manager)
        world_fail(w, "no memory");
    manager_set_grace(d->manager, d->config.kill_grace_ns);
    mesh_start(cluster_mesh(d->cluster), w->now_ns);
    world_after(w, TICK_NS, host, daemon_on_tick, d, 0);
    world_say(w, "%s starts, epoch %u", host->name, host->epoch);
}

static void daemon_end(struct world *w, struct host *host)
{
    struct daemon *d = host->daemon;

    mpiexec_daemon_ended(w, host);
    ranks_daemon_ended(w, host);
    jobs_free(d->jobs);
    quota_free(d->quota);
    manager_free(d->manager);
    cluster_free(d->cluster);
    forwarding_free(d->forwarding);
    host->daemon = NULL;
    host->incarnation++;
    host->stalled_ns = 0;
    memset(host->probes, 0, MAX_NODES * sizeof *host->probes);
    free(d);
}

void daemon_kill(struct world *w, struct host *host)
{
    world_say(w, "%s: its daemon is killed", host->name);
    daemon_end(w, host);
}

void daemon_drain(struct world *w, struct host *host)
{
    struct daemon *d = host->daemon;

    world_say(w, "%s drains", host->name);
    d->drain_since_ns = w->now_ns;
    manager_end_all(d->manager, "the daemon was told to end", w->now_ns);
    cluster_drain(d->cluster);
    jobs_drain(d->jobs);
    daemon_wake(d);
}
