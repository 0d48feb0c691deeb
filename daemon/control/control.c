/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/control/control.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "daemon/cluster/channels.h"
#include "daemon/cluster/cluster.h"
#include "daemon/cluster/mail.h"
#include "daemon/cluster/mesh.h"
#include "daemon/cluster/mesh_socket.h"
#include "daemon/control/node.h"
#include "daemon/control/service.h"
#include "daemon/jobs/client.h"
#include "daemon/jobs/dynamic/foreign.h"
#include "daemon/jobs/job.h"
#include "daemon/jobs/job_mail.h"
#include "daemon/jobs/job_site.h"
#include "daemon/jobs/manager.h"
#include "daemon/jobs/spawner.h"
#include "daemon/port/cmd.h"
#include "daemon/routing/forwarding.h"
#include "daemon/status/status.h"
#include "proto/control.pb-c.h"

/* For packets that this node still has to pass on. */
#define CHANNELS_LIMIT_NS (2 * CLOCK_NS_PER_S)
/* After the drain limit jobs are ended; what has not ended by then goes with the daemon. */
#define END_LIMIT_NS (5 * CLOCK_NS_PER_S)

/* A daemon that is outlived within this time after its start, again and again, is so by one that
 * lives. */
#define AGAIN_YOUNG_NS    (60 * CLOCK_NS_PER_S)
#define MAX_AGAIN         4u
#define COMPLAIN_EVERY_NS (30 * CLOCK_NS_PER_S)
/* Others of the cluster may start later. */
#define ALONE_AFTER_NS (5 * CLOCK_NS_PER_S)
#define ALONE_AGAIN_NS (600 * CLOCK_NS_PER_S)

struct control {
    struct event *mail, *update, *tick, *lifeline, *signals[3];
    uint64_t shutdown_ns; /* when the daemon was told to end */
    uint64_t channels_until_ns;
    bool draining_channels;
    bool forwarding;                        /* it still runs for others only */
    uint64_t alone_since_ns, alone_told_ns; /* 0: it is not; it was not said */
};

/* ---- cluster ---- */

static void control_want_update(void *ctx, uint64_t delay_ns)
{
    struct node *node = ctx;
    struct timeval delay = {.tv_usec = (suseconds_t)(delay_ns / CLOCK_NS_PER_US)};

    evtimer_add(node->control->update, &delay);
}

static void control_on_update(evutil_socket_t fd, short what, void *ctx)
{
    struct node *node = ctx;

    (void)fd, (void)what;
    cluster_update(node->cluster, clock_now_ns());
}

static void control_want_mail(void *ctx)
{
    struct node *node = ctx;
    /* Not EV_TIMEOUT: setting the timer anew, as control_on_mail does at its end, would take an
     * event back that is active for that. */
    event_active(node->control->mail, EV_READ, 0);
}

static void control_deliver(void *ctx, uint32_t src, uint16_t type, const uint8_t *body,
                            uint32_t len, uint64_t now_ns)
{
    struct node *node = ctx;

    if (job_mail_deliver(node->jobs, node->manager, src, type, body, len, now_ns))
        return;
    if (type == MOTET__FRAME_TYPE__STATUS_QUERY) {
        if (node->status)
            status_on_query(node->status, src, body, len);
    } else if (type == MOTET__FRAME_TYPE__STATUS_REPLY) {
        if (node->status)
            status_on_reply(node->status, src, body, len);
    } else {
        log_warn("mail of unknown type %u from node %08x, ignoring", type, src);
    }
}

static void control_node_lost(void *ctx, uint32_t node_id, const char *why, uint64_t now_ns)
{
    struct node *node = ctx;

    manager_on_node_lost(node->manager, node_id, why, now_ns);
    jobs_on_node_lost(node->jobs, node_id);
}

static void control_given_up(void *ctx, uint32_t node_id, uint64_t now_ns)
{
    struct node *node = ctx;

    manager_on_node_lost(node->manager, node_id, "had given this node up", now_ns);
    jobs_on_given_up(node->jobs, node_id, now_ns);
}

/* The program begins anew with a later epoch: nothing of this incarnation, numbers, keys and flows,
 * may be mistaken for the next one's. A daemon's own past cannot do that again and again; another
 * node of the same name can, and one of the two has to give in, or both would go on for ever. */
static void control_outlived(void *ctx, uint32_t epoch, uint64_t now_ns)
{
    struct node *node = ctx;
    bool young = now_ns - node->started_ns < AGAIN_YOUNG_NS;

    if (node->outlived)
        return;
    node->yields |= young && node->again.n >= MAX_AGAIN;
    if (node->yields) {
        if (node->complained_ns == 0 || now_ns - node->complained_ns > COMPLAIN_EVERY_NS)
            log_error("another node has the name %s too, and the cluster ignores this one; names "
                      "must be unique",
                      node->config.name);
        node->complained_ns = now_ns;
        return;
    }
    log_notice(
        "the cluster knows epoch %u of this node, which is later than %u: its clock was ahead "
        "once or has been set back; beginning anew with a later one, %u jobs here end",
        epoch, node->epoch, jobs_count(node->jobs));
    node->again = (struct node_again){.epoch = epoch, .n = young ? node->again.n + 1 : 1};
    node->outlived = true;
    event_base_loopbreak(node->base);
}

/* Whether this node has to do with a job that spans nodes. */
static bool control_busy(void *ctx)
{
    const struct node *node = ctx;

    return jobs_networked(node->jobs) || manager_networked(node->manager);
}

static const struct cluster_ops control_cluster_ops = {.want_update = control_want_update,
                                                       .want_mail = control_want_mail,
                                                       .deliver = control_deliver,
                                                       .node_lost = control_node_lost,
                                                       .given_up = control_given_up,
                                                       .outlived = control_outlived,
                                                       .busy = control_busy};

/* ---- channels ---- */

static const char *control_channel_driver(void *ctx, uint32_t channel)
{
    return channels_driver(ctx, channel);
}

static const char *control_channel_provider(void *ctx, uint32_t channel)
{
    return channels_provider(ctx, channel);
}

static int control_channel_address(void *ctx, uint32_t channel, uint8_t *buf, uint32_t size)
{
    return channels_address(ctx, channel, buf, size);
}

static bool control_channel_alive(void *ctx, uint32_t channel)
{
    return channels_alive(ctx, channel);
}

static void control_channel_add_link(void *ctx, uint32_t channel, uint16_t slot,
                                     const uint8_t *address, uint32_t len,
                                     const uint8_t secret[SEAL_SECRET_BYTES])
{
    channels_add_link(ctx, channel, slot, address, len, secret);
}

static void control_channel_remove_link(void *ctx, uint32_t channel, uint16_t slot)
{
    channels_remove_link(ctx, channel, slot);
}

static const struct cluster_channel_ops control_channel_ops = {.driver = control_channel_driver,
                                                               .provider = control_channel_provider,
                                                               .address = control_channel_address,
                                                               .alive = control_channel_alive,
                                                               .add_link = control_channel_add_link,
                                                               .remove_link =
                                                                   control_channel_remove_link};

static void control_on_link_error(void *ctx, uint32_t channel, uint32_t slot, int error)
{
    struct node *node = ctx;
    cluster_on_channel_error(node->cluster, channel, slot, error, clock_now_ns());
}

static void control_on_link(void *ctx, uint32_t channel, const struct cmd_event *event)
{
    struct node *node = ctx;
    const struct neighbour_news news = {.channel = channel,
                                        .slot = event->slot,
                                        .verdict = (uint8_t)event->verdict,
                                        .error = event->error,
                                        .good_bytes = (uint32_t)event->value};

    cluster_on_channel_link(node->cluster, &news, clock_now_ns());
}

static void control_on_rtt(void *ctx, uint32_t channel, uint32_t slot, uint64_t rtt_ns)
{
    struct node *node = ctx;
    cluster_on_channel_rtt(node->cluster, channel, slot, rtt_ns, clock_now_ns());
}

static void control_on_channel_failed(void *ctx, uint32_t channel)
{
    struct node *node = ctx;
    cluster_on_channel_failed(node->cluster, channel);
}

static void control_on_rank_detached(void *ctx, uint64_t job, uint32_t local)
{
    struct node *node = ctx;
    jobs_on_rank_detached(node->jobs, job, local);
}

static void control_on_foreign_removed(void *ctx, uint64_t job, uint64_t in, uint32_t channel)
{
    struct node *node = ctx;
    foreign_on_removed(node->jobs, job, in, channel);
}

static void control_on_job_detached(void *ctx, uint64_t job, uint32_t channel)
{
    struct node *node = ctx;
    job_site_on_job_detached(node->site, job, channel);
}

static void control_on_offence(void *ctx, uint64_t job, uint32_t world_rank, const char *text)
{
    struct node *node = ctx;
    jobs_on_offence(node->jobs, job, world_rank, text, clock_now_ns());
}

static const struct channels_ops control_channels_ops = {.link_error = control_on_link_error,
                                                         .link = control_on_link,
                                                         .rtt = control_on_rtt,
                                                         .failed = control_on_channel_failed,
                                                         .rank_detached = control_on_rank_detached,
                                                         .job_detached = control_on_job_detached,
                                                         .foreign_removed =
                                                             control_on_foreign_removed,
                                                         .offence = control_on_offence};

static uint32_t control_node_of_slot(void *ctx, uint32_t slot)
{
    const struct node *node = ctx;
    return forwarding_node_id(node->forwarding, slot);
}

int control_channels_new(struct node *node)
{
    const struct channels_setup setup = {.base = node->base,
                                         .config = &node->config,
                                         .node_id = node->id,
                                         .epoch = node->epoch,
                                         .fenced = node->fenced,
                                         .table = forwarding_table(node->forwarding),
                                         .node_of_slot = control_node_of_slot,
                                         .ops = &control_channels_ops,
                                         .ctx = node};
    return channels_new(&setup, &node->channels);
}

/* ---- job manager ---- */

static void control_job_to_node(void *ctx, uint32_t node_id, uint16_t type,
                                const ProtobufCMessage *msg)
{
    struct node *node = ctx;
    int rc = mail_send_msg(cluster_mail(node->cluster), node_id, type, msg, clock_now_ns());

    if (rc < 0)
        log_error("a message of type %u to node %08x is lost: %s", type, node_id, strerror(-rc));
}

static int control_job_to_client(void *ctx, void *client, uint16_t type,
                                 const ProtobufCMessage *msg)
{
    (void)ctx;
    return client_send(client, type, msg);
}

static size_t control_job_client_queued(void *ctx, void *client)
{
    (void)ctx;
    return client_queued(client);
}

static void control_job_client_done(void *ctx, void *client)
{
    (void)ctx;
    client_finish(client);
}

static bool control_job_reachable(void *ctx, uint32_t node_id)
{
    struct node *node = ctx;

    return cluster_reachable(node->cluster, node_id);
}

static size_t control_job_nodes(void *ctx, struct placement_node *ret_nodes, size_t max)
{
    struct node *node = ctx;

    if (cluster_draining(node->cluster))
        return 0;
    return placement_nodes(cluster_topology(node->cluster), node->id, node->config.name, ret_nodes,
                           max);
}

static const struct manager_ops control_manager_ops = {.to_node = control_job_to_node,
                                                       .to_client = control_job_to_client,
                                                       .client_queued = control_job_client_queued,
                                                       .client_done = control_job_client_done,
                                                       .reachable = control_job_reachable,
                                                       .nodes = control_job_nodes};

/* ---- spawner ---- */

static void control_on_spawned(void *ctx, uint64_t job, uint32_t rank, int32_t pid,
                               const char *error)
{
    struct node *node = ctx;
    jobs_on_spawned(node->jobs, job, rank, pid, error, clock_now_ns());
}

static void control_on_exited(void *ctx, uint64_t job, uint32_t rank, int32_t status)
{
    struct node *node = ctx;
    jobs_on_exited(node->jobs, job, rank, status, clock_now_ns());
}

static void control_on_spawner_lost(void *ctx)
{
    struct node *node = ctx;
    jobs_on_spawner_lost(node->jobs, clock_now_ns());
}

static const struct spawner_ops control_spawner_ops = {
    .spawned = control_on_spawned, .exited = control_on_exited, .lost = control_on_spawner_lost};

struct spawner *control_spawner_new(struct node *node, pid_t pid, int fd)
{
    return spawner_new(node->base, node->config.spawner, pid, fd, &control_spawner_ops, node);
}

/* ---- timers ---- */

static void control_set_timer(struct event *timer, uint64_t when_ns, uint64_t now_ns)
{
    if (when_ns == UINT64_MAX)
        return;
    uint64_t left_ns = when_ns > now_ns ? when_ns - now_ns : 0;
    struct timeval tv = {.tv_sec = (time_t)(left_ns / CLOCK_NS_PER_S),
                         .tv_usec = (suseconds_t)(left_ns % CLOCK_NS_PER_S / 1000)};
    evtimer_add(timer, &tv);
}

static void control_on_mail(evutil_socket_t fd, short what, void *ctx)
{
    struct node *node = ctx;
    uint64_t now_ns = clock_now_ns();

    (void)fd, (void)what;
    /* The job manager first: what they send must be delivered by this very run, since arming the
     * timer takes back a wake-up that is still under way. */
    manager_run(node->manager, now_ns);
    uint64_t when_ns = mail_run(cluster_mail(node->cluster), now_ns);
    uint64_t job_ns = manager_deadline(node->manager);
    control_set_timer(node->control->mail, when_ns < job_ns ? when_ns : job_ns, now_ns);
}

/* The daemon ends when its jobs have, or their time is over. */
static void control_drain(struct node *node, uint64_t now_ns)
{
    struct control *control = node->control;
    uint64_t drained_ns = now_ns - control->shutdown_ns, limit_ns = node->config.drain_limit_ns;

    if (manager_count(node->manager) > 0 || jobs_count(node->jobs) > 0) {
        if (drained_ns >= limit_ns)
            jobs_end_all(node->jobs, "its node is being shut down", now_ns);
        if (drained_ns < limit_ns + node->config.kill_grace_ns + END_LIMIT_NS)
            return;
        log_warn("%u jobs here have not ended, ending without them", jobs_count(node->jobs));
        event_base_loopbreak(node->base);
        return;
    }
    /* Jobs of others that have no other way have the same time as those with ranks here. */
    if (drained_ns < limit_ns && cluster_needed(node->cluster)) {
        if (!control->forwarding)
            log_notice("jobs on other nodes have no other way, forwarding for them for %llu ms at "
                       "most",
                       (unsigned long long)(limit_ns / CLOCK_NS_PER_MS));
        control->forwarding = true;
        return;
    }
    /* What this node still forwards and has not had acknowledged goes out first. */
    if (!control->draining_channels) {
        control->draining_channels = true;
        control->channels_until_ns = now_ns + 2 * CHANNELS_LIMIT_NS;
        channels_drain(node->channels, CHANNELS_LIMIT_NS);
    }
    if (channels_drained(node->channels) || now_ns > control->channels_until_ns)
        event_base_loopbreak(node->base);
}

/* A daemon that has seeds and finds nobody says so: a typing error looks like a network of one. */
static void control_note_alone(struct node *node, uint64_t now_ns)
{
    struct control *control = node->control;
    char seeds[300];
    bool alone = mesh_is_alone(cluster_mesh(node->cluster), seeds, sizeof seeds);

    if (!alone) {
        if (control->alone_told_ns != 0)
            log_notice("not alone any more");
        control->alone_since_ns = control->alone_told_ns = 0;
        return;
    }
    if (control->alone_since_ns == 0)
        control->alone_since_ns = now_ns;
    if (now_ns - control->alone_since_ns < ALONE_AFTER_NS ||
        (control->alone_told_ns != 0 && now_ns - control->alone_told_ns < ALONE_AGAIN_NS))
        return;
    control->alone_told_ns = now_ns;
    log_warn("this node is alone: none of its seeds can be connected to: %s", seeds);
}

static void control_on_tick(evutil_socket_t fd, short what, void *ctx)
{
    struct node *node = ctx;

    (void)fd, (void)what;
    channels_tick(node->channels, clock_now_ns());
    service_tick(node->service, clock_now_ns());
    jobs_tick(node->jobs, clock_now_ns());
    control_note_alone(node, clock_now_ns());
    cluster_note_busy(node->cluster);
    if (cluster_draining(node->cluster))
        control_drain(node, clock_now_ns());
}

static void control_report_reload(void *ctx, const char *line)
{
    (void)ctx;
    log_warn("%s", line);
}

int control_read_config(const struct node *node, struct config *fresh, config_report_fn *report,
                        void *ctx)
{
    config_defaults(fresh);
    int rc = node->config_path ? config_load(fresh, node->config_path, report, ctx) : 0;
    /* What the command line and the environment gave stays. */
    snprintf(fresh->name, sizeof fresh->name, "%s", node->config.name);
    snprintf(fresh->spawner, sizeof fresh->spawner, "%s", node->config.spawner);
    if (rc == 0)
        rc = config_finish(fresh, report, ctx);
    if (node->private_mode) {
        snprintf(fresh->client_socket, sizeof fresh->client_socket, "%s",
                 node->config.client_socket);
        snprintf(fresh->status_socket, sizeof fresh->status_socket, "%s",
                 node->config.status_socket);
    }
    for (int ch = 0; rc == 0 && ch < fresh->n_channels && ch < node->config.n_channels; ch++)
        if (fresh->channels[ch].mbytes_per_s == 0)
            fresh->channels[ch].mbytes_per_s = node->config.channels[ch].mbytes_per_s;
    return rc;
}

/* SIGHUP: takes over what can change while running and names what cannot. A file with mistakes
 * changes nothing. */
static void control_reload(struct node *node)
{
    struct config *fresh = malloc(sizeof *fresh);

    if (!fresh)
        return;
    service_reloading(node->service, clock_now_ns());
    int rc = control_read_config(node, fresh, control_report_reload, NULL);
    if (rc < 0) {
        log_error("the configuration was not reloaded because of its mistakes");
    } else {
        int n_restart = config_reload(&node->config, fresh, control_report_reload, NULL);
        log_set_level((enum log_level)node->config.log_level);
        manager_set_grace(node->manager, node->config.kill_grace_ns);
        cluster_reloaded(node->cluster, clock_now_ns());
        for (uint32_t ch = 0; ch < channels_count(node->channels); ch++) {
            const struct config_channel *c = &node->config.channels[ch];
            channels_set_wait(node->channels, ch,
                              (uint32_t)(c->wait_mode == CONFIG_WAIT_INHERIT
                                             ? node->config.wait_mode
                                             : c->wait_mode));
        }
        log_notice("configuration reloaded, %d settings need a restart", n_restart);
    }
    free(fresh);
    service_reloaded(node->service);
}

static void control_on_signal(evutil_socket_t signal, short what, void *ctx)
{
    struct node *node = ctx;

    (void)what;
    if (signal == SIGTERM || signal == SIGINT)
        control_shutdown(node, signal == SIGTERM ? "the daemon was told to end"
                                                 : "the daemon was interrupted");
    else if (signal == SIGHUP)
        control_reload(node);
}

static void control_on_lifeline(evutil_socket_t fd, short what, void *ctx)
{
    struct node *node = ctx;
    char byte;

    (void)what;
    if (read(fd, &byte, 1) > 0)
        return;
    log_info("lifeline closed, ending");
    event_base_loopbreak(node->base);
}

void control_shutdown(struct node *node, const char *why)
{
    if (cluster_draining(node->cluster)) {
        event_base_loopbreak(node->base);
        return;
    }
    cluster_drain(node->cluster);
    jobs_drain(node->jobs);
    node->control->shutdown_ns = clock_now_ns();
    service_stopping(node->service, node->config.drain_limit_ns + node->config.kill_grace_ns +
                                        END_LIMIT_NS + 2 * CHANNELS_LIMIT_NS);
    log_notice("%s, %u jobs end; those of other nodes have %llu ms", why,
               manager_count(node->manager),
               (unsigned long long)(node->config.drain_limit_ns / CLOCK_NS_PER_MS));
    manager_end_all(node->manager, why, clock_now_ns());
    control_want_mail(node);
    control_on_tick(-1, 0, node);
}

/* What listens to the world outside: the clock, signals, the life of who started this. 0 or
 * negative errno. */
static int control_init_events(struct node *node)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    struct control *control = node->control;
    struct timeval second = {.tv_sec = 1};

    control->mail = evtimer_new(node->base, control_on_mail, node);
    control->update = evtimer_new(node->base, control_on_update, node);
    control->tick = event_new(node->base, -1, EV_PERSIST, control_on_tick, node);
    if (!control->mail || !control->update || !control->tick ||
        event_add(control->tick, &second) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        control->signals[i] = evsignal_new(node->base, signals[i], control_on_signal, node);
        if (!control->signals[i] || event_add(control->signals[i], NULL) < 0)
            return -ENOMEM;
    }
    if (node->lifeline_fd >= 0) {
        control->lifeline = event_new(node->base, node->lifeline_fd, EV_READ | EV_PERSIST,
                                      control_on_lifeline, node);
        if (!control->lifeline || event_add(control->lifeline, NULL) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int control_init_cluster(struct node *node)
{
    node->sockets = mesh_sockets_new(node->base, &node->config);
    if (!node->sockets)
        return -ENOMEM;
    if (node->config.n_channels > 0) {
        char why[256];
        int rc = auth_load_key(node->config.key_file, &node->key, why, sizeof why);
        if (rc < 0) {
            log_error("%s", why);
            return rc;
        }
    }
    const struct cluster_setup setup = {.config = &node->config,
                                        .node_id = node->id,
                                        .epoch = node->epoch,
                                        .n_cores = (uint32_t)thread_n_cores(),
                                        .software = NODE_SOFTWARE,
                                        .key = &node->key,
                                        .forwarding = node->forwarding,
                                        .socket_ops = &mesh_socket_ops,
                                        .socket_ctx = node->sockets,
                                        .channel_ops = &control_channel_ops,
                                        .channel_ctx = node->channels,
                                        .ops = &control_cluster_ops,
                                        .ctx = node};
    node->cluster = cluster_new(&setup);
    return node->cluster ? 0 : -ENOMEM;
}

static int control_init_jobs(struct node *node)
{
    const struct job_site_setup site = {.base = node->base,
                                        .config = &node->config,
                                        .fenced = node->fenced,
                                        .forwarding = node->forwarding,
                                        .channels = node->channels,
                                        .spawner = node->spawner,
                                        .cluster = node->cluster};
    node->site = job_site_new(&site);
    if (!node->site)
        return -ENOMEM;
    const struct jobs_setup jobs = {.config = &node->config,
                                    .quota = node->quota,
                                    .node_id = node->id,
                                    .ops = &job_site_ops,
                                    .ctx = node->site};
    node->jobs = jobs_new(&jobs);
    node->manager =
        manager_new(node->config.name, node->id, node->epoch, &control_manager_ops, node);
    if (!node->jobs || !node->manager)
        return -ENOMEM;
    job_site_set_jobs(node->site, node->jobs);
    manager_set_grace(node->manager, node->config.kill_grace_ns);
    return 0;
}

int control_init(struct node *node)
{
    signal(SIGPIPE, SIG_IGN);
    node->control = calloc(1, sizeof *node->control);
    if (!node->control)
        return -ENOMEM;
    int rc = control_init_events(node);
    if (rc == 0)
        rc = control_init_cluster(node);
    if (rc == 0)
        rc = control_init_jobs(node);
    if (rc < 0)
        return rc;
    event_active(node->control->tick, EV_TIMEOUT,
                 0); /* readiness need not wait for the first second */
    return mesh_sockets_start(node->sockets, cluster_mesh(node->cluster));
}

void control_deinit(struct node *node)
{
    struct control *control = node->control;

    if (!control)
        return;
    cluster_free(node->cluster);
    node->cluster = NULL;
    mesh_sockets_free(node->sockets);
    for (size_t i = 0; i < sizeof control->signals / sizeof control->signals[0]; i++)
        if (control->signals[i])
            event_free(control->signals[i]);
    if (control->lifeline)
        event_free(control->lifeline);
    manager_free(node->manager);
    job_site_free(node->site);
    if (control->mail)
        event_free(control->mail);
    if (control->update)
        event_free(control->update);
    if (control->tick)
        event_free(control->tick);
    free(control);
}
