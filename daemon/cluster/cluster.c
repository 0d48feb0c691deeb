/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/cluster/cluster.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "daemon/cluster/channels.h"
#include "daemon/cluster/death.h"
#include "daemon/cluster/forwarding.h"
#include "daemon/cluster/graph.h"
#include "daemon/cluster/mail.h"
#include "daemon/cluster/mesh.h"
#include "daemon/cluster/stream.h"
#include "daemon/cluster/topology.h"
#include "daemon/control/control.h"
#include "daemon/control/node.h"
#include "daemon/jobs/job.h"
#include "daemon/jobs/manager.h"
#include "proto/control.pb-c.h"

/* Changes within this time are taken together. */
#define UPDATE_DELAY_US 1000
/* A measured round trip is told to others when it changed by half and by 50 us, and not more often
 * than this. */
#define RTT_TELL_NS (2 * CLOCK_NS_PER_S)
#define RTT_TELL_US 50u
#define RTT_SAMPLES 8u
/* Before the first measurement. */
#define RTT_UNKNOWN_US 100u
/* A channel whose sending to a neighbour failed tries it again after this time, doubled up to the
 * limit. */
#define RETRY_MIN_NS (200 * CLOCK_NS_PER_MS)
#define RETRY_MAX_NS (10 * CLOCK_NS_PER_S)
#define COMPLAIN_NS  (30 * CLOCK_NS_PER_S)

/* What one own channel has with one neighbour. */
struct neighbour_channel {
    uint8_t address[128]; /* as the channel was told */
    uint32_t len;         /* 0: not told */
    uint64_t bad_until_ns, retry_ns, added_ns;
    bool told_unlike; /* said that the two ends do not speak the same protocol */
};

struct neighbour_key {
    uint32_t node_id;
    char network[PEER_NAME_BYTES];
};

/* A node we have, or had, a link with on one network. */
struct neighbour {
    UT_hash_handle hh;
    struct neighbour_key key;
    uint32_t epoch;
    bool up;
    bool usable;     /* some channel can send to it */
    uint64_t rtt_ns; /* least of the last samples: the rest is waiting for a processor, not the
                        network */
    uint64_t samples_ns[RTT_SAMPLES];
    uint32_t n_samples;
    uint32_t told_rtt_us;
    uint64_t told_ns;
    struct neighbour_channel channels[CONFIG_MAX_CHANNELS];
};

struct cluster {
    struct node *node;
    struct neighbour *neighbours;
    struct event *update_event;
    bool update_pending;
    bool own_dirty, graph_dirty;
    bool told_busy;
    uint64_t sequence;
    struct graph graph;
    struct route *routes; /* graph.n_nodes of them */
    uint64_t complained_ns;
    struct deaths deaths;
};

static void on_update(evutil_socket_t fd, short what, void *ctx);

struct cluster *cluster_new(struct node *node)
{
    struct cluster *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->node = node;
    c->own_dirty = c->graph_dirty = true;
    c->update_event = evtimer_new(node->base, on_update, c);
    if (!c->update_event) {
        free(c);
        return NULL;
    }
    return c;
}

void cluster_free(struct cluster *c)
{
    struct neighbour *n, *next;

    if (!c)
        return;
    HASH_ITER(hh, c->neighbours, n, next) {
        HASH_DEL(c->neighbours, n);
        free(n);
    }
    event_free(c->update_event);
    graph_deinit(&c->graph);
    free(c->routes);
    free(c);
}

static void want_update(struct cluster *c)
{
    struct timeval delay = {.tv_usec = UPDATE_DELAY_US};

    if (!c->update_pending)
        evtimer_add(c->update_event, &delay);
    c->update_pending = true;
}

static const struct config_channel *own_channel(const struct cluster *c, uint32_t channel)
{
    return &c->node->config.channels[channel];
}

static struct neighbour *neighbour_find(const struct cluster *c, uint32_t node_id,
                                        const char *network)
{
    struct neighbour_key key;
    struct neighbour *n;

    memset(&key, 0, sizeof key);
    key.node_id = node_id;
    snprintf(key.network, sizeof key.network, "%s", network);
    HASH_FIND(hh, c->neighbours, &key, sizeof key, n);
    return n;
}

static struct neighbour *neighbour_get(struct cluster *c, uint32_t node_id, const char *network)
{
    struct neighbour *n = neighbour_find(c, node_id, network);

    if (n)
        return n;
    n = calloc(1, sizeof *n);
    if (!n)
        return NULL;
    n->key.node_id = node_id;
    snprintf(n->key.network, sizeof n->key.network, "%s", network);
    HASH_ADD(hh, c->neighbours, key, sizeof n->key, n);
    return n;
}

/* ---- flooding ---- */

static void send_state(struct mesh_link *to, const Motet__LinkState *state)
{
    size_t len = motet__link_state__get_packed_size(state);
    uint8_t *body = malloc(len + 1);

    if (!body)
        return;
    motet__link_state__pack(state, body);
    mesh_send(to, MOTET__FRAME_TYPE__LINK_STATE, body, (uint32_t)len);
    free(body);
}

static void flood(struct cluster *c, const Motet__LinkState *state, const struct mesh_link *except)
{
    list_foreach(it, mesh_links(c->node->mesh)) {
        struct mesh_link *l = list_entry(it, struct mesh_link, link);
        /* Two links to one neighbour need it only once, but one of them may be about to die. */
        if (l->up && l != except && (!except || l->peer.node_id != except->peer.node_id))
            send_state(l, state);
    }
}

/* The other daemon that this node knew of is gone, in this incarnation or for good. */
static void node_lost(struct cluster *c, uint32_t node_id, const char *why)
{
    uint64_t now_ns = clock_now_ns();

    mail_on_lost(c->node->mail, node_id);
    manager_on_node_lost(c->node->manager, node_id, why, now_ns);
    jobs_on_node_lost(c->node->jobs, node_id);
}

static void learn_targets(struct cluster *c, const Motet__LinkState *state)
{
    for (size_t i = 0; i < state->n_endpoints; i++) {
        const Motet__Endpoint *e = state->endpoints[i];
        for (uint32_t ch = 0; ch < (uint32_t)c->node->config.n_channels; ch++) {
            if (strcmp(own_channel(c, ch)->network, e->network) != 0 || e->control_port == 0)
                continue;
            mesh_learn(c->node->mesh, ch, state->node_id, e->control_host, e->control_port);
            break;
        }
    }
}

int cluster_on_link_state(struct cluster *c, struct mesh_link *from, const uint8_t *body,
                          uint32_t len)
{
    Motet__LinkState *state = motet__link_state__unpack(NULL, len, body);
    bool restarted;

    if (!state)
        return -EPROTO;
    uint32_t node_id = state->node_id;
    int rc = topology_apply(c->node->topology, state, &restarted);
    struct topology_node *n = topology_find(c->node->topology, node_id);
    switch (rc) {
    case 0:
        if (restarted) {
            log_notice("node %s was restarted", n->state->node);
            n->lost = false;
            node_lost(c, node_id, "was restarted");
        }
        if (forwarding_slot(c->node->forwarding, node_id) < 0)
            log_warn("node %s has no place in the node table, ignoring", n->state->node);
        flood(c, n->state, from);
        learn_targets(c, n->state);
        c->graph_dirty = true;
        want_update(c);
        return 0;
    case TOPOLOGY_E_KNOWN:
        return 0;
    case TOPOLOGY_E_OLDER:
        send_state(from, n->state);
        return 0;
    case TOPOLOGY_E_OURSELVES:
        if (clock_now_ns() - c->complained_ns > COMPLAIN_NS || c->complained_ns == 0) {
            c->complained_ns = clock_now_ns();
            log_error("another node has the name %s, or this host's clock went back: the cluster "
                      "ignores one of the two",
                      c->node->config.name);
        }
        return 0;
    case TOPOLOGY_E_FULL:
        log_warn("more than %u nodes (max_nodes), ignoring one",
                 (unsigned)c->node->config.max_nodes);
        return 0;
    default:
        return rc == -ENOMEM ? 0 : -EPROTO;
    }
}

/* ---- links ---- */

void cluster_on_link_up(struct cluster *c, struct mesh_link *l)
{
    struct neighbour *n = neighbour_get(c, l->peer.node_id, l->peer.network);

    if (!n)
        return;
    n->up = true;
    n->epoch = l->peer.epoch;
    for (struct topology_node *t = topology_first(c->node->topology); t; t = t->hh.next)
        send_state(l, t->state);
    c->own_dirty = true;
    want_update(c);
}

void cluster_on_link_down(struct cluster *c, const struct mesh_link *l)
{
    struct neighbour *n = neighbour_find(c, l->peer.node_id, l->peer.network);

    if (!n || n->epoch != l->peer.epoch)
        return;
    n->up = false;
    n->rtt_ns = 0;
    n->n_samples = 0;
    c->own_dirty = true;
    want_update(c);
}

void cluster_on_refused(struct cluster *c, uint32_t node_id, uint32_t epoch)
{
    const struct topology_node *t = topology_find(c->node->topology, node_id);

    if (!t || t->state->epoch != epoch || !death_note(&c->deaths, node_id, epoch, clock_now_ns()))
        return;
    log_info("node %s refuses connections: its daemon has ended", t->state->node);
    cluster_touch(c);
}

static void take_rtt(struct cluster *c, struct neighbour *n, uint64_t rtt_ns)
{
    uint64_t now_ns = clock_now_ns();

    n->samples_ns[n->n_samples++ % RTT_SAMPLES] = rtt_ns;
    n->rtt_ns = rtt_ns;
    for (uint32_t i = 0; i < RTT_SAMPLES && i < n->n_samples; i++)
        if (n->samples_ns[i] < n->rtt_ns)
            n->rtt_ns = n->samples_ns[i];
    uint32_t us = (uint32_t)(n->rtt_ns / CLOCK_NS_PER_US), told = n->told_rtt_us;
    uint32_t diff = us > told ? us - told : told - us;
    if (n->usable && diff > told / 2 && diff > RTT_TELL_US && now_ns - n->told_ns > RTT_TELL_NS) {
        c->own_dirty = true;
        want_update(c);
    }
}

void cluster_on_rtt(struct cluster *c, uint32_t node_id, const char *network, uint64_t rtt_ns)
{
    struct neighbour *n = neighbour_find(c, node_id, network);

    if (n)
        take_rtt(c, n, rtt_ns);
}

void cluster_on_channel_rtt(struct cluster *c, uint32_t channel, uint32_t slot, uint64_t rtt_ns)
{
    struct neighbour *n = neighbour_find(c, forwarding_node_id(c->node->forwarding, slot),
                                         own_channel(c, channel)->network);

    if (n)
        take_rtt(c, n, rtt_ns);
}

void cluster_on_channel_error(struct cluster *c, uint32_t channel, uint32_t slot, int error)
{
    struct neighbour *n = neighbour_find(c, forwarding_node_id(c->node->forwarding, slot),
                                         own_channel(c, channel)->network);
    uint64_t now_ns = clock_now_ns();

    if (!n || n->channels[channel].len == 0)
        return;
    struct neighbour_channel *nc = &n->channels[channel];
    if (nc->retry_ns == 0 || now_ns - nc->added_ns > RETRY_MAX_NS)
        nc->retry_ns = RETRY_MIN_NS;
    else
        nc->retry_ns = nc->retry_ns * 2 < RETRY_MAX_NS ? nc->retry_ns * 2 : RETRY_MAX_NS;
    nc->bad_until_ns = now_ns + nc->retry_ns;
    log_info("channel %s cannot send to node %08x: %s; trying again in %llu ms",
             own_channel(c, channel)->name, n->key.node_id, strerror(-error),
             (unsigned long long)(nc->retry_ns / CLOCK_NS_PER_MS));
    c->own_dirty = true;
    want_update(c);
}

void cluster_on_channel_failed(struct cluster *c, uint32_t channel)
{
    log_error("channel %s lost its network card; its traffic takes other ways",
              own_channel(c, channel)->name);
    c->own_dirty = true;
    want_update(c);
}

void cluster_note_busy(struct cluster *c)
{
    if (control_busy(c->node) != c->told_busy)
        cluster_touch(c);
}

void cluster_touch(struct cluster *c)
{
    c->own_dirty = true;
    want_update(c);
}

/* ---- the update ---- */

/* True if the packets of this channel can be read at that endpoint; said once if not. */
static bool speaks(struct cluster *c, struct neighbour *n, uint32_t channel,
                   const Motet__Endpoint *e)
{
    struct neighbour_channel *nc = &n->channels[channel];
    const char *driver = channels_driver(c->node->channels, channel);
    bool same = strcmp(driver, e->driver) == 0;

    if (!same && !nc->told_unlike)
        log_error("channel %s: node %08x speaks \"%s\" on network %s, this node \"%s\": no packets "
                  "between them there; give both "
                  "the same provider in motetd.conf",
                  own_channel(c, channel)->name, n->key.node_id, e->driver, n->key.network, driver);
    nc->told_unlike = !same;
    return same;
}

/* Brings one channel's view of one neighbour into step. True if it can send to it. */
static bool sync_channel(struct cluster *c, struct neighbour *n, uint32_t channel, uint32_t ordinal,
                         uint64_t now_ns)
{
    struct neighbour_channel *nc = &n->channels[channel];
    const struct topology_node *t = topology_find(c->node->topology, n->key.node_id);
    const Motet__Endpoint *e = NULL;
    int slot = forwarding_find(c->node->forwarding, n->key.node_id);

    if (slot < 0)
        return false;
    if (n->up && t && t->state->epoch == n->epoch && channels_alive(c->node->channels, channel) &&
        now_ns >= nc->bad_until_ns)
        e = topology_endpoint(t, n->key.network, ordinal);
    if (e && !speaks(c, n, channel, e))
        e = NULL;
    if (!e || e->address.len == 0) {
        if (nc->len > 0)
            channels_remove_link(c->node->channels, channel, (uint16_t)slot);
        nc->len = 0;
        return false;
    }
    if (nc->len == e->address.len && memcmp(nc->address, e->address.data, nc->len) == 0)
        return true;
    nc->len = (uint32_t)e->address.len;
    memcpy(nc->address, e->address.data, nc->len);
    nc->added_ns = now_ns;
    channels_add_link(c->node->channels, channel, (uint16_t)slot, nc->address, nc->len);
    return true;
}

static void sync_neighbours(struct cluster *c, uint64_t now_ns)
{
    for (struct neighbour *n = c->neighbours; n; n = n->hh.next) {
        uint32_t ordinal = 0;
        bool usable = false;
        for (uint32_t ch = 0; ch < (uint32_t)c->node->config.n_channels; ch++)
            if (strcmp(own_channel(c, ch)->network, n->key.network) == 0)
                usable |= sync_channel(c, n, ch, ordinal++, now_ns);
        if (usable != n->usable)
            c->own_dirty = true;
        n->usable = usable;
    }
}

static char *copy_text(const char *s, bool *failed)
{
    char *copy = strdup(s);
    *failed |= !copy;
    return copy;
}

static Motet__Endpoint *own_endpoint(struct cluster *c, uint32_t ch, bool *failed)
{
    const struct config_channel *config = own_channel(c, ch);
    Motet__Endpoint *e = malloc(sizeof *e);
    uint8_t address[128];
    int len = channels_address(c->node->channels, ch, address, sizeof address);

    if (!e) {
        *failed = true;
        return NULL;
    }
    motet__endpoint__init(e);
    e->channel = ch;
    e->network = copy_text(config->network, failed);
    e->driver = copy_text(channels_driver(c->node->channels, ch), failed);
    e->provider = copy_text(channels_provider(c->node->channels, ch), failed);
    e->address.data = malloc(len > 0 ? (size_t)len : 1);
    *failed |= !e->address.data;
    if (e->address.data && len > 0) {
        memcpy(e->address.data, address, (size_t)len);
        e->address.len = (size_t)len;
    }
    e->control_host = copy_text(config->address, failed);
    e->control_port = (uint32_t)config->port;
    return e;
}

static Motet__Adjacency *own_adjacency(const struct cluster *c, struct neighbour *n, bool *failed)
{
    Motet__Adjacency *a = malloc(sizeof *a);
    uint64_t mbytes = 0;

    if (!a) {
        *failed = true;
        return NULL;
    }
    for (uint32_t ch = 0; ch < (uint32_t)c->node->config.n_channels; ch++)
        if (n->channels[ch].len > 0)
            mbytes += own_channel(c, ch)->mbytes_per_s;
    motet__adjacency__init(a);
    a->node_id = n->key.node_id;
    a->network = copy_text(n->key.network, failed);
    n->told_rtt_us = n->rtt_ns ? (uint32_t)(n->rtt_ns / CLOCK_NS_PER_US) + 1 : RTT_UNKNOWN_US;
    n->told_ns = clock_now_ns();
    a->rtt_us = n->told_rtt_us;
    a->mbytes_per_s = (uint32_t)mbytes;
    return a;
}

/* Writes the own link state anew and floods it. */
static void describe_self(struct cluster *c)
{
    const struct config *config = &c->node->config;
    Motet__LinkState *s = malloc(sizeof *s);
    bool failed = !s;

    if (!s)
        return;
    motet__link_state__init(s);
    s->node_id = c->node->id;
    s->node = copy_text(config->name, &failed);
    s->epoch = c->node->epoch;
    s->sequence = ++c->sequence;
    s->n_cores = (uint32_t)thread_n_cores();
    s->draining = c->node->draining;
    s->has_busy = true;
    s->busy = c->told_busy = control_busy(c->node);
    s->endpoints = calloc((size_t)config->n_channels + 1, sizeof *s->endpoints);
    s->links = calloc((size_t)HASH_COUNT(c->neighbours) + 1, sizeof *s->links);
    failed |= !s->endpoints || !s->links;
    for (uint32_t ch = 0; !failed && ch < (uint32_t)config->n_channels; ch++) {
        Motet__Endpoint *e =
            channels_alive(c->node->channels, ch) ? own_endpoint(c, ch, &failed) : NULL;
        if (e)
            s->endpoints[s->n_endpoints++] = e;
    }
    for (struct neighbour *n = c->neighbours; !failed && n; n = n->hh.next) {
        Motet__Adjacency *a = n->usable ? own_adjacency(c, n, &failed) : NULL;
        if (a)
            s->links[s->n_links++] = a;
    }
    failed = failed || death_describe(&c->deaths, s) < 0;
    if (failed || topology_set_own(c->node->topology, s) < 0) {
        log_error("out of memory for the own link state");
        motet__link_state__free_unpacked(s, NULL);
        return;
    }
    c->own_dirty = false;
    c->graph_dirty = true;
    if (c->node->mesh)
        flood(c, s, NULL);
}

/* Turns one way of a route (neighbour, network) into words, one per own channel that can go it.
 * Their number. */
static uint32_t expand_way(const struct cluster *c, const struct route_way *way, hop_word *words,
                           uint32_t max)
{
    const struct topology_node *next = cluster_node(c, way->next);
    struct neighbour *n =
        next ? neighbour_find(c, next->node_id, cluster_network(c, way->network)) : NULL;
    int slot = next ? forwarding_find(c->node->forwarding, next->node_id) : -1;
    uint32_t usable[CONFIG_MAX_CHANNELS], n_usable = 0;
    uint64_t sum = 0;

    if (!n || slot < 0)
        return 0;
    for (uint32_t ch = 0; ch < (uint32_t)c->node->config.n_channels && n_usable < max; ch++) {
        if (n->channels[ch].len == 0)
            continue;
        usable[n_usable++] = ch;
        sum += own_channel(c, ch)->mbytes_per_s;
    }
    for (uint32_t i = 0; i < n_usable; i++) {
        uint64_t share = sum ? (uint64_t)way->share * own_channel(c, usable[i])->mbytes_per_s / sum
                             : way->share / n_usable;
        words[i] = hop_pack((uint16_t)slot, (uint8_t)usable[i],
                            (uint8_t)(way->n_hops < 255 ? way->n_hops : 255),
                            (uint16_t)(share < 65535 ? share : 65535));
    }
    return n_usable;
}

static bool publish_route(struct cluster *c, const struct topology_node *t, const struct route *r)
{
    hop_word quick[CONFIG_MAX_CHANNELS], wide[HOP_MAX_WIDE];
    uint32_t n_wide = 0;
    int slot = forwarding_find(c->node->forwarding, t->node_id);

    if (slot <= 0)
        return false;
    if (!r->reachable)
        return forwarding_set(c->node->forwarding, (uint32_t)slot, t->lost ? 0 : t->state->epoch,
                              HOP_NONE, NULL, 0);
    uint32_t n_quick = expand_way(c, &r->quick, quick, CONFIG_MAX_CHANNELS);
    for (uint32_t i = 0; i < r->n_wide && n_wide < HOP_MAX_WIDE; i++)
        n_wide += expand_way(c, &r->wide[i], wide + n_wide, HOP_MAX_WIDE - n_wide);
    /* Rounding and ways that did not fit: the shares must add up to the whole. */
    uint32_t sum = 0;
    for (uint32_t i = 0; i < n_wide; i++)
        sum += hop_share(wide[i]);
    if (n_wide > 0 && sum < 65535)
        wide[0] = hop_pack(hop_next_slot(wide[0]), hop_channel(wide[0]), hop_n_hops(wide[0]),
                           (uint16_t)(hop_share(wide[0]) + 65535 - sum));
    return forwarding_set(c->node->forwarding, (uint32_t)slot, t->state->epoch,
                          n_quick ? quick[t->node_id % n_quick] : HOP_NONE, wide, n_wide);
}

static bool note_reachability(struct topology_node *t, bool reachable, uint64_t now_ns)
{
    if (t->reachable == reachable)
        return false;
    t->reachable = reachable;
    if (reachable) {
        if (t->lost)
            log_notice("node %s is back", t->state->node);
        t->lost = false;
    } else {
        t->unreachable_since_ns = now_ns;
        log_notice("node %s cannot be reached", t->state->node);
    }
    return true;
}

/* Jobs with ranks there end. True if the hop table changed. */
static bool give_up(struct cluster *c, struct topology_node *t, const char *why)
{
    t->lost = true;
    log_notice("node %s %s, giving it up", t->state->node, why);
    node_lost(c, t->node_id, why);
    return c->routes && t->index < c->graph.n_nodes && publish_route(c, t, &c->routes[t->index]);
}

static void on_update(evutil_socket_t fd, short what, void *ctx)
{
    struct cluster *c = ctx;
    uint64_t now_ns = clock_now_ns();

    (void)fd, (void)what;
    c->update_pending = false;
    sync_neighbours(c, now_ns);
    if (c->own_dirty)
        describe_self(c);
    if (!c->graph_dirty)
        return;
    struct graph fresh;
    if (graph_init(&fresh, c->node->topology) < 0) {
        log_error("out of memory for routes");
        return;
    }
    struct route *routes = calloc(fresh.n_nodes, sizeof *routes);
    const struct topology_node *self = topology_find(c->node->topology, c->node->id);
    if (!routes || !self || route_compute(fresh.nodes, fresh.n_nodes, self->index, routes) < 0) {
        log_error("out of memory for routes");
        graph_deinit(&fresh);
        free(routes);
        return;
    }
    graph_deinit(&c->graph);
    free(c->routes);
    c->graph = fresh;
    c->routes = routes;
    c->graph_dirty = false;
    bool changed = false, busy = c->told_busy;
    for (struct topology_node *t = topology_first(c->node->topology); t; t = t->hh.next) {
        if (t->node_id == c->node->id)
            continue;
        busy |= routes[t->index].reachable && t->state->busy;
        changed |= note_reachability(t, routes[t->index].reachable, now_ns);
        changed |= publish_route(c, t, &routes[t->index]);
        if (!t->reachable && !t->lost && death_told(c->node->topology, t))
            changed |= give_up(c, t, "has lost its daemon");
    }
    if (c->node->mesh)
        mesh_set_busy(c->node->mesh, busy);
    if (changed) {
        forwarding_publish(c->node->forwarding);
        mail_on_routes(c->node->mail, now_ns);
    }
}

void cluster_tick(struct cluster *c, uint64_t now_ns)
{
    bool retry = false;

    for (struct neighbour *n = c->neighbours; n; n = n->hh.next)
        for (uint32_t ch = 0; ch < (uint32_t)c->node->config.n_channels; ch++)
            if (n->up && n->channels[ch].len == 0 && n->channels[ch].bad_until_ns != 0 &&
                now_ns >= n->channels[ch].bad_until_ns) {
                n->channels[ch].bad_until_ns = 0;
                retry = true;
            }
    c->own_dirty |= death_expire(&c->deaths, c->node->config.unreachable_after_ns, now_ns);
    if (retry || (c->own_dirty && !c->update_pending))
        want_update(c);
    for (struct topology_node *t = topology_first(c->node->topology); t; t = t->hh.next) {
        if (t->node_id == c->node->id || t->reachable || t->lost ||
            now_ns - t->unreachable_since_ns < c->node->config.unreachable_after_ns)
            continue;
        if (t->unreachable_since_ns == 0)
            t->lost = true; /* never met: nobody here has to do with it */
        else if (give_up(c, t, "cannot be reached any more"))
            forwarding_publish(c->node->forwarding);
    }
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
    return index < c->graph.n_nodes ? c->graph.by_index[index] : NULL;
}

int cluster_forward(struct cluster *c, uint32_t dst_node, const uint8_t *frame, uint32_t len)
{
    struct mesh_link *l = c->node->mesh ? mesh_find(c->node->mesh, dst_node, NULL) : NULL;

    if (!l) {
        const struct topology_node *t = topology_find(c->node->topology, dst_node);
        const struct route *r = t ? cluster_route(c, t) : NULL;
        const struct topology_node *next = r ? cluster_node(c, r->quick.next) : NULL;
        if (next)
            l = mesh_find(c->node->mesh, next->node_id, cluster_network(c, r->quick.network));
        if (!l && next)
            l = mesh_find(c->node->mesh, next->node_id, NULL);
    }
    return l ? mesh_send(l, MOTET__FRAME_TYPE__MAIL, frame, len) : -EHOSTUNREACH;
}

uint32_t cluster_epoch(const struct cluster *c, uint32_t node_id)
{
    const struct topology_node *t;

    if (node_id == c->node->id)
        return c->node->epoch;
    t = topology_find(c->node->topology, node_id);
    return t && !t->lost ? t->state->epoch : 0;
}

bool cluster_reachable(const struct cluster *c, uint32_t node_id)
{
    const struct topology_node *t = topology_find(c->node->topology, node_id);

    return node_id == c->node->id || (t && t->reachable);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct placement_node *)a)->name,
                  ((const struct placement_node *)b)->name);
}

size_t cluster_place_nodes(const struct cluster *c, struct placement_node *ret_nodes, size_t max)
{
    size_t n = 1;

    if (max == 0 || c->node->draining)
        return 0;
    ret_nodes[0] = (struct placement_node){.name = c->node->config.name, .node_id = c->node->id};
    const struct topology_node *own = topology_find(c->node->topology, c->node->id);
    if (own) {
        ret_nodes[0].endpoints = own->state->endpoints;
        ret_nodes[0].n_endpoints = own->state->n_endpoints;
    }
    for (struct topology_node *t = topology_first(c->node->topology); t && n < max; t = t->hh.next)
        if (t->node_id != c->node->id && t->reachable && !t->state->draining)
            ret_nodes[n++] = (struct placement_node){.name = t->state->node,
                                                     .node_id = t->node_id,
                                                     .endpoints = t->state->endpoints,
                                                     .n_endpoints = t->state->n_endpoints};
    qsort(ret_nodes + 1, n - 1, sizeof *ret_nodes, by_name);
    return n;
}
