/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue of blocks, first in, first out, linked through their holder's halves: what waits for a
 * driver, and what holds messages that wait. A block is in one queue at most. Belongs to the thread
 * that holds the blocks.
 */
#pragma once

#include <assert.h>

#include "daemon/net/block.h"

/* All zero is an empty queue. */
struct block_queue {
    uint32_t head, tail; /* when n > 0 */
    uint32_t n;
};

static inline void block_queue_push(struct block_queue *q, const struct arena *arena,
                                    uint32_t block)
{
    assert(q->n < arena->n_blocks);
    arena->held[block].next = BLOCK_NONE;
    if (q->n++ == 0)
        q->head = block;
    else
        arena->held[q->tail].next = block;
    q->tail = block;
}

/* Puts a block back to the front: it was taken, and could not go. */
static inline void block_queue_push_front(struct block_queue *q, const struct arena *arena,
                                          uint32_t block)
{
    assert(q->n < arena->n_blocks);
    arena->held[block].next = q->n == 0 ? BLOCK_NONE : q->head;
    if (q->n++ == 0)
        q->tail = block;
    q->head = block;
}

/* Appends all that is in another queue, which is empty afterwards. */
static inline void block_queue_join(struct block_queue *q, const struct arena *arena,
                                    struct block_queue *other)
{
    if (other->n == 0)
        return;
    if (q->n == 0)
        q->head = other->head;
    else
        arena->held[q->tail].next = other->head;
    q->tail = other->tail;
    q->n += other->n;
    *other = (struct block_queue){0};
}

/* BLOCK_NONE when it is empty. */
static inline uint32_t block_queue_pop(struct block_queue *q, const struct arena *arena)
{
    if (q->n == 0)
        return BLOCK_NONE;
    uint32_t block = q->head;
    q->head = arena->held[block].next;
    q->n--;
    return block;
}
