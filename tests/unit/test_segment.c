/* SPDX-License-Identifier: BSD-3-Clause */
/* proto/segment, proto/hop, proto/queue: layouts that do not overlap, limits that hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rand.h"
#include "proto/segment.h"

struct extent {
    size_t begin, end;
};

static int by_begin(const void *a, const void *b)
{
    const struct extent *x = a, *y = b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static struct segment_shape shape_of(uint32_t world, uint32_t nodes, uint32_t local,
                                     uint32_t channels)
{
    struct segment_shape s = {.n_world = world,
                              .n_nodes = nodes,
                              .n_local = local,
                              .n_channels = channels,
                              .n_networks = channels};
    segment_shape_defaults(&s);
    return s;
}

/* Every object of the segment, by the accessors alone: inside, aligned, and no two share a byte. */
static void check_layout(const struct segment_shape *s)
{
    struct segment_layout l;
    char *base = (char *)0x100000000; /* only compared, never followed */
    size_t max = 3 + (s->n_networks ? 3 : 0) + s->n_channels + 2u * s->n_local +
                 2 * (size_t)s->n_local * s->n_local * s->n_vcis + 2u * s->n_local * s->n_channels +
                 (s->cell_bytes ? (size_t)CELLS_SLOTS * CELLS_ROWS * s->n_local : 0);
    struct extent *e = calloc(max, sizeof *e);
    size_t n = 0;

    assert_int_equal(segment_shape_check(s), 0);
    segment_layout(s, &l);
    assert_non_null(e);
#define ADD(pointer, bytes, align)                                                                 \
    do {                                                                                           \
        size_t at = (size_t)((char *)(pointer)-base);                                              \
        assert_int_equal(at % (align), 0);                                                         \
        assert_true(at + (bytes) <= l.total);                                                      \
        e[n++] = (struct extent){at, at + (bytes)};                                                \
    } while (0)
    ADD(base, sizeof(struct segment_header), 64);
    ADD(segment_world_at(base, &l, 0), sizeof(struct segment_world) * s->n_world, 8);
    ADD(segment_node_at(base, &l, 0), sizeof(struct segment_node) * s->n_nodes, 64);
    if (s->n_networks > 0) {
        ADD(segment_network_at(base, &l, 0), sizeof(struct segment_network) * s->n_networks, 64);
        ADD(segment_on_network(base, &l, 0, 0), (size_t)s->n_networks * s->n_nodes, 1);
        ADD(segment_network_distance(base, &l, 0, 0), (size_t)s->n_networks * s->n_networks, 1);
    }
    for (uint32_t c = 0; c < s->n_channels; c++)
        ADD(segment_channel_bell(base, &l, c), sizeof(struct bell), 64);
    for (uint32_t r = 0; r < s->n_local; r++) {
        ADD(segment_rank_at(base, &l, r), sizeof(struct segment_rank), 64);
        ADD(segment_board_at(base, &l, r), sizeof(struct queue_record) * (size_t)s->board_records,
            64);
        for (uint32_t to = 0; to < s->n_local * s->n_vcis; to++)
            ADD(segment_local_ring(base, &l, to / s->n_local, r, to % s->n_local),
                ring_size(&s->local), 64);
        for (uint32_t to = 0; to < s->n_local * s->n_vcis; to++)
            ADD(segment_method_board(base, &l, to / s->n_local, r, to % s->n_local),
                sizeof(struct method_board), 64);
        for (uint32_t c = 0; c < s->n_channels; c++) {
            ADD(segment_up_ring(base, &l, r, c), ring_size(&s->up), 64);
            ADD(segment_down_ring(base, &l, r, c), ring_size(&s->down), 64);
        }
        for (uint32_t i = 0; s->cell_bytes && i < CELLS_SLOTS * CELLS_ROWS; i++)
            ADD(segment_cell(base, &l, i / CELLS_ROWS, i % CELLS_ROWS, r),
                CELLS_DATA_OFF + s->cell_bytes, 4096);
    }
#undef ADD
    assert_int_equal(n, max);
    qsort(e, n, sizeof *e, by_begin);
    for (size_t i = 1; i < n; i++)
        if (e[i].begin < e[i - 1].end)
            fail_msg("[%zu, %zu) overlaps [%zu, %zu)", e[i - 1].begin, e[i - 1].end, e[i].begin,
                     e[i].end);
    free(e);
}

static void objects_do_not_overlap(void **state)
{
    struct segment_shape s;
    (void)state;

    s = shape_of(1, 1, 1, 0);
    check_layout(&s);
    s = shape_of(2, 1, 2, 1);
    check_layout(&s);
    s = shape_of(64, 8, 8, 3);
    check_layout(&s);
    s = shape_of(1u << 20, HOP_MAX_NODES, 256, HOP_MAX_CHANNELS);
    check_layout(&s);
    struct rand r = {7};
    for (int i = 0; i < 50; i++) {
        uint32_t local = 1 + (uint32_t)rand_below(&r, 40);
        s = shape_of(local + (uint32_t)rand_below(&r, 3000), 1 + (uint32_t)rand_below(&r, 200),
                     local, (uint32_t)rand_below(&r, HOP_MAX_CHANNELS + 1));
        s.local.n_slots = 4u << rand_below(&r, 8);
        s.up.data_bytes = 4096u << rand_below(&r, 8);
        s.board_records = 64 + (uint32_t)rand_below(&r, 1000);
        s.cell_bytes = i % 3 ? 4096u << rand_below(&r, 8) : 0;
        check_layout(&s);
    }
}

static void largest_segment_is_counted_without_overflow(void **state)
{
    struct segment_shape s = shape_of(1u << 22, HOP_MAX_NODES, SEGMENT_MAX_LOCAL, HOP_MAX_CHANNELS);
    struct segment_layout l;
    (void)state;

    s.board_records = 1u << 20;
    s.local = s.up = s.down =
        (struct ring_shape){.n_slots = 65536, .data_bytes = RING_MAX_DATA_BYTES};
    assert_int_equal(segment_shape_check(&s), 0);
    segment_layout(&s, &l);
    /* 65,536 + 4,096 rings of about 8.4 MB and 256 boards of 64 MiB. */
    size_t rings = (65536u + 2u * 2048u) * (ring_size(&s.local) + 4096u);
    assert_true(l.total > 69632ull * ring_size(&s.local));
    assert_true(l.total <
                rings + 256ull * ((64u << 20) + 8192u) + (64u << 20) +
                    (size_t)CELLS_SLOTS * CELLS_ROWS * 256u * (CELLS_DATA_OFF + s.cell_bytes) +
                    256ull * 256u * s.n_vcis * sizeof(struct method_board));
}

static void defaults_pass_their_own_check(void **state)
{
    (void)state;
    for (uint32_t local = 1; local <= SEGMENT_MAX_LOCAL; local++) {
        struct segment_shape s = shape_of(local, 1, local, 2);
        assert_int_equal(segment_shape_check(&s), 0);
        /* A packet must fit the rings. */
        assert_true(ring_max_payload(&s.local) >= 16384);
        assert_true(ring_max_payload(&s.up) >= 65536);
    }
}

static void bad_shapes_are_refused(void **state)
{
    (void)state;
    const struct segment_shape good = shape_of(8, 2, 4, 2);
    struct segment_shape s;

#define REFUSED(change)                                                                            \
    do {                                                                                           \
        s = good;                                                                                  \
        change;                                                                                    \
        if (segment_shape_check(&s) != -22)                                                        \
            fail_msg("accepted: %s", #change);                                                     \
    } while (0)
    assert_int_equal(segment_shape_check(&good), 0);
    REFUSED(s.n_local = 0);
    REFUSED(s.cell_bytes = 2048);
    REFUSED(s.cell_bytes = 5000);
    REFUSED(s.cell_bytes = 1u << 27);
    REFUSED(s.n_local = SEGMENT_MAX_LOCAL + 1; s.n_world = 1000);
    REFUSED(s.n_world = 3);
    REFUSED(s.n_world = (1u << 22) + 1);
    REFUSED(s.n_world = UINT32_MAX);
    REFUSED(s.n_nodes = 0);
    REFUSED(s.n_nodes = HOP_MAX_NODES + 1);
    REFUSED(s.n_channels = HOP_MAX_CHANNELS + 1);
    REFUSED(s.n_networks = SEGMENT_MAX_NETWORKS + 1);
    REFUSED(s.board_records = 63);
    REFUSED(s.board_records = (1u << 20) + 1);
    REFUSED(s.n_vcis = 0);
    REFUSED(s.n_vcis = SEGMENT_MAX_VCIS + 1);
    REFUSED(s.n_local = 64; s.n_world = 64; s.n_vcis = 8); /* 514 rings, and a bell has 512 bits */
    REFUSED(s.local.n_slots = 0);
    REFUSED(s.local.n_slots = 2);
    REFUSED(s.local.n_slots = 12);
    REFUSED(s.up.n_slots = 131072);
    REFUSED(s.down.data_bytes = 0);
    REFUSED(s.down.data_bytes = 2048);
    REFUSED(s.down.data_bytes = 5000);
    REFUSED(s.down.data_bytes = 2 * RING_MAX_DATA_BYTES);
#undef REFUSED
}

static void bell_has_a_bit_for_every_ring(void **state)
{
    (void)state;
    assert_true(SEGMENT_MAX_LOCAL + HOP_MAX_CHANNELS <= BELL_MAX_RINGS);
    assert_int_equal(sizeof(((struct bell *)NULL)->rung) * 8, BELL_MAX_RINGS);
    assert_int_equal(offsetof(struct bell, rung) % 64, 0);
    /* A bit for each ring to a rank, and no other ring has it. */
    const struct segment_shape s = shape_of(8, 2, 4, 2);
    bool taken[BELL_MAX_RINGS] = {0};
    for (uint32_t vci = 0; vci < s.n_vcis; vci++) {
        uint32_t n = s.n_local + (vci == 0 ? s.n_channels : 0);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t bit = segment_first_bit(&s, vci) + i;
            assert_in_range(bit, 0, segment_first_bit(&s, s.n_vcis) - 1);
            assert_false(taken[bit]);
            taken[bit] = true;
        }
    }
    /* What different threads write lies on different lines. */
    assert_int_equal(offsetof(struct ring_shared, active) - offsetof(struct ring_shared, head), 64);
    assert_int_equal(offsetof(struct ring_shared, slots) % 64, 0);
    assert_int_equal(offsetof(struct segment_rank, state) % 64, 0);
}

/* Two builds of one version agree on where things are. */
static void rings_lie_by_vci_producer_and_consumer(void **state)
{
    const struct segment_shape s = shape_of(8, 2, 4, 2);
    struct segment_layout l;
    char *base = (char *)0x100000000;
    (void)state;

    segment_layout(&s, &l);
    char *first = base + l.local_off;
    assert_ptr_equal(segment_local_ring(base, &l, 0, 0, 0), first);
    assert_ptr_equal(segment_local_ring(base, &l, 0, 0, 1), first + l.local_stride);
    assert_ptr_equal(segment_local_ring(base, &l, 0, 1, 0), first + 4 * l.local_stride);
    assert_ptr_equal(segment_local_ring(base, &l, 1, 0, 0), first + 16 * l.local_stride);
    assert_ptr_equal(segment_up_ring(base, &l, 1, 0), base + l.up_off + 2 * l.up_stride);
    assert_ptr_equal(segment_down_ring(base, &l, 0, 1), base + l.down_off + l.down_stride);
}

static void hop_words_keep_their_fields(void **state)
{
    struct rand r = {11};
    (void)state;

    for (int i = 0; i < 1000; i++) {
        uint16_t slot = (uint16_t)rand_below(&r, HOP_MAX_NODES), share = (uint16_t)rand_next(&r);
        uint8_t channel = (uint8_t)rand_below(&r, HOP_MAX_CHANNELS),
                hops = (uint8_t)rand_below(&r, 17);
        hop_word w = hop_pack(slot, channel, hops, share);
        assert_true(w != HOP_NONE);
        assert_int_equal(w >> 48, 0);
        assert_int_equal(hop_next_slot(w), slot);
        assert_int_equal(hop_channel(w), channel);
        assert_int_equal(hop_n_hops(w), hops);
        assert_int_equal(hop_share(w), share);
    }
    /* "None" names no channel at all. */
    assert_int_equal(hop_channel(HOP_NONE), 255);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_do_not_overlap),
        cmocka_unit_test(largest_segment_is_counted_without_overflow),
        cmocka_unit_test(defaults_pass_their_own_check),
        cmocka_unit_test(bad_shapes_are_refused),
        cmocka_unit_test(bell_has_a_bit_for_every_ring),
        cmocka_unit_test(rings_lie_by_vci_producer_and_consumer),
        cmocka_unit_test(hop_words_keep_their_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
