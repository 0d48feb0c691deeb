/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Announcements (RTS): how a message that is too large to leave unasked, or is sent synchronously,
 * meets its receive, and which way its bytes take then.
 *
 * Same node: by the method that is the fastest between these two (method/method.h). Either the
 * receiver reads the sender's memory (process_vm_readv, one copy), perhaps together with a sender
 * that waits meanwhile (coop.h), and sends FINISHED; or it asks for the bytes (rendezvous.h), as it
 * does of data with gaps, where the kernel forbids reading, and of another node. Of what it will
 * ask for, the first packet's worth rides along: it covers the round trip that the first grant
 * takes.
 */
#ifndef MOTET_CLIENT_P2P_ANNOUNCE_H
#define MOTET_CLIENT_P2P_ANNOUNCE_H

#include "client/p2p/peer.h"
#include "client/p2p/transfer.h"

/* Publishes the announcement of a message. False: no room; the transfer is untouched. */
bool announce_send(struct peer *p, struct transfer *t);

/* Splits what came as an announcement: its struct, and the beginning of the message behind it.
 * False: malformed. */
bool announce_split(const void *payload, uint32_t len, struct msg_rts *ret_rts,
                    const void **ret_first, uint32_t *ret_first_len);

/* A receive was matched with an announced message: source and tag are in t->base already. Expected:
 * the receive was there before it. */
void announce_accept(struct transfer *t, struct peer *p, const struct msg_rts *rts,
                     const void *first, uint32_t first_len, bool expected);

/* The receiver's answers to an announcement, by the number of the transfer. */
void announce_on_pull(struct engine *e, uint32_t src_world, uint32_t number,
                      const struct msg_pull *pull);
void announce_on_finished(struct engine *e, uint32_t src_world, uint32_t number);

#endif
