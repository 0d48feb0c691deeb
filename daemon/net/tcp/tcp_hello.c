/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/net/tcp/tcp_hello.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/net/address.h"
#include "daemon/net/tcp/tcp_conn.h"
#include "daemon/net/tcp/tcp_peer.h"
#include "daemon/net/tcp/tcp_proof.h"

/* Connections whose other end nobody knows (yet), and how long they may stay so. */
#define STRANGERS_MAX      128u
#define STRANGERS_PER_HOST 32u
#define STRANGER_NS        (5 * CLOCK_NS_PER_S)
/* The log has one line of what came and was refused in this time. */
#define COMPLAIN_NS (30 * CLOCK_NS_PER_S)

/* Counts what is told about, and tells of the first one in a while. */
void tcp_hello_complain(struct net *net, const struct tcp_conn *c, const char *what)
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

/* Sends hello and proof, as far as they are made. */
void tcp_hello_speak(struct net *net, struct tcp_conn *c)
{
    int rc = tcp_proof_flush(c);

    if (rc < 0)
        tcp_conn_fail(net, c, rc);
    else
        tcp_conn_ask_for(net, c, c->out_at < c->out_len ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* The connection has proved to be with its peer. */
static void tcp_hello_claim(struct net *net, struct tcp_conn *c)
{
    struct tcp_peer *p = &net->peers[c->claims];

    net->n_strangers -= c->peer == TCP_PEER_NONE;
    net->n_unproved--;
    c->proved = true;
    c->peer = c->claims;
    p->backoff_ms = 0;
    tcp_conn_activate(net, c);
    if (!p->conn || p->conn == c || !p->conn->proved) {
        /* An attempt of our own goes on; what it becomes will only be read. */
        tcp_peer_use(net, p, c);
    }
}

/* Is this peer who says hello here? */
static bool tcp_hello_is_from(const struct tcp_peer *p, const struct tcp_hello *hello)
{
    return p->used && le32toh(hello->cls) == p->cls &&
           le32toh(hello->address_len) == p->address_len &&
           memcmp(p->address, hello->address, p->address_len) == 0;
}

/* Somebody says that it is this peer: answers, and wants to see it proved. */
static int tcp_hello_recognize(struct net *net, struct tcp_conn *c, uint32_t idx)
{
    c->claims = idx;
    c->cls = net->peers[idx].cls;
    if (!c->initiated)
        tcp_proof_begin(net, c);
    int rc = tcp_proof_answer(c, net->peers[idx].seal);
    if (rc < 0)
        return rc;
    /* Failing to send shows with the next event. */
    rc = tcp_proof_flush(c);
    tcp_conn_ask_for(net, c, c->out_at < c->out_len ? EPOLLIN | EPOLLOUT : EPOLLIN);
    return rc;
}

int tcp_hello_greeted(struct net *net, struct tcp_conn *c)
{
    uint32_t len = le32toh(c->hello.address_len), version = le32toh(c->hello.version);

    if (version != TCP_VERSION || len == 0 || len > sizeof c->hello.address) {
        tcp_hello_complain(net, c, "another version of the packet stream");
        return -EPROTO;
    }
    if (le32toh(c->hello.cls) >= WIRE_CLASSES) {
        tcp_hello_complain(net, c, "there is no such class of packets");
        return -EPROTO;
    }
    c->greeted = true;
    if (c->initiated) {
        if (tcp_hello_is_from(&net->peers[c->peer], &c->hello))
            return tcp_hello_recognize(net, c, c->peer);
        tcp_hello_complain(net, c, "somebody else answers at a peer's address");
        return -EPROTO;
    }
    if (!address_same_host(&c->from, c->hello.address, len)) {
        net->guard.strangers++;
        tcp_hello_complain(net, c, "somebody names another host's address as its own");
        return -EACCES;
    }
    for (uint32_t i = 0; i < net->n_peers; i++) {
        if (tcp_hello_is_from(&net->peers[i], &c->hello))
            return tcp_hello_recognize(net, c, i);
    }
    /* It is not read until it is somebody. */
    tcp_conn_ask_for(net, c, 0);
    return 0;
}

int tcp_hello_proved(struct net *net, struct tcp_conn *c)
{
    int rc = tcp_proof_check(c, net->peers[c->claims].seal);

    if (rc < 0) {
        net->guard.strangers++;
        tcp_hello_complain(net, c, "somebody names a peer's address and does not know its secret");
        return rc;
    }
    tcp_hello_claim(net, c);
    return c->dead ? -ECONNRESET : 0;
}

void tcp_hello_meet(struct net *net, uint32_t peer)
{
    list_foreach_safe(it, &net->conns) {
        struct tcp_conn *c = list_entry(it, struct tcp_conn, node);
        if (c->claims == TCP_PEER_NONE && c->greeted &&
            tcp_hello_is_from(&net->peers[peer], &c->hello) &&
            tcp_hello_recognize(net, c, peer) < 0)
            tcp_conn_close(net, c);
    }
}

/* Makes room for one more connection from this address: of those that are nobody yet the oldest one
 * goes, of the same address if it has its share. A peer proves itself within a round trip, so what
 * waits longest is not one. */
void tcp_hello_make_room(struct net *net, const struct sockaddr_storage *from)
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
    tcp_hello_complain(net, goes, "too many connections that do not say who they are");
    tcp_conn_close(net, goes);
}

void tcp_hello_expire(struct net *net)
{
    uint64_t now_ns = clock_coarse_ns();

    list_foreach_safe(it, &net->conns) {
        struct tcp_conn *c = list_entry(it, struct tcp_conn, node);
        if (c->proved || c->connecting || now_ns - c->since_ns <= STRANGER_NS)
            continue;
        net->guard.strangers++;
        tcp_hello_complain(net, c, "nobody proved to be a peer in time");
        tcp_conn_fail(net, c, -ETIMEDOUT);
    }
}
