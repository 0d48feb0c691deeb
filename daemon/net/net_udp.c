/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The native UDP driver: a socket, a clock and a timer around an endpoint (udp/udp_end.h), which
 * knows how packets become datagrams and how a lost one is repaired. Packets overtake one another
 * when a fragment of one is lost; otherwise they come once and in order, unless nothing at all is
 * heard of a peer for two seconds: then everything on its way to it is given back as failed.
 *
 * A poll that finds nothing costs one system call. What a channel sends between two polls leaves in
 * one call, but for the first packet, which leaves at once.
 */
#include "daemon/net/net_udp.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/net/address.h"
#include "daemon/net/block.h"
#include "daemon/net/udp/udp_end.h"
#include "daemon/net/udp/udp_socket.h"

/* A full socket is tried again after this. */
#define FULL_NS (50 * CLOCK_NS_PER_US)
/* Packets held for receiving: one of the slower kind of peers may open UDP_PACKETS. */
#define RECEIVES 512u

struct net {
    const struct arena *arena;
    struct udp_end *end;
    struct udp_socket *socket;
    int epoll_fd, timer_fd;
    uint64_t timer_ns; /* when the timer rings; 0: it does not */
    uint64_t full_ns;  /* the socket was full: nothing before */
    uint32_t max_bytes;
    bool sent; /* something left since the last poll */
    /* For tests: datagrams that are lost on arrival, in 2^-32. */
    uint64_t lose;
    struct rand rand;
    struct sockaddr_storage own;
    socklen_t own_len;
    char text[64];
    struct udp_out outs[UDP_SOCKET_OUTS];
};

static void udp_close(struct net *net)
{
    if (!net)
        return;
    if (net->timer_fd >= 0)
        close(net->timer_fd);
    if (net->epoll_fd >= 0)
        close(net->epoll_fd);
    udp_socket_close(net->socket);
    udp_end_free(net->end);
    free(net);
}

/* Binds, and knows its own address. 0, or negative errno and what failed. */
static int udp_bind(struct net *net, const struct net_config *config, const char **ret_what)
{
    int rc = address_to_bind(config->address, config->interface, config->port, &net->own,
                             &net->own_len, ret_what);
    if (rc < 0)
        return rc;
    rc = udp_socket_open((struct sockaddr *)&net->own, net->own_len, &net->socket, ret_what);
    if (rc < 0)
        return rc;
    *ret_what = "own address";
    net->own_len = sizeof net->own;
    memset(&net->own, 0, sizeof net->own);
    if (getsockname(udp_socket_fd(net->socket), (struct sockaddr *)&net->own, &net->own_len) < 0)
        return -errno;
    address_text(&net->own, net->text, sizeof net->text);
    return 0;
}

/* The endpoint and what a sleeping channel waits on. */
static int udp_start(struct net *net, const struct net_config *config, const char **ret_what)
{
    struct epoll_event ev = {.events = EPOLLIN};
    struct udp_end_config ec = {
        .arena = net->arena,
        .max_bytes = config->max_bytes,
        .mtu_least = udp_end_mtu_least(config->max_bytes),
        .mtu_most = udp_socket_mtu((struct sockaddr *)&net->own),
        .room = udp_socket_room(net->socket),
        .encrypts = config->protect == SEAL_ENCRYPT,
    };

    *ret_what = "random numbers";
    if (getrandom(&ec.seed, sizeof ec.seed, 0) != (ssize_t)sizeof ec.seed)
        return -EIO;
    *ret_what = "size of packets for the interface's MTU";
    if (ec.mtu_most < ec.mtu_least)
        return -EMSGSIZE;
    *ret_what = "memory";
    int rc = udp_end_new(&ec, &net->end);
    if (rc < 0)
        return rc;
    *ret_what = "epoll";
    net->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    net->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (net->epoll_fd < 0 || net->timer_fd < 0 ||
        epoll_ctl(net->epoll_fd, EPOLL_CTL_ADD, udp_socket_fd(net->socket), &ev) < 0 ||
        epoll_ctl(net->epoll_fd, EPOLL_CTL_ADD, net->timer_fd, &ev) < 0)
        return -errno;
    return 0;
}

/* Of the faults to inject (net_fault checks them), those below packets. */
static void udp_set_fault(struct net *net, const char *options)
{
    const char *lose = options ? strstr(options, "lose=") : NULL;
    const char *seed = options ? strstr(options, "seed=") : NULL;

    net->lose = lose ? (uint64_t)(strtod(lose + 5, NULL) * 4294967296.0) : 0;
    net->rand.state = seed ? strtoull(seed + 5, NULL, 10) : 1;
}

static int udp_open(const struct net_config *config, const struct arena *arena,
                    struct net **ret_net)
{
    struct net *net = calloc(1, sizeof *net);
    const char *what = "memory";

    if (!net)
        return -ENOMEM;
    net->arena = arena;
    net->max_bytes = config->max_bytes;
    net->epoll_fd = net->timer_fd = -1;
    udp_set_fault(net, config->options);
    int rc = udp_bind(net, config, &what);
    if (rc == 0)
        rc = udp_start(net, config, &what);
    if (rc < 0) {
        const char *interface = config->interface ? config->interface : "loopback";
        log_error("udp on %s: %s: %s", config->address ? config->address : interface, what,
                  strerror(-rc));
        udp_close(net);
        return rc;
    }
    log_debug("udp %s: segmentation %s, joining %s", net->text,
              udp_socket_has_gso(net->socket) ? "on" : "off",
              udp_socket_has_gro(net->socket) ? "on" : "off");
    *ret_net = net;
    return 0;
}

static void udp_info(const struct net *net, struct net_info *ret_info)
{
    bool gso = udp_socket_has_gso(net->socket), gro = udp_socket_has_gro(net->socket);

    *ret_info = (struct net_info){
        .caps = NET_CAP_WAIT | NET_CAP_RENEW | NET_CAP_SEALS | NET_CAP_CLASSES,
        .max_datagram = net->max_bytes,
        .n_receives = RECEIVES,
        .driver = "udp",
        .provider = "udp",
        .bulk_bytes = UDP_PACKETS / 2 * net->max_bytes,
    };
    snprintf(ret_info->features, sizeof ret_info->features, "%s%s%s", gso ? "gso" : "",
             gso && gro ? " " : "", gro ? "gro" : "");
}

static int udp_address(struct net *net, void *buf, size_t *len)
{
    if (*len < net->own_len)
        return -ENOSPC;
    memcpy(buf, &net->own, net->own_len);
    *len = net->own_len;
    return 0;
}

static int udp_peer_add(struct net *net, const void *address, size_t len, struct seal *seal,
                        uint32_t *ret_peer)
{
    const struct sockaddr *to = address;

    if (len != net->own_len || len < sizeof to->sa_family ||
        memcmp(address, &net->own, sizeof to->sa_family) != 0)
        return -EAFNOSUPPORT;
    return udp_end_peer_add(net->end, address, (uint32_t)len, seal, clock_now_ns(), ret_peer);
}

static void udp_peer_remove(struct net *net, uint32_t peer)
{
    udp_end_peer_remove(net->end, peer);
}

/* Lets leave what may, of one peer or of all. */
static void udp_flush(struct net *net, uint32_t peer, uint64_t now_ns)
{
    uint32_t n = UDP_SOCKET_OUTS;

    while (n == UDP_SOCKET_OUTS && now_ns >= net->full_ns) {
        n = udp_end_output(net->end, peer, now_ns, net->outs, UDP_SOCKET_OUTS);
        uint32_t sent =
            n == 0 ? 0 : udp_socket_send(net->socket, net->end, net->arena, net->outs, n);
        net->sent |= n > 0;
        for (uint32_t i = n; i > sent; i--)
            udp_end_unsent(net->end, &net->outs[i - 1]);
        if (sent < n)
            net->full_ns = now_ns + FULL_NS;
    }
}

static int udp_send(struct net *net, uint32_t peer, uint32_t block, uint32_t len)
{
    uint64_t now_ns = clock_now_ns();
    int rc = udp_end_send(net->end, peer, block, len, now_ns);

    if (rc >= 0 && !net->sent)
        udp_flush(net, peer, now_ns);
    return rc;
}

static uint32_t udp_moving(struct net *net, uint32_t peer)
{
    return udp_end_moving(net->end, peer);
}

static void udp_path(const struct net *net, uint32_t peer, struct net_path *ret_path)
{
    udp_end_path(net->end, peer, ret_path);
}

static void udp_guard(const struct net *net, struct net_guard *ret_guard)
{
    struct udp_end_count count;

    udp_end_count(net->end, &count);
    *ret_guard = count.guard;
}

static int udp_post(struct net *net, uint32_t block)
{
    return udp_end_post(net->end, block);
}

/* Datagrams that were read, as long as there is room for what they may complete. */
static void udp_take(struct net *net, struct net_event *events, int max, uint64_t now_ns, int *n)
{
    const struct sockaddr_storage *from;
    uint8_t *data;
    socklen_t from_len;
    uint32_t len;

    while (*n < max && (data = udp_socket_next(net->socket, &len, &from, &from_len)) != NULL)
        if (net->lose == 0 || rand_next(&net->rand) >> 32 >= net->lose)
            *n += udp_end_input(net->end, from, (uint32_t)from_len, data, len, now_ns, &events[*n]);
}

static int udp_poll(struct net *net, struct net_event *events, int max)
{
    uint64_t now_ns = clock_now_ns();
    int n = 0;

    udp_flush(net, UINT32_MAX, now_ns);
    if (!udp_socket_has_next(net->socket))
        udp_socket_receive(net->socket);
    if (udp_socket_has_next(net->socket)) {
        udp_take(net, events, max, now_ns, &n);
        udp_flush(net, UINT32_MAX, now_ns);
    }
    net->sent = false;
    return n + udp_end_report(net->end, events + n, max - n);
}

static int udp_wait_fd(struct net *net)
{
    return net->epoll_fd;
}

/* The timer rings at this time; UINT64_MAX: not at all. */
static void udp_set_timer(struct net *net, uint64_t due_ns)
{
    struct itimerspec at = {.it_value = {.tv_sec = 0}};
    uint64_t ns = due_ns == UINT64_MAX ? 0 : due_ns;

    if (ns == net->timer_ns)
        return;
    at.it_value.tv_sec = (time_t)(ns / CLOCK_NS_PER_S);
    at.it_value.tv_nsec = (long)(ns % CLOCK_NS_PER_S);
    if (timerfd_settime(net->timer_fd, TFD_TIMER_ABSTIME, &at, NULL) == 0)
        net->timer_ns = ns;
}

static int udp_wait_ready(struct net *net)
{
    struct epoll_event ready;
    uint64_t now_ns = clock_now_ns();

    udp_flush(net, UINT32_MAX, now_ns);
    uint64_t due = udp_end_due(net->end);
    if (due != UINT64_MAX && due < net->full_ns)
        due = net->full_ns;
    if (due <= now_ns || udp_end_has_report(net->end) || udp_socket_has_next(net->socket))
        return -EAGAIN;
    udp_set_timer(net, due);
    return epoll_wait(net->epoll_fd, &ready, 1, 0) > 0 ? -EAGAIN : 0;
}

const struct net_driver net_udp = {
    .name = "udp",
    .open = udp_open,
    .close = udp_close,
    .info = udp_info,
    .address = udp_address,
    .peer_add = udp_peer_add,
    .peer_remove = udp_peer_remove,
    .send = udp_send,
    .moving = udp_moving,
    .path = udp_path,
    .guard = udp_guard,
    .post = udp_post,
    .poll = udp_poll,
    .wait_fd = udp_wait_fd,
    .wait_ready = udp_wait_ready,
};
