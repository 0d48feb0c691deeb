/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections as TCP gives them: in order, whole, or ended. What is on its way over a cut waits
 * until it is healed; the end of a process is told by its kernel, that of a host by nobody until it
 * is back and answers with a reset.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/cluster/cluster.h"
#include "daemon/cluster/mesh.h"
#include "tests/simcontrol/world.h"

#define CONNECT_LIMIT_NS (2 * CLOCK_NS_PER_S)
/* The kernel ends a connection whose other end it has not reached for so long. */
#define KEEPALIVE_NS (25 * CLOCK_NS_PER_S)

struct cut {
    struct list link;
    uint32_t a, b, network;
    bool data; /* of the channels' packets alone, from a to b */
};

struct frame {
    struct list link;
    uint16_t type;
    uint32_t len;
    uint64_t ready_ns; /* not before: the network's delay */
    uint8_t body[];
};

/* One direction: what the other end has not read yet. */
struct wire_end {
    struct connection *connection;
    struct host *host;
    uint32_t incarnation;   /* of the host's daemon that holds this end */
    struct mesh_link *link; /* NULL: closed, or not there yet */
    struct list frames;     /* on the way to this end */
    bool closing;           /* after the frames comes the end */
    bool reset; /* the host that held the other end knows nothing of this connection any more */
};

struct connection {
    struct list link;
    struct world *world;
    uint32_t network;
    bool established;
    bool failed; /* the attempt is over */
    uint64_t asked_ns;
    uint64_t shut_ns;        /* nothing passes since then; 0: it does */
    struct wire_end ends[2]; /* who asked, who was asked */
    uint64_t wake_ns;        /* of the event that counts; UINT64_MAX: none */
    uint32_t n_events;
};

static void connection_run(struct world *w, void *object, uint64_t value);

bool wire_open(const struct world *w, uint32_t a, uint32_t b, uint32_t network)
{
    int ca = wire_channel(&w->hosts[a], network), cb = wire_channel(&w->hosts[b], network);

    if (ca < 0 || cb < 0 || w->hosts[a].unplugged[ca] || w->hosts[b].unplugged[cb])
        return false;
    list_foreach(it, &w->cuts) {
        const struct cut *cut = list_entry(it, struct cut, link);
        if (cut->network == network && !cut->data &&
            ((cut->a == a && cut->b == b) || (cut->a == b && cut->b == a)))
            return false;
    }
    return true;
}

bool wire_data_open(const struct world *w, uint32_t a, uint32_t b, uint32_t network)
{
    list_foreach(it, &w->cuts) {
        const struct cut *cut = list_entry(it, struct cut, link);
        if (cut->network == network && cut->data && cut->a == a && cut->b == b)
            return false;
    }
    return true;
}

int wire_channel(const struct host *host, uint32_t network)
{
    for (uint32_t ch = 0; ch < host->n_channels; ch++)
        if (host->networks[ch] == network)
            return (int)ch;
    return -1;
}

static bool connection_open(const struct connection *c)
{
    return wire_open(c->world, c->ends[0].host->idx, c->ends[1].host->idx, c->network) &&
           c->ends[0].host->powered && c->ends[1].host->powered;
}

static uint64_t connection_delay(const struct connection *c)
{
    const struct network *n = &c->world->networks[c->network];

    return n->delay_ns + world_draw(c->world, n->jitter_ns + 1);
}

static void connection_wake(struct connection *c, uint64_t when_ns)
{
    if (when_ns >= c->wake_ns)
        return;
    c->n_events++;
    c->wake_ns = when_ns;
    world_at(c->world, when_ns, NULL, connection_run, c, when_ns);
}

static void end_clear(struct wire_end *end)
{
    list_foreach_safe(it, &end->frames) {
        list_remove(it);
        free(list_entry(it, struct frame, link));
    }
}

static void connection_free(struct connection *c)
{
    list_remove(&c->link);
    end_clear(&c->ends[0]);
    end_clear(&c->ends[1]);
    free(c);
}

static bool end_alive(const struct wire_end *end)
{
    return end->link && end->host->daemon && end->host->incarnation == end->incarnation;
}

/* Whether this end's daemon does nothing now. */
static bool end_stalled(const struct connection *c, const struct wire_end *end)
{
    return end->host->stalled_ns > c->world->now_ns;
}

static struct mesh *end_mesh(const struct wire_end *end)
{
    return cluster_mesh(daemon_cluster(end->host->daemon));
}

/* The answer to an attempt to connect. */
static void connection_answer(struct connection *c)
{
    struct world *w = c->world;
    struct wire_end *asker = &c->ends[0], *asked = &c->ends[1];
    int error = 0;

    if (!connection_open(c)) {
        if (w->now_ns < c->asked_ns + CONNECT_LIMIT_NS) {
            connection_wake(c, c->asked_ns + CONNECT_LIMIT_NS);
            return;
        }
        error = ETIMEDOUT;
    } else if (!asked->host->daemon) {
        error = ECONNREFUSED;
    }
    if (!end_alive(asker)) {
        c->failed = true;
        return;
    }
    if (error) {
        c->failed = true;
        struct mesh_link *link = asker->link;
        mesh_on_connected(link, error, w->now_ns);
        return;
    }
    c->established = true;
    asked->incarnation = asked->host->incarnation;
    char remote[64];
    snprintf(remote, sizeof remote, "%u.%u:1", c->network, asker->host->idx);
    int channel = wire_channel(asked->host, c->network);
    asked->link = mesh_on_accept(end_mesh(asked), (uint32_t)channel, remote, asked, w->now_ns);
    if (!asked->link)
        asker->closing = true;
    mesh_on_connected(asker->link, 0, w->now_ns);
}

/* Hands an end what is due. */
static void end_read(struct connection *c, struct wire_end *end)
{
    struct world *w = c->world;

    while (end_alive(end) && !list_empty(&end->frames)) {
        struct frame *f = list_entry(list_first(&end->frames), struct frame, link);
        if (f->ready_ns > w->now_ns)
            return;
        list_remove(&f->link);
        mesh_on_frame(end->link, f->type, f->body, f->len, w->now_ns);
        free(f);
    }
    if (end_alive(end) && end->closing && list_empty(&end->frames)) {
        struct mesh_link *link = end->link;
        mesh_on_closed(link, MESH_CLOSE_PEER, end->reset ? "reset" : "closed by the other side",
                       w->now_ns);
    }
    if (!end_alive(end))
        end_clear(end);
}

/* Neither end has reached the other for too long. When the rest of it is due. */
static uint64_t connection_expire(struct connection *c)
{
    uint64_t next_ns = UINT64_MAX;

    for (int i = 0; i < 2; i++) {
        struct wire_end *end = &c->ends[i];
        if (!end_alive(end))
            continue;
        if (end_stalled(c, end))
            next_ns = end->host->stalled_ns < next_ns ? end->host->stalled_ns : next_ns;
        else
            mesh_on_closed(end->link, MESH_CLOSE_OWN, "Connection timed out", c->world->now_ns);
    }
    return next_ns;
}

/* Answers an attempt, or hands both ends what is due. When something is due next; UINT64_MAX:
 * nothing is on its way. */
static uint64_t connection_serve(struct connection *c)
{
    uint64_t next_ns = UINT64_MAX;

    if (!c->established && !c->failed)
        connection_answer(c);
    else if (c->established && connection_open(c))
        for (int i = 0; i < 2; i++) {
            struct wire_end *end = &c->ends[i];
            if (end_stalled(c, end)) {
                next_ns = end->host->stalled_ns < next_ns ? end->host->stalled_ns : next_ns;
                continue;
            }
            end_read(c, end);
            if (end_alive(end) && !list_empty(&end->frames)) {
                const struct frame *f = list_entry(list_first(&end->frames), struct frame, link);
                next_ns = f->ready_ns < next_ns ? f->ready_ns : next_ns;
            }
        }
    else if (c->established && c->shut_ns != 0)
        next_ns = c->world->now_ns >= c->shut_ns + KEEPALIVE_NS ? connection_expire(c)
                                                                : c->shut_ns + KEEPALIVE_NS;
    return next_ns;
}

static void connection_run(struct world *w, void *object, uint64_t value)
{
    struct connection *c = object;
    uint64_t next_ns = UINT64_MAX;

    c->n_events--;
    /* Another number: an earlier event came first. */
    if (value == c->wake_ns) {
        c->wake_ns = UINT64_MAX;
        next_ns = connection_serve(c);
    }
    if (next_ns != UINT64_MAX)
        connection_wake(c, next_ns > w->now_ns ? next_ns : w->now_ns + 1);
    if (c->n_events == 0 && !end_alive(&c->ends[0]) && !end_alive(&c->ends[1]))
        connection_free(c);
}

/* ---- what the mesh asks for ---- */

static struct wire_end *end_of(const struct mesh_link *link)
{
    return link->socket;
}

static int wire_connect(void *ctx, struct mesh_link *link, const char *host, uint32_t port,
                        const char **ret_why)
{
    struct host *from = ctx;
    struct world *w = daemon_world(from->daemon);
    unsigned network, idx;
    struct connection *c = calloc(1, sizeof *c);

    (void)port;
    if (!c || sscanf(host, "%u.%u", &network, &idx) != 2 || idx >= w->n_hosts) {
        free(c);
        *ret_why = "no such address";
        return -EHOSTUNREACH;
    }
    c->world = w;
    c->network = network;
    c->asked_ns = w->now_ns;
    c->wake_ns = UINT64_MAX;
    list_init(&c->link);
    list_append(&w->connections, &c->link);
    c->ends[0] = (struct wire_end){
        .connection = c, .host = from, .incarnation = from->incarnation, .link = link};
    c->ends[1] = (struct wire_end){.connection = c, .host = &w->hosts[idx]};
    list_init(&c->ends[0].frames);
    list_init(&c->ends[1].frames);
    link->socket = &c->ends[0];
    connection_wake(c, w->now_ns + 2 * connection_delay(c));
    return 0;
}

static int wire_send(void *ctx, struct mesh_link *link, uint16_t type, const void *body,
                     uint32_t len)
{
    struct wire_end *end = end_of(link);

    (void)ctx;
    if (!end)
        return -ENOTCONN;
    struct connection *c = end->connection;
    struct wire_end *other = end == &c->ends[0] ? &c->ends[1] : &c->ends[0];
    struct frame *f = malloc(sizeof *f + len);
    if (!f)
        abort();
    f->type = type;
    f->len = len;
    f->ready_ns = c->world->now_ns + connection_delay(c);
    if (len > 0)
        memcpy(f->body, body, len);
    if (!list_empty(&other->frames)) {
        const struct frame *last = list_entry(other->frames.prev, struct frame, link);
        if (last->ready_ns > f->ready_ns)
            f->ready_ns = last->ready_ns;
    }
    list_init(&f->link);
    list_append(&other->frames, &f->link);
    connection_wake(c, f->ready_ns);
    return 0;
}

static void wire_trust(void *ctx, struct mesh_link *link)
{
    (void)ctx, (void)link;
}

/* One end is over; the other one learns it after what is on its way. */
static void end_close(struct wire_end *end)
{
    struct connection *c = end->connection;
    struct wire_end *other = end == &c->ends[0] ? &c->ends[1] : &c->ends[0];

    end->link = NULL;
    other->closing = true;
    end_clear(end);
    connection_wake(c, c->world->now_ns + connection_delay(c));
}

static void wire_close(void *ctx, struct mesh_link *link, bool finish)
{
    struct wire_end *end = end_of(link);

    (void)ctx, (void)finish;
    if (end)
        end_close(end);
}

static void wire_on_timer(struct world *w, void *object, uint64_t value)
{
    struct host *host = object;
    struct daemon_timer *timer = daemon_timer(host->daemon);

    if (value != timer->event_ns)
        return;
    timer->event_ns = UINT64_MAX;
    if (w->now_ns < timer->due_ns) {
        timer->event_ns = timer->due_ns;
        world_at(w, timer->due_ns, host, wire_on_timer, host, timer->due_ns);
        return;
    }
    mesh_on_timer(cluster_mesh(daemon_cluster(host->daemon)), w->now_ns);
}

static void wire_timer(void *ctx, uint64_t when_ns)
{
    struct host *host = ctx;
    struct daemon_timer *timer = daemon_timer(host->daemon);

    timer->due_ns = when_ns;
    if (when_ns >= timer->event_ns)
        return;
    timer->event_ns = when_ns;
    world_at(daemon_world(host->daemon), when_ns, host, wire_on_timer, host, when_ns);
}

const struct mesh_socket_ops wire_socket_ops = {.connect = wire_connect,
                                                .send = wire_send,
                                                .trust = wire_trust,
                                                .close = wire_close,
                                                .timer = wire_timer};

/* ---- troubles ---- */

/* What passes and what does not has changed. */
static void wire_changed(struct world *w)
{
    list_foreach(it, &w->connections) {
        struct connection *c = list_entry(it, struct connection, link);
        if (connection_open(c))
            c->shut_ns = 0;
        else if (c->shut_ns == 0)
            c->shut_ns = w->now_ns;
        if (c->established || c->failed)
            connection_wake(c, w->now_ns + connection_delay(c));
    }
}

static void wire_add_cut(struct world *w, struct cut made)
{
    struct cut *cut = malloc(sizeof *cut);

    if (!cut)
        abort();
    *cut = made;
    list_init(&cut->link);
    list_append(&w->cuts, &cut->link);
    wire_changed(w);
}

void wire_cut(struct world *w, uint32_t a, uint32_t b, uint32_t network)
{
    wire_add_cut(w, (struct cut){.a = a, .b = b, .network = network});
}

void wire_data_cut(struct world *w, uint32_t a, uint32_t b, uint32_t network)
{
    wire_add_cut(w, (struct cut){.a = a, .b = b, .network = network, .data = true});
    daemon_data_changed(w, a, b, network);
}

static void cut_remove(struct world *w, struct cut *cut)
{
    struct cut old = *cut;

    list_remove(&cut->link);
    free(cut);
    if (old.data)
        daemon_data_changed(w, old.a, old.b, old.network);
}

void wire_heal(struct world *w, uint32_t a, uint32_t b, uint32_t network)
{
    list_foreach_safe(it, &w->cuts) {
        struct cut *cut = list_entry(it, struct cut, link);
        if (cut->a == a && cut->b == b && cut->network == network)
            cut_remove(w, cut);
    }
    wire_changed(w);
}

void wire_heal_all(struct world *w)
{
    list_foreach_safe(it, &w->cuts)
        cut_remove(w, list_entry(it, struct cut, link));
    for (uint32_t i = 0; i < w->n_hosts; i++)
        memset(w->hosts[i].unplugged, 0, sizeof w->hosts[i].unplugged);
    wire_changed(w);
}

void wire_unplug(struct world *w, struct host *host, uint32_t channel, bool unplugged)
{
    host->unplugged[channel] = unplugged;
    wire_changed(w);
}

void wire_power_lost(struct world *w, struct host *host)
{
    host->powered = false;
    list_foreach(it, &w->connections) {
        struct connection *c = list_entry(it, struct connection, link);
        for (int i = 0; i < 2; i++) {
            if (c->ends[i].host != host)
                continue;
            /* What had not left, and what was not read, is lost; the other end hears nothing. */
            end_clear(&c->ends[0]);
            end_clear(&c->ends[1]);
            c->ends[1 - i].reset = true;
        }
    }
    wire_changed(w);
}

void wire_power_back(struct world *w, struct host *host)
{
    host->powered = true;
    wire_changed(w);
}

void wire_deinit(struct world *w)
{
    list_foreach_safe(it, &w->connections)
        connection_free(list_entry(it, struct connection, link));
    list_foreach_safe(it, &w->cuts) {
        list_remove(it);
        free(list_entry(it, struct cut, link));
    }
}
