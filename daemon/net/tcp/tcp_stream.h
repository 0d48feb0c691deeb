/* SPDX-License-Identifier: BSD-3-Clause */
/* What flows through a connection of the native TCP driver. */
#pragma once

#include "daemon/net/tcp/tcp.h"

/* Size of the stage for packets of at most max_bytes. */
size_t tcp_stream_stage_bytes(uint32_t max_bytes);
/* Sends what is queued for the peer as far as the socket takes it. 0, or negative errno when the
 * connection broke. */
int tcp_stream_flush(struct net *net, struct tcp_peer *p);
/* Sends one block at once if nothing is before it. Bytes of the frame that went, or negative
 * errno. */
long tcp_stream_send(struct net *net, struct tcp_conn *c, uint32_t block);
/* Reads once and passes on what came. Bytes, 0 when there was nothing, or negative errno when the
 * connection broke. */
long tcp_stream_read(struct net *net, struct tcp_conn *c, struct tcp_events *events);
/* Passes on what was left over of a class. 0 or negative errno. */
int tcp_stream_rest(struct net *net, enum wire_class cls, struct tcp_events *events);
/* Has the far kernel confirmed more than *confirmed_bytes, and is there more to be? Brings that up
 * to date. */
bool tcp_stream_moving(const struct tcp_conn *c, uint64_t *confirmed_bytes);
