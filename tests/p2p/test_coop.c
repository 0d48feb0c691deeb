/* SPDX-License-Identifier: BSD-3-Clause */
/* Large messages within a node: read out of the sender's memory, by both sides at once where the
 * sender waits, and pulled where the kernel forbids it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/abi/semantics.h"
#include "tests/p2p/wire_check.h"

#define MOST (2 << 20)

static const uint32_t together[] = {0, 0};
static unsigned char data[MOST], room[MOST + 1];

static void fill(MPI_Count n)
{
    wire_fill(data, n, (int)n);
    memset(room, 0xee, (size_t)n + 1);
}

static int start(const char *method)
{
    setenv("MOTET_COPY", method, 1);
    wire_start(2, together);
    unsetenv("MOTET_COPY");
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    return start("both");
}

static int set_up_reading(void **state)
{
    (void)state;
    return start("read");
}

static const MPI_Count lengths[] = {16385,  20000,       65536,   100001, 524287,
                                    524288, 524288 + 13, 1000003, MOST};

static void check_lengths(void)
{
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int early = 0; early < 2; early++)
            wire_check_transfer(data, room, lengths[i], early);
}

/* The receiver alone, without a byte through the ring. */
static void test_read(void **state)
{
    (void)state;
    check_lengths();
    assert_true(wire_n_reads > 0);
    assert_int_equal(wire_n_writes, 0);
    assert_int_equal(wire_engine(1)->rendezvous_in, 18);
    assert_int_equal(wire_engine(0)->rendezvous_out, 18);
}

static int sender_turns;

/* While the receiver reads a chunk, the sender copies one or more. */
static void sender_helps(void)
{
    for (int i = 0; i < sender_turns; i++)
        wire_turn(0);
}

static void test_both_copy(void **state)
{
    (void)state;
    wire_on_read(sender_helps);
    for (sender_turns = 1; sender_turns < 5; sender_turns++)
        check_lengths();
    assert_true(wire_n_writes > 4 * 8);
    wire_check_quiet();
}

/* The sender's writing is forbidden: it says so, and the receiver reads all. */
static void test_writing_forbidden(void **state)
{
    (void)state;
    wire_on_read(sender_helps);
    sender_turns = 1;
    wire_permit_reading(true, false);
    check_lengths();
    assert_true(wire_n_writes > 0);
}

static struct request *in_hand;

/* The sender takes a chunk and is not done with it while the receiver finishes all others. */
static void take_a_chunk(void)
{
    const struct transfer *t = transfer_of(in_hand);
    if (atomic_load(&t->record->coop_target) && atomic_load(&t->record->coop_next) == 2)
        atomic_fetch_add(&t->record->coop_next, 1);
}

/* Then the receive waits for that chunk, and is shown as a transfer under way. */
static void test_waits_for_last_chunk(void **state)
{
    const MPI_Count n = 1 << 20;

    (void)state;
    for (int failed = 0; failed < 2; failed++) {
        fill(n);
        in_hand = wire_isend(0, 1, 1, data, n);
        wire_on_read(take_a_chunk);
        wire_turn(1);
        struct request *recv = wire_irecv(1, 0, 1, room, n);
        wire_on_read(NULL);
        struct coop_transfer *t = coop_of(rendezvous_of(transfer_of(recv)));
        assert_false(request_is_complete(recv));
        assert_int_equal(wire_protocols(1)->coop.n_joining, 1);
        assert_int_equal(t->rest, 1);
        assert_int_equal(transfer_of(recv)->record->state, QUEUE_RENDEZVOUS_IN);
        wire_turn(1);
        assert_false(request_is_complete(recv));
        if (failed) {
            atomic_store(&transfer_of(in_hand)->record->coop_done, UINT32_MAX);
        } else {
            memcpy(room + 2 * (128 << 10), data + 2 * (128 << 10), 128 << 10);
            atomic_store(&transfer_of(in_hand)->record->coop_done, 1);
        }
        wire_settle();
        assert_int_equal(wire_finish(1, recv, MPI_STATUS_IGNORE), MPI_SUCCESS);
        assert_int_equal(wire_finish(0, in_hand, MPI_STATUS_IGNORE), MPI_SUCCESS);
        assert_memory_equal(room, data, (size_t)n);
        wire_check_quiet();
    }
}

/* The kernel refuses at the first read: nothing was lost, the bytes are pulled, and nobody asks it
 * again. */
static void test_reading_forbidden(void **state)
{
    (void)state;
    wire_permit_reading(false, false);
    wire_check_transfer(data, room, 1 << 20, false);
    int n_reads = wire_n_reads;
    assert_true(wire_peer(1, 0)->no_readv);
    check_lengths();
    assert_int_equal(wire_n_reads, n_reads);
}

/* It stops permitting it in the middle. */
static void test_reading_ends(void **state)
{
    struct request *send, *recv;
    struct datatype *type;
    enum { BLOCKS = 100, BLOCK = 300 };

    (void)state;
    struct comm *world = wire_as(1);
    mpi_type_vector(BLOCKS, BLOCK, BLOCK + 1, datatype_from_handle(MPI_BYTE), &type, false);
    mpi_type_commit(&type);
    fill(BLOCKS * (BLOCK + 1));
    wire_permit_reads(1); /* of the two that so many pieces take */
    mpi_irecv(room, 1, type, 0, 1, world, &recv);
    send = wire_isend(0, 1, 1, data, BLOCKS * BLOCK);
    wire_settle();
    assert_int_equal(wire_n_reads, 2);
    assert_int_equal(wire_finish(1, recv, MPI_STATUS_IGNORE), MPI_SUCCESS);
    assert_int_equal(wire_finish(0, send, MPI_STATUS_IGNORE), MPI_SUCCESS);
    for (int i = 0; i < BLOCKS * BLOCK; i++)
        assert_int_equal(room[i / BLOCK * (BLOCK + 1) + i % BLOCK], data[i]);
    wire_as(1);
    mpi_type_free(&type);
    wire_check_quiet();
}

/* Receives with gaps are read in as many pieces as they have, without the sender's help. */
static void test_gaps(void **state)
{
    enum { BLOCKS = 3000, BLOCK = 300 };
    struct request *send, *recv;
    struct datatype *type;

    (void)state;
    struct comm *world = wire_as(1);
    mpi_type_vector(BLOCKS, BLOCK, BLOCK + 1, datatype_from_handle(MPI_BYTE), &type, false);
    mpi_type_commit(&type);
    fill(BLOCKS * (BLOCK + 1));
    wire_on_read(sender_helps);
    sender_turns = 1;
    mpi_irecv(room, 1, type, 0, 1, world, &recv);
    send = wire_isend(0, 1, 1, data, BLOCKS * BLOCK);
    wire_settle();
    assert_int_equal(wire_finish(1, recv, MPI_STATUS_IGNORE), MPI_SUCCESS);
    assert_int_equal(wire_finish(0, send, MPI_STATUS_IGNORE), MPI_SUCCESS);
    for (int i = 0; i < BLOCKS * BLOCK; i++)
        assert_int_equal(room[i / BLOCK * (BLOCK + 1) + i % BLOCK], data[i]);
    assert_int_equal(wire_n_writes, 0);
    wire_as(1);
    mpi_type_free(&type);
    wire_check_quiet();
}

/* A receive that is too short is not copied by both, since they would not agree on the chunks. */
static void test_truncated(void **state)
{
    (void)state;
    wire_on_read(sender_helps);
    sender_turns = 2;
    for (MPI_Count n = 20000; n < MOST; n += 300000) {
        fill(MOST);
        struct request *send = wire_isend(0, 1, 1, data, MOST);
        wire_settle();
        struct request *recv = wire_irecv(1, 0, 1, room, n);
        wire_settle();
        assert_int_equal(wire_finish(1, recv, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
        assert_int_equal(wire_finish(0, send, MPI_STATUS_IGNORE), MPI_SUCCESS);
        assert_memory_equal(room, data, (size_t)n);
        assert_int_equal(room[n], 0xee);
    }
    wire_check_quiet();
}

static struct request *awaited;
static MPI_Count awaited_bytes;

static void receiver_runs(void)
{
    if (!awaited)
        awaited = wire_irecv(1, 0, 1, room, awaited_bytes);
    wire_turn(1);
}

/* Offered from 64 KiB on, whether its sender waits for it alone or not. */
static void test_offers(void **state)
{
    const struct {
        MPI_Count bytes;
        bool blocking, offered;
    } cases[] = {
        {65535, true, false}, {65536, true, true}, {65535, false, false}, {65536, false, true}};

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct packet *rts;
        struct msg_rts said;
        struct ring_slot finished = {.kind = MSG_FINISHED};
        fill(cases[i].bytes);
        if (cases[i].blocking) {
            awaited = NULL;
            awaited_bytes = cases[i].bytes;
            wire_while_waiting(receiver_runs);
            wire_on_read(sender_helps);
            sender_turns = 1;
            int before = wire_n_writes;
            struct comm *world = wire_as(0);
            mpi_send(data, cases[i].bytes, datatype_from_handle(MPI_BYTE), 1, 1, world);
            wire_while_waiting(NULL);
            wire_on_read(NULL);
            wire_settle();
            wire_finish(1, awaited, MPI_STATUS_IGNORE);
            assert_memory_equal(room, data, (size_t)cases[i].bytes);
            assert_int_equal(wire_n_writes > before, cases[i].offered);
            continue;
        }
        wire_hold(true);
        struct request *send = wire_isend(0, 1, 1, data, cases[i].bytes);
        rts = wire_packet(0, 1, 0);
        memcpy(&said, rts->payload, sizeof said);
        assert_int_equal(said.record != 0, cases[i].offered);
        assert_int_equal(wire_protocols(0)->coop.n_offers, cases[i].offered);
        finished.context = said.transfer;
        wire_forge(1, 0, &finished, NULL);
        wire_finish(0, send, MPI_STATUS_IGNORE);
        list_remove(&rts->link);
        free(rts);
        wire_hold(false);
        wire_check_quiet();
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, wire_tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_read, set_up_reading, wire_tear_down),
        TEST(test_both_copy),
        TEST(test_writing_forbidden),
        TEST(test_waits_for_last_chunk),
        TEST(test_reading_forbidden),
        TEST(test_reading_ends),
        TEST(test_gaps),
        TEST(test_truncated),
        TEST(test_offers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
