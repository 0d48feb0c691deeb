/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Joint copying: a large message between two ranks of one node is copied by both of them at once.
 * The message is cut into chunks; whoever is free takes the next one (an atomic counter in the
 * sender's queue record), the receiver by process_vm_readv, the sender, while it waits in MPI
 * anyway, by process_vm_writev into the buffer that the receiver named. A sender that does not wait
 * takes no chunk, and the receiver copies all. Two cores copy faster than one as long as memory
 * keeps up.
 *
 *   offered -(receiver names its buffer)-> both take chunks -(none left, sender's ones done)->
 *   receiver sends FINISHED
 */
#ifndef MOTET_CLIENT_P2P_JOINT_H
#define MOTET_CLIENT_P2P_JOINT_H

#include "client/p2p/peer.h"
#include "client/p2p/transfer.h"

void joint_init(struct engine *e);
/* Copies what can be copied. Returns the number of events. */
int joint_poll(struct engine *e);

/* Sender, before it announces a dense message whose record is on the board: the number for
 * msg_rts.record, 0 if the message is too small or has no record. */
uint32_t joint_offer(struct transfer *t);

/* Receiver of an announcement: copies together with the sender and finishes the transfer, now or
 * when the sender's last chunk is there. False if this is not for joint copying; then nothing has
 * happened. */
bool joint_receive(struct transfer *t, struct peer *p, const struct msg_rts *rts);

/* Takes a transfer off the lists here. */
void joint_leave(struct transfer *t);

#endif
