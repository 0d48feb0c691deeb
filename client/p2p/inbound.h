/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Incoming messages: order restored per remote peer, matched, delivered or kept as unexpected.
 * Called by the inbox.
 */
#ifndef MOTET_CLIENT_P2P_INBOUND_H
#define MOTET_CLIENT_P2P_INBOUND_H

#include "client/p2p/transfer.h"
#include "proto/ring.h"

/* The handler given to inbox_init; arg: the engine. */
void inbound_message(void *arg, uint32_t src_world, const struct ring_slot *slot, uint32_t len,
                     const void *payload);

/* A receive takes the message that this rank sends to itself. */
void inbound_take_own(struct transfer *recv, struct transfer *send);

/* A receive takes an unexpected message, which is off the table already; frees it. */
void inbound_take_unexpected(struct transfer *recv, struct unexpected *u);

#endif
