/* SPDX-License-Identifier: BSD-3-Clause */
/* The MPI functions over the protocols: probes, cancelling, persistent and buffered sends, messages
 * of a rank to itself, send and receive in one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/abi/semantics.h"
#include "client/progress/calls.h"
#include "client/progress/status.h"
#include "tests/p2p/wire.h"

#define LARGE 50000

static const uint32_t apart[] = {0, 1, 2};
static unsigned char data[LARGE], room[LARGE + 1];
static struct datatype *byte(void)
{
    return datatype_from_handle(MPI_BYTE);
}

static int set_up(void **state)
{
    (void)state;
    wire_start(3, apart);
    for (int i = 0; i < LARGE; i++)
        data[i] = (unsigned char)(i * 13 + i / 255);
    memset(room, 0xee, sizeof room);
    return 0;
}

static void check_status(const MPI_Status *status, int source, int tag, MPI_Count n)
{
    assert_int_equal(status->MPI_SOURCE, source);
    assert_int_equal(status->MPI_TAG, tag);
    assert_int_equal(status_get_count_bytes(status), n);
    assert_false(status_is_cancelled(status));
}

static void check_received(struct request *recv, int source, int tag, MPI_Count n)
{
    MPI_Status status;

    wire_settle();
    assert_int_equal(wire_finish(1, recv, &status), MPI_SUCCESS);
    check_status(&status, source, tag, n);
    assert_memory_equal(room, data, (size_t)n);
    assert_int_equal(room[n], 0xee);
    memset(room, 0xee, sizeof room);
}

/* ---- probes ---- */

static int iprobe(int source, int tag, MPI_Status *status)
{
    struct comm *world = wire_as(1);
    int flag = -1;

    assert_int_equal(mpi_iprobe(source, tag, world, &flag, status), MPI_SUCCESS);
    return flag;
}

/* A probe finds the oldest message that fits, tells its length whether it is here or only
 * announced, and leaves it. */
static void test_probe(void **state)
{
    MPI_Status status;

    (void)state;
    assert_false(iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, &status));
    struct request *sends[] = {wire_isend(0, 1, 5, data, 100), wire_isend(0, 1, 6, data, LARGE),
                               wire_isend(2, 1, 5, data, 0)};
    wire_settle();
    assert_false(iprobe(0, 7, &status));
    assert_false(iprobe(2, 6, &status));
    for (int i = 0; i < 2; i++) {
        assert_true(iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, &status));
        check_status(&status, 0, 5, 100);
        assert_true(iprobe(0, 6, &status));
        check_status(&status, 0, 6, LARGE);
        assert_true(iprobe(2, MPI_ANY_TAG, &status));
        check_status(&status, 2, 5, 0);
        assert_true(iprobe(MPI_ANY_SOURCE, 6, MPI_STATUS_IGNORE));
    }
    assert_true(iprobe(MPI_PROC_NULL, 1, &status));
    check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    check_received(wire_irecv(1, MPI_ANY_SOURCE, 6, room, LARGE), 0, 6, LARGE);
    check_received(wire_irecv(1, MPI_ANY_SOURCE, 5, room, LARGE), 0, 5, 100);
    check_received(wire_irecv(1, MPI_ANY_SOURCE, 5, room, LARGE), 2, 5, 0);
    for (int i = 0; i < 3; i++)
        wire_finish(i == 2 ? 2 : 0, sends[i], MPI_STATUS_IGNORE);
    assert_false(iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, &status));
}

/* A matched message belongs to its handle: no probe and no receive meets it any more. */
static void test_matched_probe(void **state)
{
    struct message *messages[3];
    struct request *r;
    MPI_Status status;
    int flag;

    (void)state;
    const MPI_Count lengths[] = {100, LARGE, 8};
    struct request *sends[3];
    for (int i = 0; i < 3; i++)
        sends[i] = wire_isend(0, 1, 5, data, lengths[i]);
    wire_settle();
    struct comm *world = wire_as(1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(mpi_improbe(0, MPI_ANY_TAG, world, &flag, &messages[i], &status), 0);
        assert_true(flag);
        check_status(&status, 0, 5, lengths[i]);
    }
    assert_int_equal(mpi_mprobe(MPI_ANY_SOURCE, 5, world, &messages[2], &status), 0);
    check_status(&status, 0, 5, 8);
    assert_false(iprobe(0, 5, &status));
    assert_int_equal(mpi_improbe(0, 5, world, &flag, &messages[0], &status), 0);
    assert_false(flag);
    struct request *none = wire_irecv(1, 0, 5, room, LARGE);
    assert_false(request_is_complete(none));
    mpi_cancel(&none);
    wire_finish(1, none, MPI_STATUS_IGNORE);
    /* In another order than they came. */
    for (int i = 2; i >= 0; i--) {
        wire_as(1);
        assert_int_equal(mpi_imrecv(room, LARGE, byte(), &messages[i], &r), MPI_SUCCESS);
        assert_null(messages[i]);
        check_received(r, 0, 5, lengths[i]);
    }
    wire_settle();
    for (int i = 0; i < 3; i++)
        wire_finish(0, sends[i], MPI_STATUS_IGNORE);
    assert_int_equal(wire_peer(0, 1)->credit.used, wire_peer(1, 0)->credit.owed);
    wire_as(1);
    assert_int_equal(mpi_mprobe(MPI_PROC_NULL, 5, world, &messages[0], &status), 0);
    check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    assert_int_equal(mpi_mrecv(room, 1, byte(), &messages[0], &status), MPI_SUCCESS);
    check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    assert_int_equal(mpi_improbe(MPI_PROC_NULL, 5, world, &flag, &messages[0], &status), 0);
    assert_true(flag);
}

static int n_polls;

static void rank_0_sends_late(void)
{
    if (++n_polls == 20000)
        wire_finish(0, wire_isend(0, 1, 9, data, 10), MPI_STATUS_IGNORE);
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
        check_status(&status, 0, 9, 10);
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
            mpi_imrecv(room, LARGE, byte(), &message, &recv);
        else
            recv = wire_irecv(1, 0, 9, room, LARGE);
        check_received(recv, 0, 9, 10);
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
    assert_int_equal(e->records.records[0].bytes, LARGE);
    wire_finish(0, wire_isend(0, 1, 9, data, 10), MPI_STATUS_IGNORE);
}

/* A blocking receive is shown when it has waited for long. */
static void test_receive_waits(void **state)
{
    MPI_Status status;

    (void)state;
    n_polls = 0;
    wire_while_waiting(rank_0_sends_later);
    struct comm *world = wire_as(1);
    assert_int_equal(mpi_recv(room, LARGE, byte(), 0, 9, world, &status), MPI_SUCCESS);
    wire_while_waiting(NULL);
    check_status(&status, 0, 9, 10);
    assert_int_equal(wire_engine(1)->records.records[0].state, QUEUE_FREE);
}

/* ---- cancelling ---- */

static void test_cancel(void **state)
{
    MPI_Status status;
    int flag;

    (void)state;
    struct request *first = wire_irecv(1, 0, 5, room, 10),
                   *second = wire_irecv(1, MPI_ANY_SOURCE, 5, room, 100);
    const struct queue_record *record = transfer_of(first)->record;
    assert_int_equal(record->state, QUEUE_POSTED);
    mpi_cancel(&first);
    assert_int_equal(record->state, QUEUE_FREE);
    assert_int_equal(wire_finish(1, first, &status), MPI_SUCCESS);
    mpi_test_cancelled(&status, &flag);
    assert_true(flag);
    /* What it would have taken goes to the next. */
    struct request *send = wire_isend(0, 1, 5, data, 100);
    wire_settle();
    /* Too late: it has its message. */
    wire_as(1);
    mpi_cancel(&second);
    assert_int_equal(wire_finish(1, second, &status), MPI_SUCCESS);
    mpi_test_cancelled(&status, &flag);
    assert_false(flag);
    check_status(&status, 0, 5, 100);
    /* A send is not called back. */
    wire_cut(0, 1, true);
    wire_finish(0, send, MPI_STATUS_IGNORE);
    send = wire_isend(0, 1, 5, data, LARGE);
    mpi_cancel(&send);
    assert_false(request_is_complete(send));
    wire_cut(0, 1, false);
    memset(room, 0xee, sizeof room);
    check_received(wire_irecv(1, 0, 5, room, LARGE), 0, 5, LARGE);
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
    struct request *recv = wire_irecv(1, 0, 5, room, LARGE);
    struct request *send = wire_isend(0, 1, 5, data, LARGE);
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
    assert_memory_equal(room, data, LARGE);
}

/* ---- persistent ---- */

static void test_persistent(void **state)
{
    const MPI_Count lengths[] = {0, 8, 5000, LARGE};

    (void)state;
    for (int mode = 0; mode < 3; mode++) {
        for (int k = 0; k < 4; k++) {
            struct request *send, *recv;
            MPI_Status status;
            struct comm *world = wire_as(0);
            (mode == 0   ? mpi_send_init
             : mode == 1 ? mpi_ssend_init
                         : mpi_rsend_init)(data, lengths[k], byte(), 1, 5, world, &send);
            assert_false(send->active);
            world = wire_as(1);
            mpi_recv_init(room, LARGE, byte(), MPI_ANY_SOURCE, MPI_ANY_TAG, world, &recv);
            for (int round = 0; round < 3; round++) {
                wire_as(1);
                mpi_start(&recv);
                assert_false(request_is_complete(recv));
                wire_as(0);
                mpi_start(&send);
                wire_settle();
                check_received(recv, 0, 5, lengths[k]);
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
            check_received(recv, 0, 5, lengths[k]);
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
            send = wire_isend(1, 1, 3, data, LARGE);
            assert_false(request_is_complete(send));
            assert_true(iprobe(MPI_ANY_SOURCE, 3, &status));
            check_status(&status, 1, 3, LARGE);
        }
        recv = wire_irecv(1, 1, 3, room, LARGE);
        if (!early)
            send = wire_isend(1, 1, 3, data, LARGE);
        wire_finish(1, send, MPI_STATUS_IGNORE);
        check_received(recv, 1, 3, LARGE);
    }
    /* Blocking: kept, and the sender's buffer is free. */
    unsigned char own[500];
    memcpy(own, data, sizeof own);
    assert_int_equal(mpi_send(own, sizeof own, byte(), 1, 3, world), MPI_SUCCESS);
    memset(own, 0, sizeof own);
    check_received(wire_irecv(1, MPI_ANY_SOURCE, 3, room, LARGE), 1, 3, sizeof own);
    /* Order among both kinds. */
    mpi_send(data, 1, byte(), 1, 3, world);
    send = wire_isend(1, 1, 3, data, 2);
    mpi_send(data, 3, byte(), 1, 3, world);
    for (int i = 1; i < 4; i++)
        check_received(wire_irecv(1, 1, 3, room, LARGE), 1, 3, i);
    wire_finish(1, send, MPI_STATUS_IGNORE);
    /* Truncated. */
    recv = wire_irecv(1, 1, 3, room, 10);
    send = wire_isend(1, 1, 3, data, 20);
    assert_int_equal(wire_finish(1, recv, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    assert_int_equal(wire_finish(1, send, MPI_STATUS_IGNORE), MPI_SUCCESS);
    assert_int_equal(room[10], 0xee);
}

static struct request *posted_late;

static void rank_1_posts(void)
{
    if (!posted_late)
        posted_late = wire_irecv(1, 1, 3, room, LARGE);
}

/* A synchronous one waits for its receive, which another thread posts. */
static void test_self_synchronous(void **state)
{
    (void)state;
    posted_late = NULL;
    wire_while_waiting(rank_1_posts);
    struct comm *world = wire_as(1);
    assert_int_equal(mpi_ssend(data, 100, byte(), 1, 3, world), MPI_SUCCESS);
    wire_while_waiting(NULL);
    assert_non_null(posted_late);
    check_received(posted_late, 1, 3, 100);
}

static void test_nobody(void **state)
{
    struct request *r;
    MPI_Status status;

    (void)state;
    struct comm *world = wire_as(1);
    assert_int_equal(mpi_send(data, 8, byte(), MPI_PROC_NULL, 3, world), MPI_SUCCESS);
    assert_int_equal(mpi_recv(room, 8, byte(), MPI_PROC_NULL, 3, world, &status), MPI_SUCCESS);
    check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    mpi_issend(data, 8, byte(), MPI_PROC_NULL, 3, world, &r);
    wire_finish(1, r, MPI_STATUS_IGNORE);
    mpi_irecv(room, 8, byte(), MPI_PROC_NULL, 3, world, &r);
    wire_finish(1, r, &status);
    check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    assert_int_equal(room[0], 0xee);
}

/* ---- send and receive in one ---- */

static struct request *others_send, *others_recv;
static unsigned char others_room[LARGE];

static void rank_0_runs(void)
{
    wire_turn(0);
}

static void test_sendrecv(void **state)
{
    static unsigned char back[LARGE];
    const MPI_Count lengths[] = {0, 10, 5000, LARGE};

    (void)state;
    memset(back, 0x77, sizeof back);
    for (int form = 0; form < 4; form++) {
        for (int k = 0; k < 4; k++) {
            MPI_Count n = lengths[k];
            struct request *r = NULL;
            MPI_Status status;
            memset(others_room, 0, sizeof others_room);
            others_recv = wire_irecv(0, 1, 4, others_room, LARGE);
            others_send = wire_isend(0, 1, 6, data, n);
            struct comm *world = wire_as(1);
            memcpy(room, back, LARGE);
            room[LARGE] = 0xee;
            wire_while_waiting(rank_0_runs);
            if (form == 0)
                mpi_sendrecv(back, n, byte(), 0, 4, room, n, byte(), 0, 6, world, &status);
            else if (form == 1)
                mpi_sendrecv_replace(room, n, byte(), 0, 4, 0, 6, world, &status);
            else if (form == 2)
                mpi_isendrecv(back, n, byte(), 0, 4, room, n, byte(), 0, 6, world, &r);
            else
                mpi_isendrecv_replace(room, n, byte(), 0, 4, 0, 6, world, &r);
            wire_while_waiting(NULL);
            wire_settle();
            if (r)
                assert_int_equal(wire_finish(1, r, &status), MPI_SUCCESS);
            check_status(&status, 0, 6, n);
            assert_memory_equal(room, data, (size_t)n);
            wire_finish(0, others_send, MPI_STATUS_IGNORE);
            wire_finish(0, others_recv, &status);
            check_status(&status, 1, 4, n);
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
        mpi_isendrecv(data, LARGE, byte(), 0, 4, back, 100, byte(), 0, 6, world, &r);
        wire_settle();
        assert_false(request_is_complete(r));
        for (int step = 0; step < 2; step++) {
            if (step == late) {
                others_recv = wire_irecv(0, 1, 4, others_room, LARGE);
                wire_settle();
                wire_finish(0, others_recv, MPI_STATUS_IGNORE);
            } else {
                wire_finish(0, wire_isend(0, 1, 6, data, 100), MPI_STATUS_IGNORE);
            }
            wire_settle();
            assert_int_equal(request_is_complete(r), step == 1);
        }
        assert_int_equal(wire_finish(1, r, &status), MPI_SUCCESS);
        check_status(&status, 0, 6, 100);
        assert_memory_equal(back, data, 100);
        assert_memory_equal(others_room, data, LARGE);
    }
}

/* ---- buffered ---- */

static void test_buffered(void **state)
{
    static unsigned char buffer[30000];
    struct request *r;
    MPI_Count size;
    void *address;

    (void)state;
    struct comm *world = wire_as(0);
    assert_int_equal(mpi_bsend(data, 10, byte(), 1, 5, world), MPI_ERR_BUFFER);
    assert_int_equal(mpi_bsend(data, 10, byte(), MPI_PROC_NULL, 5, world), MPI_SUCCESS);
    assert_int_equal(mpi_buffer_attach(buffer, sizeof buffer), MPI_SUCCESS);
    assert_int_equal(mpi_buffer_attach(buffer, sizeof buffer), MPI_ERR_BUFFER);
    /* What has left frees its room; what waits does not. */
    for (int i = 0; i < 20; i++)
        assert_int_equal(mpi_bsend(data, 5000, byte(), 1, 5, world), MPI_SUCCESS);
    wire_cut(0, 1, true);
    unsigned char own[10000];
    for (int i = 0; i < 2; i++) {
        memcpy(own, data, sizeof own);
        assert_int_equal(mpi_bsend(own, sizeof own, byte(), 1, 6, world), MPI_SUCCESS);
        memset(own, 0, sizeof own);
    }
    assert_int_equal(mpi_bsend(data, sizeof own, byte(), 1, 6, world), MPI_ERR_BUFFER);
    /* To the byte(), with the overhead of a message. */
    MPI_Count left = (MPI_Count)sizeof buffer - 2 * (MPI_Count)sizeof own, cost = 0;
    while (mpi_bsend(data, left - cost, byte(), 1, 7, world) != MPI_SUCCESS)
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
        check_received(wire_irecv(1, 0, 5, room, LARGE), 0, 5, 5000);
    for (int i = 0; i < 2; i++) {
        assert_false(request_is_complete(flush));
        check_received(wire_irecv(1, 0, 6, room, LARGE), 0, 6, sizeof own);
    }
    check_received(wire_irecv(1, 0, 7, room, LARGE), 0, 7, left - cost);
    wire_settle();
    wire_finish(0, flush, MPI_STATUS_IGNORE);
    wire_as(0);
    assert_int_equal(mpi_ibsend(data, 29000, byte(), 1, 8, world, &r), MPI_SUCCESS);
    wire_finish(0, r, MPI_STATUS_IGNORE);
    assert_int_equal(mpi_bsend(data, 5000, byte(), 1, 8, world), MPI_ERR_BUFFER);
    check_received(wire_irecv(1, 0, 8, room, LARGE), 0, 8, 29000);
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
        flushed_recv = wire_irecv(1, 0, 5, room, LARGE);
    wire_turn(1);
}

/* Persistent ones, a communicator's own buffer, and calls that wait until all has left. */
static void test_buffered_more(void **state)
{
    static unsigned char buffer[LARGE + 1000];
    struct request *r, *flush;
    MPI_Count size;
    void *address;

    (void)state;
    struct comm *world = wire_as(0);
    mpi_comm_attach_buffer(world, buffer, sizeof buffer);
    mpi_bsend_init(data, LARGE, byte(), 1, 5, world, &r);
    for (int round = 0; round < 3; round++) {
        wire_as(0);
        assert_int_equal(mpi_start(&r), MPI_SUCCESS);
        wire_finish(0, r, MPI_STATUS_IGNORE);
        if (round == 2)
            break;
        check_received(wire_irecv(1, 0, 5, room, LARGE), 0, 5, LARGE);
    }
    assert_int_not_equal(mpi_start(&r), MPI_SUCCESS);
    mpi_request_free(&r);
    wire_while_waiting(rank_1_receives);
    mpi_comm_flush_buffer(world);
    wire_while_waiting(NULL);
    check_received(flushed_recv, 0, 5, LARGE);
    wire_as(0);
    mpi_comm_iflush_buffer(world, &flush);
    wire_finish(0, flush, MPI_STATUS_IGNORE);
    flushed_recv = NULL;
    mpi_bsend(data, LARGE, byte(), 1, 5, world);
    wire_while_waiting(rank_1_receives);
    assert_int_equal(mpi_comm_detach_buffer(world, &address, &size), MPI_SUCCESS);
    wire_while_waiting(NULL);
    assert_ptr_equal(address, buffer);
    check_received(flushed_recv, 0, 5, LARGE);
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
            wire_finish(0, wire_isend(0, 1, i, data, 4), MPI_STATUS_IGNORE);
        wire_settle();
        for (int i = 0; i < 100; i++)
            wire_finish(1, r[i], MPI_STATUS_IGNORE);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, wire_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_probe),         TEST(test_matched_probe), TEST(test_probe_waits),
        TEST(test_receive_waits), TEST(test_cancel),        TEST(test_cancel_under_way),
        TEST(test_persistent),    TEST(test_self),          TEST(test_self_synchronous),
        TEST(test_nobody),        TEST(test_sendrecv),      TEST(test_sendrecv_halves),
        TEST(test_buffered),      TEST(test_buffered_more), TEST(test_records_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
