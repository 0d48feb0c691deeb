/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The native TCP driver: the endpoint, and the order in which its connections are read. A turn of
 * the channel costs one system call when nothing is there: sockets on which packets come are read
 * without asking first, all others are looked at now and then, through the epoll set that a
 * sleeping channel waits on.
 *
 * Several packets that a channel sends between two polls to one peer leave in one call: the first
 * at once, the others with the next poll. A broken connection gives its packets back as failed and
 * is made again; what was lost in it is for the flows above to send again.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/net/address.h"
#include "daemon/net/net_tcp.h"
#include "daemon/net/tcp/tcp_conn.h"
#include "daemon/net/tcp/tcp_connect.h"
#include "daemon/net/tcp/tcp_hello.h"
#include "daemon/net/tcp/tcp_peer.h"
#include "daemon/net/tcp/tcp_stream.h"

#define PEERS_MAX (8192u * WIRE_CLASSES)
/* Up to so many sockets are read without asking; beyond, one look at all of them is cheaper. */
#define ACTIVE_MAX 6u
/* Polls without a byte after which a socket is not read without asking any more. */
#define QUIET_POLLS 2000u
/* Of several sockets those are read at every poll from which something came within so many, which
 * is as long as an exchange of some packets takes; of the others one call tells as much as a read
 * of each. */
#define HOT_POLLS 64u
/* Polls between two looks at all sockets while some are read without asking. */
#define SKIP_POLLS 16u
#define READY_MAX  16
/* Of the events of a poll so many are left for bulk. */
#define BULK_EVENTS(max) ((max) / 4)
/* The peer with the higher address waits so long for the other one to connect. */
#define COURTESY_NS (100 * CLOCK_NS_PER_MS)

static void tcp_peer_flush(struct net *net, struct tcp_peer *p)
{
    int rc = tcp_stream_flush(net, p);

    if (rc < 0)
        tcp_conn_fail(net, p->conn, rc);
    else if (p->n_queued == 0)
        list_remove(&p->dirty);
}

static void tcp_close(struct net *net)
{
    if (!net)
        return;
    list_foreach_safe(it, &net->conns)
        tcp_conn_close(net, list_entry(it, struct tcp_conn, node));
    list_foreach_safe(it, &net->graves) {
        list_remove(it);
        free(list_entry(it, struct tcp_conn, node));
    }
    if (net->listen_fd >= 0)
        close(net->listen_fd);
    if (net->epoll_fd >= 0)
        close(net->epoll_fd);
    for (int cls = 0; cls < WIRE_CLASSES; cls++)
        free(net->stages[cls].bytes);
    if (net->sealed)
        munmap(net->sealed, net->arena->n_bytes);
    free(net->slots);
    free(net->posted);
    free(net->peers);
    free(net);
}

/* Binds and listens. 0, or negative errno and what failed. */
static int tcp_open_socket(struct net *net, const struct net_config *config, const char **ret_what)
{
    struct sockaddr_storage own;
    socklen_t len;

    int rc =
        address_to_bind(config->address, config->interface, config->port, &own, &len, ret_what);
    if (rc < 0)
        return rc;
    *ret_what = "socket";
    net->listen_fd = socket(own.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (net->listen_fd < 0)
        return -errno;
    *ret_what = "bind";
    /* A fixed port may have connections of the daemon before this one that linger. */
    const int one = 1;
    if (config->port != 0 &&
        setsockopt(net->listen_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) < 0)
        return -errno;
    if (bind(net->listen_fd, (struct sockaddr *)&own, len) < 0)
        return -errno;
    *ret_what = "listen";
    len = sizeof own;
    if (listen(net->listen_fd, SOMAXCONN) < 0 ||
        getsockname(net->listen_fd, (struct sockaddr *)&own, &len) < 0)
        return -errno;
    *ret_what = "epoll";
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = NULL};
    if (epoll_ctl(net->epoll_fd, EPOLL_CTL_ADD, net->listen_fd, &ev) < 0)
        return -errno;
    memcpy(net->address, &own, len);
    net->address_len = (uint16_t)len;
    address_text(&own, net->text, sizeof net->text);
    return 0;
}

static int tcp_open(const struct net_config *config, const struct arena *arena,
                    struct net **ret_net)
{
    struct net *net = calloc(1, sizeof *net);
    const char *what = "memory";
    int rc = -ENOMEM;

    if (!net)
        return -ENOMEM;
    struct list *lists[] = {&net->conns, &net->active, &net->dirty, &net->graves};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        list_init(lists[i]);
    net->arena = arena;
    net->max_bytes = config->max_bytes;
    net->listen_fd = -1;
    net->n_polls = 1;
    net->connect_ns = UINT64_MAX;
    net->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    net->slots = calloc(arena->n_blocks, sizeof *net->slots);
    net->posted = calloc(arena->n_blocks, sizeof *net->posted);
    net->peers = calloc(PEERS_MAX, sizeof *net->peers);
    bool staged = true;
    for (int cls = 0; cls < WIRE_CLASSES; cls++) {
        net->stages[cls].bytes = malloc(tcp_stream_stage_bytes(config->max_bytes));
        staged &= net->stages[cls].bytes != NULL;
    }
    if (config->protect == SEAL_ENCRYPT) {
        void *map = mmap(NULL, arena->n_bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        net->sealed = map == MAP_FAILED ? NULL : map;
        staged &= net->sealed != NULL;
    }
    if (net->epoll_fd < 0)
        rc = -errno;
    else if (net->slots && net->posted && net->peers && staged)
        rc = tcp_open_socket(net, config, &what);
    if (rc < 0) {
        const char *interface = config->interface ? config->interface : "loopback";
        log_error("tcp on %s: %s: %s", config->address ? config->address : interface, what,
                  strerror(-rc));
        tcp_close(net);
        return rc;
    }
    *ret_net = net;
    return 0;
}

static void tcp_info(const struct net *net, struct net_info *ret_info)
{
    *ret_info = (struct net_info){
        .caps = NET_CAP_WAIT | NET_CAP_RENEW | NET_CAP_SEALS | NET_CAP_CLASSES,
        .max_datagram = net->max_bytes,
        /* Few, so that they stay in the cache. */
        .n_receives = 96,
        .driver = "tcp",
        .provider = "tcp",
    };
}

static int tcp_address(struct net *net, void *buf, size_t *len)
{
    if (*len < net->address_len)
        return -ENOSPC;
    memcpy(buf, net->address, net->address_len);
    *len = net->address_len;
    return 0;
}

/* Half of a peer: that of one class. */
static void tcp_class_add(struct net *net, uint32_t idx, const void *address, size_t len,
                          struct seal *seal)
{
    struct tcp_peer *p = &net->peers[idx];

    *p = (struct tcp_peer){.used = true,
                           .seal = seal,
                           .cls = (uint8_t)(idx % WIRE_CLASSES),
                           .address_len = (uint16_t)len};
    list_init(&p->dirty);
    memcpy(p->address, address, len);
    tcp_peer_await(net, p, memcmp(net->address, address, len) < 0 ? 0 : COURTESY_NS);
    tcp_hello_meet(net, idx);
}

static int tcp_peer_add(struct net *net, const void *address, size_t len, struct seal *seal,
                        uint32_t *ret_peer)
{
    const struct sockaddr *to = address, *own = (const struct sockaddr *)(void *)net->address;
    uint32_t idx = 0;

    if (len != net->address_len || len < sizeof to->sa_family || to->sa_family != own->sa_family)
        return -EAFNOSUPPORT;
    while (idx < net->n_peers && net->peers[idx].used)
        idx += WIRE_CLASSES;
    if (idx == PEERS_MAX)
        return -ENOSPC;
    if (idx == net->n_peers)
        net->n_peers += WIRE_CLASSES;
    for (uint32_t cls = 0; cls < WIRE_CLASSES; cls++)
        tcp_class_add(net, idx + cls, address, len, seal);
    *ret_peer = idx / WIRE_CLASSES;
    return 0;
}

static void tcp_class_remove(struct net *net, uint32_t peer)
{
    struct tcp_peer *p = &net->peers[peer];

    if (!p->used)
        return;
    tcp_peer_fail_queue(net, p, -ECONNRESET);
    list_foreach_safe(it, &net->conns) {
        struct tcp_conn *c = list_entry(it, struct tcp_conn, node);
        if (c->peer == peer || c->claims == peer)
            tcp_conn_close(net, c);
    }
    net->n_waiting -= p->waiting;
    net->n_down -= p->down != 0;
    *p = (struct tcp_peer){0};
}

static void tcp_peer_remove(struct net *net, uint32_t peer)
{
    for (uint32_t cls = 0; cls < WIRE_CLASSES; cls++)
        tcp_class_remove(net, peer * WIRE_CLASSES + cls);
}

static int tcp_send(struct net *net, uint32_t peer, uint32_t block, uint32_t len)
{
    struct tcp_peer *p = &net->peers[peer * WIRE_CLASSES + net->arena->held[block].cls];
    struct tcp_slot *s = &net->slots[block];
    struct tcp_conn *c = p->conn;
    long went = 0;

    s->head = (struct tcp_head){.magic = htole32(TCP_FRAME_MAGIC), .len = htole32(len)};
    s->peer = peer;
    s->next = BLOCK_NONE;
    s->sealed = false;
    if (p->n_queued == 0 && c && c->proved && c->out_at == c->out_len &&
        c->sent_poll != net->n_polls) {
        went = tcp_stream_send(net, c, block);
        if (went < 0) {
            tcp_conn_fail(net, c, (int)went);
            return (int)went;
        }
        c->sent_poll = net->n_polls;
        /* The answer to bulk comes over the other stream. */
        if (c->cls == WIRE_QUICK || list_empty(&c->active))
            c->n_quiet = 0;
        tcp_conn_activate(net, c);
        if ((size_t)went == sizeof s->head + len)
            return NET_E_DONE;
    }
    if (p->n_queued++ == 0) {
        p->head = block;
        p->head_off = (uint32_t)went;
        list_append(&net->dirty, &p->dirty);
    } else {
        net->slots[p->tail].next = block;
    }
    p->tail = block;
    return 0;
}

static uint32_t tcp_moving(struct net *net, uint32_t peer)
{
    uint32_t moving = 0;

    for (uint32_t cls = 0; cls < WIRE_CLASSES; cls++) {
        struct tcp_peer *p = &net->peers[peer * WIRE_CLASSES + cls];
        if (p->conn && !p->conn->connecting && tcp_stream_moving(p->conn, &p->confirmed_bytes))
            moving |= 1u << cls;
    }
    return moving;
}

static int tcp_post(struct net *net, uint32_t block)
{
    net->posted[net->n_posted++] = block;
    return 0;
}

static void tcp_read_conn(struct net *net, struct tcp_conn *c, struct tcp_events *events)
{
    if (c->dead || net->stages[c->cls].conn || (c->greeted && c->claims == TCP_PEER_NONE))
        return;
    long n = tcp_stream_read(net, c, events);
    if (n < 0) {
        tcp_conn_fail(net, c, (int)n);
    } else if (n > 0 && c->proved) {
        c->n_quiet = 0;
        tcp_conn_activate(net, c);
    } else if (++c->n_quiet > QUIET_POLLS) {
        tcp_conn_deactivate(net, c);
    }
}

/* The epoll set has told this of a connection; NULL: of the listening socket. */
static void tcp_on_ready(struct net *net, struct tcp_conn *c, uint32_t what,
                         struct tcp_events *events)
{
    if (!c) {
        tcp_connect_accept(net);
        return;
    }
    if (c->dead)
        return;
    if (c->connecting) {
        tcp_connect_done(net, c);
        return;
    }
    if (!c->proved && c->out_at < c->out_len)
        tcp_hello_speak(net, c);
    else if (c->epoll_set & EPOLLOUT)
        tcp_conn_ask_for(net, c, EPOLLIN);
    if (c->dead)
        return;
    if (c->epoll_set == 0)
        tcp_conn_fail(net, c, -ECONNRESET); /* hung up before anybody knew it */
    else if (what & ~(uint32_t)EPOLLOUT)
        tcp_read_conn(net, c, events);
}

/* Looks at all sockets. */
static void tcp_look_round(struct net *net, struct tcp_events *events)
{
    const int max = events->max;
    struct epoll_event ready[READY_MAX];
    int n = epoll_wait(net->epoll_fd, ready, READY_MAX, 0);

    net->n_skipped = 0;
    for (int cls = 0; cls < WIRE_CLASSES; cls++) {
        events->max = cls == WIRE_QUICK ? max - BULK_EVENTS(max) : max;
        for (int i = 0; i < n; i++) {
            struct tcp_conn *c = ready[i].data.ptr;
            if (c ? c->cls == cls : cls == WIRE_QUICK)
                tcp_on_ready(net, c, ready[i].events, events);
        }
    }
    if (net->n_unproved > 0)
        tcp_hello_expire(net);
    if (net->n_waiting > 0)
        tcp_connect_waiting(net);
}

/* What was left over of this class, then the sockets that are read without asking. */
static void tcp_read_class(struct net *net, enum wire_class cls, struct tcp_events *events)
{
    struct tcp_conn *rest = net->stages[cls].conn;

    if (rest) {
        int rc = tcp_stream_rest(net, cls, events);
        if (rc < 0)
            tcp_conn_fail(net, rest, rc);
    }
    if (net->n_active > ACTIVE_MAX)
        return;
    list_foreach_safe(it, &net->active) {
        struct tcp_conn *c = list_entry(it, struct tcp_conn, active);
        if (c->cls != cls)
            continue;
        if (net->n_active == 1 || c->n_quiet < HOT_POLLS)
            tcp_read_conn(net, c, events);
        else if (net->n_cold++, ++c->n_quiet > QUIET_POLLS)
            tcp_conn_deactivate(net, c);
    }
}

/* Is it time to look at all sockets? While some bring something the others can wait for a poll. */
static bool tcp_look_is_due(struct net *net)
{
    if (net->n_active == 0 || net->n_active > ACTIVE_MAX || net->n_cold >= net->n_active)
        return true;
    return ++net->n_skipped >= (net->n_cold > 0 ? 2 : SKIP_POLLS);
}

static int tcp_poll(struct net *net, struct net_event *at, int max)
{
    struct tcp_events events = {.at = at, .max = max};

    net->n_polls++;
    list_foreach_safe(it, &net->dirty) {
        struct tcp_peer *p = list_entry(it, struct tcp_peer, dirty);
        if (p->conn && p->conn->proved)
            tcp_peer_flush(net, p);
    }
    net->n_cold = 0;
    events.max = max - BULK_EVENTS(max);
    tcp_read_class(net, WIRE_QUICK, &events);
    events.max = max;
    tcp_read_class(net, WIRE_BULK, &events);
    if (tcp_look_is_due(net))
        tcp_look_round(net, &events);
    list_foreach_safe(it, &net->graves) {
        list_remove(it);
        free(list_entry(it, struct tcp_conn, node));
    }
    tcp_peer_report(net, &events);
    return events.n;
}

static void tcp_guard(const struct net *net, struct net_guard *ret_guard)
{
    *ret_guard = net->guard;
}

static int tcp_wait_fd(struct net *net)
{
    return net->epoll_fd;
}

static int tcp_wait_ready(struct net *net)
{
    struct epoll_event ready;

    list_foreach_safe(it, &net->dirty) {
        struct tcp_peer *p = list_entry(it, struct tcp_peer, dirty);
        if (!p->conn || !p->conn->proved)
            continue;
        tcp_peer_flush(net, p);
        if (p->conn && p->n_queued > 0)
            tcp_conn_ask_for(net, p->conn, EPOLLIN | EPOLLOUT);
    }
    if (net->n_done > 0 || net->n_down > 0 ||
        ((net->stages[WIRE_QUICK].conn || net->stages[WIRE_BULK].conn) && net->n_posted > 0))
        return -EAGAIN;
    /* Without a block to read into there is nothing to wake up for. */
    return net->n_posted > 0 && epoll_wait(net->epoll_fd, &ready, 1, 0) > 0 ? -EAGAIN : 0;
}

const struct net_driver net_tcp = {
    .name = "tcp",
    .open = tcp_open,
    .close = tcp_close,
    .info = tcp_info,
    .address = tcp_address,
    .peer_add = tcp_peer_add,
    .peer_remove = tcp_peer_remove,
    .send = tcp_send,
    .moving = tcp_moving,
    .post = tcp_post,
    .poll = tcp_poll,
    .guard = tcp_guard,
    .wait_fd = tcp_wait_fd,
    .wait_ready = tcp_wait_ready,
};
