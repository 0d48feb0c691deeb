/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers of the native TCP driver: what waits to be sent to each, and when one without a connection
 * may have one again. */
#pragma once

#include "daemon/net/tcp/tcp.h"

/* To be reported with the next poll: a block is sent (error 0) or failed. */
void tcp_peer_done(struct net *net, uint32_t block, int error);
/* All that waits fails. */
void tcp_peer_fail_queue(struct net *net, struct tcp_peer *p, int error);
/* Has no connection: one may be made after this time. */
void tcp_peer_await(struct net *net, struct tcp_peer *p, uint64_t after_ns);
/* Lost its last connection, or one could not be made: reports that, and waits longer each time. */
void tcp_peer_down(struct net *net, struct tcp_peer *p, int error);
/* What is sent goes over this connection. */
void tcp_peer_use(struct net *net, struct tcp_peer *p, struct tcp_conn *c);
/* Tells, as far as there is room for events, what is to be reported. */
void tcp_peer_report(struct net *net, struct tcp_events *events);
