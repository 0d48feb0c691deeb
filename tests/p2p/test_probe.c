/* SPDX-License-Identifier: BSD-3-Clause */
/* Probes, matched ones too, and receives that wait for what a probe would find. */
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

/* A probe finds the oldest message that fits, tells its length whether it is here or only
 * announced, and leaves it. */
static void test_probe(void **state)
{
    MPI_Status status;

    (void)state;
    assert_false(wire_iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, &status));
    struct request *sends[] = {wire_isend(0, 1, 5, wire_data, 100),
                               wire_isend(0, 1, 6, wire_data, WIRE_LARGE),
                               wire_isend(2, 1, 5, wire_data, 0)};
    wire_settle();
    assert_false(wire_iprobe(0, 7, &status));
    assert_false(wire_iprobe(2, 6, &status));
    for (int i = 0; i < 2; i++) {
        assert_true(wire_iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, &status));
        wire_check_status(&status, 0, 5, 100);
        assert_true(wire_iprobe(0, 6, &status));
        wire_check_status(&status, 0, 6, WIRE_LARGE);
        assert_true(wire_iprobe(2, MPI_ANY_TAG, &status));
        wire_check_status(&status, 2, 5, 0);
        assert_true(wire_iprobe(MPI_ANY_SOURCE, 6, MPI_STATUS_IGNORE));
    }
    assert_true(wire_iprobe(MPI_PROC_NULL, 1, &status));
    wire_check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    wire_check_received(wire_irecv(1, MPI_ANY_SOURCE, 6, wire_room, WIRE_LARGE), 0, 6, WIRE_LARGE);
    wire_check_received(wire_irecv(1, MPI_ANY_SOURCE, 5, wire_room, WIRE_LARGE), 0, 5, 100);
    wire_check_received(wire_irecv(1, MPI_ANY_SOURCE, 5, wire_room, WIRE_LARGE), 2, 5, 0);
    for (int i = 0; i < 3; i++)
        wire_finish(i == 2 ? 2 : 0, sends[i], MPI_STATUS_IGNORE);
    assert_false(wire_iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, &status));
}

/* A matched message belongs to its handle: no probe and no receive meets it any more. */
static void test_matched_probe(void **state)
{
    struct message *messages[3];
    struct request *r;
    MPI_Status status;
    int flag;

    (void)state;
    const MPI_Count lengths[] = {100, WIRE_LARGE, 8};
    struct request *sends[3];
    for (int i = 0; i < 3; i++)
        sends[i] = wire_isend(0, 1, 5, wire_data, lengths[i]);
    wire_settle();
    struct comm *world = wire_as(1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(mpi_improbe(0, MPI_ANY_TAG, world, &flag, &messages[i], &status), 0);
        assert_true(flag);
        wire_check_status(&status, 0, 5, lengths[i]);
    }
    assert_int_equal(mpi_mprobe(MPI_ANY_SOURCE, 5, world, &messages[2], &status), 0);
    wire_check_status(&status, 0, 5, 8);
    assert_false(wire_iprobe(0, 5, &status));
    assert_int_equal(mpi_improbe(0, 5, world, &flag, &messages[0], &status), 0);
    assert_false(flag);
    struct request *none = wire_irecv(1, 0, 5, wire_room, WIRE_LARGE);
    assert_false(request_is_complete(none));
    mpi_cancel(&none);
    wire_finish(1, none, MPI_STATUS_IGNORE);
    /* In another order than they came. */
    for (int i = 2; i >= 0; i--) {
        wire_as(1);
        assert_int_equal(mpi_imrecv(wire_room, WIRE_LARGE, wire_byte(), &messages[i], &r),
                         MPI_SUCCESS);
        assert_null(messages[i]);
        wire_check_received(r, 0, 5, lengths[i]);
    }
    wire_settle();
    for (int i = 0; i < 3; i++)
        wire_finish(0, sends[i], MPI_STATUS_IGNORE);
    assert_int_equal(wire_peer(0, 1)->credit.used, wire_peer(1, 0)->credit.owed);
    wire_as(1);
    assert_int_equal(mpi_mprobe(MPI_PROC_NULL, 5, world, &messages[0], &status), 0);
    wire_check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    assert_int_equal(mpi_mrecv(wire_room, 1, wire_byte(), &messages[0], &status), MPI_SUCCESS);
    wire_check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    assert_int_equal(mpi_improbe(MPI_PROC_NULL, 5, world, &flag, &messages[0], &status), 0);
    assert_true(flag);
}

static int n_polls;

static void rank_0_sends_late(void)
{
    if (++n_polls == 20000)
        wire_finish(0, wire_isend(0, 1, 9, wire_data, 10), MPI_STATUS_IGNORE);
}

/* A probe that waits is shown as a receive, and is taken off when it has its message. */
static void test_probe_waits(void **state)
{
    MPI_Status status;
    struct message *message;

    (void)state;
    for (int matched = 0; matched < 2; matched++) {
        n_polls = 0;
        calls_enter("MPI_Probe"); /* what the bindings do: a call without a name shows nothing */
        wire_while_waiting(rank_0_sends_late);
        struct comm *world = wire_as(1);
        if (matched)
            mpi_mprobe(0, 9, world, &message, &status);
        else
            mpi_probe(MPI_ANY_SOURCE, 9, world, &status);
        wire_while_waiting(NULL);
        wire_check_status(&status, 0, 9, 10);
        /* Shown once, as a receive of no bytes. */
        int n_shown = 0;
        for (uint32_t i = 0; i < transport_here->me->board_high; i++) {
            const struct queue_record *r =
                segment_board_at(transport_here->base, &transport_here->layout, 1) + i;
            assert_int_not_equal(r->state, QUEUE_POSTED);
            if (r->state != QUEUE_FREE || r->bytes != 0)
                continue;
            n_shown++;
            assert_int_equal(r->tag, 9);
            assert_int_equal(r->peer, matched ? 0 : QUEUE_ANY_SOURCE);
            assert_int_equal(r->peer_world, matched ? 0 : -1);
        }
        assert_int_equal(n_shown, 1);
        struct request *recv;
        if (matched)
            mpi_imrecv(wire_room, WIRE_LARGE, wire_byte(), &message, &recv);
        else
            recv = wire_irecv(1, 0, 9, wire_room, WIRE_LARGE);
        wire_check_received(recv, 0, 9, 10);
    }
}

static void rank_0_sends_later(void)
{
    if (++n_polls != 20000)
        return;
    /* Shown by now, and looked for no more. */
    const struct engine *e = wire_engine(1);
    assert_true(list_empty(&e->unshown));
    assert_int_equal(e->records.records[0].state, QUEUE_POSTED);
    assert_int_equal(e->records.records[0].bytes, WIRE_LARGE);
    wire_finish(0, wire_isend(0, 1, 9, wire_data, 10), MPI_STATUS_IGNORE);
}

/* A blocking receive is shown when it has waited for long. */
static void test_receive_waits(void **state)
{
    MPI_Status status;

    (void)state;
    n_polls = 0;
    wire_while_waiting(rank_0_sends_later);
    struct comm *world = wire_as(1);
    assert_int_equal(mpi_recv(wire_room, WIRE_LARGE, wire_byte(), 0, 9, world, &status),
                     MPI_SUCCESS);
    wire_while_waiting(NULL);
    wire_check_status(&status, 0, 9, 10);
    assert_int_equal(wire_engine(1)->records.records[0].state, QUEUE_FREE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, wire_set_up_apart, wire_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_probe),
        TEST(test_matched_probe),
        TEST(test_probe_waits),
        TEST(test_receive_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
