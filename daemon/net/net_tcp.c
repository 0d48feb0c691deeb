/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The native TCP driver: the endpoint, its peers, and the connections to them. A turn of the
 * channel costs one system call when nothing is there: sockets on which packets come are read
 * without asking first, all others are looked at now and then, through the epoll set that a
 * sleeping channel waits on.
 *
 * Several packets that a channel sends between two polls to one peer leave in one call: the first
 * at once, the others with the next poll. A broken connection gives its packets back as failed and
 * is made again; what was lost in it is for the flows above to send again.
 */
#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/net/address.h"
#include "daemon/net/net_tcp.h"
#include "daemon/net/tcp.h"

#define PEERS_MAX (8192u * WIRE_CLASSES)
/* Connections whose other end nobody knows (yet), and how long they may stay so. */
#define STRANGERS_MAX      128u
#define STRANGERS_PER_HOST 32u
#define STRANGER_NS        (5 * CLOCK_NS_PER_S)
/* Connections taken in at one look: packets go on in between. */
#define ACCEPT_MAX 16u
/* The log has one line of what came and was refused in this time. */
#define COMPLAIN_NS (30 * CLOCK_NS_PER_S)
/* Up to so many sockets are read without asking; beyond, one look at all of them is cheaper. */
#define ACTIVE_MAX 6u
/* Polls without a byte after which a socket is not read without asking any more. */
#define QUIET_POLLS 2000u
/* Polls between two looks at all sockets while some are read without asking. */
#define SKIP_POLLS 16u
#define READY_MAX  16
/* Of the events of a poll so many are left for bulk. */
#define BULK_EVENTS(max) ((max) / 4)
/* The peer with the higher address waits so long for the other one to connect. */
#define COURTESY_NS    (100 * CLOCK_NS_PER_MS)
#define BACKOFF_MIN_MS 10u
#define BACKOFF_MAX_MS 1000u

static void tcp_ask_for(const struct net *net, struct tcp_conn *c, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = c};

    if (c->epoll_set != events && epoll_ctl(net->epoll_fd, EPOLL_CTL_MOD, c->fd, &ev) == 0)
        c->epoll_set = events;
}

static struct tcp_conn *tcp_conn_new(struct net *net, int fd, uint32_t peer, bool initiated)
{
    struct tcp_conn *c = calloc(1, sizeof *c);
    const int one = 1;

    if (!c)
        return NULL;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    *c = (struct tcp_conn){.fd = fd,
                           .peer = peer,
                           .claims = peer,
                           .connecting = initiated,
                           .initiated = initiated,
                           .since_ns = clock_coarse_ns(),
                           .block = BLOCK_NONE,
                           .epoll_set = initiated ? EPOLLIN | EPOLLOUT : EPOLLIN};
    struct epoll_event ev = {.events = c->epoll_set, .data.ptr = c};
    if (epoll_ctl(net->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0) {
        free(c);
        return NULL;
    }
    list_init(&c->active);
    list_append(&net->conns, &c->node);
    net->n_strangers += peer == TCP_PEER_NONE;
    net->n_unproved++;
    if (initiated) {
        c->cls = net->peers[peer].cls;
        tcp_proof_hello(net, c);
    }
    return c;
}

static void tcp_deactivate(struct net *net, struct tcp_conn *c)
{
    if (list_empty(&c->active))
        return;
    list_remove(&c->active);
    net->n_active--;
}

static void tcp_activate(struct net *net, struct tcp_conn *c)
{
    c->n_quiet = 0;
    if (!list_empty(&c->active) || c->dead)
        return;
    if (c->cls == WIRE_QUICK)
        list_prepend(&net->active, &c->active);
    else
        list_append(&net->active, &c->active);
    net->n_active++;
}

/* The peer is without a connection: when it may have one again. */
static void tcp_await(struct net *net, struct tcp_peer *p, uint64_t after_ns)
{
    p->conn = NULL;
    p->retry_ns = clock_coarse_ns() + after_ns;
    if (p->retry_ns < net->connect_ns)
        net->connect_ns = p->retry_ns;
    if (!p->waiting) {
        p->waiting = true;
        net->n_waiting++;
    }
}

static void tcp_fail_queue(struct net *net, struct tcp_peer *p, int error)
{
    while (p->n_queued > 0) {
        uint32_t block = p->head;
        p->head = net->slots[block].next;
        p->n_queued--;
        tcp_stream_done(net, block, error);
    }
    p->head_off = 0;
    list_remove(&p->dirty);
}

static void tcp_conn_close(struct net *net, struct tcp_conn *c)
{
    if (c->dead)
        return;
    c->dead = true;
    close(c->fd);
    tcp_deactivate(net, c);
    if (c->block != BLOCK_NONE)
        net->posted[net->n_posted++] = c->block;
    c->block = BLOCK_NONE;
    for (int cls = 0; cls < WIRE_CLASSES; cls++)
        if (net->stages[cls].conn == c)
            net->stages[cls].conn = NULL;
    net->n_strangers -= c->peer == TCP_PEER_NONE;
    net->n_unproved -= !c->proved;
    seal_key_deinit(&c->in);
    seal_key_deinit(&c->out_key);
    /* Events of this poll may still point at it. */
    list_remove(&c->node);
    list_append(&net->graves, &c->node);
}

/* Another connection of the peer that can be sent on. */
static struct tcp_conn *tcp_other_conn(const struct net *net, uint32_t peer)
{
    list_foreach(it, &net->conns) {
        struct tcp_conn *c = list_entry(it, struct tcp_conn, node);
        if (c->peer == peer && c->proved)
            return c;
    }
    return NULL;
}

/* The connection broke. */
static void tcp_conn_fail(struct net *net, struct tcp_conn *c, int error)
{
    uint32_t idx = c->peer;

    if (c->dead)
        return;
    tcp_conn_close(net, c);
    struct tcp_peer *p = idx == TCP_PEER_NONE ? NULL : &net->peers[idx];
    if (!p || p->conn != c)
        return;
    tcp_fail_queue(net, p, error);
    p->conn = tcp_other_conn(net, idx);
    if (p->conn)
        return;
    if (p->down == 0)
        net->n_down++;
    p->down = error;
    p->backoff_ms = p->backoff_ms == 0                   ? BACKOFF_MIN_MS
                    : p->backoff_ms * 2 > BACKOFF_MAX_MS ? BACKOFF_MAX_MS
                                                         : p->backoff_ms * 2;
    tcp_await(net, p, p->backoff_ms * CLOCK_NS_PER_MS);
}

static void tcp_use_conn(struct net *net, struct tcp_peer *p, struct tcp_conn *c)
{
    p->conn = c;
    if (p->waiting) {
        p->waiting = false;
        net->n_waiting--;
    }
}

static void tcp_peer_flush(struct net *net, struct tcp_peer *p)
{
    int rc = tcp_stream_flush(net, p);

    if (rc < 0)
        tcp_conn_fail(net, p->conn, rc);
    else if (p->n_queued == 0)
        list_remove(&p->dirty);
}

static int tcp_peer_connect(struct net *net, uint32_t idx)
{
    struct tcp_peer *p = &net->peers[idx];
    struct sockaddr_storage own, to;
    const int one = 1;

    memset(&own, 0, sizeof own);
    memset(&to, 0, sizeof to);
    memcpy(&own, net->address, net->address_len);
    memcpy(&to, p->address, p->address_len);
    int fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    /* From this network's address, whatever the routing table prefers. */
    if (own.ss_family == AF_INET)
        ((struct sockaddr_in *)(void *)&own)->sin_port = 0;
    else
        ((struct sockaddr_in6 *)(void *)&own)->sin6_port = 0;
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    int rc = 0;
    if (bind(fd, (struct sockaddr *)&own, net->address_len) < 0 ||
        (connect(fd, (struct sockaddr *)&to, p->address_len) < 0 && errno != EINPROGRESS))
        rc = -errno;
    struct tcp_conn *c = rc == 0 ? tcp_conn_new(net, fd, idx, true) : NULL;
    if (!c) {
        close(fd);
        return rc < 0 ? rc : -ENOMEM;
    }
    tcp_use_conn(net, p, c);
    return 0;
}

/* Sends hello and proof, as far as they are made. */
static void tcp_speak(struct net *net, struct tcp_conn *c)
{
    int rc = tcp_proof_flush(c);

    if (rc < 0)
        tcp_conn_fail(net, c, rc);
    else
        tcp_ask_for(net, c, c->out_at < c->out_len ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* The attempt to connect is over. */
static void tcp_on_connected(struct net *net, struct tcp_conn *c)
{
    int error = 0;
    socklen_t len = sizeof error;

    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        error = errno;
    if (error != 0) {
        tcp_conn_fail(net, c, -error);
        return;
    }
    c->connecting = false;
    tcp_speak(net, c);
}

/* Counts what is told about, and tells of the first one in a while. */
void tcp_complain(struct net *net, const struct tcp_conn *c, const char *what)
{
    uint64_t now_ns = clock_coarse_ns();
    char text[64] = "?";

    net->complained_of++;
    if (net->complained_ns != 0 && now_ns - net->complained_ns < COMPLAIN_NS)
        return;
    const void *from = c->initiated ? (const void *)net->peers[c->peer].address : &c->from;
    address_text(from, text, sizeof text);
    log_warn("tcp %s: %s, from or to %s%s (%llu such things since the start)", net->text, what,
             text, c->proved ? "" : ": connection closed", (unsigned long long)net->complained_of);
    net->complained_ns = now_ns;
}

/* The connection has proved to be with its peer. */
static void tcp_claim(struct net *net, struct tcp_conn *c)
{
    struct tcp_peer *p = &net->peers[c->claims];

    net->n_strangers -= c->peer == TCP_PEER_NONE;
    net->n_unproved--;
    c->proved = true;
    c->peer = c->claims;
    p->backoff_ms = 0;
    tcp_activate(net, c);
    if (!p->conn || p->conn == c || !p->conn->proved) {
        /* An attempt of our own goes on; what it becomes will only be read. */
        tcp_use_conn(net, p, c);
        tcp_peer_flush(net, p);
    }
}

/* Is this peer who says hello here? */
static bool tcp_is_from(const struct tcp_peer *p, const struct tcp_hello *hello)
{
    return p->used && le32toh(hello->cls) == p->cls &&
           le32toh(hello->address_len) == p->address_len &&
           memcmp(p->address, hello->address, p->address_len) == 0;
}

/* Somebody says that it is this peer: answers, and wants to see it proved. */
static int tcp_recognize(struct net *net, struct tcp_conn *c, uint32_t idx)
{
    c->claims = idx;
    c->cls = net->peers[idx].cls;
    if (!c->initiated)
        tcp_proof_hello(net, c);
    int rc = tcp_proof_answer(c, net->peers[idx].seal);
    if (rc < 0)
        return rc;
    /* Failing to send shows with the next event. */
    rc = tcp_proof_flush(c);
    tcp_ask_for(net, c, c->out_at < c->out_len ? EPOLLIN | EPOLLOUT : EPOLLIN);
    return rc;
}

int tcp_greeted(struct net *net, struct tcp_conn *c)
{
    uint32_t len = le32toh(c->hello.address_len), version = le32toh(c->hello.version);

    if (version != TCP_VERSION || len == 0 || len > sizeof c->hello.address) {
        tcp_complain(net, c, "another version of the packet stream");
        return -EPROTO;
    }
    if (le32toh(c->hello.cls) >= WIRE_CLASSES) {
        tcp_complain(net, c, "there is no such class of packets");
        return -EPROTO;
    }
    c->greeted = true;
    if (c->initiated) {
        if (tcp_is_from(&net->peers[c->peer], &c->hello))
            return tcp_recognize(net, c, c->peer);
        tcp_complain(net, c, "somebody else answers at a peer's address");
        return -EPROTO;
    }
    if (!address_same_host(&c->from, c->hello.address, len)) {
        net->guard.strangers++;
        tcp_complain(net, c, "somebody names another host's address as its own");
        return -EACCES;
    }
    for (uint32_t i = 0; i < net->n_peers; i++) {
        if (tcp_is_from(&net->peers[i], &c->hello))
            return tcp_recognize(net, c, i);
    }
    /* It is not read until it is somebody. */
    tcp_ask_for(net, c, 0);
    return 0;
}

int tcp_proved(struct net *net, struct tcp_conn *c)
{
    int rc = tcp_proof_check(c, net->peers[c->claims].seal);

    if (rc < 0) {
        net->guard.strangers++;
        tcp_complain(net, c, "somebody names a peer's address and does not know its secret");
        return rc;
    }
    tcp_claim(net, c);
    return c->dead ? -ECONNRESET : 0;
}

/* Makes room for one more connection from this address: of those that are nobody yet the oldest one
 * goes, of the same address if it has its share. A peer proves itself within a round trip, so what
 * waits longest is not one. */
static void tcp_make_room(struct net *net, const struct sockaddr_storage *from)
{
    struct tcp_conn *oldest = NULL, *oldest_there = NULL;
    uint32_t n_there = 0;

    if (net->n_strangers == 0)
        return;
    list_foreach(it, &net->conns) {
        struct tcp_conn *c = list_entry(it, struct tcp_conn, node);
        if (c->peer != TCP_PEER_NONE)
            continue;
        oldest = oldest ? oldest : c;
        if (!address_same_host(&c->from, from, sizeof *from))
            continue;
        oldest_there = oldest_there ? oldest_there : c;
        n_there++;
    }
    struct tcp_conn *goes = n_there >= STRANGERS_PER_HOST       ? oldest_there
                            : net->n_strangers >= STRANGERS_MAX ? oldest
                                                                : NULL;
    if (!goes)
        return;
    net->guard.strangers++;
    tcp_complain(net, goes, "too many connections that do not say who they are");
    tcp_conn_close(net, goes);
}

static void tcp_accept_all(struct net *net)
{
    for (uint32_t i = 0; i < ACCEPT_MAX; i++) {
        struct sockaddr_storage from = {0};
        socklen_t len = sizeof from;
        int fd =
            accept4(net->listen_fd, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && errno == ECONNABORTED)
            continue;
        if (fd < 0)
            return;
        tcp_make_room(net, &from);
        struct tcp_conn *c = tcp_conn_new(net, fd, TCP_PEER_NONE, false);
        if (c)
            c->from = from;
        else
            close(fd);
    }
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
    socklen_t len = sizeof own;
    char text[64];
    const char *address = config->address;

    *ret_what = "address of the interface";
    if (!address && config->interface) {
        int rc = address_of_interface(config->interface, text, sizeof text);
        if (rc < 0)
            return rc;
        address = text;
    }
    *ret_what = "address";
    if (address_parse(address ? address : "127.0.0.1", &own, &len) < 0)
        return -EINVAL;
    *ret_what = "socket";
    net->listen_fd = socket(own.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (net->listen_fd < 0)
        return -errno;
    *ret_what = "bind";
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
    char port[8];
    if (getnameinfo((struct sockaddr *)&own, len, text, sizeof text, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        snprintf(net->text, sizeof net->text, "%.48s:%s", text, port);
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
    tcp_await(net, p, memcmp(net->address, address, len) < 0 ? 0 : COURTESY_NS);
    list_foreach_safe(it, &net->conns) {
        struct tcp_conn *c = list_entry(it, struct tcp_conn, node);
        if (c->claims == TCP_PEER_NONE && c->greeted && tcp_is_from(p, &c->hello) &&
            tcp_recognize(net, c, idx) < 0)
            tcp_conn_close(net, c);
    }
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
    tcp_fail_queue(net, p, -ECONNRESET);
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
        tcp_activate(net, c);
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

/* Peers without a connection whose time has come. */
static void tcp_connect_waiting(struct net *net)
{
    uint64_t now_ns = clock_coarse_ns();

    if (now_ns < net->connect_ns)
        return;
    net->connect_ns = UINT64_MAX;
    for (uint32_t i = 0; i < net->n_peers; i++) {
        struct tcp_peer *p = &net->peers[i];
        if (!p->used || !p->waiting)
            continue;
        if (now_ns < p->retry_ns) {
            if (p->retry_ns < net->connect_ns)
                net->connect_ns = p->retry_ns;
            continue;
        }
        int rc = tcp_peer_connect(net, i);
        if (rc < 0) {
            tcp_fail_queue(net, p, rc);
            net->n_down += p->down == 0;
            p->down = rc;
            tcp_await(net, p, BACKOFF_MAX_MS * CLOCK_NS_PER_MS);
        }
    }
}

static void tcp_expire_strangers(struct net *net)
{
    uint64_t now_ns = clock_coarse_ns();

    list_foreach_safe(it, &net->conns) {
        struct tcp_conn *c = list_entry(it, struct tcp_conn, node);
        if (c->proved || c->connecting || now_ns - c->since_ns <= STRANGER_NS)
            continue;
        net->guard.strangers++;
        tcp_complain(net, c, "nobody proved to be a peer in time");
        tcp_conn_fail(net, c, -ETIMEDOUT);
    }
}

static void tcp_report(struct net *net, struct tcp_events *events)
{
    while (net->n_done > 0 && events->n < events->max) {
        uint32_t block = net->done_head;
        const struct tcp_slot *s = &net->slots[block];
        net->done_head = s->next;
        net->n_done--;
        events->at[events->n++] = (struct net_event){.kind = s->error == 0 ? NET_SENT : NET_FAILED,
                                                     .block = block,
                                                     .peer = s->peer,
                                                     .error = s->error};
    }
    for (uint32_t i = 0; net->n_down > 0 && i < net->n_peers && events->n < events->max; i++) {
        struct tcp_peer *p = &net->peers[i];
        if (p->down == 0)
            continue;
        events->at[events->n++] =
            (struct net_event){.kind = NET_PEER_DOWN, .peer = i / WIRE_CLASSES, .error = p->down};
        p->down = 0;
        net->n_down--;
    }
}

static void tcp_read_conn(struct net *net, struct tcp_conn *c, struct tcp_events *events)
{
    if (c->dead || net->stages[c->cls].conn || (c->greeted && c->claims == TCP_PEER_NONE))
        return;
    long n = tcp_stream_read(net, c, events);
    if (n < 0) {
        tcp_conn_fail(net, c, (int)n);
    } else if (n > 0 && c->proved) {
        tcp_activate(net, c);
    } else if (++c->n_quiet > QUIET_POLLS) {
        tcp_deactivate(net, c);
    }
}

/* The epoll set has told this of a connection; NULL: of the listening socket. */
static void tcp_on_ready(struct net *net, struct tcp_conn *c, uint32_t what,
                         struct tcp_events *events)
{
    if (!c) {
        tcp_accept_all(net);
        return;
    }
    if (c->dead)
        return;
    if (c->connecting) {
        tcp_on_connected(net, c);
        return;
    }
    if (!c->proved && c->out_at < c->out_len)
        tcp_speak(net, c);
    else if (c->epoll_set & EPOLLOUT)
        tcp_ask_for(net, c, EPOLLIN);
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
        tcp_expire_strangers(net);
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
        if (c->cls == cls)
            tcp_read_conn(net, c, events);
    }
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
    events.max = max - BULK_EVENTS(max);
    tcp_read_class(net, WIRE_QUICK, &events);
    events.max = max;
    tcp_read_class(net, WIRE_BULK, &events);
    if (net->n_active == 0 || net->n_active > ACTIVE_MAX || ++net->n_skipped >= SKIP_POLLS)
        tcp_look_round(net, &events);
    list_foreach_safe(it, &net->graves) {
        list_remove(it);
        free(list_entry(it, struct tcp_conn, node));
    }
    tcp_report(net, &events);
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
            tcp_ask_for(net, p->conn, EPOLLIN | EPOLLOUT);
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
