/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receives, and what comes in: order restored per remote peer, matched, handed to its protocol or
 * kept as unexpected.
 */
#ifndef MOTET_CLIENT_P2P_INBOUND_H
#define MOTET_CLIENT_P2P_INBOUND_H

#include "client/p2p/transfer.h"
#include "proto/ring.h"

/* Starts a receive that transfer_new set up; may complete it at once. */
void inbound_start(struct transfer *t);

/* A receive takes an unexpected message, which is off the table already; frees it. */
void inbound_take_unexpected(struct transfer *recv, struct unexpected *u);

/* The handler given to inbox_init; arg: the engine. */
void inbound_message(void *arg, uint32_t src_world, const struct ring_slot *slot, uint32_t len,
                     const void *payload);

/* Frees what came before its turn and was never handled. */
void inbound_deinit(struct engine *e);
/* What came early from these peers is out of date. */
void inbound_forget(struct engine *e, uint32_t first, uint32_t n);

#endif
