/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of the native TCP driver: made, read without asking while something comes, closed. */
#pragma once

#include "daemon/net/tcp/tcp.h"

/* Takes in a socket. peer: TCP_PEER_NONE if others opened it. NULL when there is no memory. */
struct tcp_conn *tcp_conn_new(struct net *net, int fd, uint32_t peer, bool initiated);
/* Closes it; the memory stays until the poll has ended. */
void tcp_conn_close(struct net *net, struct tcp_conn *c);
/* Closes it since it broke: the peer goes on with another one, or is without. */
void tcp_conn_fail(struct net *net, struct tcp_conn *c, int error);
/* Is read at every poll; is not. */
void tcp_conn_activate(struct net *net, struct tcp_conn *c);
void tcp_conn_deactivate(struct net *net, struct tcp_conn *c);
/* Of what the epoll set is to tell: EPOLLIN and EPOLLOUT, 0 for nothing but its end. */
void tcp_conn_ask_for(const struct net *net, struct tcp_conn *c, uint32_t events);
