/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/control/control.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include <event2/event.h>

#include "daemon/cluster/channels.h"
#include "daemon/cluster/cluster.h"
#include "daemon/cluster/mail.h"
#include "daemon/cluster/mesh.h"
#include "daemon/cluster/topology.h"
#include "daemon/control/node.h"
#include "daemon/control/service.h"
#include "daemon/jobs/client.h"
#include "daemon/jobs/job.h"
#include "daemon/jobs/manager.h"
#include "daemon/jobs/spawner.h"
#include "daemon/status/status.h"
#include "proto/control.pb-c.h"

/* For packets that this node still has to pass on. */
#define CHANNELS_LIMIT_NS (2 * CLOCK_NS_PER_S)
/* After the drain limit jobs are ended; what has not ended by then goes with the daemon. */
#define END_LIMIT_NS (5 * CLOCK_NS_PER_S)

struct control {
    struct event *mail, *tick, *lifeline, *signals[3];
    uint64_t shutdown_ns; /* when the daemon was told to end */
    uint64_t channels_until_ns;
    bool draining_channels;
};

/* ---- mail ---- */

static int mail_forward(void *ctx, uint32_t dst_node, const uint8_t *frame, uint32_t len)
{
    struct node *node = ctx;
    return cluster_forward(node->cluster, dst_node, frame, len);
}

static void deliver_stdio(struct node *node, uint32_t src, const uint8_t *body, uint32_t len)
{
    Motet__Stdio *msg = motet__stdio__unpack(NULL, len, body);

    if (!msg)
        return;
    if (msg->stream == 0)
        jobs_on_stdin(node->jobs, src, msg);
    else
        manager_on_stdio(node->manager, src, msg, clock_now_ns());
    motet__stdio__free_unpacked(msg, NULL);
}

static void deliver_window(struct node *node, uint32_t src, const uint8_t *body, uint32_t len)
{
    Motet__StdioWindow *msg = motet__stdio_window__unpack(NULL, len, body);

    if (!msg)
        return;
    if (msg->stream == 0)
        manager_on_stdin_window(node->manager, src, msg);
    else
        jobs_on_window(node->jobs, src, msg);
    motet__stdio_window__free_unpacked(msg, NULL);
}

static void deliver_to_home(struct node *node, uint32_t src, uint16_t type, const uint8_t *body,
                            uint32_t len)
{
    uint64_t now_ns = clock_now_ns();

    if (type == MOTET__FRAME_TYPE__LAUNCHED) {
        Motet__Launched *msg = motet__launched__unpack(NULL, len, body);
        if (msg) {
            /* Of a job that has both its home and ranks here, this node may be two places of the
             * tree; a child is below one of them. */
            manager_on_launched(node->manager, src, msg, now_ns);
            jobs_on_launched(node->jobs, src, msg);
            motet__launched__free_unpacked(msg, NULL);
        }
    } else if (type == MOTET__FRAME_TYPE__RANK_EXIT) {
        Motet__RankExit *msg = motet__rank_exit__unpack(NULL, len, body);
        if (msg) {
            manager_on_rank_exit(node->manager, src, msg, now_ns);
            motet__rank_exit__free_unpacked(msg, NULL);
        }
    } else {
        Motet__Abort *msg = motet__abort__unpack(NULL, len, body);
        if (msg) {
            manager_on_abort(node->manager, src, msg, now_ns);
            motet__abort__free_unpacked(msg, NULL);
        }
    }
}

static void mail_deliver(void *ctx, uint32_t src, uint16_t type, const uint8_t *body, uint32_t len)
{
    struct node *node = ctx;

    switch (type) {
    case MOTET__FRAME_TYPE__LAUNCH:
        jobs_on_launch(node->jobs, src, body, len);
        break;
    case MOTET__FRAME_TYPE__START:
        jobs_on_start(node->jobs, src, body, len);
        break;
    case MOTET__FRAME_TYPE__KILL:
        jobs_on_kill(node->jobs, src, body, len);
        break;
    case MOTET__FRAME_TYPE__JOB_END:
        jobs_on_job_end(node->jobs, src, body, len);
        break;
    case MOTET__FRAME_TYPE__STDIO:
        deliver_stdio(node, src, body, len);
        break;
    case MOTET__FRAME_TYPE__STDIO_WINDOW:
        deliver_window(node, src, body, len);
        break;
    case MOTET__FRAME_TYPE__LAUNCHED:
    case MOTET__FRAME_TYPE__RANK_EXIT:
    case MOTET__FRAME_TYPE__ABORT:
        deliver_to_home(node, src, type, body, len);
        break;
    case MOTET__FRAME_TYPE__STATUS_QUERY:
        status_on_query(node, src, body, len);
        break;
    case MOTET__FRAME_TYPE__STATUS_REPLY:
        if (node->status)
            status_on_reply(node->status, src, body, len);
        break;
    default:
        log_warn("mail of unknown type %u from node %08x, ignoring", type, src);
        break;
    }
}

static uint32_t mail_epoch_of(void *ctx, uint32_t node_id)
{
    struct node *node = ctx;
    return cluster_epoch(node->cluster, node_id);
}

static void mail_wake(void *ctx)
{
    struct node *node = ctx;
    /* Not EV_TIMEOUT: setting the timer anew, as on_mail does at its end, would take an event back
     * that is active for that. */
    event_active(node->control->mail, EV_READ, 0);
}

static const struct mail_ops mail_ops = {
    .forward = mail_forward, .deliver = mail_deliver, .epoch_of = mail_epoch_of, .wake = mail_wake};

/* ---- job manager ---- */

static void manager_to_node(void *ctx, uint32_t node_id, uint16_t type, const ProtobufCMessage *msg)
{
    struct node *node = ctx;
    int rc = mail_send_msg(node->mail, node_id, type, msg, clock_now_ns());

    if (rc < 0)
        log_error("a message of type %u to node %08x is lost: %s", type, node_id, strerror(-rc));
}

static int manager_to_client(void *ctx, void *client, uint16_t type, const ProtobufCMessage *msg)
{
    (void)ctx;
    return client_send(client, type, msg);
}

static size_t manager_client_queued(void *ctx, void *client)
{
    (void)ctx;
    return client_queued(client);
}

static void manager_client_done(void *ctx, void *client)
{
    (void)ctx;
    client_finish(client);
}

static bool manager_reachable(void *ctx, uint32_t node_id)
{
    struct node *node = ctx;

    return cluster_reachable(node->cluster, node_id);
}

static size_t manager_nodes(void *ctx, struct placement_node *ret_nodes, size_t max)
{
    struct node *node = ctx;

    return cluster_place_nodes(node->cluster, ret_nodes, max);
}

static const struct manager_ops manager_ops = {.to_node = manager_to_node,
                                               .to_client = manager_to_client,
                                               .client_queued = manager_client_queued,
                                               .client_done = manager_client_done,
                                               .reachable = manager_reachable,
                                               .nodes = manager_nodes};

bool control_busy(const struct node *node)
{
    return jobs_networked(node->jobs) || manager_networked(node->manager);
}

/* ---- spawner ---- */

static void on_spawned(void *ctx, uint64_t job, uint32_t rank, int32_t pid, const char *error)
{
    struct node *node = ctx;
    jobs_on_spawned(node->jobs, job, rank, pid, error);
}

static void on_exited(void *ctx, uint64_t job, uint32_t rank, int32_t status)
{
    struct node *node = ctx;
    jobs_on_exited(node->jobs, job, rank, status);
}

static void on_spawner_lost(void *ctx)
{
    struct node *node = ctx;
    jobs_on_spawner_lost(node->jobs);
}

static const struct spawner_ops spawner_ops = {
    .spawned = on_spawned, .exited = on_exited, .lost = on_spawner_lost};

struct spawner *control_spawner_new(struct node *node, pid_t pid, int fd)
{
    return spawner_new(node->base, node->config.spawner, pid, fd, &spawner_ops, node);
}

/* ---- timers ---- */

static void set_timer(struct event *timer, uint64_t when_ns, uint64_t now_ns)
{
    if (when_ns == UINT64_MAX)
        return;
    uint64_t left_ns = when_ns > now_ns ? when_ns - now_ns : 0;
    struct timeval tv = {.tv_sec = (time_t)(left_ns / CLOCK_NS_PER_S),
                         .tv_usec = (suseconds_t)(left_ns % CLOCK_NS_PER_S / 1000)};
    evtimer_add(timer, &tv);
}

static void on_mail(evutil_socket_t fd, short what, void *ctx)
{
    struct node *node = ctx;
    uint64_t now_ns = clock_now_ns();

    (void)fd, (void)what;
    /* Homes first: what they send must be delivered by this very run, since arming the timer takes
     * back a wake-up that is still under way. */
    manager_run(node->manager, now_ns);
    uint64_t when_ns = mail_run(node->mail, now_ns);
    uint64_t home_ns = manager_deadline(node->manager);
    set_timer(node->control->mail, when_ns < home_ns ? when_ns : home_ns, now_ns);
}

/* The daemon ends when its jobs have, or their time is over. */
static void drain(struct node *node, uint64_t now_ns)
{
    struct control *control = node->control;
    uint64_t drained_ns = now_ns - control->shutdown_ns, limit_ns = node->config.drain_limit_ns;

    if (manager_count(node->manager) > 0 || jobs_count(node->jobs) > 0) {
        if (drained_ns >= limit_ns)
            jobs_end_all(node->jobs, "its node is being shut down");
        if (drained_ns < limit_ns + node->config.kill_grace_ns + END_LIMIT_NS)
            return;
        log_warn("%u jobs here have not ended, ending without them", jobs_count(node->jobs));
        event_base_loopbreak(node->base);
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

static void on_tick(evutil_socket_t fd, short what, void *ctx)
{
    struct node *node = ctx;

    (void)fd, (void)what;
    channels_tick(node->channels);
    service_tick(node->service, clock_now_ns());
    jobs_tick(node->jobs, clock_now_ns());
    cluster_note_busy(node->cluster);
    if (node->draining)
        drain(node, clock_now_ns());
}

static void report_reload(void *ctx, const char *line)
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
static void reload(struct node *node)
{
    struct config *fresh = malloc(sizeof *fresh);

    if (!fresh)
        return;
    service_reloading(node->service, clock_now_ns());
    int rc = control_read_config(node, fresh, report_reload, NULL);
    if (rc < 0) {
        log_error("the configuration was not reloaded because of its mistakes");
    } else {
        int n_restart = config_reload(&node->config, fresh, report_reload, NULL);
        log_set_level((enum log_level)node->config.log_level);
        manager_set_grace(node->manager, node->config.kill_grace_ns);
        mail_set_max_bytes(node->mail, (size_t)node->config.mail_bytes);
        mesh_reloaded(node->mesh);
        for (uint32_t ch = 0; ch < channels_n_channels(node->channels); ch++) {
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

static void on_signal(evutil_socket_t signal, short what, void *ctx)
{
    struct node *node = ctx;

    (void)what;
    if (signal == SIGTERM || signal == SIGINT)
        control_shutdown(node, signal == SIGTERM ? "the daemon was told to end"
                                                 : "the daemon was interrupted");
    else if (signal == SIGHUP)
        reload(node);
}

static void on_lifeline(evutil_socket_t fd, short what, void *ctx)
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
    if (node->draining) {
        event_base_loopbreak(node->base);
        return;
    }
    node->draining = true;
    node->control->shutdown_ns = clock_now_ns();
    service_stopping(node->service, node->config.drain_limit_ns + node->config.kill_grace_ns +
                                        END_LIMIT_NS + 2 * CHANNELS_LIMIT_NS);
    log_notice("%s, %u jobs end; those of other nodes have %llu ms", why,
               manager_count(node->manager),
               (unsigned long long)(node->config.drain_limit_ns / CLOCK_NS_PER_MS));
    manager_end_all(node->manager, why, clock_now_ns());
    cluster_touch(node->cluster);
    mail_wake(node);
    on_tick(-1, 0, node);
}

int control_init(struct node *node)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    struct timeval second = {.tv_sec = 1};

    signal(SIGPIPE, SIG_IGN);
    node->control = calloc(1, sizeof *node->control);
    if (!node->control)
        return -ENOMEM;
    node->control->mail = evtimer_new(node->base, on_mail, node);
    node->control->tick = event_new(node->base, -1, EV_PERSIST, on_tick, node);
    node->mail = mail_new(node->id, node->epoch, (size_t)node->config.mail_bytes, &mail_ops, node);
    node->jobs = jobs_new(node);
    node->manager = manager_new(node->config.name, node->id, node->epoch, &manager_ops, node);
    node->topology = topology_new(node->id, node->epoch, (uint32_t)node->config.max_nodes);
    node->cluster = cluster_new(node);
    if (!node->control->mail || !node->control->tick || !node->mail || !node->jobs ||
        !node->manager || !node->topology || !node->cluster ||
        event_add(node->control->tick, &second) < 0)
        return -ENOMEM;
    manager_set_grace(node->manager, node->config.kill_grace_ns);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        node->control->signals[i] = evsignal_new(node->base, signals[i], on_signal, node);
        if (!node->control->signals[i] || event_add(node->control->signals[i], NULL) < 0)
            return -ENOMEM;
    }
    if (node->lifeline_fd >= 0) {
        node->control->lifeline =
            event_new(node->base, node->lifeline_fd, EV_READ | EV_PERSIST, on_lifeline, node);
        if (!node->control->lifeline || event_add(node->control->lifeline, NULL) < 0)
            return -ENOMEM;
    }
    cluster_touch(node->cluster);
    event_active(node->control->tick, EV_TIMEOUT,
                 0); /* readiness need not wait for the first second */
    return mesh_new(node, &node->mesh);
}

void control_deinit(struct node *node)
{
    if (!node->control)
        return;
    mesh_free(node->mesh);
    cluster_free(node->cluster);
    node->cluster = NULL;
    topology_free(node->topology);
    for (size_t i = 0; i < sizeof node->control->signals / sizeof node->control->signals[0]; i++)
        if (node->control->signals[i])
            event_free(node->control->signals[i]);
    if (node->control->lifeline)
        event_free(node->control->lifeline);
    manager_free(node->manager);
    mail_free(node->mail);
    if (node->control->mail)
        event_free(node->control->mail);
    if (node->control->tick)
        event_free(node->control->tick);
    free(node->control);
}
