/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue of messages that wait, first in, first out: records of wire header and payload, one after
 * the other in blocks. A received packet, or one that a flow gives back, is such a record already
 * and becomes part of the queue where it lies. Used by channel/delivery (for room in a rank's ring)
 * and channel/backlog (for credit or a way); belongs to the channel's thread.
 *
 * The queue takes no blocks and frees none: whoever uses it decides how many a queue may have.
 */
#pragma once

#include "daemon/net/block_queue.h"

/* All zero is an empty queue. */
struct record_queue {
    struct block_queue blocks;
    uint32_t off;     /* of the first record in the first block */
    uint64_t n_bytes; /* of all records, as they lie in the blocks */
};

/* Bytes that a record with a payload of len bytes takes. */
uint32_t record_bytes(uint32_t len);

static inline bool record_queue_empty(const struct record_queue *q)
{
    return q->blocks.n == 0;
}

/* Copies a message behind the last one. False: there is no room in the last block. */
bool record_queue_append(struct record_queue *q, const struct arena *arena,
                         const struct wire_header *h, const void *payload);
/* Adds an empty block and copies a message into it. The block is the queue's. */
void record_queue_append_block(struct record_queue *q, const struct arena *arena, uint32_t block,
                               const struct wire_header *h, const void *payload);
/* Adds a block that begins with the message, as a packet does. */
void record_queue_keep_block(struct record_queue *q, const struct arena *arena, uint32_t block);
/* The first message. The queue is not empty. */
const struct wire_header *record_queue_first(const struct record_queue *q,
                                             const struct arena *arena);
/* Removes the first message; returns its block if it was the last one in there, the caller's from
 * now on, else BLOCK_NONE. */
uint32_t record_queue_advance(struct record_queue *q, const struct arena *arena);
/* Throws away the first block with all that is in it; BLOCK_NONE when the queue is empty. */
uint32_t record_queue_drop_block(struct record_queue *q, const struct arena *arena);
