/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ways: by which neighbour and channel a packet leaves, and sending it along. Every packet that
 * leaves the node passes here: those of the ranks, our own notes, and forwarded ones. Nothing
 * waits: where a queue is full the packet is dropped, since its source still has it.
 */
#pragma once

#include "daemon/port/link.h"

/* The way for a packet of len bytes to the node of this slot: HOP_NONE when there is none. `own`:
 * prefers ways out of this channel. `counter`: chooses among ways, in turn. */
hop_word way_choose(const struct links *links, uint32_t slot, uint32_t len, uint32_t *counter,
                    bool own);
/* Sends a block over this way, from this channel or another one; it comes back by port_block_done.
 * False if the other channel's ring is full (nothing done). */
bool way_send(struct links *links, hop_word way, uint32_t block);
/* Sends a block to a neighbour of this channel; marks it where there is a queue. */
void way_send_here(struct links *links, struct link *link, uint32_t block);
