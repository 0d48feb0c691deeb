/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is at the other end of a connection of the native TCP driver, from its first byte until it
 * has proved that; and what becomes of those who do not. */
#pragma once

#include "daemon/net/tcp/tcp.h"

/* Sends hello and proof, as far as they are made. */
void tcp_hello_speak(struct net *net, struct tcp_conn *c);
/* The other's hello is complete, or its proof. 0 or negative errno: close it. */
int tcp_hello_greeted(struct net *net, struct tcp_conn *c);
int tcp_hello_proved(struct net *net, struct tcp_conn *c);
/* A peer was added: those who had said that they are it are answered now. */
void tcp_hello_meet(struct net *net, uint32_t peer);
/* Makes room for one more connection from this address. */
void tcp_hello_make_room(struct net *net, const struct sockaddr_storage *from);
/* Closes what has proved nothing in time. */
void tcp_hello_expire(struct net *net);
/* Says what came over a connection that should not have, at a limited rate. */
void tcp_hello_complain(struct net *net, const struct tcp_conn *c, const char *what);
