/* SPDX-License-Identifier: BSD-3-Clause */
/* proto/ring: one thread plays both sides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rand.h"
#include "proto/ring.h"

struct fixture {
    struct ring_shape shape;
    void *memory;
    uint32_t *data_end;
    struct bell *bell;
    struct ring_producer p;
    struct ring_consumer c;
};

static void fixture_open(struct fixture *f, uint32_t n_slots, uint32_t data_bytes)
{
    struct bell_ref ref = {.bit = 3, .event_fd = -1};

    f->shape = (struct ring_shape){.n_slots = n_slots, .data_bytes = data_bytes};
    size_t n = ring_size(&f->shape);
    assert_int_equal(n % RING_LINE, 0);
    f->memory = aligned_alloc(RING_LINE, n);
    f->data_end = calloc(n_slots, sizeof *f->data_end);
    f->bell = aligned_alloc(64, sizeof *f->bell);
    assert_non_null(f->memory);
    assert_non_null(f->data_end);
    assert_non_null(f->bell);
    memset(f->memory, 0, n);
    memset(f->bell, 0, sizeof *f->bell);
    ref.bell = f->bell;
    ring_producer_init(&f->p, f->memory, &f->shape, f->data_end, &ref);
    ring_consumer_init(&f->c, f->memory, &f->shape);
}

static void fixture_close(struct fixture *f)
{
    free(f->memory);
    free(f->data_end);
    free(f->bell);
}

static uint8_t pattern(uint32_t number, uint32_t i)
{
    return (uint8_t)(number * 31 + i * 7 + (i >> 8));
}

static bool put(struct fixture *f, uint32_t number, uint32_t len)
{
    void *payload;
    struct ring_slot *slot = ring_claim(&f->p, len, &payload);

    if (!slot)
        return false;
    uint8_t *bytes = payload;
    if (len > RING_INLINE_BYTES) {
        assert_true(bytes >= f->p.data && bytes + len <= f->p.data + f->shape.data_bytes);
        assert_int_equal((uintptr_t)(bytes - f->p.data) % RING_LINE, 0);
    }
    for (uint32_t i = 0; i < len; i++)
        bytes[i] = pattern(number, i);
    slot->kind = MSG_EAGER;
    slot->tag = (int32_t)number;
    ring_publish(&f->p);
    return true;
}

/* Takes one message and checks it. False if there is none. */
static bool take(struct fixture *f, uint32_t number, uint32_t want_len)
{
    struct ring_slot *slot = ring_peek(&f->c);

    if (!slot)
        return false;
    uint32_t len = slot->len;
    const uint8_t *bytes = ring_payload(&f->c, slot, len, slot->data_line);
    assert_int_equal(len, want_len);
    assert_int_equal(slot->tag, number);
    assert_non_null(bytes);
    for (uint32_t i = 0; i < len; i++)
        if (bytes[i] != pattern(number, i))
            fail_msg("message %u: byte %u of %u is wrong", number, i, len);
    ring_advance(&f->c, len);
    return true;
}

static void empty_ring_has_nothing(void **state)
{
    struct fixture f;
    (void)state;

    fixture_open(&f, 8, 4096);
    assert_null(ring_peek(&f.c));
    assert_int_equal(ring_free_hint(&f.p), 8);
    fixture_close(&f);
}

static void keeps_order_over_many_laps(void **state)
{
    struct fixture f;
    (void)state;

    fixture_open(&f, 4, 4096);
    for (uint32_t n = 0; n < 1000; n++) {
        assert_true(put(&f, n, n % 33));
        assert_true(take(&f, n, n % 33));
        assert_null(ring_peek(&f.c));
    }
    fixture_close(&f);
}

static void full_ring_refuses_until_released(void **state)
{
    struct fixture f;
    (void)state;

    fixture_open(&f, 8, 4096);
    for (uint32_t n = 0; n < 8; n++)
        assert_true(put(&f, n, 8));
    assert_int_equal(ring_free_hint(&f.p), 0);
    assert_false(put(&f, 8, 8));
    /* mask / 4 = 1: the second message taken passes a quarter of the ring and is given back. */
    assert_true(take(&f, 0, 8));
    assert_false(put(&f, 8, 8));
    assert_true(take(&f, 1, 8));
    assert_true(put(&f, 8, 8));
    assert_true(put(&f, 9, 8));
    assert_false(put(&f, 10, 8));
    for (uint32_t n = 2; n < 10; n++)
        assert_true(take(&f, n, 8));
    assert_null(ring_peek(&f.c));
    fixture_close(&f);
}

static void claim_twice_gives_the_same_slot(void **state)
{
    struct fixture f;
    void *one, *two;
    (void)state;

    fixture_open(&f, 8, 4096);
    struct ring_slot *a = ring_claim(&f.p, 1000, &one);
    struct ring_slot *b = ring_claim(&f.p, 1000, &two);
    assert_ptr_equal(a, b);
    assert_ptr_equal(one, two);
    /* Giving up a claim costs nothing: an inline message follows. */
    assert_true(put(&f, 0, 5));
    assert_true(put(&f, 1, 2000));
    assert_true(take(&f, 0, 5));
    assert_true(take(&f, 1, 2000));
    fixture_close(&f);
}

static void largest_payload_never_wedges(void **state)
{
    struct fixture f;
    (void)state;

    fixture_open(&f, 64, 4096);
    uint32_t most = ring_max_payload(&f.shape);
    assert_int_equal(most, 2048);
    /* From every start line in the data area, once all is read, the largest payload fits. */
    for (uint32_t lines = 0; lines < 64; lines++) {
        for (uint32_t k = 0; k < lines; k++) {
            assert_true(put(&f, k, 33));
            assert_true(take(&f, k, 33));
        }
        assert_null(ring_peek(&f.c));
        assert_true(put(&f, 77, most));
        assert_true(take(&f, 77, most));
        assert_null(ring_peek(&f.c));
    }
    fixture_close(&f);
}

static void emptied_data_area_starts_at_its_front(void **state)
{
    struct fixture f;
    void *payload;
    (void)state;

    fixture_open(&f, 8, 4096);
    assert_true(put(&f, 0, 2048));
    assert_true(take(&f, 0, 2048));
    assert_true(put(&f, 1, 1024));
    assert_true(take(&f, 1, 1024));
    assert_null(ring_peek(&f.c));
    /* 1024 bytes are left at the end; with a stale view of the head the claim looks again and finds
     * all of it free. */
    assert_non_null(ring_claim(&f.p, 2048, &payload));
    assert_ptr_equal(payload, f.p.data);
    ring_publish(&f.p);
    assert_int_equal(f.p.data_tail - f.p.data_head, 2048);
    fixture_close(&f);
}

static void random_traffic_arrives(uint32_t n_slots, uint32_t data_bytes, uint64_t seed,
                                   uint32_t tail_start)
{
    struct fixture f;
    struct rand r = {seed};
    uint32_t sent = 0, got = 0;
    static uint32_t lens[65536];

    fixture_open(&f, n_slots, data_bytes);
    if (tail_start) {
        /* Both sides far into the run: positions wrap at 2^32. */
        f.p.tail = f.p.head_seen = f.c.next = f.c.released = tail_start;
        atomic_store(&f.c.shared->head, tail_start);
        f.p.data_tail = f.p.data_head = 0u - 64u * 5u;
        for (uint32_t i = 0; i < n_slots; i++)
            f.p.data_end[i] = f.p.data_tail;
    }
    uint32_t most = ring_max_payload(&f.shape);
    while (got < 20000) {
        if (rand_below(&r, 2)) {
            uint32_t len =
                (uint32_t)(rand_below(&r, 2) ? rand_below(&r, 40) : rand_below(&r, most + 1));
            lens[sent & 65535] = len;
            if (put(&f, sent, len))
                sent++;
        } else if (got < sent) {
            assert_true(take(&f, got, lens[got & 65535]));
            got++;
        } else {
            assert_null(ring_peek(&f.c));
        }
        assert_true(f.p.tail - f.p.head_seen <= n_slots);
        assert_true(f.p.data_tail - f.p.data_head <= data_bytes);
    }
    fixture_close(&f);
}

static void random_traffic(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        print_message("seed %llu\n", (unsigned long long)seed);
        random_traffic_arrives(4, 4096, seed, 0);
        random_traffic_arrives(64, 8192, seed, 0);
        random_traffic_arrives(16, 4096, seed, 0xffffff00u);
    }
}

static void hostile_head_is_ignored(void **state)
{
    struct fixture f;
    (void)state;

    fixture_open(&f, 8, 4096);
    for (uint32_t n = 0; n < 8; n++)
        assert_true(put(&f, n, 500));
    uint32_t lies[] = {9, 100, 0x80000000u, 0xffffffffu};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        atomic_store(&f.c.shared->head, lies[i]);
        assert_false(put(&f, 8, 500));
        assert_int_equal(f.p.head_seen, 0);
    }
    /* Nor is it one that is ahead of the tail by less than a ring. */
    atomic_store(&f.c.shared->head, 8);
    assert_true(ring_make_room(&f.p, 500));
    assert_int_equal(f.p.head_seen, 8);
    atomic_store(&f.c.shared->head, 11);
    assert_false(ring_make_room(&f.p, 500));
    assert_int_equal(f.p.head_seen, 8);
    /* The truth is believed again. */
    atomic_store(&f.c.shared->head, 8);
    assert_true(put(&f, 8, 500));
    atomic_store(&f.c.shared->head, 3); /* backwards */
    assert_false(ring_make_room(&f.p, 500));
    assert_int_equal(f.p.head_seen, 8);
    fixture_close(&f);
}

static void hostile_place_is_refused(void **state)
{
    struct fixture f;
    (void)state;

    fixture_open(&f, 8, 4096);
    assert_true(put(&f, 0, 500));
    struct ring_slot *slot = ring_peek(&f.c);
    assert_non_null(slot);
    assert_ptr_equal(ring_payload(&f.c, slot, 32, 65535), slot->payload);
    assert_null(ring_payload(&f.c, slot, 33, 65535));
    assert_null(ring_payload(&f.c, slot, 4097, 0));
    assert_null(ring_payload(&f.c, slot, 0xffffffffu, 1));
    assert_null(ring_payload(&f.c, slot, 65, 63));
    assert_non_null(ring_payload(&f.c, slot, 64, 63));
    assert_non_null(ring_payload(&f.c, slot, 4096, 0));
    fixture_close(&f);
}

static void publishing_rings_only_when_quiet(void **state)
{
    struct fixture f;
    (void)state;

    fixture_open(&f, 8, 4096);
    assert_true(put(&f, 0, 1));
    assert_int_equal(bell_collect(f.bell, 0), 1u << 3);
    assert_int_equal(bell_collect(f.bell, 0), 0);
    atomic_store(&f.c.shared->active, 1);
    assert_true(put(&f, 1, 1));
    assert_int_equal(bell_collect(f.bell, 0), 0);
    f.p.bell.fenced = true;
    atomic_store(&f.c.shared->active, 0);
    assert_true(put(&f, 2, 1));
    assert_int_equal(bell_collect(f.bell, 0), 1u << 3);
    for (uint32_t n = 0; n < 3; n++)
        assert_true(take(&f, n, 1));
    fixture_close(&f);
}

static void ring_without_data_area(void **state)
{
    struct fixture f;
    (void)state;

    fixture_open(&f, 4, 0);
    assert_int_equal(ring_max_payload(&f.shape), RING_INLINE_BYTES);
    for (uint32_t n = 0; n < 20; n++) {
        assert_true(put(&f, n, 32));
        assert_true(take(&f, n, 32));
    }
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_ring_has_nothing),
        cmocka_unit_test(keeps_order_over_many_laps),
        cmocka_unit_test(full_ring_refuses_until_released),
        cmocka_unit_test(claim_twice_gives_the_same_slot),
        cmocka_unit_test(largest_payload_never_wedges),
        cmocka_unit_test(emptied_data_area_starts_at_its_front),
        cmocka_unit_test(random_traffic),
        cmocka_unit_test(hostile_head_is_ignored),
        cmocka_unit_test(hostile_place_is_refused),
        cmocka_unit_test(publishing_rings_only_when_quiet),
        cmocka_unit_test(ring_without_data_area),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
