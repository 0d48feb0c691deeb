/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffered sends: the budget of the attached buffer, and what flushing and detaching wait for. */
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

static void test_buffered(void **state)
{
    static unsigned char buffer[30000];
    struct request *r;
    MPI_Count size;
    void *address;

    (void)state;
    struct comm *world = wire_as(0);
    assert_int_equal(mpi_bsend(wire_data, 10, wire_byte(), 1, 5, world), MPI_ERR_BUFFER);
    assert_int_equal(mpi_bsend(wire_data, 10, wire_byte(), MPI_PROC_NULL, 5, world), MPI_SUCCESS);
    assert_int_equal(mpi_buffer_attach(buffer, sizeof buffer), MPI_SUCCESS);
    assert_int_equal(mpi_buffer_attach(buffer, sizeof buffer), MPI_ERR_BUFFER);
    /* What has left frees its room; what waits does not. */
    for (int i = 0; i < 20; i++)
        assert_int_equal(mpi_bsend(wire_data, 5000, wire_byte(), 1, 5, world), MPI_SUCCESS);
    wire_cut(0, 1, true);
    unsigned char own[10000];
    for (int i = 0; i < 2; i++) {
        memcpy(own, wire_data, sizeof own);
        assert_int_equal(mpi_bsend(own, sizeof own, wire_byte(), 1, 6, world), MPI_SUCCESS);
        memset(own, 0, sizeof own);
    }
    assert_int_equal(mpi_bsend(wire_data, sizeof own, wire_byte(), 1, 6, world), MPI_ERR_BUFFER);
    /* To the wire_byte(), with the overhead of a message. */
    MPI_Count left = (MPI_Count)sizeof buffer - 2 * (MPI_Count)sizeof own, cost = 0;
    while (mpi_bsend(wire_data, left - cost, wire_byte(), 1, 7, world) != MPI_SUCCESS)
        cost++;
    assert_true(cost > 2 && cost / 3 <= MPI_BSEND_OVERHEAD);
    assert_int_equal(cost % 3, 0);
    /* A flush waits for what was there, and for no more. */
    struct request *flush;
    mpi_buffer_iflush(&flush);
    assert_false(request_is_complete(flush));
    wire_cut(0, 1, false);
    wire_settle();
    for (int i = 0; i < 20; i++)
        wire_check_received(wire_irecv(1, 0, 5, wire_room, WIRE_LARGE), 0, 5, 5000);
    for (int i = 0; i < 2; i++) {
        assert_false(request_is_complete(flush));
        wire_check_received(wire_irecv(1, 0, 6, wire_room, WIRE_LARGE), 0, 6, sizeof own);
    }
    wire_check_received(wire_irecv(1, 0, 7, wire_room, WIRE_LARGE), 0, 7, left - cost);
    wire_settle();
    wire_finish(0, flush, MPI_STATUS_IGNORE);
    wire_as(0);
    assert_int_equal(mpi_ibsend(wire_data, 29000, wire_byte(), 1, 8, world, &r), MPI_SUCCESS);
    wire_finish(0, r, MPI_STATUS_IGNORE);
    assert_int_equal(mpi_bsend(wire_data, 5000, wire_byte(), 1, 8, world), MPI_ERR_BUFFER);
    wire_check_received(wire_irecv(1, 0, 8, wire_room, WIRE_LARGE), 0, 8, 29000);
    wire_as(0);
    assert_int_equal(mpi_buffer_detach(&address, &size), MPI_SUCCESS);
    assert_ptr_equal(address, buffer);
    assert_int_equal(size, sizeof buffer);
    mpi_buffer_detach(&address, &size);
    assert_null(address);
}

static struct request *flushed_recv;

static void rank_1_receives(void)
{
    if (!flushed_recv)
        flushed_recv = wire_irecv(1, 0, 5, wire_room, WIRE_LARGE);
    wire_turn(1);
}

/* Persistent ones, a communicator's own buffer, and calls that wait until all has left. */
static void test_buffered_more(void **state)
{
    static unsigned char buffer[WIRE_LARGE + 1000];
    struct request *r, *flush;
    MPI_Count size;
    void *address;

    (void)state;
    struct comm *world = wire_as(0);
    mpi_comm_attach_buffer(world, buffer, sizeof buffer);
    mpi_bsend_init(wire_data, WIRE_LARGE, wire_byte(), 1, 5, world, &r);
    for (int round = 0; round < 3; round++) {
        wire_as(0);
        assert_int_equal(mpi_start(&r), MPI_SUCCESS);
        wire_finish(0, r, MPI_STATUS_IGNORE);
        if (round == 2)
            break;
        wire_check_received(wire_irecv(1, 0, 5, wire_room, WIRE_LARGE), 0, 5, WIRE_LARGE);
    }
    assert_int_not_equal(mpi_start(&r), MPI_SUCCESS);
    mpi_request_free(&r);
    wire_while_waiting(rank_1_receives);
    mpi_comm_flush_buffer(world);
    wire_while_waiting(NULL);
    wire_check_received(flushed_recv, 0, 5, WIRE_LARGE);
    wire_as(0);
    mpi_comm_iflush_buffer(world, &flush);
    wire_finish(0, flush, MPI_STATUS_IGNORE);
    flushed_recv = NULL;
    mpi_bsend(wire_data, WIRE_LARGE, wire_byte(), 1, 5, world);
    wire_while_waiting(rank_1_receives);
    assert_int_equal(mpi_comm_detach_buffer(world, &address, &size), MPI_SUCCESS);
    wire_while_waiting(NULL);
    assert_ptr_equal(address, buffer);
    wire_check_received(flushed_recv, 0, 5, WIRE_LARGE);
}

/* A flush waits for what was sent before it and for no message more: what was sent after it to
 * another rank, which cannot take it, does not hold it up. */
static void test_flush_ends_in_time(void **state)
{
    struct request *flush;
    MPI_Count size;
    void *address;

    (void)state;
    struct comm *world = wire_as(0);
    assert_int_equal(mpi_buffer_attach(MPI_BUFFER_AUTOMATIC, 0), MPI_SUCCESS);
    wire_cut(0, 2, true);
    assert_int_equal(mpi_bsend(wire_data, WIRE_LARGE, wire_byte(), 1, 5, world), MPI_SUCCESS);
    mpi_buffer_iflush(&flush);
    assert_int_equal(mpi_bsend(wire_data, WIRE_LARGE, wire_byte(), 2, 6, world), MPI_SUCCESS);
    assert_false(request_is_complete(flush));
    wire_check_received(wire_irecv(1, 0, 5, wire_room, WIRE_LARGE), 0, 5, WIRE_LARGE);
    wire_finish(0, flush, MPI_STATUS_IGNORE);
    assert_int_equal(mpi_bsend(wire_data, WIRE_LARGE, wire_byte(), 1, 7, world), MPI_SUCCESS);
    mpi_buffer_iflush(&flush);
    wire_check_received(wire_irecv(1, 0, 7, wire_room, WIRE_LARGE), 0, 7, WIRE_LARGE);
    assert_false(request_is_complete(flush)); /* the one to rank 2 was sent before */
    wire_cut(0, 2, false);
    struct request *recv = wire_irecv(2, 0, 6, wire_room, WIRE_LARGE);
    wire_settle();
    wire_finish(2, recv, MPI_STATUS_IGNORE);
    assert_memory_equal(wire_room, wire_data, WIRE_LARGE);
    wire_finish(0, flush, MPI_STATUS_IGNORE);
    wire_as(0);
    assert_int_equal(mpi_buffer_detach(&address, &size), MPI_SUCCESS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, wire_set_up_apart, wire_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_buffered),
        TEST(test_buffered_more),
        TEST(test_flush_ends_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
