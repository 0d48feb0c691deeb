/* SPDX-License-Identifier: BSD-3-Clause */
/* What this node knows of the cluster: nodes, networks, channels, links, routes. */
#include <string.h>

#include "base/clock.h"
#include "daemon/channel/channel.h"
#include "daemon/cluster/channels.h"
#include "daemon/cluster/cluster.h"
#include "daemon/cluster/mesh.h"
#include "daemon/port/cmd.h"
#include "daemon/port/count.h"
#include "daemon/routing/forwarding.h"
#include "daemon/routing/topology.h"
#include "daemon/seal/seal.h"
#include "daemon/status/status_link.h"
#include "daemon/status/status_node.h"
#include "daemon/status/status_view.h"

static const char *node_state(const struct status_node *node, const struct topology_node *t)
{
    if (t->node_id == node->id)
        return "self";
    return t->reachable ? "reachable" : t->lost ? "lost" : "unreachable";
}

void status_view_nodes(struct status_node *node, const struct status_request *q, json_t *rows)
{
    (void)q;
    for (struct topology_node *t = topology_first(node->topology); t; t = t->hh.next) {
        const struct route *r = t->node_id == node->id ? NULL : cluster_route(node->cluster, t);
        json_t *networks = json_array();
        for (size_t i = 0; i < t->state->n_endpoints; i++)
            json_array_append_new(networks, json_string(t->state->endpoints[i]->network));
        json_array_append_new(
            rows, json_pack("{s:s, s:o, s:I, s:s, s:b, s:I, s:o, s:I}", "node", t->state->node,
                            "node_id", status_view_node_id(t->node_id), "epoch",
                            (json_int_t)t->state->epoch, "state", node_state(node, t), "draining",
                            (int)t->state->draining, "cores", (json_int_t)t->state->n_cores,
                            "networks", networks, "hops", (json_int_t)(r ? r->quick.n_hops : 0)));
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

/* What guards messages on a network of our own. */
static void set_protect(const struct status_node *node, const char *network, json_t *row)
{
    for (int ch = 0; ch < node->config->n_channels; ch++)
        if (strcmp(node->config->channels[ch].network, network) == 0)
            json_object_set_new(
                row, "protect",
                json_string(seal_mode_name((uint32_t)node->config->channels[ch].protect)));
}

/* What moves messages on a network of our own, what it uses of the kernel, and the least and the
 * largest datagram that it may send to a neighbour. */
static void set_driver(const struct status_node *node, const char *network, json_t *row)
{
    uint32_t least = UINT32_MAX, most = 0;

    for (uint32_t ch = 0; ch < channels_count(node->channels); ch++) {
        const struct channel *channel = channels_at(node->channels, ch);
        struct net_info info;
        struct count_link l;
        if (strcmp(node->config->channels[ch].network, network) != 0)
            continue;
        channel_info(channel, &info);
        json_object_set_new(row, "provider", json_string(info.provider));
        json_object_set_new(row, "features", json_string(info.features));
        for (struct topology_node *t = topology_first(node->topology); t; t = t->hh.next) {
            int slot = forwarding_find(node->forwarding, t->node_id);
            if (slot <= 0 || !channel_link(channel, (uint32_t)slot, &l) || !l.up ||
                l.datagram_bytes == 0)
                continue;
            least = l.datagram_bytes < least ? l.datagram_bytes : least;
            most = l.datagram_bytes > most ? l.datagram_bytes : most;
        }
    }
    if (most == 0)
        return;
    json_object_set_new(row, "datagram_bytes", json_integer(most));
    if (least < most)
        json_object_set_new(row, "datagram_least", json_integer(least));
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

void status_view_networks(struct status_node *node, const struct status_request *q, json_t *rows)
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
            set_protect(node, t->state->endpoints[i]->network, row);
            set_driver(node, t->state->endpoints[i]->network, row);
        }
    }
}

static void add_own_channel(struct status_node *node, uint32_t ch, json_t *row)
{
    const struct config_channel *c = &node->config->channels[ch];
    struct net_info info;
    uint64_t mode = c->wait_mode == CONFIG_WAIT_INHERIT ? node->config->wait_mode : c->wait_mode;

    channel_info(channels_at(node->channels, ch), &info);
    json_object_set_new(row, "name", json_string(c->name));
    json_object_set_new(row, "interface", json_string(c->resolved_interface));
    json_object_set_new(row, "mbytes_per_s", json_integer((json_int_t)c->mbytes_per_s));
    json_object_set_new(row, "wait_mode", json_string(status_wait_names[mode]));
    json_object_set_new(row, "sleeps_by",
                        json_string(info.caps & NET_CAP_WAIT ? "descriptor" : "timer"));
    json_object_set_new(row, "max_datagram", json_integer(info.max_datagram));
    json_object_set_new(row, "alive", json_boolean(channels_alive(node->channels, ch)));
}

void status_view_channels(struct status_node *node, const struct status_request *q, json_t *rows)
{
    (void)q;
    for (struct topology_node *t = topology_first(node->topology); t; t = t->hh.next) {
        for (size_t i = 0; i < t->state->n_endpoints; i++) {
            const Motet__Endpoint *e = t->state->endpoints[i];
            json_t *row = json_pack("{s:s, s:I, s:s, s:s, s:s, s:s, s:I}", "node", t->state->node,
                                    "channel", (json_int_t)e->channel, "network", e->network,
                                    "driver", e->driver, "provider", e->provider, "address",
                                    e->control_host, "control_port", (json_int_t)e->control_port);
            if (row && t->node_id == node->id && e->channel < channels_count(node->channels))
                add_own_channel(node, e->channel, row);
            json_array_append_new(rows, row);
        }
    }
}

static const char *const verdict_names[LINK_N_VERDICTS] = {
    [LINK_UNPROVED] = "unproved", [LINK_ALIVE] = "alive", [LINK_SILENT] = "silent",
    [LINK_ONE_WAY] = "one_way",   [LINK_LARGE] = "large", [LINK_BROKEN] = "broken"};

/* What the own channels know of their link to this neighbour. */
static void add_own_link(struct status_node *node, uint32_t neighbour, const char *network,
                         json_t *row)
{
    int slot = forwarding_find(node->forwarding, neighbour);
    json_t *channels = json_array();

    for (uint32_t ch = 0; slot > 0 && ch < channels_count(node->channels); ch++) {
        struct count_link l;
        if (strcmp(node->config->channels[ch].network, network) != 0 ||
            !channel_link(channels_at(node->channels, ch), (uint32_t)slot, &l))
            continue;
        json_t *channel = json_pack("{s:I, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:s}", "channel",
                                    (json_int_t)ch, "up", (int)l.up, "queued", (json_int_t)l.queued,
                                    "in_driver", (json_int_t)l.in_driver, "rtt_us",
                                    (json_int_t)l.rtt_us, "packets", (json_int_t)l.packets, "bytes",
                                    (json_int_t)l.bytes, "errors", (json_int_t)l.errors, "data",
                                    verdict_names[l.verdict < LINK_N_VERDICTS ? l.verdict : 0]);
        if (channel && l.datagram_most > 0) {
            json_object_set_new(channel, "datagram_bytes", json_integer(l.datagram_bytes));
            json_object_set_new(channel, "datagrams", json_integer((json_int_t)l.datagrams));
            json_object_set_new(channel, "resent", json_integer((json_int_t)l.resent));
        }
        json_array_append_new(channels, channel);
    }
    json_object_set_new(row, "channels", channels);
    const struct mesh_link *m = mesh_find(node->mesh, neighbour, network);
    json_object_set_new(row, "control", json_string(m ? "up" : "down"));
    set_protect(node, network, row);
}

void status_view_links(struct status_node *node, const struct status_request *q, json_t *rows)
{
    (void)q;
    for (struct topology_node *t = topology_first(node->topology); t; t = t->hh.next) {
        for (size_t i = 0; i < t->state->n_links; i++) {
            const Motet__Adjacency *a = t->state->links[i];
            const struct topology_node *to = topology_find(node->topology, a->node_id);
            const Motet__Adjacency *back =
                to ? topology_adjacency(to, t->node_id, a->network) : NULL;
            bool both = back && !back->has_fault && !a->has_fault;
            json_t *row = json_pack("{s:s, s:s, s:s, s:I, s:I, s:b}", "from", t->state->node, "to",
                                    to ? to->state->node : "?", "network", a->network, "rtt_us",
                                    (json_int_t)a->rtt_us, "mbytes_per_s",
                                    (json_int_t)a->mbytes_per_s, "both_ways", (int)both);
            struct status_link_words words;
            if (row && status_link_fault(node, t, a, &words))
                json_object_set_new(row, "fault", json_string(words.text));
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

void status_view_routes(struct status_node *node, const struct status_request *q, json_t *rows)
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
            rows, json_pack("{s:s, s:s, s:b, s:o, s:o}", "from", node->config->name, "to",
                            t->state->node, "reachable", r != NULL, "quick",
                            r ? way_row(node->cluster, &r->quick) : json_null(), "wide", wide));
    }
}
