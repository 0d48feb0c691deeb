/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/net/tcp/tcp_connect.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/net/tcp/tcp_conn.h"
#include "daemon/net/tcp/tcp_hello.h"
#include "daemon/net/tcp/tcp_peer.h"

/* Connections taken in at one look: packets go on in between. */
#define ACCEPT_MAX 16u

static int tcp_connect_peer(struct net *net, uint32_t idx)
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
    tcp_peer_use(net, p, c);
    return 0;
}

/* The attempt to connect is over. */
void tcp_connect_done(struct net *net, struct tcp_conn *c)
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
    tcp_hello_speak(net, c);
}

/* Peers without a connection whose time has come. */
void tcp_connect_waiting(struct net *net)
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
        int rc = tcp_connect_peer(net, i);
        if (rc < 0) {
            tcp_peer_fail_queue(net, p, rc);
            tcp_peer_down(net, p, rc);
        }
    }
}

void tcp_connect_accept(struct net *net)
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
        tcp_hello_make_room(net, &from);
        struct tcp_conn *c = tcp_conn_new(net, fd, TCP_PEER_NONE, false);
        if (c)
            c->from = from;
        else
            close(fd);
    }
}
