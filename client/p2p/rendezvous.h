/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rendezvous: messages too large to be sent unasked.
 *
 * Same node, dense at the sender: the receiver reads the sender's memory (process_vm_readv, one
 * copy) and sends FINISHED; a sender that waits meanwhile helps (joint.h). Otherwise the receiver
 * grants ranges (PULL) and the sender packs packets into the rings (DATA), which may arrive in any
 * order and by different networks. A receiver never has more granted than its rings hold, so data
 * for it never piles up on the way.
 *
 *   sender:   announced -(PULL)-> sending -(all granted)-> announced ...
 *             -(all packed, or FINISHED)-> complete
 *   receiver: matched -(readv, or all DATA)-> complete; truncated ones end the sender with FINISHED
 */
#ifndef MOTET_CLIENT_P2P_RENDEZVOUS_H
#define MOTET_CLIENT_P2P_RENDEZVOUS_H

#include "client/p2p/peer.h"
#include "client/p2p/transfer.h"

void rendezvous_init(struct engine *e);
void rendezvous_deinit(struct engine *e);

/* Gives the transfer a number by which the peer can name it. False: too many (2^20) or no
 * memory. */
bool rendezvous_number(struct transfer *t);

/* The transfer is over: its number and its places in lists are given up, the request completes. */
void rendezvous_finish(struct transfer *t, int error);

/* A receive was matched with an announced message: source and tag are in t->base already. */
void rendezvous_accept(struct transfer *t, struct peer *p, const struct msg_rts *rts,
                       const void *first, uint32_t first_len);

void rendezvous_on_pull(struct engine *e, uint32_t src_world, uint32_t number,
                        const struct msg_pull *pull);
void rendezvous_on_data(struct engine *e, uint32_t src_world, uint32_t number, uint64_t offset,
                        const void *payload, uint32_t len);
void rendezvous_on_fin(struct engine *e, uint32_t src_world, uint32_t number);

/* Sends what is granted and grants what waits. Called by outbound_poll. */
int rendezvous_poll(struct engine *e);

#endif
