/* SPDX-License-Identifier: BSD-3-Clause */
/* How connections of the native TCP driver are opened, by either side. */
#pragma once

#include "daemon/net/tcp/tcp.h"

/* Takes in what others opened, some at a time. */
void tcp_connect_accept(struct net *net);
/* Opens one to each peer that waits and whose time has come. */
void tcp_connect_waiting(struct net *net);
/* The attempt to open this one is over. */
void tcp_connect_done(struct net *net, struct tcp_conn *c);
