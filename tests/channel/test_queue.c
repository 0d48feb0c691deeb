/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues of blocks, and of records in blocks, against a plain list; and the pool below them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/rand.h"
#include "daemon/port/record_queue.h"

#define BLOCKS 32u
#define PACKET 1024u

static struct arena arena;
static struct pool pool;

static int setup(void **state)
{
    (void)state;
    assert_int_equal(arena_init(&arena, BLOCKS + 4, PACKET), 0);
    pool_init(&pool, &arena, 4, BLOCKS);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

static void test_pool(void **state)
{
    bool seen[BLOCKS + 4] = {false};

    (void)state;
    for (uint32_t i = 0; i < BLOCKS; i++) {
        uint32_t block = pool_take(&pool, BLOCK_FLOW);
        /* The first ones first, so that the rest stays untouched memory. */
        assert_int_equal(block, 4 + i);
        assert_false(seen[block]);
        seen[block] = true;
        arena.blocks[block].out = true;
    }
    assert_int_equal(pool_take(&pool, BLOCK_NOTE), BLOCK_NONE);
    assert_int_equal(pool.n_use[BLOCK_FLOW], BLOCKS);
    pool_change(&pool, 7, BLOCK_ORPHAN);
    assert_int_equal(pool.n_use[BLOCK_FLOW], BLOCKS - 1);
    assert_int_equal(pool.n_use[BLOCK_ORPHAN], 1);
    pool_give(&pool, 7);
    assert_int_equal(pool.n_use[BLOCK_ORPHAN], 0);
    assert_int_equal(pool.n_free, 1);
    assert_int_equal(pool_take(&pool, BLOCK_RECEIVE), 7);
    assert_false(arena.blocks[7].out);
}

/* Each holder's half has a line of its own, and the owners' lie apart. */
static void test_lines(void **state)
{
    (void)state;
    assert_int_equal(sizeof *arena.held, 64);
    assert_int_equal((uintptr_t)arena.held % 64, 0);
    assert_true(sizeof *arena.blocks <= 8);
}

static void test_block_queue(void **state)
{
    struct block_queue q = {0};
    uint32_t model[BLOCKS], n = 0;
    struct rand r = {.state = 5};

    (void)state;
    assert_int_equal(block_queue_pop(&q, &arena), BLOCK_NONE);
    for (uint32_t round = 0; round < 20000; round++) {
        uint32_t what = (uint32_t)rand_below(&r, 4);
        if (what == 0 && n < BLOCKS) {
            model[n] = pool_take(&pool, BLOCK_NOTE);
            block_queue_push(&q, &arena, model[n++]);
        } else if (what == 1 && n < BLOCKS) {
            memmove(model + 1, model, n++ * sizeof *model);
            model[0] = pool_take(&pool, BLOCK_NOTE);
            block_queue_push_front(&q, &arena, model[0]);
        } else if (n > 0) {
            assert_int_equal(block_queue_pop(&q, &arena), model[0]);
            pool_give(&pool, model[0]);
            memmove(model, model + 1, --n * sizeof *model);
        }
        assert_int_equal(q.n, n);
    }
    while (n-- > 0)
        assert_int_not_equal(block_queue_pop(&q, &arena), BLOCK_NONE);
    assert_int_equal(block_queue_pop(&q, &arena), BLOCK_NONE);
}

static uint32_t length_of(uint32_t number)
{
    return number * 37 % (PACKET + 1);
}

static void message(struct wire_header *h, uint8_t *payload, uint32_t number)
{
    *h = (struct wire_header){.seq = number, .len = length_of(number)};
    memset(payload, (int)(number * 13), h->len);
}

static void check_first(const struct record_queue *q, uint32_t number)
{
    const struct wire_header *h = record_queue_first(q, &arena);
    const uint8_t *payload = (const void *)(h + 1);

    assert_int_equal((uintptr_t)h % 16, 0);
    assert_int_equal(h->seq, number);
    assert_int_equal(h->len, length_of(number));
    for (uint32_t i = 0; i < h->len; i++)
        assert_int_equal(payload[i], (uint8_t)(number * 13));
}

/* Adds message `number`; false: there is no block for it. */
static bool add(struct record_queue *q, uint32_t number, bool keep)
{
    static uint8_t payload[PACKET];
    struct wire_header h;

    message(&h, payload, number);
    if (!keep && record_queue_append(q, &arena, &h, payload))
        return true;
    uint32_t block = pool_take(&pool, BLOCK_BACKLOG);
    if (block == BLOCK_NONE)
        return false;
    if (keep) {
        memcpy(arena_at(&arena, block), &h, sizeof h);
        memcpy(arena_header(&arena, block) + 1, payload, h.len);
        record_queue_keep_block(q, &arena, block);
    } else {
        record_queue_append_block(q, &arena, block, &h, payload);
    }
    return true;
}

static void test_record_queue(void **state)
{
    struct record_queue q = {0};
    struct rand r = {.state = 6};
    uint32_t first = 0, next = 0;
    uint64_t n_bytes = 0;

    (void)state;
    for (uint32_t round = 0; round < 50000; round++) {
        if (rand_below(&r, 2) && add(&q, next, rand_below(&r, 8) == 0)) {
            n_bytes += record_bytes(length_of(next++));
        } else if (first != next) {
            check_first(&q, first);
            n_bytes -= record_bytes(length_of(first++));
            uint32_t block = record_queue_advance(&q, &arena);
            if (block != BLOCK_NONE)
                pool_give(&pool, block);
        }
        assert_int_equal(q.n_bytes, n_bytes);
        assert_int_equal(record_queue_empty(&q), first == next);
        assert_int_equal(q.blocks.n, pool.n_use[BLOCK_BACKLOG]);
        for (uint32_t i = 0, block = q.blocks.head; i < q.blocks.n;
             i++, block = arena.held[block].next)
            assert_true(arena.held[block].len <= arena.stride);
    }
    assert_true(next > 10000);
}

/* Small messages share a block, and a block is given back with its last one only. */
static void test_records_share_blocks(void **state)
{
    struct record_queue q = {0};
    struct wire_header h = {.len = 8};
    uint32_t n = 0;

    (void)state;
    record_queue_append_block(&q, &arena, pool_take(&pool, BLOCK_BACKLOG), &h, "12345678");
    for (n = 1; record_queue_append(&q, &arena, &h, "12345678"); n++)
        ;
    assert_int_equal(n, arena.stride / record_bytes(8));
    while (--n > 0)
        assert_int_equal(record_queue_advance(&q, &arena), BLOCK_NONE);
    assert_int_not_equal(record_queue_advance(&q, &arena), BLOCK_NONE);
    assert_true(record_queue_empty(&q));
    assert_int_equal(q.n_bytes, 0);
}

static void test_records_thrown_away(void **state)
{
    struct record_queue q = {0};
    uint32_t n = 0, block;

    (void)state;
    assert_int_equal(record_queue_drop_block(&q, &arena), BLOCK_NONE);
    while (add(&q, n, false))
        n++;
    check_first(&q, 0);
    block = record_queue_advance(&q, &arena);
    if (block != BLOCK_NONE)
        pool_give(&pool, block);
    while ((block = record_queue_drop_block(&q, &arena)) != BLOCK_NONE)
        pool_give(&pool, block);
    assert_int_equal(q.n_bytes, 0);
    assert_int_equal(pool.n_free, BLOCKS);
    /* And it can be used again. */
    assert_true(add(&q, 3, false));
    check_first(&q, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pool, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lines, setup, teardown),
        cmocka_unit_test_setup_teardown(test_block_queue, setup, teardown),
        cmocka_unit_test_setup_teardown(test_record_queue, setup, teardown),
        cmocka_unit_test_setup_teardown(test_records_share_blocks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_records_thrown_away, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
