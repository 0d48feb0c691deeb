/* SPDX-License-Identifier: BSD-3-Clause */
/* How two ends of a connection prove to each other who they are. */
#pragma once

#include "daemon/net/tcp/tcp.h"

/* Makes the own hello, to be flushed. */
void tcp_proof_begin(const struct net *net, struct tcp_conn *c);
/* The other's hello is there: adds the own proof. 0 or -EIO. */
int tcp_proof_answer(struct tcp_conn *c, const struct seal *seal);
/* The other's proof is there: makes the keys. 0; -EACCES: it is wrong; -EIO. */
int tcp_proof_check(struct tcp_conn *c, const struct seal *seal);
/* Sends of both what the socket takes. 0, or negative errno when the connection broke. */
int tcp_proof_flush(struct tcp_conn *c);
