/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/cluster/cluster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/cluster/flood.h"
#include "daemon/cluster/link_state.h"
#include "daemon/cluster/mail.h"
#include "daemon/cluster/publish.h"
#include "daemon/routing/death.h"
#include "daemon/routing/forwarding.h"
#include "daemon/routing/graph.h"
#include "daemon/routing/topology.h"
#include "proto/control.pb-c.h"

/* Updates that are further apart than so many times the delay do not follow one another. */
#define CALM_DELAYS 4u
/* A connection is watched for so long after mail went over it. */
#define MAIL_WATCH_NS (10 * CLOCK_NS_PER_S)

/* Told round trips are compared with those that routes were computed with this often. */
#define WEIGH_NS (500 * CLOCK_NS_PER_MS)

struct cluster {
    struct cluster_setup setup;
    struct topology *topology;
    struct mesh *mesh;
    struct mail *mail;
    struct flood flood;
    struct neighbours neighbours;
    bool update_pending;
    uint64_t update_delay_ns, updated_ns, weighed_ns;
    bool own_dirty, states_dirty, graph_dirty, costs_dirty;
    bool told_busy, draining;
    bool any_busy; /* some job in the cluster spans nodes */
    bool gave_up;  /* a node, and the forwarding table is not published since */
    uint64_t sequence;
    struct graph graph;
    struct route *routes; /* graph.n_nodes of them */
    struct deaths deaths;
};

struct topology *cluster_topology(const struct cluster *c)
{
    return c->topology;
}

struct mesh *cluster_mesh(const struct cluster *c)
{
    return c->mesh;
}

struct mail *cluster_mail(const struct cluster *c)
{
    return c->mail;
}

static void cluster_want_update(struct cluster *c)
{
    if (!c->update_pending)
        c->setup.ops->want_update(c->setup.ctx, c->update_delay_ns);
    c->update_pending = true;
}

/* Something in the own description changed. */
static void cluster_touch(struct cluster *c)
{
    c->own_dirty = true;
    cluster_want_update(c);
}

/* ---- link states ---- */

/* The other daemon that this node knew of is gone, in this incarnation or for good. */
static void cluster_lose(struct cluster *c, uint32_t node_id, const char *why, uint64_t now_ns)
{
    mail_on_lost(c->mail, node_id);
    c->setup.ops->node_lost(c->setup.ctx, node_id, why, now_ns);
}

static void cluster_learn_targets(struct cluster *c, const Motet__LinkState *state, uint64_t now_ns)
{
    const struct config *config = c->setup.config;

    for (size_t i = 0; i < state->n_endpoints; i++) {
        const Motet__Endpoint *e = state->endpoints[i];
        for (uint32_t ch = 0; ch < (uint32_t)config->n_channels; ch++) {
            if (strcmp(config->channels[ch].network, e->network) != 0 || e->control_port == 0)
                continue;
            mesh_learn(c->mesh, ch, state->node_id, e->control_host, e->control_port, now_ns);
            break;
        }
    }
}

/* A link state that is news. */
static void cluster_take_state(struct cluster *c, struct topology_node *n, struct mesh_link *from,
                               const struct topology_change *change, uint64_t now_ns)
{
    if (change->restarted) {
        log_notice("node %s was restarted", n->state->node);
        n->lost = n->told_lost = false;
        cluster_lose(c, n->node_id, "was restarted", now_ns);
    }
    if (forwarding_slot(c->setup.forwarding, n->node_id) < 0)
        log_warn("node %s has no place in the node table, ignoring", n->state->node);
    flood_add(&c->flood, n, from);
    c->costs_dirty |= change->costs;
    if (!change->rest)
        return; /* goes on with the next tick: nobody waits for round trips */
    cluster_learn_targets(c, n->state, now_ns);
    c->states_dirty = true;
    c->graph_dirty |= change->graph;
    cluster_want_update(c);
}

/* The state is taken over. 0 or -EPROTO. */
static int cluster_take(struct cluster *c, struct mesh_link *from, Motet__LinkState *state,
                        uint64_t now_ns)
{
    struct topology_change change;
    uint32_t node_id = state->node_id;
    int rc = topology_apply(c->topology, state, &change);
    struct topology_node *n = topology_find(c->topology, node_id);

    switch (rc) {
    case 0:
        cluster_take_state(c, n, from, &change, now_ns);
        return 0;
    case TOPOLOGY_E_KNOWN:
        if (n)
            flood_heard(n, from);
        return 0;
    case TOPOLOGY_E_OLDER:
        flood_correct(from, n);
        return 0;
    case TOPOLOGY_E_OURSELVES:
        c->setup.ops->outlived(c->setup.ctx, change.epoch, now_ns);
        return 0;
    case TOPOLOGY_E_FULL:
        log_warn("more than %u nodes (max_nodes), ignoring one",
                 (unsigned)c->setup.config->max_nodes);
        return 0;
    default:
        return rc == -ENOMEM ? 0 : -EPROTO;
    }
}

static int cluster_on_link_states(void *ctx, struct mesh_link *from, const uint8_t *body,
                                  uint32_t len, uint64_t now_ns)
{
    struct cluster *c = ctx;
    Motet__LinkStates *all = motet__link_states__unpack(NULL, len, body);
    int rc = 0;

    if (!all)
        return -EPROTO;
    for (size_t i = 0; i < all->n_states; i++) {
        if (rc == 0)
            rc = cluster_take(c, from, all->states[i], now_ns);
        else
            motet__link_state__free_unpacked(all->states[i], NULL);
    }
    all->n_states = 0; /* each was taken over */
    motet__link_states__free_unpacked(all, NULL);
    return rc;
}

static int cluster_on_digest(void *ctx, struct mesh_link *from, const uint8_t *body, uint32_t len,
                             uint64_t now_ns)
{
    struct cluster *c = ctx;
    return flood_on_digest(&c->flood, from, body, len, now_ns);
}

/* ---- from the mesh ---- */

static void cluster_on_link_up(void *ctx, struct mesh_link *l)
{
    struct cluster *c = ctx;
    struct neighbour *n = neighbours_get(&c->neighbours, l->peer.node_id, l->peer.network);

    if (!n)
        return;
    n->up = true;
    n->epoch = l->peer.epoch;
    memcpy(n->secret, l->peer.secret, sizeof n->secret);
    cluster_touch(c);
}

static void cluster_on_link_down(void *ctx, const struct mesh_link *l)
{
    struct cluster *c = ctx;
    struct neighbour *n = neighbours_find(&c->neighbours, l->peer.node_id, l->peer.network);

    if (!n || n->epoch != l->peer.epoch)
        return;
    neighbour_down(n);
    cluster_touch(c);
}

static void cluster_on_refused(void *ctx, uint32_t node_id, uint32_t epoch, uint64_t now_ns)
{
    struct cluster *c = ctx;
    const struct topology_node *t = topology_find(c->topology, node_id);

    if (!t || t->state->epoch != epoch || !death_note(&c->deaths, node_id, epoch, now_ns))
        return;
    log_info("node %s refuses connections: its daemon has ended", t->state->node);
    cluster_touch(c);
}

static void cluster_take_rtt(struct cluster *c, struct neighbour *n, uint64_t rtt_ns,
                             uint64_t now_ns)
{
    if (n && neighbours_on_rtt(&c->neighbours, n, rtt_ns, now_ns))
        c->own_dirty = true; /* told with the next tick */
}

static void cluster_on_rtt(void *ctx, const struct mesh_link *l, uint64_t rtt_ns, uint64_t now_ns)
{
    struct cluster *c = ctx;

    cluster_take_rtt(c, neighbours_find(&c->neighbours, l->peer.node_id, l->peer.network), rtt_ns,
                     now_ns);
}

static int cluster_on_mail(void *ctx, const uint8_t *body, uint32_t len, uint64_t now_ns)
{
    struct cluster *c = ctx;
    return mail_on_frame(c->mail, body, len, now_ns);
}

/* ---- from the channels and from above ---- */

void cluster_on_channel_rtt(struct cluster *c, uint32_t channel, uint32_t slot, uint64_t rtt_ns,
                            uint64_t now_ns)
{
    cluster_take_rtt(c,
                     neighbours_find(&c->neighbours, forwarding_node_id(c->setup.forwarding, slot),
                                     c->setup.config->channels[channel].network),
                     rtt_ns, now_ns);
}

void cluster_on_channel_error(struct cluster *c, uint32_t channel, uint32_t slot, int error,
                              uint64_t now_ns)
{
    if (neighbours_on_channel_error(&c->neighbours, channel, slot, error, now_ns))
        cluster_touch(c);
}

void cluster_on_channel_link(struct cluster *c, const struct neighbour_news *news, uint64_t now_ns)
{
    if (neighbours_on_channel_link(&c->neighbours, news, now_ns))
        cluster_touch(c);
}

void cluster_on_channel_failed(struct cluster *c, uint32_t channel)
{
    log_error("channel %s lost its network card; its traffic takes other ways",
              c->setup.config->channels[channel].name);
    cluster_touch(c);
}

void cluster_note_busy(struct cluster *c)
{
    if (c->setup.ops->busy(c->setup.ctx) != c->told_busy)
        cluster_touch(c);
}

void cluster_drain(struct cluster *c)
{
    c->draining = true;
    cluster_touch(c);
}

bool cluster_draining(const struct cluster *c)
{
    return c->draining;
}

bool cluster_needed(const struct cluster *c)
{
    const struct topology_node *self = topology_find(c->topology, c->setup.node_id);

    return self && graph_is_needed(&c->graph, self->index);
}

void cluster_reloaded(struct cluster *c, uint64_t now_ns)
{
    mail_set_max_bytes(c->mail, (size_t)c->setup.config->mail_bytes);
    mesh_reloaded(c->mesh, now_ns);
}

/* ---- the update ---- */

/* Writes the own link state anew and floods it. */
static void cluster_describe(struct cluster *c, uint64_t now_ns)
{
    struct link_state_self self = {.node_id = c->setup.node_id,
                                   .epoch = c->setup.epoch,
                                   .n_cores = c->setup.n_cores,
                                   .sequence = ++c->sequence,
                                   .draining = c->draining,
                                   .busy = c->setup.ops->busy(c->setup.ctx),
                                   .deaths = &c->deaths};
    Motet__LinkState *s = link_state_new(&self, &c->neighbours, now_ns);

    struct topology_change change;

    c->told_busy = self.busy;
    if (!s || topology_set_own(c->topology, s, &change) < 0) {
        log_error("out of memory for the own link state");
        if (s)
            motet__link_state__free_unpacked(s, NULL);
        return;
    }
    c->own_dirty = false;
    c->states_dirty |= change.rest;
    c->graph_dirty |= change.graph;
    c->costs_dirty |= change.costs;
    flood_add(&c->flood, topology_find(c->topology, c->setup.node_id), NULL);
}

/* The same incarnation can be reached again. The two need not agree on how long it was gone: where
 * one side has given the other up, the other has to hear of it. */
static void cluster_note_return(struct cluster *c, struct topology_node *t, uint64_t now_ns)
{
    log_notice("node %s is back", t->state->node);
    t->lost = false;
    if (t->told_lost &&
        mail_send(c->mail, t->node_id, MOTET__FRAME_TYPE__GIVEN_UP, NULL, 0, now_ns) < 0)
        log_error("out of memory for mail to node %s", t->state->node);
    t->told_lost = false;
}

static bool cluster_note_reachability(struct cluster *c, struct topology_node *t, bool reachable,
                                      uint64_t now_ns)
{
    if (t->reachable == reachable)
        return false;
    t->reachable = reachable;
    if (reachable) {
        if (t->lost)
            cluster_note_return(c, t, now_ns);
    } else {
        t->unreachable_since_ns = now_ns;
        log_notice("node %s cannot be reached", t->state->node);
    }
    return true;
}

static bool cluster_publish(struct cluster *c, const struct topology_node *t)
{
    return c->routes && t->index < c->graph.n_nodes &&
           publish_route(c->setup.forwarding, &c->neighbours, &c->graph, t, &c->routes[t->index]);
}

/* Jobs with ranks there end. True if the forwarding table changed. */
static bool cluster_give_up(struct cluster *c, struct topology_node *t, const char *why,
                            uint64_t now_ns)
{
    t->lost = t->told_lost = true;
    log_notice("node %s %s, giving it up", t->state->node, why);
    cluster_lose(c, t->node_id, why, now_ns);
    return cluster_publish(c, t);
}

/* Computes graph and routes anew. 0 or -ENOMEM with the old ones kept. */
static int cluster_compute(struct cluster *c)
{
    const struct topology_node *self = topology_find(c->topology, c->setup.node_id);
    struct graph fresh;

    if (!self || graph_init(&fresh, c->topology) < 0)
        return -ENOMEM;
    struct route *routes = calloc(fresh.n_nodes, sizeof *routes);
    if (!routes || route_compute(fresh.nodes, fresh.n_nodes, self->index, routes) < 0) {
        graph_deinit(&fresh);
        free(routes);
        return -ENOMEM;
    }
    graph_deinit(&c->graph);
    free(c->routes);
    c->graph = fresh;
    c->routes = routes;
    c->graph_dirty = c->costs_dirty = false;
    return 0;
}

/* Round trips are told by many and make few differences: looked at now and then, together. */
static void cluster_weigh_costs(struct cluster *c, uint64_t now_ns)
{
    struct graph fresh;

    if (!c->costs_dirty || c->graph_dirty || now_ns - c->weighed_ns < WEIGH_NS ||
        graph_init(&fresh, c->topology) < 0)
        return;
    c->costs_dirty = false;
    c->weighed_ns = now_ns;
    if (!graph_same_costs(&c->graph, &fresh)) {
        c->graph_dirty = c->states_dirty = true;
        cluster_want_update(c);
    }
    graph_deinit(&fresh);
}

/* A daemon has ended; without a way to it, nobody waits for it. */
static void cluster_on_death(void *ctx, struct topology_node *gone, uint64_t now_ns)
{
    struct cluster *c = ctx;

    if (gone->node_id != c->setup.node_id && !gone->reachable && !gone->lost)
        c->gave_up |= cluster_give_up(c, gone, "has lost its daemon", now_ns);
}

/* The next update comes later while they follow one another. */
static void cluster_pace(struct cluster *c, uint64_t now_ns)
{
    uint64_t most_ns = topology_count(c->topology) * CLUSTER_DELAY_NODE_NS;

    if (most_ns < CLUSTER_DELAY_LEAST_NS)
        most_ns = CLUSTER_DELAY_LEAST_NS;
    if (most_ns > CLUSTER_DELAY_MOST_NS)
        most_ns = CLUSTER_DELAY_MOST_NS;
    if (now_ns - c->updated_ns >= CALM_DELAYS * c->update_delay_ns)
        c->update_delay_ns = CLUSTER_UPDATE_DELAY_NS;
    else
        c->update_delay_ns = 2 * c->update_delay_ns < most_ns ? 2 * c->update_delay_ns : most_ns;
    c->updated_ns = now_ns;
}

/* A node that jobs across the nodes may depend on: it has to do with one, or it is a gateway. */
static bool cluster_concerned(const struct topology_node *t)
{
    if (!t || t->state->busy)
        return t;
    for (size_t i = 1; i < t->state->n_endpoints; i++)
        if (strcmp(t->state->endpoints[i]->network, t->state->endpoints[0]->network) != 0)
            return true;
    return false;
}

/* Who watches whom: link states flow where they do because somebody looks whether the other end
 * lives, so there always; elsewhere only for jobs, or n nodes of a network would send n (n - 1)
 * heartbeats. What mail goes over is watched too: nobody else sees that the two ends do not hear
 * each other. */
static void cluster_set_pulses(struct cluster *c, uint64_t now_ns)
{
    bool own = c->any_busy && cluster_concerned(topology_find(c->topology, c->setup.node_id));

    list_foreach(it, mesh_links(c->mesh)) {
        struct mesh_link *l = list_entry(it, struct mesh_link, link);
        enum peer_pulse pulse = l->flood.adjacent ? PEER_CALM : PEER_QUIET;
        if (!l->up)
            continue;
        if (l->doubted && l->peer.pulse != PEER_QUIET && l->peer.heard_ns > l->peer.pulse_ns)
            l->doubted = false;
        if (l->used)
            l->watched_until_ns = now_ns + MAIL_WATCH_NS;
        l->used = false;
        if (l->doubted || now_ns < l->watched_until_ns)
            pulse = PEER_QUICK;
        if (own && l->flood.adjacent &&
            cluster_concerned(topology_find(c->topology, l->peer.node_id)))
            pulse = PEER_QUICK;
        mesh_set_pulse(l, pulse, now_ns);
    }
}

void cluster_update(struct cluster *c, uint64_t now_ns)
{
    c->update_pending = false;
    cluster_pace(c, now_ns);
    if (neighbours_sync(&c->neighbours, now_ns))
        c->own_dirty = true;
    if (c->own_dirty)
        cluster_describe(c, now_ns);
    flood_run(&c->flood, now_ns);
    if (!c->states_dirty) {
        cluster_set_pulses(c, now_ns);
        return;
    }
    /* News of jobs alone leaves the routes as they are: a large cluster has much of that. */
    if (c->graph_dirty && cluster_compute(c) < 0) {
        log_error("out of memory for routes");
        return;
    }
    c->states_dirty = false;
    bool changed = false, busy = c->told_busy;
    for (struct topology_node *t = topology_first(c->topology); t; t = t->hh.next) {
        if (t->node_id == c->setup.node_id)
            continue;
        bool reachable = c->routes[t->index].reachable;
        busy |= reachable && t->state->busy;
        changed |= cluster_note_reachability(c, t, reachable, now_ns);
        changed |= cluster_publish(c, t);
    }
    c->any_busy = busy;
    cluster_set_pulses(c, now_ns);
    death_each(c->topology, cluster_on_death, c, now_ns);
    changed |= c->gave_up;
    c->gave_up = false;
    if (changed) {
        forwarding_publish(c->setup.forwarding);
        mail_on_routes(c->mail, now_ns);
    }
}

static void cluster_on_tick(void *ctx, uint64_t now_ns)
{
    struct cluster *c = ctx;
    uint64_t limit_ns = c->setup.config->unreachable_after_ns;
    bool retry = neighbours_retry_due(&c->neighbours, now_ns);

    c->own_dirty |= death_expire(&c->deaths, limit_ns, now_ns);
    if (now_ns - c->updated_ns >= CALM_DELAYS * c->update_delay_ns)
        c->update_delay_ns = CLUSTER_UPDATE_DELAY_NS;
    if (flood_tick(&c->flood, now_ns) || retry || (c->own_dirty && !c->update_pending))
        cluster_want_update(c);
    cluster_set_pulses(c, now_ns);
    cluster_weigh_costs(c, now_ns);
    for (struct topology_node *t = topology_first(c->topology); t; t = t->hh.next) {
        if (t->node_id == c->setup.node_id || t->reachable || t->lost ||
            now_ns - t->unreachable_since_ns < limit_ns)
            continue;
        if (t->unreachable_since_ns == 0)
            t->lost = true; /* never met: nobody here has to do with it */
        else if (cluster_give_up(c, t, "cannot be reached any more", now_ns))
            forwarding_publish(c->setup.forwarding);
    }
}

/* ---- mail ---- */

/* Hands a mail frame to the neighbour on the way. */
static int cluster_forward(void *ctx, uint32_t dst_node, const uint8_t *frame, uint32_t len)
{
    struct cluster *c = ctx;
    struct mesh_link *l = mesh_find(c->mesh, dst_node, NULL);

    if (!l) {
        const struct topology_node *t = topology_find(c->topology, dst_node);
        const struct route *r = t ? cluster_route(c, t) : NULL;
        const struct topology_node *next = r ? cluster_node(c, r->quick.next) : NULL;
        if (next)
            l = mesh_find(c->mesh, next->node_id, cluster_network(c, r->quick.network));
        if (!l && next)
            l = mesh_find(c->mesh, next->node_id, NULL);
    }
    if (!l)
        return -EHOSTUNREACH;
    l->used = true;
    return mesh_send(l, MOTET__FRAME_TYPE__MAIL, frame, len);
}

static void cluster_deliver(void *ctx, uint32_t src_node, uint16_t type, const uint8_t *body,
                            uint32_t len, uint64_t now_ns)
{
    struct cluster *c = ctx;

    if (type == MOTET__FRAME_TYPE__GIVEN_UP)
        c->setup.ops->given_up(c->setup.ctx, src_node, now_ns);
    else
        c->setup.ops->deliver(c->setup.ctx, src_node, type, body, len, now_ns);
}

static uint32_t cluster_epoch_of(void *ctx, uint32_t node_id)
{
    return cluster_epoch(ctx, node_id);
}

static void cluster_wake_mail(void *ctx)
{
    struct cluster *c = ctx;
    c->setup.ops->want_mail(c->setup.ctx);
}

/* ---- for others ---- */

const struct route *cluster_route(const struct cluster *c, const struct topology_node *to)
{
    return c->routes && to->index < c->graph.n_nodes && c->routes[to->index].reachable
               ? &c->routes[to->index]
               : NULL;
}

const char *cluster_network(const struct cluster *c, uint32_t network)
{
    return graph_network(&c->graph, network);
}

const struct topology_node *cluster_node(const struct cluster *c, uint32_t index)
{
    return graph_node(&c->graph, index);
}

uint32_t cluster_epoch(const struct cluster *c, uint32_t node_id)
{
    const struct topology_node *t;

    if (node_id == c->setup.node_id)
        return c->setup.epoch;
    t = topology_find(c->topology, node_id);
    return t && !t->lost ? t->state->epoch : 0;
}

bool cluster_reachable(const struct cluster *c, uint32_t node_id)
{
    const struct topology_node *t = topology_find(c->topology, node_id);

    return node_id == c->setup.node_id || (t && t->reachable);
}

/* ---- beginning and end ---- */

static const struct mesh_ops cluster_mesh_ops = {.up = cluster_on_link_up,
                                                 .down = cluster_on_link_down,
                                                 .link_state = cluster_on_link_states,
                                                 .digest = cluster_on_digest,
                                                 .mail = cluster_on_mail,
                                                 .rtt = cluster_on_rtt,
                                                 .refused = cluster_on_refused,
                                                 .tick = cluster_on_tick};

static const struct mail_ops cluster_mail_ops = {.forward = cluster_forward,
                                                 .deliver = cluster_deliver,
                                                 .epoch_of = cluster_epoch_of,
                                                 .wake = cluster_wake_mail};

struct cluster *cluster_new(const struct cluster_setup *setup)
{
    struct cluster *c = calloc(1, sizeof *c);
    const struct config *config = setup->config;

    if (!c)
        return NULL;
    c->setup = *setup;
    c->own_dirty = c->states_dirty = c->graph_dirty = true;
    c->update_delay_ns = CLUSTER_UPDATE_DELAY_NS;
    c->topology = topology_new(setup->node_id, setup->epoch, (uint32_t)config->max_nodes);
    c->mail =
        mail_new(setup->node_id, setup->epoch, (size_t)config->mail_bytes, &cluster_mail_ops, c);
    struct mesh_setup mesh = {.config = config,
                              .node_id = setup->node_id,
                              .epoch = setup->epoch,
                              .software = setup->software,
                              .key = setup->key,
                              .topology = c->topology,
                              .socket_ops = setup->socket_ops,
                              .socket_ctx = setup->socket_ctx,
                              .ops = &cluster_mesh_ops,
                              .ctx = c};
    c->mesh = mesh_new(&mesh);
    c->neighbours = (struct neighbours){.config = config,
                                        .topology = c->topology,
                                        .forwarding = setup->forwarding,
                                        .ops = setup->channel_ops,
                                        .ctx = setup->channel_ctx};
    if (!c->topology || !c->mail || !c->mesh) {
        cluster_free(c);
        return NULL;
    }
    flood_init(&c->flood, setup->node_id, c->topology, c->mesh);
    cluster_touch(c);
    return c;
}

void cluster_free(struct cluster *c)
{
    if (!c)
        return;
    mesh_free(c->mesh);
    neighbours_deinit(&c->neighbours);
    topology_free(c->topology);
    mail_free(c->mail);
    graph_deinit(&c->graph);
    free(c->routes);
    free(c);
}
