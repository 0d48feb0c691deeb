/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Relaying: received packets for other nodes, and packets that another channel of this node has
 * given to this one to be sent. A forwarded packet stays in the block it arrived in. Nothing here
 * waits: where a queue is full the packet is dropped, since its source still has it; so gateways in
 * a ring cannot wait for one another.
 */
#pragma once

#include "daemon/port/link.h"

struct relay {
    struct links *links;
    uint32_t queue_max; /* packets of a class waiting for one neighbour before forwarded ones are
                           dropped; of 16 KiB, if they are larger */
};

/* A received packet for another node. Takes the block. */
void relay_forward(struct relay *relay, uint32_t block, uint32_t len);
/* A block that another channel gave, to be sent to the neighbour of its `slot`. Takes it. */
void relay_given(struct relay *relay, uint32_t block);
/* A neighbour is there; replaces what was known of its slot under another address or secret. */
void relay_add_link(struct relay *relay, const struct cmd_link *at);
/* It is gone: forwarded packets that waited for it take another way, if there is one. */
void relay_remove_link(struct relay *relay, uint32_t slot);
/* What waits for links that are not alive any more takes another way, if there is one; connections
 * that are to be made anew are. */
void relay_mend(struct relay *relay);
