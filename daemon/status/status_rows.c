/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/status/status_rows.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/channel/channel.h"
#include "daemon/channel/count.h"
#include "daemon/cluster/channels.h"
#include "daemon/cluster/cluster.h"
#include "daemon/cluster/forwarding.h"
#include "daemon/cluster/mail.h"
#include "daemon/cluster/mesh.h"
#include "daemon/cluster/topology.h"
#include "daemon/control/node.h"
#include "daemon/jobs/client.h"
#include "daemon/jobs/job.h"
#include "daemon/jobs/manager.h"

static const char *const wait_names[] = {
    [WAIT_ADAPTIVE] = "adaptive", [WAIT_SPIN] = "spin", [WAIT_EVENT] = "event"};

bool status_rows_privileged(const struct node *node, uid_t uid)
{
    (void)node;
    return uid == 0 || uid == geteuid();
}

static json_t *hex32(uint32_t n)
{
    char text[16];

    snprintf(text, sizeof text, "%08x", n);
    return json_string(text);
}

static const char *node_state(const struct node *node, const struct topology_node *t)
{
    if (t->node_id == node->id)
        return "self";
    return t->reachable ? "reachable" : t->lost ? "lost" : "unreachable";
}

static void rows_nodes(struct node *node, const struct status_request *q, json_t *rows)
{
    (void)q;
    for (struct topology_node *t = topology_first(node->topology); t; t = t->hh.next) {
        const struct route *r = t->node_id == node->id ? NULL : cluster_route(node->cluster, t);
        json_t *networks = json_array();
        for (size_t i = 0; i < t->state->n_endpoints; i++)
            json_array_append_new(networks, json_string(t->state->endpoints[i]->network));
        json_array_append_new(
            rows, json_pack("{s:s, s:o, s:I, s:s, s:b, s:I, s:o, s:I}", "node", t->state->node,
                            "node_id", hex32(t->node_id), "epoch", (json_int_t)t->state->epoch,
                            "state", node_state(node, t), "draining", (int)t->state->draining,
                            "cores", (json_int_t)t->state->n_cores, "networks", networks, "hops",
                            (json_int_t)(r ? r->quick.n_hops : 0)));
    }
}

/* The row of this network, made on first mention. */
static json_t *network_row(json_t *rows, const char *network)
{
    size_t i;
    json_t *row;

    json_array_foreach(rows, i, row)
        if (strcmp(json_string_value(json_object_get(row, "network")), network) == 0)
            return row;
    row = json_pack("{s:s, s:[], s:[]}", "network", network, "nodes", "gateways");
    json_array_append_new(rows, row);
    return row;
}

static void append_once(json_t *array, const char *text)
{
    size_t i;
    json_t *value;

    json_array_foreach(array, i, value)
        if (strcmp(json_string_value(value), text) == 0)
            return;
    json_array_append_new(array, json_string(text));
}

static void rows_networks(struct node *node, const struct status_request *q, json_t *rows)
{
    (void)q;
    for (struct topology_node *t = topology_first(node->topology); t; t = t->hh.next) {
        for (size_t i = 0; i < t->state->n_endpoints; i++) {
            json_t *row = network_row(rows, t->state->endpoints[i]->network);
            append_once(json_object_get(row, "nodes"), t->state->node);
            if (strcmp(t->state->endpoints[i]->network, t->state->endpoints[0]->network) != 0 ||
                (t->state->n_endpoints > 1 &&
                 strcmp(t->state->endpoints[t->state->n_endpoints - 1]->network,
                        t->state->endpoints[0]->network) != 0))
                append_once(json_object_get(row, "gateways"), t->state->node);
        }
    }
}

static void add_own_channel(struct node *node, uint32_t ch, json_t *row)
{
    const struct config_channel *c = &node->config.channels[ch];
    struct net_info info;
    uint64_t mode = c->wait_mode == CONFIG_WAIT_INHERIT ? node->config.wait_mode : c->wait_mode;

    channel_info(channels_at(node->channels, ch), &info);
    json_object_set_new(row, "name", json_string(c->name));
    json_object_set_new(row, "interface", json_string(c->resolved_interface));
    json_object_set_new(row, "mbytes_per_s", json_integer((json_int_t)c->mbytes_per_s));
    json_object_set_new(row, "wait_mode", json_string(wait_names[mode]));
    json_object_set_new(row, "sleeps_by",
                        json_string(info.caps & NET_CAP_WAIT ? "descriptor" : "timer"));
    json_object_set_new(row, "max_datagram", json_integer(info.max_datagram));
    json_object_set_new(row, "alive", json_boolean(channels_alive(node->channels, ch)));
}

static void rows_channels(struct node *node, const struct status_request *q, json_t *rows)
{
    (void)q;
    for (struct topology_node *t = topology_first(node->topology); t; t = t->hh.next) {
        for (size_t i = 0; i < t->state->n_endpoints; i++) {
            const Motet__Endpoint *e = t->state->endpoints[i];
            json_t *row = json_pack("{s:s, s:I, s:s, s:s, s:s, s:s, s:I}", "node", t->state->node,
                                    "channel", (json_int_t)e->channel, "network", e->network,
                                    "driver", e->driver, "provider", e->provider, "address",
                                    e->control_host, "control_port", (json_int_t)e->control_port);
            if (row && t->node_id == node->id && e->channel < channels_n_channels(node->channels))
                add_own_channel(node, e->channel, row);
            json_array_append_new(rows, row);
        }
    }
}

/* What the own channels know of their link to this neighbour. */
static void add_own_link(struct node *node, uint32_t neighbour, const char *network, json_t *row)
{
    int slot = forwarding_find(node->forwarding, neighbour);
    json_t *channels = json_array();

    for (uint32_t ch = 0; slot > 0 && ch < channels_n_channels(node->channels); ch++) {
        struct count_link l;
        if (strcmp(node->config.channels[ch].network, network) != 0 ||
            !channel_link(channels_at(node->channels, ch), (uint32_t)slot, &l))
            continue;
        json_array_append_new(
            channels, json_pack("{s:I, s:b, s:I, s:I, s:I, s:I, s:I, s:I}", "channel",
                                (json_int_t)ch, "up", (int)l.up, "queued", (json_int_t)l.queued,
                                "in_driver", (json_int_t)l.in_driver, "rtt_us",
                                (json_int_t)l.rtt_us, "packets", (json_int_t)l.packets, "bytes",
                                (json_int_t)l.bytes, "errors", (json_int_t)l.errors));
    }
    json_object_set_new(row, "channels", channels);
    const struct mesh_link *m = mesh_find(node->mesh, neighbour, network);
    json_object_set_new(row, "control", json_string(m ? "up" : "down"));
}

static void rows_links(struct node *node, const struct status_request *q, json_t *rows)
{
    (void)q;
    for (struct topology_node *t = topology_first(node->topology); t; t = t->hh.next) {
        for (size_t i = 0; i < t->state->n_links; i++) {
            const Motet__Adjacency *a = t->state->links[i];
            const struct topology_node *to = topology_find(node->topology, a->node_id);
            json_t *row = json_pack("{s:s, s:s, s:s, s:I, s:I, s:b}", "from", t->state->node, "to",
                                    to ? to->state->node : "?", "network", a->network, "rtt_us",
                                    (json_int_t)a->rtt_us, "mbytes_per_s",
                                    (json_int_t)a->mbytes_per_s, "both_ways",
                                    to && topology_adjacency(to, t->node_id, a->network) != NULL);
            if (row && t->node_id == node->id)
                add_own_link(node, a->node_id, a->network, row);
            json_array_append_new(rows, row);
        }
    }
}

static json_t *way_row(const struct cluster *c, const struct route_way *w)
{
    const struct topology_node *next = cluster_node(c, w->next);

    return json_pack("{s:s, s:s, s:I, s:I, s:f}", "next", next ? next->state->node : "?", "network",
                     cluster_network(c, w->network), "hops", (json_int_t)w->n_hops, "cost_us",
                     (json_int_t)(w->cost_ns / CLOCK_NS_PER_US), "share", (double)w->share / 65535);
}

static void rows_routes(struct node *node, const struct status_request *q, json_t *rows)
{
    (void)q;
    for (struct topology_node *t = topology_first(node->topology); t; t = t->hh.next) {
        const struct route *r = t->node_id == node->id ? NULL : cluster_route(node->cluster, t);
        json_t *wide = json_array();
        if (t->node_id == node->id) {
            json_decref(wide);
            continue;
        }
        for (uint32_t i = 0; r && i < r->n_wide; i++)
            json_array_append_new(wide, way_row(node->cluster, &r->wide[i]));
        json_array_append_new(
            rows, json_pack("{s:s, s:s, s:b, s:o, s:o}", "from", node->config.name, "to",
                            t->state->node, "reachable", r != NULL, "quick",
                            r ? way_row(node->cluster, &r->quick) : json_null(), "wide", wide));
    }
}

static const char *const home_states[] = {
    [MANAGER_LAUNCHING] = "launching", [MANAGER_RUNNING] = "running", [MANAGER_ENDING] = "ending"};

/* Jobs as their homes know them: each job once in the cluster. */
static void rows_jobs(struct node *node, const struct status_request *q, json_t *rows)
{
    uint64_t now_ns = clock_now_ns();

    for (struct manager_job *h = manager_first(node->manager);
         h && json_array_size(rows) < q->limit; h = h->hh.next) {
        char id[32];
        if ((q->has_job && h->id != q->job) ||
            (h->uid != q->uid && !status_rows_privileged(node, q->uid)))
            continue;
        json_t *nodes = json_array();
        for (size_t n = 0; n < h->placement.n_placements; n++)
            json_array_append_new(
                nodes, json_pack("{s:s, s:I}", "node", h->placement.placements[n]->node, "ranks",
                                 (json_int_t)h->placement.placements[n]->n_ranks));
        snprintf(id, sizeof id, "%016llx", (unsigned long long)h->id);
        json_array_append_new(
            rows, json_pack("{s:s, s:s, s:I, s:s, s:s, s:I, s:I, s:o, s:I, s:s?}", "job", id,
                            "name", h->name, "uid", (json_int_t)h->uid, "home", node->config.name,
                            "state", home_states[h->state], "ranks", (json_int_t)h->n_ranks,
                            "exited", (json_int_t)h->n_exited, "nodes", nodes, "age_ms",
                            (json_int_t)((now_ns - h->since_ns) / CLOCK_NS_PER_MS), "message",
                            h->message[0] ? h->message : NULL));
    }
}

/* Packets on their way: the flows from this node and what waits for its neighbours. They belong to
 * the node, not to a job. */
static void rows_packets(struct node *node, json_t *rows)
{
    struct count_flow f;
    struct count_link l;

    for (uint32_t ch = 0; ch < channels_n_channels(node->channels); ch++) {
        const struct channel *channel = channels_at(node->channels, ch);
        for (uint32_t slot = 1; slot < forwarding_n_slots(node->forwarding); slot++) {
            const struct topology_node *t =
                topology_find(node->topology, forwarding_node_id(node->forwarding, slot));
            const char *to = t ? t->state->node : "?";
            if (channel_flow(channel, slot, &f) && (f.in_flight > 0 || f.queued > 0))
                json_array_append_new(
                    rows,
                    json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "queue", "flow",
                              "node", node->config.name, "to", to, "channel", (json_int_t)ch,
                              "window", (json_int_t)f.window, "in_flight", (json_int_t)f.in_flight,
                              "queued", (json_int_t)f.queued, "rtt_us", (json_int_t)f.srtt_us,
                              "resent", (json_int_t)f.resent));
            if (channel_link(channel, slot, &l) && (l.queued > 0 || l.in_driver > 0))
                json_array_append_new(rows, json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "queue",
                                                      "forwarding", "node", node->config.name, "to",
                                                      to, "channel", (json_int_t)ch, "queued",
                                                      (json_int_t)l.queued, "in_driver",
                                                      (json_int_t)l.in_driver));
        }
    }
}

static void rows_queues(struct node *node, const struct status_request *q, json_t *rows)
{
    status_queue_boards(node, q, rows);
    if (!q->has_job && q->rank < 0 && status_rows_privileged(node, q->uid))
        rows_packets(node, rows);
}

static void rows_counters(struct node *node, const struct status_request *q, json_t *rows)
{
    (void)q;
    for (uint32_t ch = 0; ch < channels_n_channels(node->channels); ch++) {
        const struct count *c = channel_counters(channels_at(node->channels, ch));
        json_t *values = json_object();
        for (int i = 0; i < COUNT_N; i++)
            json_object_set_new(values, count_name((enum count_id)i),
                                json_integer((json_int_t)count_get(c, (enum count_id)i)));
        json_array_append_new(rows, json_pack("{s:s, s:I, s:s, s:o}", "node", node->config.name,
                                              "channel", (json_int_t)ch, "name",
                                              node->config.channels[ch].name, "counters", values));
    }
    json_array_append_new(
        rows, json_pack("{s:s, s:n, s:s, s:{s:I, s:I, s:I, s:I, s:I}}", "node", node->config.name,
                        "channel", "name", "daemon", "counters", "uptime_ms",
                        (json_int_t)((clock_now_ns() - node->started_ns) / CLOCK_NS_PER_MS),
                        "jobs_here", (json_int_t)jobs_count(node->jobs), "jobs_home",
                        (json_int_t)manager_count(node->manager), "clients",
                        (json_int_t)clients_count(node->clients), "nodes",
                        (json_int_t)topology_count(node->topology)));
}

static void rows_info(struct node *node, const struct status_request *q, json_t *rows)
{
    const struct config *c = &node->config;

    (void)q;
    json_array_append_new(
        rows,
        json_pack("{s:s, s:o, s:I, s:s, s:i, s:i, s:b, s:b, s:s?, s:s, s:s, s:s, s:I, s:I, s:I}",
                  "node", c->name, "node_id", hex32(node->id), "epoch", (json_int_t)node->epoch,
                  "version", NODE_SOFTWARE, "pid", (int)getpid(), "uid", (int)geteuid(), "private",
                  (int)node->private_mode, "draining", (int)node->draining, "config",
                  node->config_path, "client_socket", c->client_socket, "status_socket",
                  c->status_socket, "wait_mode", wait_names[c->wait_mode], "packet_bytes",
                  (json_int_t)c->packet_bytes, "channels",
                  (json_int_t)channels_n_channels(node->channels), "uptime_ms",
                  (json_int_t)((clock_now_ns() - node->started_ns) / CLOCK_NS_PER_MS)));
}

static void rows_ranks(struct node *node, const struct status_request *q, json_t *rows)
{
    status_queue_ranks(node, q, rows);
}

static const struct {
    const char *name;
    void (*rows)(struct node *node, const struct status_request *q, json_t *rows);
    bool is_public, clusterwide;
    bool limited; /* by the request's limit */
} subjects[] = {
    {"info", rows_info, true, false, false},
    {"nodes", rows_nodes, true, false, false},
    {"networks", rows_networks, true, false, false},
    {"channels", rows_channels, true, false, false},
    {"links", rows_links, true, false, false},
    {"routes", rows_routes, true, false, false},
    {"jobs", rows_jobs, true, true, true},
    {"ranks", rows_ranks, true, true, true},
    {"queues", rows_queues, true, true, true},
    {"communicators", status_queue_communicators, true, true, true},
    {"counters", rows_counters, false, true, false},
    {"doctor", status_doctor, true, true, false},
};
#define N_SUBJECTS (sizeof subjects / sizeof subjects[0])

static int find(const char *subject)
{
    for (size_t i = 0; i < N_SUBJECTS; i++)
        if (strcmp(subjects[i].name, subject) == 0)
            return (int)i;
    return -1;
}

bool status_rows_known(const char *subject)
{
    return strcmp(subject, "all") == 0 || find(subject) >= 0;
}

bool status_rows_public(const char *subject)
{
    int i = find(subject);
    return i < 0 || subjects[i].is_public;
}

bool status_rows_clusterwide(const char *subject)
{
    int i = find(subject);
    return i < 0 || subjects[i].clusterwide;
}

/* Some rows take much room or time, and stop at the limit; one more than that tells that there are
 * more. */
static json_t *subject_rows(struct node *node, size_t subject, const struct status_request *q,
                            bool *ret_truncated)
{
    struct status_request more = *q;
    json_t *rows = json_array();

    more.limit = q->limit + 1;
    if (rows)
        subjects[subject].rows(node, &more, rows);
    *ret_truncated = subjects[subject].limited && json_array_size(rows) > q->limit;
    while (*ret_truncated && json_array_size(rows) > q->limit)
        json_array_remove(rows, json_array_size(rows) - 1);
    return rows;
}

json_t *status_rows(struct node *node, const char *subject, const struct status_request *q,
                    bool *ret_truncated)
{
    int at = find(subject);

    if (at >= 0)
        return subject_rows(node, (size_t)at, q, ret_truncated);
    /* "all": one row per subject. */
    json_t *rows = json_array();
    *ret_truncated = false;
    for (size_t i = 0; rows && i < N_SUBJECTS; i++) {
        bool truncated;
        if ((!subjects[i].is_public && !status_rows_privileged(node, q->uid)) ||
            strcmp(subjects[i].name, "doctor") == 0)
            continue;
        json_t *part = subject_rows(node, i, q, &truncated);
        json_t *row = json_pack("{s:s, s:s, s:o}", "subject", subjects[i].name, "node",
                                node->config.name, "rows", part ? part : json_null());
        if (row && truncated)
            json_object_set_new(row, "truncated", json_true());
        *ret_truncated |= truncated;
        json_array_append_new(rows, row);
    }
    return rows;
}
