/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/cluster/mesh.h"

#include <errno.h>
#include <event2/event.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/log.h"
#include "daemon/cluster/cluster.h"
#include "daemon/cluster/mail.h"
#include "daemon/cluster/stream.h"
#include "daemon/cluster/topology.h"
#include "daemon/control/node.h"
#include "proto/control.pb-c.h"
#include "proto/frame.h"

/* Connections that have not proved the key yet, in all: strangers can hold no more. */
#define MAX_STRANGERS        64u
#define STRANGER_FRAME_BYTES 1024u
#define QUEUE_BYTES          (64u << 20)
/* The timer fires at least this often, for what else is looked after, and not more often than
 * that. */
#define MAX_TIMER_NS (500 * CLOCK_NS_PER_MS)
#define MIN_TIMER_NS (5 * CLOCK_NS_PER_MS)
/* Without any job that needs the link, it is dead after so many rare heartbeats. */
#define IDLE_HEARTBEATS    3u
#define REARM_LINKS        32u
#define CONNECT_LIMIT_NS   (2 * CLOCK_NS_PER_S)
#define BACKOFF_MAX_FACTOR 4u
/* After the end of a connection that was up: soon enough to see whether the daemon is gone, late
 * enough for its end to be complete. */
#define RECONNECT_FIRST_NS (100 * CLOCK_NS_PER_MS)
/* Who closed a connection that it had opened, and lives, opens a new one within this time: only
 * after it does a refusal in the other direction, which may never have been open, tell that it is
 * gone. */
#define REOPEN_NS (400 * CLOCK_NS_PER_MS)
/* The same complaint about the same address is logged once in this time. */
#define COMPLAIN_EVERY_NS (30 * CLOCK_NS_PER_S)

struct mesh_target {
    struct list link;
    struct mesh *mesh;
    uint32_t channel;
    char host[128];
    uint32_t port;
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
    /* Name resolution under way, by glibc's own thread. */
    struct gaicb *lookup;
};

struct mesh_listener {
    struct mesh *mesh;
    struct event *event;
    int fd;
    uint32_t channel;
};

struct mesh {
    struct node *node;
    struct peer_self self;
    struct auth_key key;
    struct list links, targets;
    struct mesh_listener listeners[CONFIG_MAX_CHANNELS];
    struct event *timer;
    unsigned n_strangers, n_links;
    bool rearm;
    bool busy;
};

static const struct config_channel *channel_config(const struct mesh *mesh, uint32_t channel)
{
    return &mesh->node->config.channels[channel];
}

const struct list *mesh_links(const struct mesh *mesh)
{
    return &mesh->links;
}

struct mesh_link *mesh_find(const struct mesh *mesh, uint32_t node_id, const char *network)
{
    list_foreach(it, &mesh->links) {
        struct mesh_link *l = list_entry(it, struct mesh_link, link);
        if (l->up && l->peer.node_id == node_id &&
            (!network || strcmp(l->peer.network, network) == 0))
            return l;
    }
    return NULL;
}

int mesh_send(struct mesh_link *l, uint16_t type, const uint8_t *body, uint32_t len)
{
    return stream_send(l->stream, type, body, len);
}

/* Logs why a connection failed, once per address and reason in a while. */
static void complain(struct mesh_target *t, const char *reason)
{
    uint64_t now_ns = clock_now_ns();
    uint32_t hash = hash_fnv1a(reason, strlen(reason));

    if (t->complained_hash == hash && now_ns - t->complained_ns < COMPLAIN_EVERY_NS)
        return;
    t->complained_hash = hash;
    t->complained_ns = now_ns;
    log_info("network %s: %s:%u: %s", channel_config(t->mesh, t->channel)->network, t->host,
             t->port, reason);
}

/* ---- connections ---- */

static void target_failed(struct mesh_target *t)
{
    const struct config *c = &t->mesh->node->config;

    t->current = NULL;
    if (t->failures < BACKOFF_MAX_FACTOR)
        t->failures++;
    t->next_try_ns = clock_now_ns() + c->reconnect_ns * t->failures;
}

static void connect_failed(struct mesh_target *t, int error)
{
    if (error == ECONNREFUSED && t->linked_epoch != 0 && clock_now_ns() >= t->proof_from_ns)
        cluster_on_refused(t->mesh->node->cluster, t->node_id, t->linked_epoch);
}

/* Forgets a connection. `finish`: what is queued may still leave. */
static void link_free(struct mesh_link *l, bool finish)
{
    list_remove(&l->link);
    l->mesh->n_links--;
    if (!l->up)
        l->mesh->n_strangers--;
    if (l->target && l->target->current == l)
        target_failed(l->target);
    if (l->connecting)
        event_free(l->connecting);
    fd_closep(&l->fd);
    if (finish)
        stream_finish(l->stream);
    else
        stream_free(l->stream);
    free(l);
}

static void arm_timer(struct mesh *mesh, uint64_t now_ns);

/* The connection to this neighbour has ended: all its addresses on the network are tried anew soon.
 * `proof`: a refusal is to tell that this incarnation has ended. */
static void retry_soon(struct mesh *mesh, const struct mesh_link *l, bool proof, uint64_t now_ns)
{
    list_foreach(it, &mesh->targets) {
        struct mesh_target *t = list_entry(it, struct mesh_target, link);
        if (t->node_id != l->peer.node_id ||
            strcmp(channel_config(mesh, t->channel)->network, l->peer.network) != 0)
            continue;
        if (proof && t->linked_epoch != l->peer.epoch) {
            t->linked_epoch = l->peer.epoch;
            t->proof_from_ns = now_ns + REOPEN_NS;
        }
        t->next_try_ns = now_ns + RECONNECT_FIRST_NS;
    }
}

enum close_how {
    CLOSE_OWN,      /* an error or a deadline here */
    CLOSE_REFUSING, /* the other side is told the reason */
    CLOSE_PEER,     /* the other side's kernel said that it is over */
};

static void link_close(struct mesh_link *l, const char *reason, enum close_how how)
{
    struct node *node = l->mesh->node;
    bool was_up = l->up;

    if (how == CLOSE_REFUSING && l->stream) {
        Motet__Refused msg = MOTET__REFUSED__INIT;
        msg.reason = (char *)reason;
        stream_send_msg(l->stream, MOTET__FRAME_TYPE__REFUSED, &msg.base);
    }
    if (was_up)
        log_notice("link to node %s on network %s is down: %s", l->peer.node, l->peer.network,
                   reason);
    else if (l->target)
        complain(l->target, reason);
    else
        log_info("connection from %s on network %s: %s", l->remote,
                 channel_config(l->mesh, l->channel)->network, reason);
    /* So that a seed we are linked to already is not tried for ever. */
    if (l->target && l->target->node_id == 0 && l->peer.node_id != 0)
        l->target->node_id = l->peer.node_id;
    if (was_up) {
        l->up = false;
        l->mesh->n_strangers++;
        if (node->cluster)
            cluster_on_link_down(node->cluster, l);
    }
    struct mesh *mesh = l->mesh;
    uint64_t now_ns = clock_now_ns();
    if (l->target && l->target->current == l)
        target_failed(l->target);
    if (was_up)
        retry_soon(mesh, l, how == CLOSE_PEER, now_ns);
    link_free(l, how == CLOSE_REFUSING);
    if (was_up)
        arm_timer(mesh, now_ns);
}

/* Sets the timer to what is due next. */
static void arm_timer(struct mesh *mesh, uint64_t now_ns)
{
    uint64_t next_ns = now_ns + MAX_TIMER_NS;

    list_foreach(it, &mesh->links) {
        const struct mesh_link *l = list_entry(it, struct mesh_link, link);
        uint64_t due_ns = l->stream ? peer_next_ns(&l->peer) : next_ns;
        next_ns = due_ns < next_ns ? due_ns : next_ns;
    }
    /* Attempts to connect are waited for in steps at most; there are none when everybody is
     * linked. */
    list_foreach(it, &mesh->targets) {
        const struct mesh_target *t = list_entry(it, struct mesh_target, link);
        uint64_t step_ns = now_ns + mesh->node->config.reconnect_ns / 2;
        if (t->next_try_ns > now_ns && t->next_try_ns < step_ns)
            step_ns = t->next_try_ns;
        if (!t->ourselves && !t->current && step_ns < next_ns &&
            !(t->node_id && mesh_find(mesh, t->node_id, channel_config(mesh, t->channel)->network)))
            next_ns = step_ns;
    }
    uint64_t left_ns = next_ns > now_ns + MIN_TIMER_NS ? next_ns - now_ns : MIN_TIMER_NS;
    struct timeval tv = {.tv_sec = (time_t)(left_ns / CLOCK_NS_PER_S),
                         .tv_usec = (suseconds_t)(left_ns % CLOCK_NS_PER_S / 1000)};
    evtimer_add(mesh->timer, &tv);
}

static void peer_send(void *ctx, uint16_t type, const void *body, uint32_t len)
{
    struct mesh_link *l = ctx;

    if (!l->stream)
        return;
    stream_send(l->stream, type, body, len);
    l->mesh->rearm = type == MOTET__FRAME_TYPE__HEARTBEAT;
}

/* Which of two connections to the same neighbour on the same network stays: the one opened by the
 * smaller id. */
static bool opened_by_smaller(const struct mesh_link *l)
{
    bool we_are_smaller = l->mesh->self.node_id < l->peer.node_id;
    return l->peer.initiator == we_are_smaller;
}

static const char *peer_admit(void *ctx, const struct peer *peer)
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
    const struct topology_node *known = topology_find(mesh->node->topology, peer->node_id);
    if (known && strcmp(known->state->node, peer->node) != 0) {
        snprintf(why, sizeof why, "the names %s and %s have the same number; rename one node",
                 peer->node, known->state->node);
        log_error("%s", why);
        return why;
    }
    /* A node that was restarted is let in once its past is dead; a second one of the same name
     * never is. */
    if (known && known->reachable && known->state->epoch != peer->epoch) {
        snprintf(why, sizeof why, "a node %s is alive under another epoch; names must be unique",
                 peer->node);
        return why;
    }
    struct mesh_link *other = mesh_find(mesh, peer->node_id, peer->network);
    if (other && !opened_by_smaller(l) && other->peer.epoch == peer->epoch)
        return "there is a connection already";
    if (l->target)
        l->target->node_id = peer->node_id;
    return NULL;
}

static void peer_up(void *ctx)
{
    struct mesh_link *l = ctx;
    struct mesh *mesh = l->mesh;
    struct mesh_link *other = mesh_find(mesh, l->peer.node_id, l->peer.network);

    stream_set_max_frame(l->stream, FRAME_MAX_BYTES);
    l->up = true;
    l->since_ns = clock_now_ns();
    mesh->n_strangers--;
    if (l->target) {
        l->target->failures = 0;
        l->target->linked_epoch = l->peer.epoch;
        l->target->proof_from_ns = 0;
    }
    log_info("link to node %s on network %s is up (%s)", l->peer.node, l->peer.network, l->remote);
    cluster_on_link_up(mesh->node->cluster, l);
    if (other && other != l) {
        /* Replaced, not lost: cluster sees no interruption. */
        other->up = false;
        mesh->n_strangers++;
        link_free(other, true);
    }
}

static int peer_frame(void *ctx, uint16_t type, const uint8_t *body, uint32_t len, uint64_t now_ns)
{
    struct mesh_link *l = ctx;

    if (type == MOTET__FRAME_TYPE__MAIL)
        return mail_on_frame(l->mesh->node->mail, body, len, now_ns);
    return cluster_on_link_state(l->mesh->node->cluster, l, body, len);
}

static void peer_rtt(void *ctx, uint64_t rtt_ns)
{
    struct mesh_link *l = ctx;

    l->rtt_ns = l->rtt_ns ? (l->rtt_ns * 7 + rtt_ns) / 8 : rtt_ns;
    cluster_on_rtt(l->mesh->node->cluster, l->peer.node_id, l->peer.network, rtt_ns);
}

static const struct peer_ops peer_ops = {
    .send = peer_send, .admit = peer_admit, .up = peer_up, .frame = peer_frame, .rtt = peer_rtt};

static int on_stream_frame(void *ctx, uint16_t type, const uint8_t *body, uint32_t len)
{
    struct mesh_link *l = ctx;

    if (type == MOTET__FRAME_TYPE__REFUSED) {
        Motet__Refused *msg = motet__refused__unpack(NULL, len, body);
        char reason[300];
        snprintf(reason, sizeof reason, "the other side refused: %.200s", msg ? msg->reason : "");
        for (char *p = reason; *p; p++)
            *p = (unsigned char)*p < ' ' || (unsigned char)*p >= 127 ? '?' : *p;
        if (msg)
            motet__refused__free_unpacked(msg, NULL);
        link_close(l, reason, CLOSE_OWN);
        return 0;
    }
    struct mesh *mesh = l->mesh;
    uint64_t now_ns = clock_now_ns();
    int rc = peer_on_frame(&l->peer, type, body, len, now_ns);
    if (rc < 0)
        link_close(l, l->peer.reason, CLOSE_REFUSING);
    /* A heartbeat was answered: the timer that would have sent one is not needed so soon. With many
     * links another one is due soon anyway, and looking through them would cost more. */
    if (mesh->rearm && mesh->n_links <= REARM_LINKS)
        arm_timer(mesh, now_ns);
    mesh->rearm = false;
    return 0;
}

static void on_stream_closed(void *ctx, int error)
{
    link_close(ctx, error ? strerror(error) : "closed by the other side",
               error == 0 || error == ECONNRESET || error == EPIPE ? CLOSE_PEER : CLOSE_OWN);
}

static const struct stream_ops stream_ops = {.frame = on_stream_frame, .closed = on_stream_closed};

/* The socket is connected: speak. */
static void link_begin(struct mesh_link *l)
{
    struct mesh *mesh = l->mesh;
    const struct config_channel *ch = channel_config(mesh, l->channel);
    int one = 1;

    setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    l->stream =
        stream_new(mesh->node->base, l->fd, &stream_ops, l, STRANGER_FRAME_BYTES, QUEUE_BYTES);
    if (!l->stream) {
        link_close(l, "out of memory", CLOSE_OWN);
        return;
    }
    l->fd = -1;
    peer_start(&l->peer, &mesh->self, ch->network, (uint32_t)ch->port, l->target != NULL, &peer_ops,
               l, clock_now_ns());
}

static struct mesh_link *link_new(struct mesh *mesh, uint32_t channel, int fd,
                                  struct mesh_target *target)
{
    struct mesh_link *l = calloc(1, sizeof *l);

    if (!l)
        return NULL;
    l->mesh = mesh;
    l->channel = channel;
    l->fd = fd;
    l->target = target;
    l->since_ns = clock_now_ns();
    list_init(&l->link);
    list_append(&mesh->links, &l->link);
    mesh->n_links++;
    mesh->n_strangers++;
    return l;
}

static void on_connected(evutil_socket_t fd, short what, void *ctx)
{
    struct mesh_link *l = ctx;
    int error = 0;
    socklen_t len = sizeof error;

    event_free(l->connecting);
    l->connecting = NULL;
    if (what & EV_TIMEOUT)
        error = ETIMEDOUT;
    else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        error = errno;
    if (error) {
        connect_failed(l->target, error);
        link_close(l, strerror(error), CLOSE_OWN);
    } else {
        link_begin(l);
    }
}

static struct addrinfo *numeric_address(const char *host, uint32_t port)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                             .ai_socktype = SOCK_STREAM};
    struct addrinfo *info;
    char service[16];

    snprintf(service, sizeof service, "%u", port);
    return getaddrinfo(host, service, &hints, &info) == 0 ? info : NULL;
}

static void target_connect(struct mesh_target *t, const struct addrinfo *to)
{
    struct mesh *mesh = t->mesh;
    const struct config_channel *ch = channel_config(mesh, t->channel);
    struct addrinfo *from = numeric_address(ch->address, 0);
    struct timeval limit = {.tv_sec = (time_t)(CONNECT_LIMIT_NS / CLOCK_NS_PER_S)};

    FD_AUTO fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* From the channel's own address, so that the link is really on its network. */
    if (fd < 0 || !from || from->ai_family != to->ai_family ||
        bind(fd, from->ai_addr, from->ai_addrlen) < 0 ||
        (connect(fd, to->ai_addr, to->ai_addrlen) < 0 && errno != EINPROGRESS)) {
        int error = from && from->ai_family == to->ai_family ? errno : EAFNOSUPPORT;
        complain(t, error == EAFNOSUPPORT ? "is of another address family than the channel"
                                          : strerror(error));
        connect_failed(t, error);
        target_failed(t);
        if (from)
            freeaddrinfo(from);
        return;
    }
    freeaddrinfo(from);
    struct mesh_link *l = link_new(mesh, t->channel, fd, t);
    if (!l)
        return;
    fd_steal(&fd);
    t->current = l;
    snprintf(l->remote, sizeof l->remote, "%.48s:%u", t->host, t->port);
    l->connecting = event_new(mesh->node->base, l->fd, EV_WRITE, on_connected, l);
    if (!l->connecting || event_add(l->connecting, &limit) < 0)
        link_close(l, "out of memory", CLOSE_OWN);
}

/* ---- targets ---- */

static struct mesh_target *target_add(struct mesh *mesh, uint32_t channel, const char *host,
                                      uint32_t port)
{
    list_foreach(it, &mesh->targets) {
        struct mesh_target *t = list_entry(it, struct mesh_target, link);
        if (t->channel == channel && t->port == port && strcmp(t->host, host) == 0)
            return t;
    }
    struct mesh_target *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->mesh = mesh;
    t->channel = channel;
    snprintf(t->host, sizeof t->host, "%s", host);
    t->port = port;
    list_init(&t->link);
    list_append(&mesh->targets, &t->link);
    return t;
}

static void target_free(struct mesh_target *t)
{
    list_remove(&t->link);
    if (t->lookup) {
        /* glibc's thread may still hold it: leave it if it cannot be cancelled. */
        if (gai_cancel(t->lookup) != EAI_NOTCANCELED) {
            if (t->lookup->ar_result)
                freeaddrinfo(t->lookup->ar_result);
            free(t->lookup);
        }
    }
    free(t);
}

void mesh_learn(struct mesh *mesh, uint32_t channel, uint32_t node_id, const char *host,
                uint32_t port)
{
    struct mesh_target *t = target_add(mesh, channel, host, port);

    if (!t || t->node_id == node_id)
        return;
    if (t->node_id == 0 && !t->seed && node_id < mesh->self.node_id)
        /* The smaller id connects; the larger one only when nothing came, since perhaps only it
         * can. */
        t->next_try_ns = clock_now_ns() + 4 * mesh->node->config.reconnect_ns;
    t->node_id = node_id;
}

/* A seed that is a name: resolved without holding up the loop. */
static void target_resolve(struct mesh_target *t)
{
    static const struct addrinfo hints = {.ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};

    if (!t->lookup) {
        t->lookup = calloc(1, sizeof *t->lookup);
        if (!t->lookup)
            return;
        t->lookup->ar_name = t->host;
        t->lookup->ar_request = &hints;
        if (getaddrinfo_a(GAI_NOWAIT, &t->lookup, 1, NULL) != 0) {
            free(t->lookup);
            t->lookup = NULL;
            target_failed(t);
        }
        return;
    }
    int rc = gai_error(t->lookup);
    if (rc == EAI_INPROGRESS)
        return;
    struct addrinfo *info = rc == 0 ? t->lookup->ar_result : NULL;
    free(t->lookup);
    t->lookup = NULL;
    if (!info) {
        complain(t, gai_strerror(rc));
        target_failed(t);
        return;
    }
    for (struct addrinfo *a = info; a; a = a->ai_next) {
        bool v6 = strchr(channel_config(t->mesh, t->channel)->address, ':') != NULL;
        if (a->ai_family != (v6 ? AF_INET6 : AF_INET))
            continue;
        if (v6)
            ((struct sockaddr_in6 *)(void *)a->ai_addr)->sin6_port = htons((uint16_t)t->port);
        else
            ((struct sockaddr_in *)(void *)a->ai_addr)->sin_port = htons((uint16_t)t->port);
        target_connect(t, a);
        break;
    }
    freeaddrinfo(info);
}

static void target_run(struct mesh_target *t, uint64_t now_ns)
{
    const struct mesh *mesh = t->mesh;

    if (t->ourselves || t->current || now_ns < t->next_try_ns)
        return;
    if (t->node_id && mesh_find(mesh, t->node_id, channel_config(mesh, t->channel)->network))
        return;
    if (mesh->n_strangers >= MAX_STRANGERS)
        return;
    struct addrinfo *info = numeric_address(t->host, t->port);
    if (!info) {
        target_resolve(t);
        return;
    }
    target_connect(t, info);
    freeaddrinfo(info);
}

/* "host", "host:port", "[v6]:port", separated by commas or spaces. */
static void add_seeds(struct mesh *mesh, uint32_t channel)
{
    const struct config_channel *ch = channel_config(mesh, channel);
    char seeds[CONFIG_SEEDS_BYTES];
    char *save = NULL;

    snprintf(seeds, sizeof seeds, "%s", ch->seeds);
    for (char *s = strtok_r(seeds, ", \t", &save); s; s = strtok_r(NULL, ", \t", &save)) {
        uint32_t port = (uint32_t)ch->port;
        char *colon = strrchr(s, ':');
        char *host = s;
        if (s[0] == '[') {
            host = s + 1;
            char *close = strchr(s, ']');
            if (close) {
                *close = '\0';
                colon = close[1] == ':' ? close + 1 : NULL;
            }
        } else if (colon && strchr(s, ':') != colon) {
            colon = NULL; /* a bare IPv6 address */
        }
        if (colon) {
            *colon = '\0';
            port = (uint32_t)strtoul(colon + 1, NULL, 10);
        }
        if (port == 0 || port > 65535 || strcmp(host, ch->address) == 0)
            continue;
        struct mesh_target *t = target_add(mesh, channel, host, port);
        if (t)
            t->seed = true;
    }
}

/* ---- listening ---- */

static void on_accept(evutil_socket_t listen_fd, short what, void *ctx)
{
    struct mesh_listener *listener = ctx;
    struct mesh *mesh = listener->mesh;

    (void)what;
    for (int i = 0; i < 16; i++) {
        struct sockaddr_storage from;
        socklen_t len = sizeof from;
        char host[NI_MAXHOST] = "?", service[NI_MAXSERV] = "?";
        int fd = accept4(listen_fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        struct mesh_link *l =
            mesh->n_strangers < MAX_STRANGERS ? link_new(mesh, listener->channel, fd, NULL) : NULL;
        if (!l) {
            close(fd);
            continue;
        }
        getnameinfo((struct sockaddr *)&from, len, host, sizeof host, service, sizeof service,
                    NI_NUMERICHOST | NI_NUMERICSERV);
        snprintf(l->remote, sizeof l->remote, "%.48s:%.8s", host, service);
        link_begin(l);
    }
}

static int listen_on(struct mesh *mesh, uint32_t channel)
{
    const struct config_channel *ch = channel_config(mesh, channel);
    struct mesh_listener *listener = &mesh->listeners[channel];
    struct addrinfo *info = numeric_address(ch->address, (uint32_t)ch->port);
    int one = 1;

    if (!info)
        return -EINVAL;
    FD_AUTO fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int rc = 0;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) < 0 ||
        bind(fd, info->ai_addr, info->ai_addrlen) < 0 || listen(fd, 128) < 0) {
        rc = -errno;
        log_error("channel %s: cannot listen on %s port %llu: %s", ch->name, ch->address,
                  (unsigned long long)ch->port, strerror(errno));
    }
    freeaddrinfo(info);
    if (rc < 0)
        return rc;
    listener->event = event_new(mesh->node->base, fd, EV_READ | EV_PERSIST, on_accept, listener);
    if (!listener->event || event_add(listener->event, NULL) < 0)
        return -ENOMEM;
    listener->mesh = mesh;
    listener->channel = channel;
    listener->fd = fd_steal(&fd);
    return 0;
}

static void set_intervals(struct mesh *mesh)
{
    const struct config *c = &mesh->node->config;
    uint64_t idle_ns =
        c->idle_heartbeat_ns > c->heartbeat_ns ? c->idle_heartbeat_ns : c->heartbeat_ns;
    uint64_t idle_dead_ns =
        idle_ns * IDLE_HEARTBEATS > c->dead_after_ns ? idle_ns * IDLE_HEARTBEATS : c->dead_after_ns;

    mesh->self.heartbeat_ns = mesh->busy ? c->heartbeat_ns : idle_ns;
    mesh->self.dead_after_ns = mesh->busy ? c->dead_after_ns : idle_dead_ns;
    mesh->self.handshake_ns = c->handshake_ns;
}

void mesh_set_busy(struct mesh *mesh, bool busy)
{
    if (mesh->busy == busy)
        return;
    mesh->busy = busy;
    if (busy) {
        mesh->self.changed_ns = clock_now_ns();
        /* The first heartbeat of the short interval is due. */
        event_active(mesh->timer, EV_READ, 0);
    }
    set_intervals(mesh);
}

void mesh_reloaded(struct mesh *mesh)
{
    uint64_t before_ns = mesh->self.dead_after_ns;

    set_intervals(mesh);
    if (mesh->self.dead_after_ns < before_ns)
        mesh->self.changed_ns = clock_now_ns();
    if (mesh->node->config.n_channels > 0)
        event_active(mesh->timer, EV_READ, 0);
}

static void on_timer(evutil_socket_t fd, short what, void *ctx)
{
    struct mesh *mesh = ctx;
    uint64_t now_ns = clock_now_ns();

    (void)fd, (void)what;
    list_foreach_safe(it, &mesh->links) {
        struct mesh_link *l = list_entry(it, struct mesh_link, link);
        if (l->stream && peer_on_timer(&l->peer, now_ns) < 0)
            link_close(l, l->peer.reason, CLOSE_OWN);
    }
    list_foreach(it, &mesh->targets)
        target_run(list_entry(it, struct mesh_target, link), now_ns);
    cluster_tick(mesh->node->cluster, now_ns);
    mesh->rearm = false;
    arm_timer(mesh, now_ns);
}

int mesh_new(struct node *node, struct mesh **ret_mesh)
{
    struct mesh *mesh = calloc(1, sizeof *mesh);
    const struct config *c = &node->config;
    int rc = -ENOMEM;

    if (!mesh)
        return -ENOMEM;
    mesh->node = node;
    list_init(&mesh->links);
    list_init(&mesh->targets);
    for (int i = 0; i < CONFIG_MAX_CHANNELS; i++)
        mesh->listeners[i].fd = -1;
    mesh->timer = evtimer_new(node->base, on_timer, mesh);
    if (!mesh->timer)
        goto fail;
    mesh->self = (struct peer_self){.node = c->name,
                                    .node_id = node->id,
                                    .epoch = node->epoch,
                                    .packet_bytes = (uint32_t)c->packet_bytes,
                                    .key = &mesh->key};
    set_intervals(mesh);
    if (c->n_channels > 0) {
        rc = auth_load_key(c->key_file, &mesh->key);
        if (rc < 0)
            goto fail;
    }
    for (uint32_t ch = 0; ch < (uint32_t)c->n_channels; ch++) {
        rc = listen_on(mesh, ch);
        if (rc < 0)
            goto fail;
        add_seeds(mesh, ch);
    }
    if (c->n_channels > 0)
        event_active(mesh->timer, EV_TIMEOUT, 0);
    *ret_mesh = mesh;
    return 0;
fail:
    mesh_free(mesh);
    return rc;
}

void mesh_free(struct mesh *mesh)
{
    if (!mesh)
        return;
    list_foreach_safe(it, &mesh->links)
        link_free(list_entry(it, struct mesh_link, link), false);
    list_foreach_safe(it, &mesh->targets)
        target_free(list_entry(it, struct mesh_target, link));
    for (int i = 0; i < CONFIG_MAX_CHANNELS; i++) {
        if (mesh->listeners[i].event)
            event_free(mesh->listeners[i].event);
        fd_closep(&mesh->listeners[i].fd);
    }
    if (mesh->timer)
        event_free(mesh->timer);
    free(mesh);
}
