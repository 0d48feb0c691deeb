/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of this process to itself, which need no ring: copied from buffer to buffer as soon as
 * both are known. A blocking send cannot wait for the receive that its own thread will post, so its
 * message is kept like one that came from elsewhere.
 */
#ifndef MOTET_CLIENT_P2P_SELF_H
#define MOTET_CLIENT_P2P_SELF_H

#include "client/p2p/transfer.h"

/* Hands the message to a posted receive, or keeps it as unexpected. */
void self_send(struct transfer *send);

/* A receive takes the message of such a send. Completes both. */
void self_receive(struct transfer *recv, struct transfer *send);

#endif
