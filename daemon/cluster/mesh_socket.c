/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/cluster/mesh_socket.h"

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
#include "base/log.h"
#include "daemon/cluster/stream.h"
#include "proto/frame.h"

#define QUEUE_BYTES      (64u << 20)
#define CONNECT_LIMIT_NS (2 * CLOCK_NS_PER_S)
#define ACCEPT_BATCH     16
/* A connection over which no heartbeats go is looked after by the kernel: a host that does not
 * answer ends it after 25 s. */
#define KEEPALIVE_IDLE_S     10
#define KEEPALIVE_INTERVAL_S 5
#define KEEPALIVE_COUNT      3
#define KEEPALIVE_TIMEOUT_MS 25000

/* One connection. */
struct mesh_socket {
    struct mesh_sockets *all;
    struct mesh_link *link; /* NULL: not made yet */
    struct stream *stream;
    struct event *connecting; /* while connect(2) is under way */
    int fd;                   /* likewise */
};

struct mesh_listener {
    struct mesh_sockets *all;
    struct event *event;
    int fd;
    uint32_t channel;
};

/* Name resolution under way, by glibc's own thread. */
struct mesh_lookup {
    struct list link;
    char host[128];
    struct gaicb request;
};

struct mesh_sockets {
    struct event_base *base;
    const struct config *config;
    struct mesh *mesh;
    struct event *timer;
    struct list lookups;
    struct mesh_listener listeners[CONFIG_MAX_CHANNELS];
};

/* ---- one connection ---- */

static int socket_on_frame(void *ctx, uint16_t type, const uint8_t *body, uint32_t len)
{
    struct mesh_socket *s = ctx;

    mesh_on_frame(s->link, type, body, len, clock_now_ns());
    return 0;
}

static void socket_on_closed(void *ctx, int error)
{
    struct mesh_socket *s = ctx;

    mesh_on_closed(s->link,
                   error == 0 || error == ECONNRESET || error == EPIPE ? MESH_CLOSE_PEER
                                                                       : MESH_CLOSE_OWN,
                   error ? strerror(error) : "closed by the other side", clock_now_ns());
}

static const struct stream_ops socket_stream_ops = {.frame = socket_on_frame,
                                                    .closed = socket_on_closed};

static struct mesh_socket *socket_new(struct mesh_sockets *all, int fd)
{
    struct mesh_socket *s = calloc(1, sizeof *s);

    if (s) {
        s->all = all;
        s->fd = fd;
    }
    return s;
}

static void socket_free(struct mesh_socket *s, bool finish)
{
    if (s->connecting)
        event_free(s->connecting);
    fd_closep(&s->fd);
    if (finish && s->stream)
        stream_finish(s->stream);
    else
        stream_free(s->stream);
    free(s);
}

/* 0 or -ENOMEM. */
static int socket_open_stream(struct mesh_socket *s)
{
    static const struct {
        int option, value;
    } keepalive[] = {{TCP_KEEPIDLE, KEEPALIVE_IDLE_S},
                     {TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S},
                     {TCP_KEEPCNT, KEEPALIVE_COUNT},
                     {TCP_USER_TIMEOUT, KEEPALIVE_TIMEOUT_MS}};
    int one = 1;

    setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(s->fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    for (size_t i = 0; i < sizeof keepalive / sizeof keepalive[0]; i++)
        setsockopt(s->fd, IPPROTO_TCP, keepalive[i].option, &keepalive[i].value, sizeof(int));
    s->stream = stream_new(s->all->base, s->fd, &socket_stream_ops, s, MESH_STRANGER_FRAME_BYTES,
                           QUEUE_BYTES);
    if (!s->stream)
        return -ENOMEM;
    s->fd = -1;
    return 0;
}

static void socket_on_connected(evutil_socket_t fd, short what, void *ctx)
{
    struct mesh_socket *s = ctx;
    int error = 0;
    socklen_t len = sizeof error;

    event_free(s->connecting);
    s->connecting = NULL;
    if (what & EV_TIMEOUT)
        error = ETIMEDOUT;
    else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        error = errno;
    if (error == 0)
        error = -socket_open_stream(s);
    mesh_on_connected(s->link, error, clock_now_ns());
}

/* ---- connecting ---- */

static struct addrinfo *sockets_numeric_address(const char *host, uint32_t port)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                             .ai_socktype = SOCK_STREAM};
    struct addrinfo *info;
    char service[16];

    snprintf(service, sizeof service, "%u", port);
    return getaddrinfo(host, service, &hints, &info) == 0 ? info : NULL;
}

/* Begins to connect from the channel's own address, so that the link is really on its network. */
static int sockets_connect_to(struct mesh_sockets *all, struct mesh_link *link,
                              const struct addrinfo *to, const char **ret_why)
{
    struct addrinfo *from =
        sockets_numeric_address(all->config->channels[link->channel].address, 0);
    struct timeval limit = {.tv_sec = (time_t)(CONNECT_LIMIT_NS / CLOCK_NS_PER_S)};
    int rc = 0;

    if (!from || from->ai_family != to->ai_family) {
        if (from)
            freeaddrinfo(from);
        *ret_why = "is of another address family than the channel";
        return -EAFNOSUPPORT;
    }
    FD_AUTO fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, from->ai_addr, from->ai_addrlen) < 0 ||
        (connect(fd, to->ai_addr, to->ai_addrlen) < 0 && errno != EINPROGRESS)) {
        rc = -errno;
        *ret_why = strerror(errno);
    }
    freeaddrinfo(from);
    if (rc < 0)
        return rc;
    struct mesh_socket *s = socket_new(all, fd);
    if (!s) {
        *ret_why = "out of memory";
        return -ENOMEM;
    }
    fd_steal(&fd);
    s->link = link;
    s->connecting = event_new(all->base, s->fd, EV_WRITE, socket_on_connected, s);
    if (!s->connecting || event_add(s->connecting, &limit) < 0) {
        socket_free(s, false);
        *ret_why = "out of memory";
        return -ENOMEM;
    }
    link->socket = s;
    return 0;
}

static struct mesh_lookup *lookup_find(struct mesh_sockets *all, const char *host)
{
    list_foreach(it, &all->lookups) {
        struct mesh_lookup *lookup = list_entry(it, struct mesh_lookup, link);
        if (strcmp(lookup->host, host) == 0)
            return lookup;
    }
    return NULL;
}

/* 0 or negative errno. */
static int lookup_start(struct mesh_sockets *all, const char *host)
{
    static const struct addrinfo hints = {.ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    struct mesh_lookup *lookup = calloc(1, sizeof *lookup);
    struct gaicb *request = lookup ? &lookup->request : NULL;

    if (!lookup)
        return -ENOMEM;
    snprintf(lookup->host, sizeof lookup->host, "%s", host);
    lookup->request.ar_name = lookup->host;
    lookup->request.ar_request = &hints;
    if (getaddrinfo_a(GAI_NOWAIT, &request, 1, NULL) != 0) {
        free(lookup);
        return -EAGAIN;
    }
    list_init(&lookup->link);
    list_append(&all->lookups, &lookup->link);
    return 0;
}

static void lookup_free(struct mesh_lookup *lookup)
{
    list_remove(&lookup->link);
    /* glibc's thread may still hold it: leave it if it cannot be cancelled. */
    if (gai_error(&lookup->request) == EAI_INPROGRESS &&
        gai_cancel(&lookup->request) == EAI_NOTCANCELED)
        return;
    if (lookup->request.ar_result)
        freeaddrinfo(lookup->request.ar_result);
    free(lookup);
}

/* A seed that is a name: resolved without holding up the loop. */
static int sockets_connect_by_name(struct mesh_sockets *all, struct mesh_link *link,
                                   const char *host, uint32_t port, const char **ret_why)
{
    struct mesh_lookup *lookup = lookup_find(all, host);

    if (!lookup) {
        int rc = lookup_start(all, host);
        *ret_why = "its name cannot be looked up";
        return rc < 0 ? rc : MESH_E_RESOLVING;
    }
    int error = gai_error(&lookup->request);
    if (error == EAI_INPROGRESS)
        return MESH_E_RESOLVING;
    bool v6 = strchr(all->config->channels[link->channel].address, ':') != NULL;
    int rc = -EHOSTUNREACH;
    *ret_why = error ? gai_strerror(error) : "has no address of the channel's family";
    for (struct addrinfo *a = error ? NULL : lookup->request.ar_result; a; a = a->ai_next) {
        if (a->ai_family != (v6 ? AF_INET6 : AF_INET))
            continue;
        if (v6)
            ((struct sockaddr_in6 *)(void *)a->ai_addr)->sin6_port = htons((uint16_t)port);
        else
            ((struct sockaddr_in *)(void *)a->ai_addr)->sin_port = htons((uint16_t)port);
        rc = sockets_connect_to(all, link, a, ret_why);
        break;
    }
    lookup_free(lookup);
    return rc;
}

static int sockets_connect(void *ctx, struct mesh_link *link, const char *host, uint32_t port,
                           const char **ret_why)
{
    struct addrinfo *info = sockets_numeric_address(host, port);

    if (!info)
        return sockets_connect_by_name(ctx, link, host, port, ret_why);
    int rc = sockets_connect_to(ctx, link, info, ret_why);
    freeaddrinfo(info);
    return rc;
}

/* ---- the other calls of the mesh ---- */

static int sockets_send(void *ctx, struct mesh_link *link, uint16_t type, const void *body,
                        uint32_t len)
{
    struct mesh_socket *s = link->socket;

    (void)ctx;
    return s && s->stream ? stream_send(s->stream, type, body, len) : -ENOTCONN;
}

static void sockets_trust(void *ctx, struct mesh_link *link)
{
    struct mesh_socket *s = link->socket;

    (void)ctx;
    stream_set_max_frame(s->stream, FRAME_MAX_BYTES);
}

static void sockets_close(void *ctx, struct mesh_link *link, bool finish)
{
    (void)ctx;
    if (link->socket)
        socket_free(link->socket, finish);
}

static void sockets_timer(void *ctx, uint64_t when_ns)
{
    struct mesh_sockets *all = ctx;
    uint64_t now_ns = clock_now_ns(), left_ns = when_ns > now_ns ? when_ns - now_ns : 0;
    struct timeval tv = {.tv_sec = (time_t)(left_ns / CLOCK_NS_PER_S),
                         .tv_usec = (suseconds_t)(left_ns % CLOCK_NS_PER_S / 1000)};

    evtimer_add(all->timer, &tv);
}

const struct mesh_socket_ops mesh_socket_ops = {.connect = sockets_connect,
                                                .send = sockets_send,
                                                .trust = sockets_trust,
                                                .close = sockets_close,
                                                .timer = sockets_timer};

static void sockets_on_timer(evutil_socket_t fd, short what, void *ctx)
{
    struct mesh_sockets *all = ctx;

    (void)fd, (void)what;
    mesh_on_timer(all->mesh, clock_now_ns());
}

/* ---- listening ---- */

static void listener_take(struct mesh_listener *listener, int fd, const struct sockaddr *from,
                          socklen_t from_len)
{
    char host[NI_MAXHOST] = "?", service[NI_MAXSERV] = "?", remote[64];
    struct mesh_socket *s = socket_new(listener->all, fd);

    if (!s) {
        close(fd);
        return;
    }
    getnameinfo(from, from_len, host, sizeof host, service, sizeof service,
                NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(remote, sizeof remote, "%.48s:%.8s", host, service);
    if (socket_open_stream(s) == 0)
        s->link = mesh_on_accept(listener->all->mesh, listener->channel, remote, s, clock_now_ns());
    if (!s->link)
        socket_free(s, false);
}

static void listener_on_accept(evutil_socket_t listen_fd, short what, void *ctx)
{
    (void)what;
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        struct sockaddr_storage from;
        socklen_t len = sizeof from;
        int fd = accept4(listen_fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        listener_take(ctx, fd, (struct sockaddr *)&from, len);
    }
}

static int listener_open(struct mesh_sockets *all, uint32_t channel)
{
    const struct config_channel *ch = &all->config->channels[channel];
    struct mesh_listener *listener = &all->listeners[channel];
    struct addrinfo *info = sockets_numeric_address(ch->address, (uint32_t)ch->port);
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
    listener->event = event_new(all->base, fd, EV_READ | EV_PERSIST, listener_on_accept, listener);
    if (!listener->event || event_add(listener->event, NULL) < 0)
        return -ENOMEM;
    listener->all = all;
    listener->channel = channel;
    listener->fd = fd_steal(&fd);
    return 0;
}

/* ---- all of them ---- */

struct mesh_sockets *mesh_sockets_new(struct event_base *base, const struct config *config)
{
    struct mesh_sockets *all = calloc(1, sizeof *all);

    if (!all)
        return NULL;
    all->base = base;
    all->config = config;
    list_init(&all->lookups);
    for (int i = 0; i < CONFIG_MAX_CHANNELS; i++)
        all->listeners[i].fd = -1;
    all->timer = evtimer_new(base, sockets_on_timer, all);
    if (!all->timer) {
        free(all);
        return NULL;
    }
    return all;
}

int mesh_sockets_start(struct mesh_sockets *all, struct mesh *mesh)
{
    int rc = 0;

    all->mesh = mesh;
    for (uint32_t ch = 0; rc == 0 && ch < (uint32_t)all->config->n_channels; ch++)
        rc = listener_open(all, ch);
    if (rc == 0)
        mesh_start(mesh, clock_now_ns());
    return rc;
}

void mesh_sockets_free(struct mesh_sockets *all)
{
    if (!all)
        return;
    list_foreach_safe(it, &all->lookups)
        lookup_free(list_entry(it, struct mesh_lookup, link));
    for (int i = 0; i < CONFIG_MAX_CHANNELS; i++) {
        if (all->listeners[i].event)
            event_free(all->listeners[i].event);
        fd_closep(&all->listeners[i].fd);
    }
    event_free(all->timer);
    free(all);
}
