/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/net/tcp/tcp_conn.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/net/tcp/tcp_peer.h"
#include "daemon/net/tcp/tcp_proof.h"

void tcp_conn_ask_for(const struct net *net, struct tcp_conn *c, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = c};

    if (c->epoll_set != events && epoll_ctl(net->epoll_fd, EPOLL_CTL_MOD, c->fd, &ev) == 0)
        c->epoll_set = events;
}

struct tcp_conn *tcp_conn_new(struct net *net, int fd, uint32_t peer, bool initiated)
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
        tcp_proof_begin(net, c);
    }
    return c;
}

void tcp_conn_deactivate(struct net *net, struct tcp_conn *c)
{
    if (list_empty(&c->active))
        return;
    list_remove(&c->active);
    net->n_active--;
}

void tcp_conn_activate(struct net *net, struct tcp_conn *c)
{
    if (!list_empty(&c->active) || c->dead)
        return;
    if (c->cls == WIRE_QUICK)
        list_prepend(&net->active, &c->active);
    else
        list_append(&net->active, &c->active);
    net->n_active++;
}

void tcp_conn_close(struct net *net, struct tcp_conn *c)
{
    if (c->dead)
        return;
    c->dead = true;
    close(c->fd);
    tcp_conn_deactivate(net, c);
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
static struct tcp_conn *tcp_conn_other(const struct net *net, uint32_t peer)
{
    list_foreach(it, &net->conns) {
        struct tcp_conn *c = list_entry(it, struct tcp_conn, node);
        if (c->peer == peer && c->proved)
            return c;
    }
    return NULL;
}

/* The connection broke. */
void tcp_conn_fail(struct net *net, struct tcp_conn *c, int error)
{
    uint32_t idx = c->peer;

    if (c->dead)
        return;
    tcp_conn_close(net, c);
    struct tcp_peer *p = idx == TCP_PEER_NONE ? NULL : &net->peers[idx];
    if (!p || p->conn != c)
        return;
    tcp_peer_fail_queue(net, p, error);
    p->conn = tcp_conn_other(net, idx);
    if (p->conn)
        return;
    tcp_peer_down(net, p, error);
}
