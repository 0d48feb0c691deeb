/* SPDX-License-Identifier: BSD-3-Clause */
/* The MPI functions over the protocols: cancelling, persistent sends, messages of a rank to itself,
 * send and receive in one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/abi/semantics.h"
#include "client/progress/calls.h"
#include "client/progress/status.h"
#include "tests/p2p/wire_check.h"

/* ---- cancelling ---- */

static void test_cancel(void **state)
{
    MPI_Status status;
    int flag;

    (void)state;
    struct request *first = wire_irecv(1, 0, 5, wire_room, 10),
                   *second = wire_irecv(1, MPI_ANY_SOURCE, 5, wire_room, 100);
    const struct queue_record *record = transfer_of(first)->record;
    assert_int_equal(record->state, QUEUE_POSTED);
    mpi_cancel(&first);
    assert_int_equal(record->state, QUEUE_FREE);
    assert_int_equal(wire_finish(1, first, &status), MPI_SUCCESS);
    mpi_test_cancelled(&status, &flag);
    assert_true(flag);
    /* What it would have taken goes to the next. */
    struct request *send = wire_isend(0, 1, 5, wire_data, 100);
    wire_settle();
    /* Too late: it has its message. */
    wire_as(1);
    mpi_cancel(&second);
    assert_int_equal(wire_finish(1, second, &status), MPI_SUCCESS);
    mpi_test_cancelled(&status, &flag);
    assert_false(flag);
    wire_check_status(&status, 0, 5, 100);
    /* A send is not called back. */
    wire_cut(0, 1, true);
    wire_finish(0, send, MPI_STATUS_IGNORE);
    send = wire_isend(0, 1, 5, wire_data, WIRE_LARGE);
    mpi_cancel(&send);
    assert_false(request_is_complete(send));
    wire_cut(0, 1, false);
    memset(wire_room, 0xee, sizeof wire_room);
    wire_check_received(wire_irecv(1, 0, 5, wire_room, WIRE_LARGE), 0, 5, WIRE_LARGE);
    wire_finish(0, send, &status);
    mpi_test_cancelled(&status, &flag);
    assert_false(flag);
}

/* A receive of a large message cannot be cancelled once it has been matched. */
static void test_cancel_under_way(void **state)
{
    int flag;
    MPI_Status status;

    (void)state;
    wire_hold(true);
    struct request *recv = wire_irecv(1, 0, 5, wire_room, WIRE_LARGE);
    struct request *send = wire_isend(0, 1, 5, wire_data, WIRE_LARGE);
    wire_deliver(wire_packet(0, 1, 0));
    wire_as(1);
    mpi_cancel(&recv);
    assert_false(request_is_complete(recv));
    wire_hold(false);
    wire_settle();
    wire_finish(0, send, MPI_STATUS_IGNORE);
    assert_int_equal(wire_finish(1, recv, &status), MPI_SUCCESS);
    mpi_test_cancelled(&status, &flag);
    assert_false(flag);
    assert_memory_equal(wire_room, wire_data, WIRE_LARGE);
}

/* ---- persistent ---- */

static void test_persistent(void **state)
{
    const MPI_Count lengths[] = {0, 8, 5000, WIRE_LARGE};

    (void)state;
    for (int mode = 0; mode < 3; mode++) {
        for (int k = 0; k < 4; k++) {
            struct request *send, *recv;
            MPI_Status status;
            struct comm *world = wire_as(0);
            (mode == 0   ? mpi_send_init
             : mode == 1 ? mpi_ssend_init
                         : mpi_rsend_init)(wire_data, lengths[k], wire_byte(), 1, 5, world, &send);
            assert_false(send->active);
            world = wire_as(1);
            mpi_recv_init(wire_room, WIRE_LARGE, wire_byte(), MPI_ANY_SOURCE, MPI_ANY_TAG, world,
                          &recv);
            for (int round = 0; round < 3; round++) {
                wire_as(1);
                mpi_start(&recv);
                assert_false(request_is_complete(recv));
                wire_as(0);
                mpi_start(&send);
                wire_settle();
                wire_check_received(recv, 0, 5, lengths[k]);
                assert_false(recv->active);
                wire_finish(0, send, MPI_STATUS_IGNORE);
            }
            /* Cancelled, and started again. */
            wire_as(1);
            mpi_start(&recv);
            mpi_cancel(&recv);
            wire_finish(1, recv, &status);
            assert_true(status_is_cancelled(&status));
            mpi_start(&recv);
            wire_as(0);
            mpi_start(&send);
            wire_settle();
            wire_check_received(recv, 0, 5, lengths[k]);
            wire_finish(0, send, MPI_STATUS_IGNORE);
            mpi_request_free(&send);
            wire_as(1);
            mpi_request_free(&recv);
        }
    }
}

/* ---- a rank to itself, and to nobody ---- */

static void test_self(void **state)
{
    struct request *send, *recv;
    MPI_Status status;

    (void)state;
    struct comm *world = wire_as(1);
    for (int early = 0; early < 2; early++) {
        /* Nonblocking: complete when both are there. */
        if (early) {
            send = wire_isend(1, 1, 3, wire_data, WIRE_LARGE);
            assert_false(request_is_complete(send));
            assert_true(wire_iprobe(MPI_ANY_SOURCE, 3, &status));
            wire_check_status(&status, 1, 3, WIRE_LARGE);
        }
        recv = wire_irecv(1, 1, 3, wire_room, WIRE_LARGE);
        if (!early)
            send = wire_isend(1, 1, 3, wire_data, WIRE_LARGE);
        wire_finish(1, send, MPI_STATUS_IGNORE);
        wire_check_received(recv, 1, 3, WIRE_LARGE);
    }
    /* Blocking: kept, and the sender's buffer is free. */
    unsigned char own[500];
    memcpy(own, wire_data, sizeof own);
    assert_int_equal(mpi_send(own, sizeof own, wire_byte(), 1, 3, world), MPI_SUCCESS);
    memset(own, 0, sizeof own);
    wire_check_received(wire_irecv(1, MPI_ANY_SOURCE, 3, wire_room, WIRE_LARGE), 1, 3, sizeof own);
    /* Order among both kinds. */
    mpi_send(wire_data, 1, wire_byte(), 1, 3, world);
    send = wire_isend(1, 1, 3, wire_data, 2);
    mpi_send(wire_data, 3, wire_byte(), 1, 3, world);
    for (int i = 1; i < 4; i++)
        wire_check_received(wire_irecv(1, 1, 3, wire_room, WIRE_LARGE), 1, 3, i);
    wire_finish(1, send, MPI_STATUS_IGNORE);
    /* Truncated. */
    recv = wire_irecv(1, 1, 3, wire_room, 10);
    send = wire_isend(1, 1, 3, wire_data, 20);
    assert_int_equal(wire_finish(1, recv, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    assert_int_equal(wire_finish(1, send, MPI_STATUS_IGNORE), MPI_SUCCESS);
    assert_int_equal(wire_room[10], 0xee);
}

static struct request *posted_late;

static void rank_1_posts(void)
{
    if (!posted_late)
        posted_late = wire_irecv(1, 1, 3, wire_room, WIRE_LARGE);
}

/* A synchronous one waits for its receive, which another thread posts. */
static void test_self_synchronous(void **state)
{
    (void)state;
    posted_late = NULL;
    wire_while_waiting(rank_1_posts);
    struct comm *world = wire_as(1);
    assert_int_equal(mpi_ssend(wire_data, 100, wire_byte(), 1, 3, world), MPI_SUCCESS);
    wire_while_waiting(NULL);
    assert_non_null(posted_late);
    wire_check_received(posted_late, 1, 3, 100);
}

static void test_nobody(void **state)
{
    struct request *r;
    MPI_Status status;

    (void)state;
    struct comm *world = wire_as(1);
    assert_int_equal(mpi_send(wire_data, 8, wire_byte(), MPI_PROC_NULL, 3, world), MPI_SUCCESS);
    assert_int_equal(mpi_recv(wire_room, 8, wire_byte(), MPI_PROC_NULL, 3, world, &status),
                     MPI_SUCCESS);
    wire_check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    mpi_issend(wire_data, 8, wire_byte(), MPI_PROC_NULL, 3, world, &r);
    wire_finish(1, r, MPI_STATUS_IGNORE);
    mpi_irecv(wire_room, 8, wire_byte(), MPI_PROC_NULL, 3, world, &r);
    wire_finish(1, r, &status);
    wire_check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    assert_int_equal(wire_room[0], 0xee);
}

/* ---- send and receive in one ---- */

static struct request *others_send, *others_recv;
static unsigned char others_room[WIRE_LARGE];

static void rank_0_runs(void)
{
    wire_turn(0);
}

static void test_sendrecv(void **state)
{
    static unsigned char back[WIRE_LARGE];
    const MPI_Count lengths[] = {0, 10, 5000, WIRE_LARGE};

    (void)state;
    memset(back, 0x77, sizeof back);
    for (int form = 0; form < 4; form++) {
        for (int k = 0; k < 4; k++) {
            MPI_Count n = lengths[k];
            struct request *r = NULL;
            MPI_Status status;
            memset(others_room, 0, sizeof others_room);
            others_recv = wire_irecv(0, 1, 4, others_room, WIRE_LARGE);
            others_send = wire_isend(0, 1, 6, wire_data, n);
            struct comm *world = wire_as(1);
            memcpy(wire_room, back, WIRE_LARGE);
            wire_room[WIRE_LARGE] = 0xee;
            wire_while_waiting(rank_0_runs);
            if (form == 0)
                mpi_sendrecv(back, n, wire_byte(), 0, 4, wire_room, n, wire_byte(), 0, 6, world,
                             &status);
            else if (form == 1)
                mpi_sendrecv_replace(wire_room, n, wire_byte(), 0, 4, 0, 6, world, &status);
            else if (form == 2)
                mpi_isendrecv(back, n, wire_byte(), 0, 4, wire_room, n, wire_byte(), 0, 6, world,
                              &r);
            else
                mpi_isendrecv_replace(wire_room, n, wire_byte(), 0, 4, 0, 6, world, &r);
            wire_while_waiting(NULL);
            wire_settle();
            if (r)
                assert_int_equal(wire_finish(1, r, &status), MPI_SUCCESS);
            wire_check_status(&status, 0, 6, n);
            assert_memory_equal(wire_room, wire_data, (size_t)n);
            wire_finish(0, others_send, MPI_STATUS_IGNORE);
            wire_finish(0, others_recv, &status);
            wire_check_status(&status, 1, 4, n);
            assert_memory_equal(others_room, back, (size_t)n);
        }
    }
}

/* It is over when both halves are, whichever is the last. */
static void test_sendrecv_halves(void **state)
{
    static unsigned char back[100];
    struct request *r;
    MPI_Status status;

    (void)state;
    for (int late = 0; late < 2; late++) {
        struct comm *world = wire_as(1);
        /* The half that sends waits for its receive, as the message is large. */
        mpi_isendrecv(wire_data, WIRE_LARGE, wire_byte(), 0, 4, back, 100, wire_byte(), 0, 6, world,
                      &r);
        wire_settle();
        assert_false(request_is_complete(r));
        for (int step = 0; step < 2; step++) {
            if (step == late) {
                others_recv = wire_irecv(0, 1, 4, others_room, WIRE_LARGE);
                wire_settle();
                wire_finish(0, others_recv, MPI_STATUS_IGNORE);
            } else {
                wire_finish(0, wire_isend(0, 1, 6, wire_data, 100), MPI_STATUS_IGNORE);
            }
            wire_settle();
            assert_int_equal(request_is_complete(r), step == 1);
        }
        assert_int_equal(wire_finish(1, r, &status), MPI_SUCCESS);
        wire_check_status(&status, 0, 6, 100);
        assert_memory_equal(back, wire_data, 100);
        assert_memory_equal(others_room, wire_data, WIRE_LARGE);
    }
}

/* ---- queue records ---- */

/* When all records are in use, what follows is unseen and works all the same; those that are given
 * back are used again. */
static void test_records_run_out(void **state)
{
    static unsigned char rooms[100][4];
    struct request *r[100];
    int n_shown = 0;

    (void)state;
    for (int round = 0; round < 2; round++) {
        n_shown = 0;
        for (int i = 0; i < 100; i++) {
            r[i] = wire_irecv(1, 0, i, rooms[i], 4);
            n_shown += transfer_of(r[i])->record != NULL;
        }
        assert_int_equal(n_shown, 64);
        for (int i = 99; i >= 0; i--)
            wire_finish(0, wire_isend(0, 1, i, wire_data, 4), MPI_STATUS_IGNORE);
        wire_settle();
        for (int i = 0; i < 100; i++)
            wire_finish(1, r[i], MPI_STATUS_IGNORE);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, wire_set_up_apart, wire_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_cancel),   TEST(test_cancel_under_way), TEST(test_persistent),
        TEST(test_self),     TEST(test_self_synchronous), TEST(test_nobody),
        TEST(test_sendrecv), TEST(test_sendrecv_halves),  TEST(test_records_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
