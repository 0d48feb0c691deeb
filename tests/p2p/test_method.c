/* SPDX-License-Identifier: BSD-3-Clause */
/* How large messages of a node are copied: tried while they travel, with every byte in its place;
 * fixed by a setting; given up where the kernel forbids it; shown on the board of the pair. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "tests/p2p/wire_check.h"

#define MOST (1 << 20)

static const uint32_t together[] = {0, 0, 1};
static unsigned char data[MOST], room[MOST + 1];

static int set_up(void **state)
{
    (void)state;
    unsetenv("MOTET_COPY");
    wire_start(3, together);
    return 0;
}

static struct method_entry *entry_of(uint32_t from, uint32_t to, enum method_kind kind,
                                     MPI_Count bytes)
{
    wire_as(to);
    return &segment_method_board(transport_here->base, &transport_here->layout, 0, from, to)
                ->entries[kind][method_class((uint64_t)bytes)];
}

static void test_classes(void **state)
{
    (void)state;
    assert_int_equal(method_class(0), 0);
    assert_int_equal(method_class(32767), 0);
    assert_int_equal(method_class(32768), 1);
    assert_int_equal(method_class(65536), 2);
    assert_int_equal(method_class(UINT64_MAX), METHOD_CLASSES - 1);
    for (uint32_t c = 1; c < METHOD_CLASSES; c++) {
        assert_int_equal(method_class(method_class_bytes(c)), c);
        assert_int_equal(method_class(method_class_bytes(c) - 1), c - 1);
    }
}

/* All methods that the size allows are tried, early and late receives mixed, and all arrives. */
static void test_tried_while_running(void **state)
{
    const MPI_Count lengths[] = {20000, 100001, METHOD_WINDOW_BYTES - 1};

    (void)state;
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        int reads = wire_n_reads;
        bool tried = false;
        struct method_entry *e = entry_of(0, 1, METHOD_WINDOW, lengths[i]);
        assert_int_equal(e->state, METHOD_UNTRIED);
        for (int n = 0; n < 600 && e->state != METHOD_MEASURED; n++) {
            wire_check_transfer(data, room, lengths[i], n % 3 == 0);
            tried |= e->state == METHOD_TRYING;
        }
        assert_true(tried);
        assert_int_equal(e->state, METHOD_MEASURED);
        assert_true(e->method < METHOD_N);
        assert_true(e->mb_per_s[METHOD_RINGS] > 0 && e->mb_per_s[METHOD_READ] > 0);
        assert_int_equal(e->mb_per_s[METHOD_BOTH] > 0, lengths[i] >= METHOD_BOTH_BYTES);
        assert_true(wire_n_reads > reads);
    }
    /* The other direction, and what is waited for alone, are other entries. */
    assert_int_equal(entry_of(1, 0, METHOD_WINDOW, MOST)->state, METHOD_UNTRIED);
    assert_int_equal(entry_of(0, 1, METHOD_ALONE, MOST)->state, METHOD_UNTRIED);
}

/* Windows of the longest messages are not tried: all goes through the rings. */
static void test_long_windows(void **state)
{
    struct method_entry *e = entry_of(0, 1, METHOD_WINDOW, MOST);
    int reads = wire_n_reads;

    (void)state;
    assert_true(MOST >= METHOD_WINDOW_BYTES);
    for (int n = 0; n < 20; n++)
        wire_check_transfer(data, room, MOST, n % 2 == 0);
    assert_int_equal(e->state, METHOD_UNTRIED);
    assert_int_equal(e->method, METHOD_RINGS);
    assert_int_equal(wire_n_reads, reads);
}

/* The kernel is asked once, in the middle of a trial; from then on all goes through the rings. */
static void test_refused(void **state)
{
    (void)state;
    wire_permit_reading(false, false);
    for (int n = 0; n < 60; n++)
        wire_check_transfer(data, room, 50000, n % 2);
    assert_int_equal(wire_n_reads, 1);
    for (uint32_t class = 0; class < METHOD_CLASSES; class ++) {
        struct method_entry *e =
            entry_of(0, 1, METHOD_WINDOW, (MPI_Count)method_class_bytes(class));
        assert_int_equal(e->state, METHOD_REFUSED);
        assert_int_equal(e->method, METHOD_RINGS);
    }
}

/* What stands on the board was written by another process: nonsense means the rings. */
static void test_nonsense_on_the_board(void **state)
{
    struct method_entry *e = entry_of(0, 1, METHOD_WINDOW, 50000);

    (void)state;
    for (unsigned nonsense = METHOD_N; nonsense < 256; nonsense += 63) {
        e->method = (uint8_t)nonsense;
        e->state = (uint8_t)nonsense;
        wire_check_transfer(data, room, 50000, false);
    }
    assert_int_equal(wire_n_reads, 0);
}

/* Through the rings: as much as an eager message may have rides with the announcement, and the
 * receiver asks for the rest. */
static void test_begins_at_once(void **state)
{
    struct request *send, *recv;
    struct packet *rts;

    (void)state;
    wire_fill(data, 100000, 1);
    memset(room, 0xee, sizeof room);
    wire_hold(true);
    send = wire_isend(0, 1, 1, data, 100000);
    recv = wire_irecv(1, 0, 1, room, 100000);
    rts = wire_packet(0, 1, 0);
    assert_int_equal(rts->slot.kind, MSG_RTS);
    assert_int_equal(rts->slot.len, wire_peer(0, 1)->eager_limit);
    wire_deliver(rts);
    assert_non_null(wire_find(1, 0, MSG_PULL));
    assert_memory_equal(room, data, wire_peer(0, 1)->eager_limit - sizeof(struct msg_rts));
    wire_hold(false);
    wire_settle();
    assert_int_equal(wire_finish(1, recv, MPI_STATUS_IGNORE), MPI_SUCCESS);
    assert_int_equal(wire_finish(0, send, MPI_STATUS_IGNORE), MPI_SUCCESS);
    assert_memory_equal(room, data, 100000);
    wire_check_quiet();
}

static struct method_sample arrive(struct method_table *m, uint32_t flags, uint64_t ago_ns,
                                   bool expected, uint32_t first_len)
{
    struct method_sample s;
    struct msg_rts rts = {
        .bytes = 100000, .flags = flags, .time_ns = (uint32_t)(clock_now_ns() - ago_ns)};

    method_arrived(m, &rts, expected, first_len, &s);
    return s;
}

/* A time is taken only where the sender says when it began, and believed only if it can be. */
static void test_times(void **state)
{
    struct method_table *m;
    uint64_t before = clock_now_ns();

    (void)state;
    wire_as(1);
    m = peer_method(wire_peer(1, 0));
    assert_false(arrive(m, 0, 0, true, 0).timed);
    assert_false(arrive(m, MSG_RTS_TIMED, 0, true, 100000).timed);
    struct method_sample s = arrive(m, MSG_RTS_TIMED, 5000000, true, 1000);
    assert_true(s.timed);
    assert_true(s.start_ns < before && s.start_ns > before - 1000000000);
    assert_int_equal(s.bytes, 100000);
    s = arrive(m, MSG_RTS_TIMED, 5000000, false, 1000);
    assert_true(s.start_ns >= before);
    assert_int_equal(s.bytes, 99000);
    /* Two seconds ago, or in the future: from now on. */
    assert_true(arrive(m, MSG_RTS_TIMED, 2000000000, true, 0).start_ns >= before);
    assert_true(arrive(m, MSG_RTS_TIMED, -(uint64_t)5000000, true, 0).start_ns >= before);
}

static void test_setting(void **state)
{
    const char *const words[] = {"rings", "read", "both", "auto"};
    uint8_t fixed = 77;

    (void)state;
    for (uint8_t i = 0; i < 4; i++) {
        setenv("MOTET_COPY", words[i], 1);
        assert_int_equal(method_read_setting(&fixed), MPI_SUCCESS);
        assert_int_equal(fixed, i);
    }
    setenv("MOTET_COPY", "sideways", 1);
    fixed = 77;
    assert_int_equal(method_read_setting(&fixed), MPI_ERR_ARG);
    assert_int_equal(fixed, 77);
    unsetenv("MOTET_COPY");
    assert_int_equal(method_read_setting(&fixed), MPI_SUCCESS);
    assert_int_equal(fixed, METHOD_AUTO);
}

/* The setting holds for both directions at once, and the board says so. */
static void test_fixed(void **state)
{
    (void)state;
    wire_stop();
    setenv("MOTET_COPY", "both", 1);
    wire_start(2, together);
    unsetenv("MOTET_COPY");
    wire_check_transfer(data, room, 100000, false);
    assert_int_equal(entry_of(0, 1, METHOD_ALONE, 100000)->state, METHOD_FIXED);
    assert_int_equal(entry_of(0, 1, METHOD_ALONE, 100000)->method, METHOD_BOTH);
    assert_int_equal(entry_of(0, 1, METHOD_WINDOW, 65535)->method, METHOD_READ);
    assert_true(wire_n_reads > 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, wire_tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes),
        TEST(test_tried_while_running),
        TEST(test_long_windows),
        TEST(test_refused),
        TEST(test_nonsense_on_the_board),
        TEST(test_begins_at_once),
        TEST(test_times),
        cmocka_unit_test(test_setting),
        TEST(test_fixed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
