/* SPDX-License-Identifier: BSD-3-Clause */
/* The allowance of eager bytes: it bounds what waits at a receiver, and all of it comes home. What
 * finds no room waits in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/abi/semantics.h"
#include "tests/p2p/wire_check.h"

#define N_FLOOD 400

static const uint32_t apart[] = {0, 1}, together[] = {0, 0};

static int set_up(void **state)
{
    (void)state;
    wire_start(2, apart);
    return 0;
}

static int set_up_node(void **state)
{
    (void)state;
    wire_start(2, together);
    return 0;
}

/* What rank 0 has used of its allowance at rank 1, rank 1 owes it. */
static void check_balance(void)
{
    wire_settle();
    assert_int_equal(wire_peer(0, 1)->credit.used, wire_peer(1, 0)->credit.owed);
    assert_true(wire_peer(1, 0)->credit.owed < CREDIT_BATCH);
}

static void transfer(MPI_Count n, bool expected, bool synchronous)
{
    static unsigned char data[20000], room[20000];
    struct comm *world;
    struct request *send = NULL, *recv = NULL;

    wire_fill(data, n, (int)n);
    memset(room, 0, sizeof room);
    if (expected)
        recv = wire_irecv(1, 0, 1, room, n);
    world = wire_as(0);
    if (synchronous)
        mpi_issend(data, n, datatype_from_handle(MPI_BYTE), 1, 1, world, &send);
    else
        send = wire_isend(0, 1, 1, data, n);
    wire_settle();
    if (!expected)
        recv = wire_irecv(1, 0, 1, room, n);
    wire_settle();
    wire_finish(1, recv, MPI_STATUS_IGNORE);
    wire_finish(0, send, MPI_STATUS_IGNORE);
    assert_memory_equal(room, data, (size_t)n);
}

/* Whichever way a message takes, eager bytes come back. 3 MiB of each: none may leak, or they would
 * have no allowance left. */
static void check_all_ways(void)
{
    const MPI_Count lengths[] = {0, 5, 32, 33, 8000, 8192, 8193, 16384, 20000};

    for (int expected = 0; expected < 2; expected++)
        for (int synchronous = 0; synchronous < 2; synchronous++)
            for (unsigned k = 0; k < sizeof lengths / sizeof *lengths; k++) {
                MPI_Count most = 3 << 20, each = lengths[k] + CREDIT_OVERHEAD;
                for (MPI_Count sum = 0; sum < most; sum += each * 20)
                    for (int i = 0; i < 20 && lengths[k] > 100; i++)
                        transfer(lengths[k], expected, synchronous);
                transfer(lengths[k], expected, synchronous);
                check_balance();
            }
}

static void test_comes_home(void **state)
{
    (void)state;
    check_all_ways();
}

static void test_comes_home_in_a_node(void **state)
{
    (void)state;
    check_all_ways();
    wire_permit_reading(false, false);
    check_all_ways();
}

/* A flood that nobody receives: the receiver holds the allowance and no more; the rest is announced
 * or waits. Then all of it arrives, in order. */
static void test_flood(void **state)
{
    static unsigned char data[N_FLOOD][8000], room[8000];
    struct request *sends[N_FLOOD];
    uint64_t held = 0;

    (void)state;
    for (int i = 0; i < N_FLOOD; i++) {
        wire_fill(data[i], sizeof data[i], i);
        sends[i] = wire_isend(0, 1, 1, data[i], sizeof data[i]);
        assert_true(wire_peer(0, 1)->credit.used <= CREDIT_BYTES);
        if (i % 8 == 0)
            wire_settle();
    }
    wire_settle();
    for (uint32_t i = 0; i < MATCH_CONTEXT_CLASSES; i++)
        list_foreach(it, &wire_engine(1)->match.arrivals[i])
            held += list_entry(it, struct unexpected, match.arrival)->len;
    assert_true(held <= CREDIT_BYTES);
    assert_true(held > CREDIT_BYTES / 2);
    for (int i = 0; i < N_FLOOD; i++) {
        struct request *r = wire_irecv(1, 0, MPI_ANY_TAG, room, sizeof room);
        wire_settle();
        wire_finish(1, r, MPI_STATUS_IGNORE);
        assert_memory_equal(room, data[i], sizeof room);
    }
    for (int i = 0; i < N_FLOOD; i++)
        wire_finish(0, sends[i], MPI_STATUS_IGNORE);
    check_balance();
    assert_int_equal(wire_engine(0)->n_waiting, 0);
    assert_int_equal(wire_engine(1)->n_waiting, 0);
}

/* The allowance ends at the byte, and a returned one lets the next message go eagerly again. */
static void test_last_byte(void **state)
{
    static unsigned char data[1000];
    struct peer *p = wire_peer(0, 1);

    (void)state;
    wire_hold(true);
    p->credit.used = CREDIT_BYTES - 1000 - CREDIT_OVERHEAD;
    wire_finish(0, wire_isend(0, 1, 1, data, 1000), MPI_STATUS_IGNORE);
    assert_int_equal(wire_packet(0, 1, 0)->slot.kind, MSG_EAGER);
    assert_int_equal(p->credit.used, CREDIT_BYTES);
    struct request *r = wire_isend(0, 1, 1, data, 0);
    assert_int_equal(wire_packet(0, 1, 1)->slot.kind, MSG_RTS);
    assert_int_equal(wire_packet(0, 1, 1)->slot.len, sizeof(struct msg_rts));
    assert_int_equal(p->credit.used, CREDIT_BYTES);
    wire_hold(false);
    struct request *a = wire_irecv(1, 0, 1, data, 1000), *b = wire_irecv(1, 0, 1, data, 0);
    wire_settle();
    wire_finish(0, r, MPI_STATUS_IGNORE);
    wire_finish(1, a, MPI_STATUS_IGNORE);
    wire_finish(1, b, MPI_STATUS_IGNORE);
}

/* A ring that is not read fills: what finds no room waits, nothing overtakes it, not even what
 * would fit, and all leaves in order when there is room. */
static void check_full_ring(bool cut)
{
    enum { N = 2 * WIRE_RING_SLOTS };
    static int numbers[N], got[N];
    static struct request *sends[N], *recvs[N];
    int n_waiting = 0;

    if (cut)
        wire_cut(0, 1, true);
    else
        wire_stop_ring(0, 1, true);
    for (int i = 0; i < N; i++) {
        numbers[i] = i;
        sends[i] = wire_isend(0, 1, 1, &numbers[i], sizeof numbers[i]);
        n_waiting += !request_is_complete(sends[i]);
    }
    assert_true(n_waiting >= (cut ? N : N - (int)WIRE_RING_SLOTS));
    assert_int_equal(wire_engine(0)->n_waiting, 1);
    wire_turn(0);
    assert_int_equal(wire_engine(0)->n_waiting, 1);
    wire_cut(0, 1, false);
    wire_stop_ring(0, 1, false);
    if (!cut) {
        /* Room, but others wait longer. */
        wire_deliver(wire_packet(0, 1, 0));
        struct request *late = wire_isend(0, 1, 1, &numbers[0], sizeof numbers[0]);
        assert_false(request_is_complete(late));
        wire_as(0);
        mpi_request_free(&late);
    }
    for (int i = 0; i < N; i++)
        recvs[i] = wire_irecv(1, 0, 1, &got[i], sizeof got[i]);
    wire_settle();
    for (int i = 0; i < N; i++) {
        wire_finish(0, sends[i], MPI_STATUS_IGNORE);
        wire_finish(1, recvs[i], MPI_STATUS_IGNORE);
        assert_int_equal(got[i], i);
    }
    assert_int_equal(wire_engine(0)->n_waiting, 0);
    assert_true(list_empty(&wire_engine(0)->busy_peers));
}

static void test_full_ring(void **state)
{
    (void)state;
    check_full_ring(false);
}

static void test_no_way(void **state)
{
    (void)state;
    check_full_ring(true);
    check_full_ring(false);
}

/* Control messages wait as well, in order, and are sent before messages. */
static void test_control_waits(void **state)
{
    static unsigned char room[100];
    uint64_t owed[] = {1000, 2000, 3000};

    (void)state;
    wire_cut(1, 0, true);
    wire_peer(0, 1)->credit.used = 6000;
    for (int i = 0; i < 3; i++) {
        wire_peer(1, 0)->credit.owed = owed[i];
        peer_repay(wire_peer(1, 0));
        assert_int_equal(wire_peer(1, 0)->credit.owed, 0);
    }
    struct request *r = wire_isend(1, 0, 1, room, sizeof room);
    assert_int_equal(wire_engine(1)->n_waiting, 1);
    wire_hold(true);
    wire_turn(1);
    wire_cut(1, 0, false);
    wire_turn(1);
    assert_int_equal(wire_engine(1)->n_waiting, 0);
    for (uint32_t i = 0; i < 3; i++) {
        struct msg_credit credit;
        memcpy(&credit, wire_packet(1, 0, i)->payload, sizeof credit);
        assert_int_equal(wire_packet(1, 0, i)->slot.kind, MSG_CREDIT);
        assert_int_equal(credit.bytes, owed[i]);
    }
    assert_int_equal(wire_packet(1, 0, 3)->slot.kind, MSG_EAGER);
    wire_hold(false);
    wire_finish(1, r, MPI_STATUS_IGNORE);
    wire_settle();
    assert_int_equal(wire_peer(0, 1)->credit.used, 0);
}

/* Ranks that end with something in every queue leave no memory behind. */
static void test_end_with_queues(void **state)
{
    static unsigned char room[100];

    (void)state;
    wire_hold(true);
    for (int i = 0; i < 4; i++)
        wire_finish(0, wire_isend(0, 1, 1, room, sizeof room), MPI_STATUS_IGNORE);
    wire_deliver_order(0, 1, 2, (uint32_t[]){3, 0});
    wire_cut(1, 0, true);
    peer_repay(wire_peer(1, 0));
    wire_turn(1);
}

int main(void)
{
#define APART(name) cmocka_unit_test_setup_teardown(name, set_up, wire_tear_down)
#define NODE(name)  cmocka_unit_test_setup_teardown(name, set_up_node, wire_tear_down)
    const struct CMUnitTest tests[] = {
        APART(test_comes_home),    NODE(test_comes_home_in_a_node),
        APART(test_flood),         APART(test_last_byte),
        NODE(test_full_ring),      APART(test_no_way),
        APART(test_control_waits), APART(test_end_with_queues),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
