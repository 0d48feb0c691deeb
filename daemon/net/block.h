/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks: the buffers of the channels. One arena per node, mapped once and registered with every
 * network; each channel owns an equal part of it and is the only one to take blocks from that part
 * or put them back. A block holds one packet: wire header and payload, contiguous. It is named by
 * its index in the arena.
 *
 * A block may be held by another channel than its owner (a packet that is forwarded, or delivered
 * there); it comes home through a handover ring. Its record therefore has two halves in two tables:
 * the owner's, and the holder's, which changes hands with the block.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/wire.h"

#define BLOCK_NONE UINT32_MAX

/* What the owner uses a block for. */
enum block_use {
    BLOCK_FREE = 0,
    BLOCK_RECEIVE, /* posted to the driver, or holding a received packet wherever that is */
    BLOCK_FLOW,    /* kept by a flow until it is acknowledged */
    BLOCK_ORPHAN,  /* was a flow's; freed as soon as it is not out any more */
    BLOCK_NOTE,    /* an acknowledgement, probe or reset on its way out */
    BLOCK_BACKLOG, /* holds messages that wait */
};

/* Owner's half: only the owner's thread reads or writes it, so those of its blocks share lines. */
struct block {
    uint32_t next_free;
    uint8_t use; /* enum block_use */
    bool out;  /* BLOCK_FLOW, BLOCK_ORPHAN: waiting for, or in, a driver, or with another channel */
    bool lost; /* in the port's list of packets whose sending failed */
    uint8_t reserved;
};

/* Holder's half. Two blocks of one owner may be held by two threads: a line for each. */
struct block_held {
    _Alignas(64) uint32_t next; /* in a queue of blocks */
    uint32_t len;               /* bytes of header and payload, or of the records in it */
    uint16_t slot;              /* neighbour it is being sent to */
    uint8_t cls;                /* enum wire_class: the queues by which it is being sent */
};

/* Set once; only what the pointers lead to changes. */
struct arena {
    uint8_t *base;
    size_t stride; /* bytes from block to block: header and largest payload, rounded up to lines */
    size_t n_bytes;
    uint32_t n_blocks;
    struct block *blocks; /* owners' halves, by block */
    struct block_held *held;
};

/* A channel's part of the arena. */
struct pool {
    struct block *blocks; /* of the whole arena */
    uint32_t first, n_blocks;
    uint32_t free_head, n_free;
    uint32_t n_use[BLOCK_BACKLOG + 1]; /* blocks in each use */
};

/* Maps an arena. `packet_bytes`: of the largest payload. 0 or negative errno. */
int arena_init(struct arena *arena, uint32_t n_blocks, uint32_t packet_bytes);
void arena_deinit(struct arena *arena);

static inline void *arena_at(const struct arena *arena, uint32_t block)
{
    return arena->base + (size_t)block * arena->stride;
}

static inline struct wire_header *arena_header(const struct arena *arena, uint32_t block)
{
    return arena_at(arena, block);
}

/* The part of n_blocks blocks from `first` on, all free. */
void pool_init(struct pool *pool, const struct arena *arena, uint32_t first, uint32_t n_blocks);

/* BLOCK_NONE when there is none left. */
static inline uint32_t pool_take(struct pool *pool, enum block_use use)
{
    uint32_t idx = pool->free_head;

    if (idx == BLOCK_NONE)
        return BLOCK_NONE;
    struct block *b = &pool->blocks[idx];
    pool->free_head = b->next_free;
    pool->n_free--;
    pool->n_use[use]++;
    b->use = (uint8_t)use;
    b->out = false;
    return idx;
}

static inline void pool_give(struct pool *pool, uint32_t idx)
{
    struct block *b = &pool->blocks[idx];

    assert(idx - pool->first < pool->n_blocks && b->use != BLOCK_FREE);
    pool->n_use[b->use]--;
    b->use = BLOCK_FREE;
    b->next_free = pool->free_head;
    pool->free_head = idx;
    pool->n_free++;
}

static inline void pool_change(struct pool *pool, uint32_t idx, enum block_use use)
{
    struct block *b = &pool->blocks[idx];

    pool->n_use[b->use]--;
    pool->n_use[use]++;
    b->use = (uint8_t)use;
}
