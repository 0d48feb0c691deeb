/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between nodes arrive as they like, and are received in the order in which they were
 * sent, once each; what is wrong with one is told. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/p2p/wire.h"

static const uint32_t apart[] = {0, 1, 2}, together[] = {0, 0, 0};

static int set_up(void **state)
{
    (void)state;
    wire_start(3, apart);
    wire_hold(true);
    return 0;
}

static int set_up_node(void **state)
{
    (void)state;
    wire_start(3, together);
    return 0;
}

static void send_number(uint32_t from, uint32_t to, int tag, int number)
{
    wire_finish(from, wire_isend(from, to, tag, &number, sizeof number), MPI_STATUS_IGNORE);
}

static int receive_number(uint32_t at, int from, int tag, MPI_Status *status)
{
    int number = -1;

    assert_int_equal(wire_finish(at, wire_irecv(at, from, tag, &number, sizeof number), status),
                     MPI_SUCCESS);
    return number;
}

/* Every order of four messages, with the receives posted before or after. */
static void test_every_order(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < 2 * 24; k++) {
        uint32_t order[] = {k / 2 / 6, k / 2 / 2 % 3, k / 2 % 2, 0};
        bool before = k % 2;
        int got[4] = {0};
        struct request *r[4];
        for (int i = 0; i < 4; i++)
            send_number(0, 1, 3, 100 + i);
        for (int i = 0; i < 4 && before; i++)
            r[i] = wire_irecv(1, 0, 3, &got[i], sizeof got[i]);
        wire_deliver_order(0, 1, 4, order);
        for (int i = 0; i < 4 && !before; i++)
            r[i] = wire_irecv(1, 0, 3, &got[i], sizeof got[i]);
        for (int i = 0; i < 4; i++) {
            wire_finish(1, r[i], MPI_STATUS_IGNORE);
            assert_int_equal(got[i], 100 + i);
        }
    }
}

/* The orders 3 1 0 2. Nothing is received before its turn. */
static void test_nothing_before_its_turn(void **state)
{
    int got[4] = {0};
    struct request *r[4];

    (void)state;
    for (int i = 0; i < 4; i++) {
        send_number(0, 1, 3, i + 1);
        r[i] = wire_irecv(1, MPI_ANY_SOURCE, MPI_ANY_TAG, &got[i], sizeof got[i]);
    }
    wire_deliver(wire_packet(0, 1, 3));
    wire_deliver(wire_packet(0, 1, 1));
    for (int i = 0; i < 4; i++)
        assert_false(request_is_complete(r[i]));
    wire_deliver(wire_packet(0, 1, 0));
    for (int i = 0; i < 4; i++)
        assert_int_equal(request_is_complete(r[i]), i < 2);
    wire_deliver(wire_packet(0, 1, 0));
    for (int i = 0; i < 4; i++) {
        wire_finish(1, r[i], MPI_STATUS_IGNORE);
        assert_int_equal(got[i], i + 1);
    }
    assert_true(list_empty(&wire_peer(1, 0)->early));
}

/* Each once, however often it comes, early or late. */
static void test_duplicates(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        send_number(0, 1, 3, i);
    for (uint32_t k = 0; k < 3; k++)
        for (uint32_t i = 3; i-- > 0;)
            wire_deliver_copy(wire_packet(0, 1, i));
    wire_deliver_order(0, 1, 3, (uint32_t[]){0, 0, 0});
    for (int i = 0; i < 3; i++)
        assert_int_equal(receive_number(1, 0, 3, MPI_STATUS_IGNORE), i);
    assert_int_equal(wire_engine(1)->match.n_unexpected, 0);
    send_number(0, 1, 3, 3);
    wire_deliver(wire_packet(0, 1, 0));
    assert_int_equal(receive_number(1, 0, 3, MPI_STATUS_IGNORE), 3);
    assert_true(list_empty(&wire_peer(1, 0)->early));
}

/* The numbers of messages are 32 bits and go round. */
static void test_numbers_go_round(void **state)
{
    (void)state;
    wire_peer(0, 1)->order_out = UINT32_MAX - 2;
    wire_peer(1, 0)->order_in = UINT32_MAX - 2;
    for (int i = 0; i < 6; i++)
        send_number(0, 1, 3, i);
    wire_deliver_order(0, 1, 6, (uint32_t[]){5, 3, 1, 2, 0, 0});
    for (int i = 0; i < 6; i++)
        assert_int_equal(receive_number(1, 0, 3, MPI_STATUS_IGNORE), i);
}

/* Each pair has an order of its own, and tags do not mix. */
static void test_pairs_and_tags(void **state)
{
    MPI_Status status;

    (void)state;
    for (int i = 0; i < 4; i++) {
        send_number(0, 2, i % 2, i);
        send_number(1, 2, i % 2, 10 + i);
    }
    wire_deliver_order(0, 2, 4, (uint32_t[]){3, 2, 1, 0});
    wire_deliver_order(1, 2, 4, (uint32_t[]){1, 0, 1, 0});
    assert_int_equal(receive_number(2, 1, 1, &status), 11);
    assert_int_equal(status.MPI_SOURCE, 1);
    assert_int_equal(status.MPI_TAG, 1);
    assert_int_equal(receive_number(2, MPI_ANY_SOURCE, 1, &status), 1);
    assert_int_equal(status.MPI_SOURCE, 0);
    assert_int_equal(receive_number(2, 1, MPI_ANY_TAG, &status), 10);
    assert_int_equal(status.MPI_TAG, 0);
    assert_int_equal(receive_number(2, MPI_ANY_SOURCE, MPI_ANY_TAG, &status), 0);
    assert_int_equal(receive_number(2, 0, MPI_ANY_TAG, MPI_STATUS_IGNORE), 2);
    assert_int_equal(receive_number(2, 0, 1, MPI_STATUS_IGNORE), 3);
    assert_int_equal(receive_number(2, 1, 0, MPI_STATUS_IGNORE), 12);
    assert_int_equal(receive_number(2, 1, 1, MPI_STATUS_IGNORE), 13);
    assert_int_equal(wire_engine(2)->match.n_unexpected, 0);
}

/* A large message, which is announced, keeps its place among small ones, though its bytes come
 * later than the next message. */
static void test_announced_among_eager(void **state)
{
    static char large[40000], room[40000];
    int number = 0;

    (void)state;
    memset(large, 7, sizeof large);
    struct request *send = wire_isend(0, 1, 3, large, sizeof large);
    send_number(0, 1, 3, 9);
    wire_deliver_order(0, 1, 2, (uint32_t[]){1, 0});
    struct request *first = wire_irecv(1, 0, 3, room, sizeof room);
    wire_finish(1, wire_irecv(1, 0, 3, &number, sizeof number), MPI_STATUS_IGNORE);
    assert_int_equal(number, 9);
    assert_false(request_is_complete(first));
    wire_hold(false);
    wire_settle();
    wire_finish(0, send, MPI_STATUS_IGNORE);
    wire_finish(1, first, MPI_STATUS_IGNORE);
    assert_memory_equal(large, room, sizeof room);
}

/* Within a node nothing is numbered: rings keep the order. */
static void test_within_a_node(void **state)
{
    int got[3] = {0};
    struct request *r[3];

    (void)state;
    for (int i = 0; i < 3; i++)
        r[i] = wire_irecv(1, 0, 3, &got[i], sizeof got[i]);
    for (int i = 0; i < 3; i++)
        send_number(0, 1, 3, i + 1);
    assert_int_equal(wire_peer(0, 1)->order_out, 0);
    assert_false(wire_packet(0, 1, 0)->slot.flags & MSG_F_ORDERED);
    wire_settle();
    for (int i = 0; i < 3; i++) {
        wire_finish(1, r[i], MPI_STATUS_IGNORE);
        assert_int_equal(got[i], i + 1);
    }
}

/* A message that is longer than its receive writes nothing behind it, whether it was expected,
 * unexpected or announced; one of just that length is fine. */
static void test_length(void **state)
{
    static unsigned char data[100000], room[100001];

    (void)state;
    memset(data, 0x55, sizeof data);
    const MPI_Count lengths[] = {0, 1, 31, 32, 33, 8000, 40000, 100000};
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (int early = 0; early < 2; early++) {
            for (MPI_Count less = 0; less < 2 && less <= lengths[i]; less++) {
                MPI_Count n = lengths[i] - less;
                struct request *send = NULL, *recv = NULL;
                MPI_Status status;
                memset(room, 0xee, sizeof room);
                if (early)
                    send = wire_isend(0, 1, 3, data, lengths[i]);
                wire_settle();
                recv = wire_irecv(1, 0, 3, room, n);
                if (!early)
                    send = wire_isend(0, 1, 3, data, lengths[i]);
                wire_settle();
                assert_int_equal(wire_finish(1, recv, &status),
                                 less ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
                assert_int_equal(status.MPI_TAG, 3);
                assert_int_equal(wire_finish(0, send, MPI_STATUS_IGNORE), MPI_SUCCESS);
                assert_int_equal(room[n], 0xee);
                assert_memory_equal(room, data, (size_t)n);
            }
        }
    }
}

/* What no library writes changes nothing: announcements that are too short or say too much, control
 * messages of a wrong length, unknown kinds. */
static void test_malformed(void **state)
{
    char room[64];
    struct msg_rts rts = {.bytes = 4};
    uint8_t payload[sizeof rts + 16];
    struct ring_slot slot = {.kind = MSG_RTS, .source = 0, .tag = 3};

    (void)state;
    memcpy(payload, &rts, sizeof rts);
    /* Nobody waits: dropped. */
    slot.len = sizeof rts - 1;
    wire_forge(0, 1, &slot, payload);
    slot.len = sizeof rts + 5; /* five bytes of a message of four */
    wire_forge(0, 1, &slot, payload);
    rts.bytes = UINT64_MAX;
    memcpy(payload, &rts, sizeof rts);
    slot.len = sizeof rts;
    wire_forge(0, 1, &slot, payload);
    assert_int_equal(wire_engine(1)->match.n_unexpected, 0);
    /* Somebody waits: told. */
    struct request *r = wire_irecv(1, 0, 3, room, sizeof room);
    wire_forge(0, 1, &slot, payload);
    assert_int_equal(wire_finish(1, r, MPI_STATUS_IGNORE), MPI_ERR_INTERN);
    wire_peer(1, 0)->credit.used = 500;
    slot.kind = MSG_CREDIT;
    slot.len = 7;
    wire_forge(0, 1, &slot, payload);
    assert_int_equal(wire_peer(1, 0)->credit.used, 500);
    slot.kind = MSG_PULL;
    slot.len = sizeof(struct msg_pull) - 1;
    wire_forge(0, 1, &slot, payload);
    slot.kind = 77;
    wire_forge(0, 1, &slot, payload);
    slot.kind = MSG_FINISHED;
    wire_forge(0, 1, &slot, payload);
}

/* What is counted is what was sent and received. */
static void test_counters(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++)
        send_number(0, 1, 3, i);
    wire_settle();
    wire_as(0);
    assert_int_equal(transport_here->me->sent_msgs, 5);
    assert_int_equal(transport_here->me->sent_bytes, 20);
    wire_as(1);
    assert_int_equal(transport_here->me->recv_msgs, 5);
    assert_int_equal(transport_here->me->recv_bytes, 20);
    for (int i = 0; i < 5; i++)
        receive_number(1, 0, 3, MPI_STATUS_IGNORE);
}

int main(void)
{
#define APART(name) cmocka_unit_test_setup_teardown(name, set_up, wire_tear_down)
#define NODE(name)  cmocka_unit_test_setup_teardown(name, set_up_node, wire_tear_down)
    const struct CMUnitTest tests[] = {
        APART(test_every_order),    APART(test_nothing_before_its_turn),
        APART(test_duplicates),     APART(test_numbers_go_round),
        APART(test_pairs_and_tags), APART(test_announced_among_eager),
        NODE(test_within_a_node),   NODE(test_length),
        NODE(test_malformed),       NODE(test_counters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
