/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/net/block.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BLOCK_LINE 64u

int arena_init(struct arena *arena, uint32_t n_blocks, uint32_t packet_bytes)
{
    size_t stride =
        (sizeof(struct wire_header) + packet_bytes + BLOCK_LINE - 1) & ~(size_t)(BLOCK_LINE - 1);
    size_t n_bytes = stride * n_blocks;
    void *map = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (map == MAP_FAILED)
        return -errno;
    *arena = (struct arena){
        .base = map,
        .stride = stride,
        .n_bytes = n_bytes,
        .n_blocks = n_blocks,
        .blocks = calloc(n_blocks, sizeof *arena->blocks),
        .held = aligned_alloc(_Alignof(struct block_held), n_blocks * sizeof *arena->held),
    };
    if (!arena->blocks || !arena->held) {
        arena_deinit(arena);
        return -ENOMEM;
    }
    memset(arena->held, 0, n_blocks * sizeof *arena->held);
    return 0;
}

void arena_deinit(struct arena *arena)
{
    if (arena->base)
        munmap(arena->base, arena->n_bytes);
    free(arena->blocks);
    free(arena->held);
    *arena = (struct arena){0};
}

void pool_init(struct pool *pool, const struct arena *arena, uint32_t first, uint32_t n_blocks)
{
    struct block *blocks = arena->blocks;

    assert(first <= arena->n_blocks && n_blocks <= arena->n_blocks - first);
    *pool = (struct pool){
        .blocks = blocks, .first = first, .n_blocks = n_blocks, .free_head = BLOCK_NONE};
    /* Backwards, so that the first blocks are taken first and the rest of the arena stays untouched
     * memory. */
    for (uint32_t i = n_blocks; i-- > 0;) {
        blocks[first + i].next_free = pool->free_head;
        pool->free_head = first + i;
    }
    pool->n_free = n_blocks;
}
