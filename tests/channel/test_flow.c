/* SPDX-License-Identifier: BSD-3-Clause */
/* The two ends of a flow, as the state machines they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/rand.h"
#include "daemon/flow/flow.h"

#define MS    1000000ull
#define WAY_A 0x010001u
#define WAY_B 0x020002u

static const struct flow_limits limits = {
    .rto_min_ns = 20 * MS, .rto_max_ns = 1000 * MS, .window_initial = 32, .window_max = 512};

static struct flow_tx tx;
static struct flow_rx rx;
static uint32_t blocks[FLOW_WINDOW];

static int setup(void **state)
{
    (void)state;
    memset(&tx, 0, sizeof tx);
    flow_tx_init(&tx, &limits);
    flow_rx_init(&rx, 5);
    return 0;
}

/* Adds and sends n packets; block = number. */
static void send_n(uint32_t n, uint32_t way, uint64_t now_ns)
{
    for (uint32_t i = 0; i < n; i++) {
        assert_true(flow_tx_room(&tx) > 0);
        uint32_t seq = flow_tx_add(&tx, tx.next, 100), got;
        assert_true(flow_tx_next(&tx, &got));
        assert_int_equal(got, seq);
        flow_tx_sent(&tx, seq, way, now_ns);
    }
}

static uint32_t ack_up_to(uint32_t cumulative, uint64_t now_ns)
{
    struct wire_ack ack = {.cumulative = cumulative, .sent_us = (uint32_t)(now_ns / 1000) - 100};
    return flow_tx_ack(&tx, &ack, 0, now_ns, blocks);
}

static void test_in_order(void **state)
{
    (void)state;
    send_n(10, WAY_A, MS);
    assert_int_equal(tx.n_sent, 10);
    assert_int_equal(ack_up_to(4, 2 * MS), 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(blocks[i], i + 1);
    assert_int_equal(ack_up_to(4, 2 * MS), 0);
    assert_int_equal(ack_up_to(10, 3 * MS), 6);
    assert_int_equal(flow_tx_pending(&tx), 0);
    assert_true(flow_tx_due(&tx) == UINT64_MAX);
    assert_true(tx.srtt_us >= 90 && tx.srtt_us <= 110);
}

static void test_ack_of_what_was_never_sent(void **state)
{
    (void)state;
    send_n(3, WAY_A, MS);
    flow_tx_add(&tx, 4, 100);
    assert_int_equal(ack_up_to(4, 2 * MS), 0);
    assert_int_equal(ack_up_to(1000000, 2 * MS), 0);
    assert_int_equal(flow_tx_pending(&tx), 4);
    struct wire_ack ack = {.cumulative = 0, .selective = {UINT64_MAX, UINT64_MAX}};
    /* Bits beyond what was sent are ignored: 2 and 3 count. */
    assert_int_equal(flow_tx_ack(&tx, &ack, 2, 2 * MS, blocks), 2);
}

static void test_gap_is_resent_once_three_passed(void **state)
{
    uint32_t seq;

    (void)state;
    send_n(5, WAY_A, MS);
    struct wire_ack ack = {.cumulative = 0, .selective = {0x3}}; /* 2 and 3 */
    assert_int_equal(flow_tx_ack(&tx, &ack, 1, 2 * MS, blocks), 2);
    assert_int_equal(tx.n_resend, 0);
    ack.selective[0] = 0x7; /* and 4 */
    assert_int_equal(flow_tx_ack(&tx, &ack, 1, 2 * MS, blocks), 1);
    assert_int_equal(tx.n_resend, 1);
    assert_true(flow_tx_next(&tx, &seq));
    assert_int_equal(seq, 1);
    flow_tx_sent(&tx, 1, WAY_A, 3 * MS);
    assert_int_equal(flow_tx_window(&tx), 16);
    assert_int_equal(ack_up_to(5, 4 * MS), 2);
}

static void test_overtaking_on_another_way_is_no_loss(void **state)
{
    (void)state;
    send_n(1, WAY_A, MS);
    send_n(10, WAY_B, MS);
    struct wire_ack ack = {.cumulative = 0, .selective = {0x3ff}};
    assert_int_equal(flow_tx_ack(&tx, &ack, 1, 2 * MS, blocks), 10);
    assert_int_equal(tx.n_resend, 0);
    assert_int_equal(tx.n_sent, 1);
}

/* A path that changes the order of its packets: what was held for lost comes late. The gap grows,
 * the window is what it was, and the next time nothing is sent twice. */
static void test_late_is_not_lost(void **state)
{
    (void)state;
    send_n(1, WAY_A, MS);
    assert_int_equal(ack_up_to(1, MS + MS / 10), 1);
    send_n(5, WAY_A, 2 * MS);
    struct wire_ack ack = {.cumulative = 1, .sent_us = 2000, .selective = {0x7}}; /* 3 to 5 */
    assert_int_equal(flow_tx_ack(&tx, &ack, 1, 3 * MS, blocks), 3);
    assert_int_equal(tx.n_resend, 1);
    assert_int_equal(flow_tx_window(&tx), 16);
    assert_int_equal(ack_up_to(6, 3 * MS), 2);
    assert_int_equal(tx.n_resend, 0);
    assert_true(flow_tx_window(&tx) >= 32);
    send_n(8, WAY_A, 4 * MS);
    ack = (struct wire_ack){.cumulative = 6, .sent_us = 4000, .selective = {0x1f}};
    assert_int_equal(flow_tx_ack(&tx, &ack, 1, 5 * MS, blocks), 5);
    assert_int_equal(tx.n_resend, 0);
    ack.selective[0] = 0x3f;
    assert_int_equal(flow_tx_ack(&tx, &ack, 1, 5 * MS, blocks), 1);
    assert_int_equal(tx.n_resend, 1);
}

/* What came after it was sent again is the answer to that: the loss was one. */
static void test_answer_to_the_second_sending(void **state)
{
    uint32_t seq;

    (void)state;
    send_n(1, WAY_A, MS);
    assert_int_equal(ack_up_to(1, 2 * MS), 1);
    send_n(5, WAY_A, 2 * MS);
    struct wire_ack ack = {.cumulative = 1, .sent_us = 2900, .selective = {0x7}};
    assert_int_equal(flow_tx_ack(&tx, &ack, 1, 3 * MS, blocks), 3);
    assert_true(flow_tx_next(&tx, &seq));
    flow_tx_sent(&tx, seq, WAY_A, 3 * MS);
    assert_int_equal(ack_up_to(6, 4 * MS), 2);
    assert_int_equal(flow_tx_window(&tx), 16);
    assert_int_equal(tx.paths[0].gap, FLOW_GAP);
}

static void test_lost_way_is_resent_at_once(void **state)
{
    uint32_t keys[] = {WAY_B};

    (void)state;
    send_n(4, WAY_A, MS);
    send_n(4, WAY_B, MS);
    assert_int_equal(flow_tx_reroute(&tx, keys, 1), 4);
    assert_int_equal(tx.n_resend, 4);
    for (uint32_t i = 1; i <= 4; i++) {
        uint32_t seq;
        assert_true(flow_tx_next(&tx, &seq));
        assert_int_equal(seq, i);
        flow_tx_sent(&tx, seq, WAY_B, 2 * MS);
    }
    /* An acknowledgement that was under way all the time is as good. */
    assert_int_equal(ack_up_to(8, 3 * MS), 8);
}

static void test_tail_is_probed_then_times_out(void **state)
{
    uint32_t seq;

    (void)state;
    send_n(1, WAY_A, MS);
    ack_up_to(1, MS + 100000);
    send_n(3, WAY_A, 10 * MS);
    uint64_t due = flow_tx_due(&tx);
    assert_true(due > 10 * MS && due < 20 * MS);
    assert_int_equal(flow_tx_timeout(&tx, due), 1);
    assert_true(flow_tx_next(&tx, &seq));
    assert_int_equal(seq, 4);
    flow_tx_sent(&tx, seq, WAY_A, due);
    due = flow_tx_due(&tx);
    assert_true(due >= 30 * MS);
    assert_int_equal(flow_tx_timeout(&tx, due), 2);
}

static void test_back_off(void **state)
{
    uint64_t due = 10 * MS, last = 0;
    uint32_t seq;

    (void)state;
    send_n(1, WAY_A, MS);
    ack_up_to(1, MS + 100000);
    send_n(1, WAY_A, due);
    flow_tx_timeout(&tx, flow_tx_due(&tx));
    for (int i = 0; i < 12; i++) {
        while (flow_tx_next(&tx, &seq))
            flow_tx_sent(&tx, seq, WAY_A, due);
        uint64_t next;
        /* The time that is due may be too early, never too late. */
        do
            next = flow_tx_due(&tx);
        while (flow_tx_timeout(&tx, next) == 0);
        assert_true(next - due >= last && next - due >= 20 * MS);
        last = next - due;
        due = next;
    }
    assert_true(last == 1000 * MS);
}

static void test_window_and_room(void **state)
{
    uint32_t seq, n = 0;

    (void)state;
    while (flow_tx_room(&tx) > 0)
        flow_tx_add(&tx, n++, 100);
    assert_int_equal(n, 32 + 32);
    n = 0;
    while (flow_tx_next(&tx, &seq)) {
        flow_tx_sent(&tx, seq, WAY_A, MS);
        n++;
    }
    assert_int_equal(n, 32);
    ack_up_to(32, 2 * MS);
    assert_int_equal(flow_tx_window(&tx), 64);
    struct wire_ack ack = {.cumulative = 32, .sent_us = 2000, .congested = 1};
    while (flow_tx_next(&tx, &seq))
        flow_tx_sent(&tx, seq, WAY_A, 2 * MS);
    ack.cumulative = 40;
    flow_tx_ack(&tx, &ack, 0, 3 * MS, blocks);
    assert_int_equal(flow_tx_window(&tx), 48);
    /* Only once in a window. */
    ack.cumulative = 41;
    flow_tx_ack(&tx, &ack, 0, 3 * MS, blocks);
    assert_true(flow_tx_window(&tx) >= 48);
}

static void test_numbers_wrap(void **state)
{
    (void)state;
    tx.acked = tx.recovery = UINT32_MAX - 5;
    tx.next = tx.send_next = tx.resend_at = UINT32_MAX - 4;
    rx.cumulative = UINT32_MAX - 5;
    for (int round = 0; round < 20; round++) {
        send_n(1, WAY_A, MS);
        uint32_t seq = tx.next - 1;
        assert_int_equal(flow_rx_check(&rx, seq), FLOW_NEW);
        flow_rx_take(&rx, seq);
        assert_int_equal(flow_rx_check(&rx, seq), FLOW_DUPLICATE);
        struct wire_ack ack;
        assert_int_equal(flow_rx_ack(&rx, &ack), 0);
        assert_int_equal(flow_tx_ack(&tx, &ack, 0, MS, blocks), 1);
    }
}

static void test_give_up_and_skip(void **state)
{
    (void)state;
    send_n(8, WAY_A, MS);
    flow_rx_take(&rx, 1);
    flow_rx_take(&rx, 5);
    assert_int_equal(flow_tx_drop(&tx, blocks), 8);
    assert_true(tx.first);
    uint32_t seq = flow_tx_add(&tx, 9, 100);
    assert_int_equal(seq, 9);
    assert_false(tx.first);
    flow_rx_skip(&rx, 9);
    assert_int_equal(rx.cumulative, 8);
    assert_int_equal(flow_rx_check(&rx, 3), FLOW_DUPLICATE);
    assert_int_equal(flow_rx_check(&rx, 9), FLOW_NEW);
    /* An old one of these does no harm. */
    flow_rx_skip(&rx, 2);
    assert_int_equal(rx.cumulative, 8);
}

static void test_receiver(void **state)
{
    struct wire_ack ack;

    (void)state;
    assert_int_equal(flow_rx_check(&rx, FLOW_RX_WINDOW), FLOW_NEW);
    assert_int_equal(flow_rx_check(&rx, FLOW_RX_WINDOW + 1), FLOW_FAR);
    assert_int_equal(flow_rx_check(&rx, 0), FLOW_DUPLICATE);
    flow_rx_take(&rx, 3);
    flow_rx_take(&rx, 70);
    flow_rx_take(&rx, 513);
    assert_int_equal(flow_rx_ack(&rx, &ack), 8);
    assert_int_equal(ack.cumulative, 0);
    assert_true(ack.selective[0] == 1ull << 1);
    assert_true(ack.selective[1] == 1ull << 4);
    assert_true(ack.selective[7] == 1ull << 63);
    flow_rx_take(&rx, 1);
    flow_rx_take(&rx, 2);
    assert_int_equal(rx.cumulative, 3);
}

/* Acknowledgements while the numbers pass round the bitmap: each bit is the number that it should
 * be, also where the bits of a word lie at both of the bitmap's ends. */
static void test_selective_bits_round_the_bitmap(void **state)
{
    struct rand r = {.state = 7};

    (void)state;
    for (uint32_t start = 0; start < 2 * FLOW_RX_WINDOW; start += 1 + start % 7) {
        bool taken[FLOW_WINDOW + 2] = {false};
        struct wire_ack ack;
        flow_rx_init(&rx, 5);
        rx.cumulative = start;
        for (uint32_t i = 0; i < 40; i++) {
            uint32_t ahead = 2 + (uint32_t)rand_below(&r, FLOW_WINDOW);
            if (flow_rx_check(&rx, start + ahead) == FLOW_NEW)
                flow_rx_take(&rx, start + ahead);
            taken[ahead] = true;
        }
        uint32_t n_words = flow_rx_ack(&rx, &ack), last = 0;
        assert_int_equal(ack.cumulative, start);
        for (uint32_t ahead = 2; ahead < FLOW_WINDOW + 2; ahead++) {
            uint32_t bit = ahead - 2;
            assert_int_equal(ack.selective[bit / 64] >> (bit % 64) & 1, taken[ahead]);
            last = taken[ahead] ? bit / 64 + 1 : last;
        }
        assert_int_equal(n_words, last);
    }
}

/* What is refused under a number stays refused, until the window has moved on. */
static void test_refused_numbers(void **state)
{
    (void)state;
    flow_rx_refuse(&rx, 2);
    assert_true(flow_rx_refused(&rx, 2));
    assert_false(flow_rx_refused(&rx, 1));
    assert_int_equal(flow_rx_check(&rx, 2), FLOW_NEW);
    flow_rx_take(&rx, 1);
    flow_rx_take(&rx, 2);
    assert_false(flow_rx_refused(&rx, 2 + FLOW_RX_WINDOW));
    flow_rx_refuse(&rx, 5);
    flow_rx_skip(&rx, 5000);
    assert_int_equal(rx.cumulative, 4999);
    assert_false(flow_rx_refused(&rx, 5 + FLOW_RX_WINDOW));
    flow_rx_take(&rx, 5001);
    flow_rx_skip(&rx, 5001);
    assert_int_equal(rx.cumulative, 5001);
}

/* A message that is replaced goes again at once, and its old block comes back. */
static void test_replace(void **state)
{
    uint32_t seq;

    (void)state;
    send_n(2, WAY_A, MS);
    assert_int_equal(flow_tx_replace(&tx, 1, 77, 88), 1);
    assert_true(flow_tx_next(&tx, &seq));
    assert_int_equal(seq, 1);
    assert_int_equal(flow_tx_packet(&tx, 1)->len, 88);
    flow_tx_sent(&tx, 1, WAY_A, MS);
    flow_tx_lost(&tx, 2);
    flow_tx_lost(&tx, 2);
    flow_tx_lost(&tx, 3);
    assert_int_equal(tx.n_resend, 1);
    assert_int_equal(ack_up_to(2, 2 * MS), 2);
    assert_int_equal(blocks[0], 77);
}

/* Sender and receiver over a channel that loses, doubles and reorders: everything arrives once. */
static void test_random(void **state)
{
    enum { N = 3000, WIRE = 64 };
    struct packet {
        uint32_t seq, sent_us;
    } wire[WIRE];
    struct rand r = {.state = 99};

    (void)state;
    for (int round = 0; round < 20; round++) {
        uint8_t *seen = calloc(N + 1, 1);
        uint32_t n_wire = 0, n_taken = 0;
        uint64_t now = MS;
        setup(NULL);
        while (n_taken < N || flow_tx_pending(&tx) > 0) {
            uint32_t seq;
            now += rand_below(&r, MS / 10);
            assert_true(now < 1000000 * MS);
            while (tx.next <= N && flow_tx_room(&tx) > 0 && rand_below(&r, 4))
                flow_tx_add(&tx, tx.next, 100);
            while (n_wire < WIRE && flow_tx_next(&tx, &seq)) {
                flow_tx_sent(&tx, seq, rand_below(&r, 2) ? WAY_A : WAY_B, now);
                if (rand_below(&r, 20) == 0)
                    continue;
                wire[n_wire++] = (struct packet){seq, (uint32_t)(now / 1000)};
                if (n_wire < WIRE && rand_below(&r, 20) == 0) {
                    wire[n_wire] = wire[n_wire - 1];
                    n_wire++;
                }
            }
            if (n_wire > 0) {
                uint32_t i = (uint32_t)rand_below(&r, n_wire);
                struct packet p = wire[i];
                wire[i] = wire[--n_wire];
                if (flow_rx_check(&rx, p.seq) == FLOW_NEW) {
                    flow_rx_take(&rx, p.seq);
                    assert_int_equal(seen[p.seq], 0);
                    seen[p.seq] = 1;
                    n_taken++;
                }
                rx.sent_us = p.sent_us;
                rx.n_unacked++;
            }
            if (rand_below(&r, 5) == 0) {
                struct wire_ack ack;
                uint32_t n_words = flow_rx_ack(&rx, &ack);
                if (rand_below(&r, 20))
                    flow_tx_ack(&tx, &ack, n_words, now, blocks);
            }
            if (now >= flow_tx_due(&tx))
                flow_tx_timeout(&tx, now);
            else if (n_wire == 0 && flow_tx_room(&tx) == 0 && flow_tx_due(&tx) != UINT64_MAX)
                now = flow_tx_due(&tx);
        }
        assert_int_equal(tx.n_sent, 0);
        assert_int_equal(tx.n_resend, 0);
        free(seen);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_in_order, setup),
        cmocka_unit_test_setup(test_ack_of_what_was_never_sent, setup),
        cmocka_unit_test_setup(test_gap_is_resent_once_three_passed, setup),
        cmocka_unit_test_setup(test_overtaking_on_another_way_is_no_loss, setup),
        cmocka_unit_test_setup(test_late_is_not_lost, setup),
        cmocka_unit_test_setup(test_answer_to_the_second_sending, setup),
        cmocka_unit_test_setup(test_lost_way_is_resent_at_once, setup),
        cmocka_unit_test_setup(test_tail_is_probed_then_times_out, setup),
        cmocka_unit_test_setup(test_back_off, setup),
        cmocka_unit_test_setup(test_window_and_room, setup),
        cmocka_unit_test_setup(test_numbers_wrap, setup),
        cmocka_unit_test_setup(test_give_up_and_skip, setup),
        cmocka_unit_test_setup(test_receiver, setup),
        cmocka_unit_test_setup(test_selective_bits_round_the_bitmap, setup),
        cmocka_unit_test_setup(test_refused_numbers, setup),
        cmocka_unit_test_setup(test_replace, setup),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
