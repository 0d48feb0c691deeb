/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/cluster/mesh.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "daemon/config_seed.h"
#include "daemon/routing/topology.h"
#include "proto/control.pb-c.h"

/* Connections that others opened and that have not proved the key yet: strangers can hold no more,
 * and those of one host no more than its share. */
#define MAX_STRANGERS 64u
#define MAX_PER_HOST  16u
/* Own attempts beside them. */
#define MAX_ATTEMPTS 64u
/* Lines of the log about strangers in COMPLAIN_EVERY_NS. */
#define MAX_COMPLAINTS 8u
/* The timer fires at least this often, for what else is looked after, and not more often than
 * that. */
#define MAX_TIMER_NS (500 * CLOCK_NS_PER_MS)
#define MIN_TIMER_NS (5 * CLOCK_NS_PER_MS)
/* Without any job that needs the link, it is dead after so many rare heartbeats. */
#define IDLE_HEARTBEATS 3u
/* A timer that is late by less says nothing. */
#define LAG_LEAST_NS       (20 * CLOCK_NS_PER_MS)
#define REARM_LINKS        32u
#define BACKOFF_MAX_FACTOR 4u
/* After the end of a connection that was up: soon enough to see whether the daemon is gone, late
 * enough for its end to be complete. */
#define RECONNECT_FIRST_NS (100 * CLOCK_NS_PER_MS)
/* Who closed a connection that it had opened, and lives, opens a new one within this time: only
 * after it does a refusal in the other direction, which may never have been open, tell that it is
 * gone. */
#define REOPEN_NS (400 * CLOCK_NS_PER_MS)
/* Neighbours that fall silent within this time may have a cause in common. */
#define CUT_OFF_NS (5 * CLOCK_NS_PER_S)
/* The same complaint about the same address is logged once in this time. */
#define COMPLAIN_EVERY_NS (30 * CLOCK_NS_PER_S)

struct target_key {
    uint32_t channel, port;
    char host[128];
};

struct mesh_target {
    struct list link;
    UT_hash_handle hh;
    struct mesh *mesh;
    struct target_key key;
    bool seed;
    bool ourselves;
    uint32_t node_id; /* 0: not known yet */
    /* Incarnation of it of which a refusal tells that it has ended: it took a connection from here
     * before, or closed one itself. For others a refusal may be a firewall's. 0: none. */
    uint32_t linked_epoch;
    uint64_t proof_from_ns; /* a refusal counts from then on */
    struct mesh_link *current;
    uint64_t next_try_ns;
    uint32_t failures;
    uint64_t complained_ns;
    uint32_t complained_hash;
    char reason[64]; /* why the last attempt failed; "": none has */
};

/* A node with up links. */
struct mesh_node {
    UT_hash_handle hh;
    uint32_t node_id;
    struct list links; /* struct mesh_link.same_node */
};

struct mesh {
    struct mesh_setup setup;
    struct peer_self self;
    struct list links, targets;
    struct mesh_node *nodes;
    struct mesh_target *by_address;
    uint64_t silent_ns[CONFIG_MAX_CHANNELS]; /* when a neighbour there last fell silent; 0: never */
    unsigned n_strangers, n_links;
    uint64_t refused_ns,
        complaining_ns; /* a stranger was refused; complaints are counted from here */
    unsigned n_complaints;
    uint64_t armed_ns; /* when the timer is to fire */
    bool rearm;
};

static const struct config_channel *mesh_channel(const struct mesh *mesh, uint32_t channel)
{
    return &mesh->setup.config->channels[channel];
}

const struct list *mesh_links(const struct mesh *mesh)
{
    return &mesh->links;
}

static struct mesh_node *mesh_node_find(const struct mesh *mesh, uint32_t node_id)
{
    struct mesh_node *node;

    HASH_FIND(hh, mesh->nodes, &node_id, sizeof node_id, node);
    return node;
}

struct mesh_link *mesh_find(const struct mesh *mesh, uint32_t node_id, const char *network)
{
    const struct mesh_node *node = mesh_node_find(mesh, node_id);

    if (!node)
        return NULL;
    list_foreach(it, &node->links) {
        struct mesh_link *l = list_entry(it, struct mesh_link, same_node);
        if (!network || strcmp(l->peer.network, network) == 0)
            return l;
    }
    return NULL;
}

/* Makes it if there is none. NULL: no memory. */
static struct mesh_node *mesh_node_get(struct mesh *mesh, uint32_t node_id)
{
    struct mesh_node *node = mesh_node_find(mesh, node_id);

    if (node)
        return node;
    node = calloc(1, sizeof *node);
    if (!node)
        return NULL;
    node->node_id = node_id;
    list_init(&node->links);
    HASH_ADD(hh, mesh->nodes, node_id, sizeof node->node_id, node);
    return node;
}

/* The link counts as one to its node, which is there since it was admitted. */
static void link_raise(struct mesh_link *l)
{
    list_append(&mesh_node_find(l->mesh, l->peer.node_id)->links, &l->same_node);
    l->up = true;
    l->mesh->n_strangers--;
}

static void link_lower(struct mesh_link *l)
{
    struct mesh_node *node = mesh_node_find(l->mesh, l->peer.node_id);

    l->up = false;
    l->mesh->n_strangers++;
    list_remove(&l->same_node);
    if (list_empty(&node->links)) {
        HASH_DEL(l->mesh->nodes, node);
        free(node);
    }
}

int mesh_send(struct mesh_link *l, uint16_t type, const uint8_t *body, uint32_t len)
{
    uint8_t *sealed = malloc((size_t)len + PEER_CODE_BYTES);

    if (!sealed)
        return -ENOMEM;
    uint64_t number = l->peer.n_out;
    uint32_t n = peer_wrap(&l->peer, type, body, len, sealed);
    int rc = l->mesh->setup.socket_ops->send(l->mesh->setup.socket_ctx, l, type, sealed, n);
    if (rc < 0)
        l->peer.n_out = number; /* it does not leave, and the next one follows the last */
    free(sealed);
    return rc;
}

unsigned mesh_n_targets(const struct mesh *mesh)
{
    unsigned n = 0;

    list_foreach(it, &mesh->targets)
        n++;
    return n;
}

bool mesh_is_alone(const struct mesh *mesh, char *ret_text, size_t size)
{
    size_t at = 0;
    bool any = false;

    ret_text[0] = '\0';
    list_foreach(it, &mesh->links)
        if (list_entry(it, struct mesh_link, link)->up)
            return false;
    list_foreach(it, &mesh->targets) {
        const struct mesh_target *t = list_entry(it, struct mesh_target, link);
        if (!t->seed || t->ourselves)
            continue;
        any = true;
        int n = snprintf(ret_text + at, size - at, "%s%s%s%s:%u (%s)", at ? ", " : "",
                         strchr(t->key.host, ':') ? "[" : "", t->key.host,
                         strchr(t->key.host, ':') ? "]" : "", t->key.port,
                         t->reason[0] ? t->reason : "no answer yet");
        if (n < 0 || (size_t)n >= size - at)
            break;
        at += (size_t)n;
    }
    return any;
}

/* ---- ends of connections ---- */

/* Logs why a connection failed, once per address and reason in a while. */
static void target_complain(struct mesh_target *t, const char *reason, uint64_t now_ns)
{
    uint32_t hash = hash_fnv1a(reason, strlen(reason));

    snprintf(t->reason, sizeof t->reason, "%.63s", reason);
    if (t->complained_hash == hash && now_ns - t->complained_ns < COMPLAIN_EVERY_NS)
        return;
    t->complained_hash = hash;
    t->complained_ns = now_ns;
    log_info("network %s: %s:%u: %s", mesh_channel(t->mesh, t->key.channel)->network, t->key.host,
             t->key.port, reason);
}

/* A connection of somebody who is nobody ended. Whoever opens many fills no log. */
static void mesh_complain(struct mesh *mesh, const struct mesh_link *l, const char *reason,
                          enum mesh_close how, uint64_t now_ns)
{
    /* A neighbour that ends, or has another connection, hangs up as well: nobody was refused. */
    if (how == MESH_CLOSE_OWN && !l->unwanted)
        mesh->refused_ns = now_ns;
    if (now_ns - mesh->complaining_ns >= COMPLAIN_EVERY_NS) {
        mesh->complaining_ns = now_ns;
        mesh->n_complaints = 0;
    }
    if (mesh->n_complaints++ < MAX_COMPLAINTS)
        log_info("connection from %s on network %s: %s%s", l->remote,
                 mesh_channel(mesh, l->channel)->network, reason,
                 mesh->n_complaints == MAX_COMPLAINTS ? "; no more of this for a while" : "");
}

uint64_t mesh_refused_ago(const struct mesh *mesh, uint64_t now_ns)
{
    return mesh->refused_ns ? now_ns - mesh->refused_ns : UINT64_MAX;
}

static void target_failed(struct mesh_target *t, uint64_t now_ns)
{
    t->current = NULL;
    if (t->failures < BACKOFF_MAX_FACTOR)
        t->failures++;
    t->next_try_ns = now_ns + t->mesh->setup.config->reconnect_ns * t->failures;
}

static void target_refused(struct mesh_target *t, int error, uint64_t now_ns)
{
    const struct mesh_setup *setup = &t->mesh->setup;

    if (error == ECONNREFUSED && t->linked_epoch != 0 && now_ns >= t->proof_from_ns)
        setup->ops->refused(setup->ctx, t->node_id, t->linked_epoch, now_ns);
}

/* Forgets a connection. `finish`: what is queued may still leave. */
static void link_free(struct mesh_link *l, bool finish)
{
    const struct mesh_setup *setup = &l->mesh->setup;

    if (l->up)
        link_lower(l);
    list_remove(&l->link);
    l->mesh->n_links--;
    l->mesh->n_strangers--;
    setup->socket_ops->close(setup->socket_ctx, l, finish);
    peer_end(&l->peer);
    free(l);
}

/* The connection to this neighbour has ended: all its addresses on the network are tried anew soon.
 * `proof`: a refusal is to tell that this incarnation has ended. */
static void mesh_retry_soon(struct mesh *mesh, const struct mesh_link *l, bool proof,
                            uint64_t now_ns)
{
    list_foreach(it, &mesh->targets) {
        struct mesh_target *t = list_entry(it, struct mesh_target, link);
        if (t->node_id != l->peer.node_id ||
            strcmp(mesh_channel(mesh, t->key.channel)->network, l->peer.network) != 0)
            continue;
        if (proof && t->linked_epoch != l->peer.epoch) {
            t->linked_epoch = l->peer.epoch;
            t->proof_from_ns = now_ns + REOPEN_NS;
        }
        t->next_try_ns = now_ns + RECONNECT_FIRST_NS;
    }
}

/* Sets the timer to what is due next. */
static void mesh_arm(struct mesh *mesh, uint64_t now_ns)
{
    uint64_t next_ns = now_ns + MAX_TIMER_NS;

    list_foreach(it, &mesh->links) {
        const struct mesh_link *l = list_entry(it, struct mesh_link, link);
        uint64_t due_ns = l->talking ? peer_next_ns(&l->peer) : next_ns;
        next_ns = due_ns < next_ns ? due_ns : next_ns;
    }
    /* Attempts to connect are waited for in steps at most; there are none when everybody is
     * linked. */
    list_foreach(it, &mesh->targets) {
        const struct mesh_target *t = list_entry(it, struct mesh_target, link);
        uint64_t step_ns = now_ns + mesh->setup.config->reconnect_ns / 2;
        if (t->next_try_ns > now_ns && t->next_try_ns < step_ns)
            step_ns = t->next_try_ns;
        if (!t->ourselves && !t->current && step_ns < next_ns &&
            !(t->node_id &&
              mesh_find(mesh, t->node_id, mesh_channel(mesh, t->key.channel)->network)))
            next_ns = step_ns;
    }
    if (next_ns < now_ns + MIN_TIMER_NS)
        next_ns = now_ns + MIN_TIMER_NS;
    mesh->armed_ns = next_ns;
    mesh->setup.socket_ops->timer(mesh->setup.socket_ctx, next_ns);
}

/* `finish`: what is queued may still leave. */
static void link_close(struct mesh_link *l, const char *reason, enum mesh_close how, bool finish,
                       uint64_t now_ns)
{
    struct mesh *mesh = l->mesh;
    bool was_up = l->up;

    if (was_up)
        log_notice("link to node %s on network %s is down: %s", l->peer.node, l->peer.network,
                   reason);
    else if (l->target)
        target_complain(l->target, reason, now_ns);
    else
        mesh_complain(mesh, l, reason, how, now_ns);
    /* So that a seed we are linked to already is not tried for ever. */
    if (l->target && l->target->node_id == 0 && l->peer.node_id != 0)
        l->target->node_id = l->peer.node_id;
    if (was_up) {
        link_lower(l);
        mesh->setup.ops->down(mesh->setup.ctx, l);
    }
    if (l->target && l->target->current == l)
        target_failed(l->target, now_ns);
    if (was_up)
        mesh_retry_soon(mesh, l, how == MESH_CLOSE_PEER, now_ns);
    link_free(l, finish);
    if (was_up)
        mesh_arm(mesh, now_ns);
}

/* Ends a connection and tells the other side the reason. */
static void link_refuse(struct mesh_link *l, const char *reason, uint64_t now_ns)
{
    Motet__Refused msg = MOTET__REFUSED__INIT;
    uint8_t body[512];

    msg.reason = (char *)reason;
    size_t len = motet__refused__get_packed_size(&msg);
    if (len <= sizeof body) {
        motet__refused__pack(&msg, body);
        mesh_send(l, MOTET__FRAME_TYPE__REFUSED, body, (uint32_t)len);
    }
    link_close(l, reason, MESH_CLOSE_OWN, true, now_ns);
}

/* ---- what a peer asks for ---- */

static void link_peer_send(void *ctx, uint16_t type, const void *body, uint32_t len)
{
    struct mesh_link *l = ctx;

    mesh_send(l, type, body, len);
    l->mesh->rearm = type == MOTET__FRAME_TYPE__HEARTBEAT;
}

/* Which of two connections to the same neighbour on the same network stays: the one opened by the
 * smaller id. */
static bool link_opened_by_smaller(const struct mesh_link *l)
{
    bool we_are_smaller = l->mesh->self.node_id < l->peer.node_id;
    return l->peer.initiator == we_are_smaller;
}

/* Somebody says that this node is another incarnation now: whether the old one lives has to be
 * seen soon. */
static void mesh_doubt(struct mesh *mesh, uint32_t node_id)
{
    const struct mesh_node *node = mesh_node_find(mesh, node_id);

    if (!node)
        return;
    list_foreach(it, &node->links)
        list_entry(it, struct mesh_link, same_node)->doubted = true;
}

static const char *link_peer_admit(void *ctx, const struct peer *peer)
{
    struct mesh_link *l = ctx;
    struct mesh *mesh = l->mesh;
    static char why[200];

    if (peer->node_id == mesh->self.node_id) {
        if (peer->epoch == mesh->self.epoch) {
            if (l->target)
                l->target->ourselves = true;
            return "this is the node itself";
        }
        snprintf(why, sizeof why, "the name %s is in use by another node", peer->node);
        log_error("a node at %s has our own name %s; names must be unique", l->remote, peer->node);
        return why;
    }
    const struct topology_node *known = topology_find(mesh->setup.topology, peer->node_id);
    if (known && strcmp(known->state->node, peer->node) != 0) {
        snprintf(why, sizeof why, "the names %s and %s have the same number; rename one node",
                 peer->node, known->state->node);
        log_error("%s", why);
        return why;
    }
    /* A node that was restarted is let in once its past is dead; a second one of the same name
     * never is. */
    if (known && known->reachable && known->state->epoch != peer->epoch) {
        mesh_doubt(mesh, peer->node_id);
        snprintf(why, sizeof why, "a node %s is alive under another epoch; names must be unique",
                 peer->node);
        return why;
    }
    struct mesh_link *other = mesh_find(mesh, peer->node_id, peer->network);
    if (other && !link_opened_by_smaller(l) && other->peer.epoch == peer->epoch)
        return "there is a connection already";
    if (!mesh_node_get(mesh, peer->node_id))
        return "out of memory";
    if (l->target)
        l->target->node_id = peer->node_id;
    return NULL;
}

static void link_peer_up(void *ctx, uint64_t now_ns)
{
    struct mesh_link *l = ctx;
    struct mesh *mesh = l->mesh;
    const struct mesh_setup *setup = &mesh->setup;
    struct mesh_link *other = mesh_find(mesh, l->peer.node_id, l->peer.network);

    setup->socket_ops->trust(setup->socket_ctx, l);
    link_raise(l);
    l->since_ns = now_ns;
    if (l->target) {
        l->target->failures = 0;
        l->target->linked_epoch = l->peer.epoch;
        l->target->proof_from_ns = 0;
    }
    peer_set_pulse(&l->peer, PEER_CALM, now_ns);
    log_info("link to node %s on network %s is up (%s)", l->peer.node, l->peer.network, l->remote);
    setup->ops->up(setup->ctx, l);
    if (other && other != l) {
        /* Replaced, not lost: the cluster sees no interruption. */
        link_lower(other);
        if (other->target && other->target->current == other)
            target_failed(other->target, now_ns);
        link_free(other, true);
    }
}

static int link_peer_frame(void *ctx, uint16_t type, const uint8_t *body, uint32_t len,
                           uint64_t now_ns)
{
    struct mesh_link *l = ctx;
    const struct mesh_setup *setup = &l->mesh->setup;

    switch (type) {
    case MOTET__FRAME_TYPE__MAIL:
        return setup->ops->mail(setup->ctx, body, len, now_ns);
    case MOTET__FRAME_TYPE__DIGEST:
        return setup->ops->digest(setup->ctx, l, body, len, now_ns);
    default:
        return setup->ops->link_state(setup->ctx, l, body, len, now_ns);
    }
}

static void link_peer_rtt(void *ctx, uint64_t rtt_ns, uint64_t now_ns)
{
    struct mesh_link *l = ctx;

    l->rtt_ns = l->rtt_ns ? (l->rtt_ns * 7 + rtt_ns) / 8 : rtt_ns;
    l->mesh->setup.ops->rtt(l->mesh->setup.ctx, l, rtt_ns, now_ns);
}

static const struct peer_ops link_peer_ops = {.send = link_peer_send,
                                              .admit = link_peer_admit,
                                              .up = link_peer_up,
                                              .frame = link_peer_frame,
                                              .rtt = link_peer_rtt};

/* ---- connections ---- */

static struct mesh_link *link_new(struct mesh *mesh, uint32_t channel, struct mesh_target *target,
                                  uint64_t now_ns)
{
    struct mesh_link *l = calloc(1, sizeof *l);

    if (!l)
        return NULL;
    l->mesh = mesh;
    l->channel = channel;
    l->target = target;
    l->since_ns = now_ns;
    list_init(&l->link);
    list_init(&l->same_node);
    list_append(&mesh->links, &l->link);
    mesh->n_links++;
    mesh->n_strangers++;
    return l;
}

/* It is connected: speak. */
static void link_begin(struct mesh_link *l, uint64_t now_ns)
{
    const struct config_channel *ch = mesh_channel(l->mesh, l->channel);

    l->talking = true;
    peer_start(&l->peer, &l->mesh->self, ch->network, (enum seal_mode)ch->protect,
               (uint32_t)ch->port, l->target != NULL, &link_peer_ops, l, now_ns);
}

/* The same host, whatever the port? */
static bool mesh_same_host(const char *a, const char *b)
{
    const char *end_a = strrchr(a, ':'), *end_b = strrchr(b, ':');

    return end_a && end_b && end_a - a == end_b - b && memcmp(a, b, (size_t)(end_a - a)) == 0;
}

/* Of the connections that prove nothing the oldest one goes for a new one: a neighbour proves
 * itself within some round trips, so what waits longest is not one. */
static void mesh_make_room(struct mesh *mesh, const char *remote, uint64_t now_ns)
{
    struct mesh_link *oldest = NULL, *oldest_there = NULL;
    unsigned n = 0, n_there = 0;

    list_foreach(it, &mesh->links) {
        struct mesh_link *l = list_entry(it, struct mesh_link, link);
        if (l->up || l->target)
            continue;
        oldest = oldest ? oldest : l;
        n++;
        if (!mesh_same_host(l->remote, remote))
            continue;
        oldest_there = oldest_there ? oldest_there : l;
        n_there++;
    }
    struct mesh_link *goes = n_there >= MAX_PER_HOST ? oldest_there
                             : n >= MAX_STRANGERS    ? oldest
                                                     : NULL;
    if (goes)
        link_close(goes, "too many connections that prove nothing", MESH_CLOSE_OWN, false, now_ns);
}

struct mesh_link *mesh_on_accept(struct mesh *mesh, uint32_t channel, const char *remote,
                                 void *socket, uint64_t now_ns)
{
    mesh_make_room(mesh, remote, now_ns);
    struct mesh_link *l = link_new(mesh, channel, NULL, now_ns);

    if (!l)
        return NULL;
    l->socket = socket;
    snprintf(l->remote, sizeof l->remote, "%s", remote);
    link_begin(l, now_ns);
    return l;
}

void mesh_on_connected(struct mesh_link *l, int error, uint64_t now_ns)
{
    if (error) {
        target_refused(l->target, error, now_ns);
        link_close(l, strerror(error), MESH_CLOSE_OWN, false, now_ns);
    } else {
        link_begin(l, now_ns);
    }
}

/* The other side says why it does not want this connection. */
static void link_on_refused(struct mesh_link *l, const uint8_t *body, uint32_t len, uint64_t now_ns)
{
    Motet__Refused *msg = motet__refused__unpack(NULL, len, body);
    char reason[300];

    snprintf(reason, sizeof reason, "the other side refused: %.200s", msg ? msg->reason : "");
    for (char *p = reason; *p; p++)
        *p = (unsigned char)*p < ' ' || (unsigned char)*p >= 127 ? '?' : *p;
    if (msg)
        motet__refused__free_unpacked(msg, NULL);
    l->unwanted = true;
    link_close(l, reason, MESH_CLOSE_OWN, false, now_ns);
}

void mesh_on_frame(struct mesh_link *l, uint16_t type, const uint8_t *body, uint32_t len,
                   uint64_t now_ns)
{
    struct mesh *mesh = l->mesh;
    uint8_t *plain = malloc((size_t)len + 1);
    uint32_t n;

    if (!plain || peer_unwrap(&l->peer, type, body, len, plain, &n) < 0) {
        link_close(l, plain ? l->peer.reason : "out of memory", MESH_CLOSE_OWN, false, now_ns);
        free(plain);
        return;
    }
    if (type == MOTET__FRAME_TYPE__REFUSED) {
        link_on_refused(l, plain, n, now_ns);
        free(plain);
        return;
    }
    if (peer_on_frame(&l->peer, type, plain, n, now_ns) < 0)
        link_refuse(l, l->peer.reason, now_ns);
    free(plain);
    /* A heartbeat was answered: the timer that would have sent one is not needed so soon. With many
     * links another one is due soon anyway, and looking through them would cost more. */
    if (mesh->rearm && mesh->n_links <= REARM_LINKS)
        mesh_arm(mesh, now_ns);
    mesh->rearm = false;
}

void mesh_on_closed(struct mesh_link *l, enum mesh_close how, const char *reason, uint64_t now_ns)
{
    link_close(l, reason, how, false, now_ns);
}

/* ---- targets ---- */

static void target_connect(struct mesh_target *t, uint64_t now_ns)
{
    const struct mesh_setup *setup = &t->mesh->setup;
    struct mesh_link *l = link_new(t->mesh, t->key.channel, t, now_ns);
    const char *why = "";

    if (!l)
        return;
    snprintf(l->remote, sizeof l->remote, "%.48s:%u", t->key.host, t->key.port);
    t->current = l;
    int rc = setup->socket_ops->connect(setup->socket_ctx, l, t->key.host, t->key.port, &why);
    if (rc == 0)
        return;
    t->current = NULL;
    link_free(l, false);
    if (rc == MESH_E_RESOLVING)
        return;
    target_complain(t, why, now_ns);
    target_refused(t, -rc, now_ns);
    target_failed(t, now_ns);
}

static struct mesh_target *target_add(struct mesh *mesh, uint32_t channel, const char *host,
                                      uint32_t port)
{
    struct target_key key;
    struct mesh_target *t;

    memset(&key, 0, sizeof key);
    key.channel = channel;
    key.port = port;
    snprintf(key.host, sizeof key.host, "%s", host);
    HASH_FIND(hh, mesh->by_address, &key, sizeof key, t);
    if (t)
        return t;
    t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->mesh = mesh;
    t->key = key;
    list_init(&t->link);
    list_append(&mesh->targets, &t->link);
    HASH_ADD(hh, mesh->by_address, key, sizeof t->key, t);
    return t;
}

void mesh_learn(struct mesh *mesh, uint32_t channel, uint32_t node_id, const char *host,
                uint32_t port, uint64_t now_ns)
{
    struct mesh_target *t = target_add(mesh, channel, host, port);

    if (!t || t->node_id == node_id)
        return;
    if (t->node_id == 0 && !t->seed && node_id < mesh->self.node_id)
        /* The smaller id connects; the larger one only when nothing came, since perhaps only it
         * can. */
        t->next_try_ns = now_ns + 4 * mesh->setup.config->reconnect_ns;
    t->node_id = node_id;
}

static void target_run(struct mesh_target *t, uint64_t now_ns)
{
    const struct mesh *mesh = t->mesh;

    if (t->ourselves || t->current || now_ns < t->next_try_ns)
        return;
    if (t->node_id && mesh_find(mesh, t->node_id, mesh_channel(mesh, t->key.channel)->network))
        return;
    if (mesh->n_strangers < MAX_STRANGERS + MAX_ATTEMPTS)
        target_connect(t, now_ns);
}

static void mesh_add_seeds(struct mesh *mesh, uint32_t channel)
{
    const struct config_channel *ch = mesh_channel(mesh, channel);
    const char *at = ch->seeds, *why;
    struct config_seed seed;
    int rc;

    while ((rc = config_seed_next(&at, (uint32_t)ch->port, &seed, &why)) != 0) {
        /* At another port of the own address another daemon of this host listens. */
        if (rc < 0 || (seed.port == ch->port && strcmp(seed.host, ch->address) == 0))
            continue;
        struct mesh_target *t = target_add(mesh, channel, seed.host, seed.port);
        if (t)
            t->seed = true;
    }
}

/* ---- the mesh ---- */

static void mesh_set_intervals(struct mesh *mesh)
{
    const struct config *c = mesh->setup.config;
    uint64_t idle_ns =
        c->idle_heartbeat_ns > c->heartbeat_ns ? c->idle_heartbeat_ns : c->heartbeat_ns;
    uint64_t idle_dead_ns =
        idle_ns * IDLE_HEARTBEATS > c->dead_after_ns ? idle_ns * IDLE_HEARTBEATS : c->dead_after_ns;

    mesh->self.heartbeat_ns = c->heartbeat_ns;
    mesh->self.dead_after_ns = c->dead_after_ns;
    mesh->self.calm_heartbeat_ns = idle_ns;
    mesh->self.calm_dead_after_ns = idle_dead_ns;
    mesh->self.handshake_ns = c->handshake_ns;
}

void mesh_set_pulse(struct mesh_link *l, enum peer_pulse pulse, uint64_t now_ns)
{
    bool quicker = pulse < l->peer.pulse;

    peer_set_pulse(&l->peer, pulse, now_ns);
    if (quicker) /* the first heartbeat of the short interval is due */
        l->mesh->setup.socket_ops->timer(l->mesh->setup.socket_ctx, now_ns);
}

void mesh_reloaded(struct mesh *mesh, uint64_t now_ns)
{
    const struct peer_self before = mesh->self;

    mesh_set_intervals(mesh);
    if (mesh->self.dead_after_ns < before.dead_after_ns ||
        mesh->self.calm_dead_after_ns < before.calm_dead_after_ns)
        mesh->self.changed_ns = now_ns;
    if (mesh->setup.config->n_channels > 0)
        mesh->setup.socket_ops->timer(mesh->setup.socket_ctx, now_ns);
}

/* A second neighbour of a network fell silent within a short time: perhaps this node is cut off
 * from it. The links that nobody watches would show it much later. */
static void mesh_on_silence(struct mesh *mesh, const struct mesh_link *silent, uint64_t now_ns)
{
    uint64_t before_ns = mesh->silent_ns[silent->channel];

    mesh->silent_ns[silent->channel] = now_ns;
    if (before_ns == 0 || now_ns - before_ns > CUT_OFF_NS)
        return;
    list_foreach(it, &mesh->links) {
        struct mesh_link *l = list_entry(it, struct mesh_link, link);
        if (l->up && strcmp(l->peer.network, silent->peer.network) == 0)
            l->doubted = true;
    }
}

/* How late the timer is: the most of late, which fades. */
static void mesh_note_lag(struct mesh *mesh, uint64_t now_ns)
{
    uint64_t lag_ns = mesh->armed_ns != 0 && now_ns > mesh->armed_ns ? now_ns - mesh->armed_ns : 0;
    uint64_t faded_ns = mesh->self.lag_ns - mesh->self.lag_ns / 8;

    mesh->self.lag_ns = lag_ns < LAG_LEAST_NS ? faded_ns : lag_ns > faded_ns ? lag_ns : faded_ns;
    mesh->armed_ns = 0;
}

void mesh_on_timer(struct mesh *mesh, uint64_t now_ns)
{
    mesh_note_lag(mesh, now_ns);
    list_foreach_safe(it, &mesh->links) {
        struct mesh_link *l = list_entry(it, struct mesh_link, link);
        if (!l->talking || peer_on_timer(&l->peer, now_ns) == 0)
            continue;
        if (l->up)
            mesh_on_silence(mesh, l, now_ns);
        link_close(l, l->peer.reason, MESH_CLOSE_OWN, false, now_ns);
    }
    list_foreach(it, &mesh->targets)
        target_run(list_entry(it, struct mesh_target, link), now_ns);
    mesh->setup.ops->tick(mesh->setup.ctx, now_ns);
    mesh->rearm = false;
    mesh_arm(mesh, now_ns);
}

struct mesh *mesh_new(const struct mesh_setup *setup)
{
    struct mesh *mesh = calloc(1, sizeof *mesh);
    const struct config *c = setup->config;

    if (!mesh)
        return NULL;
    mesh->setup = *setup;
    list_init(&mesh->links);
    list_init(&mesh->targets);
    mesh->self = (struct peer_self){.node = c->name,
                                    .node_id = setup->node_id,
                                    .epoch = setup->epoch,
                                    .software = setup->software,
                                    .packet_bytes = (uint32_t)c->packet_bytes,
                                    .key = setup->key};
    seal_random(mesh->self.salt, sizeof mesh->self.salt);
    mesh_set_intervals(mesh);
    for (uint32_t ch = 0; ch < (uint32_t)c->n_channels; ch++)
        mesh_add_seeds(mesh, ch);
    return mesh;
}

void mesh_start(struct mesh *mesh, uint64_t now_ns)
{
    if (mesh->setup.config->n_channels > 0)
        mesh->setup.socket_ops->timer(mesh->setup.socket_ctx, now_ns);
}

void mesh_free(struct mesh *mesh)
{
    if (!mesh)
        return;
    list_foreach_safe(it, &mesh->links)
        link_free(list_entry(it, struct mesh_link, link), false);
    struct mesh_node *node, *next;
    HASH_ITER(hh, mesh->nodes, node, next) {
        HASH_DEL(mesh->nodes, node);
        free(node);
    }
    HASH_CLEAR(hh, mesh->by_address);
    list_foreach_safe(it, &mesh->targets) {
        list_remove(it);
        free(list_entry(it, struct mesh_target, link));
    }
    free(mesh);
}
