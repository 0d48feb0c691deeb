/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/port/record_queue.h"

#include <string.h>

#define RECORD_ALIGN 16u

uint32_t record_bytes(uint32_t len)
{
    return ((uint32_t)sizeof(struct wire_header) + len + RECORD_ALIGN - 1) & ~(RECORD_ALIGN - 1);
}

static void record_write(uint8_t *at, const struct wire_header *h, const void *payload)
{
    memcpy(at, h, sizeof *h);
    memcpy(at + sizeof *h, payload, h->len);
}

bool record_queue_append(struct record_queue *q, const struct arena *arena,
                         const struct wire_header *h, const void *payload)
{
    uint32_t need = record_bytes(h->len);

    if (q->blocks.n == 0 || arena->held[q->blocks.tail].len + need > arena->stride)
        return false;
    uint32_t *len = &arena->held[q->blocks.tail].len;
    record_write((uint8_t *)arena_at(arena, q->blocks.tail) + *len, h, payload);
    *len += need;
    q->n_bytes += need;
    return true;
}

static void record_queue_add(struct record_queue *q, const struct arena *arena, uint32_t block,
                             uint32_t need)
{
    assert(need <= arena->stride);
    arena->held[block].len = need;
    if (q->blocks.n == 0)
        q->off = 0;
    block_queue_push(&q->blocks, arena, block);
    q->n_bytes += need;
}

void record_queue_append_block(struct record_queue *q, const struct arena *arena, uint32_t block,
                               const struct wire_header *h, const void *payload)
{
    assert(record_bytes(h->len) <= arena->stride);
    record_write(arena_at(arena, block), h, payload);
    record_queue_add(q, arena, block, record_bytes(h->len));
}

void record_queue_keep_block(struct record_queue *q, const struct arena *arena, uint32_t block)
{
    record_queue_add(q, arena, block, record_bytes(arena_header(arena, block)->len));
}

const struct wire_header *record_queue_first(const struct record_queue *q,
                                             const struct arena *arena)
{
    assert(q->blocks.n > 0 && q->off < arena->held[q->blocks.head].len);
    return (const void *)((uint8_t *)arena_at(arena, q->blocks.head) + q->off);
}

uint32_t record_queue_advance(struct record_queue *q, const struct arena *arena)
{
    uint32_t need = record_bytes(record_queue_first(q, arena)->len);

    assert(q->n_bytes >= need);
    q->off += need;
    q->n_bytes -= need;
    if (q->off < arena->held[q->blocks.head].len)
        return BLOCK_NONE;
    q->off = 0;
    return block_queue_pop(&q->blocks, arena);
}

uint32_t record_queue_drop_block(struct record_queue *q, const struct arena *arena)
{
    if (q->blocks.n == 0)
        return BLOCK_NONE;
    q->n_bytes -= arena->held[q->blocks.head].len - q->off;
    q->off = 0;
    return block_queue_pop(&q->blocks, arena);
}
