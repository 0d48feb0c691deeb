/* SPDX-License-Identifier: BSD-3-Clause */
/* Large messages as the receiver grants them: every byte in its place, grants within their budget,
 * everything given back at the end, nothing believed that does not fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/abi/semantics.h"
#include "tests/p2p/wire_check.h"

#define MOST  ((5 << 20) + 4321)
#define GRANT ((MPI_Count)RENDEZVOUS_GRANT_AHEAD)

static const uint32_t apart[] = {0, 1, 2}, together[] = {0, 0, 0};
static unsigned char data[MOST], room[MOST + 1];

static void fill(MPI_Count n)
{
    wire_fill(data, n, (int)n);
    memset(room, 0xee, (size_t)n + 1);
}

static int set_up(void **state)
{
    (void)state;
    wire_start(3, apart);
    return 0;
}

static int set_up_node(void **state)
{
    (void)state;
    wire_start(3, together);
    wire_permit_reading(false, false);
    return 0;
}

static void check_lengths(void)
{
    const MPI_Count lengths[] = {8193,      16385,         16400,     100001,
                                 GRANT - 1, GRANT,         GRANT + 1, 2 * GRANT + 7,
                                 3 * GRANT, 3 * GRANT + 1, 4 * GRANT, MOST};

    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int early = 0; early < 2; early++)
            wire_check_transfer(data, room, lengths[i], early);
}

static void test_lengths(void **state)
{
    (void)state;
    check_lengths();
}

/* Several at once want more than the budget: it is never exceeded, who finds none waits its turn,
 * and all end. The odd rests of grants come back, or the last ones would starve. */
static void test_budget(void **state)
{
    enum { N = 9, EACH = (2 << 20) + 13 };
    static unsigned char out[N][EACH], in[N][EACH];
    struct request *sends[N], *recvs[N];
    const struct rendezvous *r = &wire_protocols(1)->rendezvous;
    uint32_t most_waiting = 0;

    (void)state;
    wire_hold(true);
    for (int i = 0; i < N; i++) {
        memset(out[i], i + 1, EACH);
        sends[i] = wire_isend(i % 2 ? 0 : 2, 1, i, out[i], EACH);
        recvs[i] = wire_irecv(1, i % 2 ? 0 : 2, i, in[i], EACH);
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t a = 0; a < 3; a++) {
            moved |= wire_turn(a) > 0;
            for (uint32_t b = 0; b < 3; b++)
                for (; a != b && wire_flying(a, b) > 0; moved = true) {
                    uint32_t waiting = 0;
                    wire_deliver(wire_packet(a, b, wire_flying(a, b) / 2));
                    assert_true(r->budget_used <= RENDEZVOUS_GRANT_BUDGET);
                    list_foreach(it, &r->backlog)
                        waiting++;
                    most_waiting = waiting > most_waiting ? waiting : most_waiting;
                }
        }
    }
    assert_true(most_waiting >= 4);
    for (int i = 0; i < N; i++) {
        wire_finish(i % 2 ? 0 : 2, sends[i], MPI_STATUS_IGNORE);
        wire_finish(1, recvs[i], MPI_STATUS_IGNORE);
        assert_memory_equal(in[i], out[i], EACH);
    }
    wire_check_quiet();
}

/* Who finds no budget left waits behind those that wait already. */
static void test_longest_wait_is_first(void **state)
{
    enum { N = 6, EACH = 2 << 20 };
    static unsigned char out[EACH], in[N][EACH];
    struct request *sends[N], *recvs[N];
    const struct rendezvous *r = &wire_protocols(1)->rendezvous;
    int first = N, next;

    (void)state;
    wire_fill(out, EACH, 1);
    wire_hold(true);
    for (int i = 0; i < N; i++) {
        recvs[i] = wire_irecv(1, 0, i, in[i], EACH);
        sends[i] = wire_isend(0, 1, i, out, EACH);
        wire_deliver(wire_packet(0, 1, 0));
        if (first == N && !list_empty(&r->backlog))
            first = i;
    }
    assert_true(first < N - 2);
    next = first;
    list_foreach(it, &r->backlog)
        assert_ptr_equal(&list_entry(it, struct transfer, link)->base, recvs[next++]);
    assert_int_equal(next, N);
    wire_hold(false);
    wire_settle();
    for (int i = 0; i < N; i++) {
        wire_finish(0, sends[i], MPI_STATUS_IGNORE);
        wire_finish(1, recvs[i], MPI_STATUS_IGNORE);
        assert_memory_equal(in[i], out, EACH);
    }
    wire_check_quiet();
}

/* No grant goes further than 1 MiB beyond what has come, nor beyond the end, and the next one comes
 * when half of it has arrived. */
static void test_grants(void **state)
{
    const MPI_Count n = 3 * GRANT + 17;
    uint64_t granted = 0;
    int n_grants = 0;

    (void)state;
    fill(n);
    wire_hold(true);
    struct request *recv = wire_irecv(1, 0, 1, room, n);
    struct request *send = wire_isend(0, 1, 1, data, n);
    const struct rendezvous_transfer *t = rendezvous_of(transfer_of(recv));
    wire_deliver(wire_packet(0, 1, 0));
    assert_int_equal(t->moved, WIRE_PACKET_BYTES - sizeof(struct msg_rts));
    while (!request_is_complete(recv)) {
        struct packet *pull;
        while ((pull = wire_find(1, 0, MSG_PULL)) != NULL) {
            struct msg_pull said;
            memcpy(&said, pull->payload, sizeof said);
            assert_true(said.granted > granted);
            assert_true(said.granted <= (uint64_t)(t->moved + GRANT) &&
                        said.granted <= (uint64_t)n);
            granted = said.granted;
            wire_deliver(pull);
            n_grants++;
        }
        wire_turn(0);
        assert_true(wire_flying(0, 1) > 0);
        while (wire_flying(0, 1) > 0) {
            wire_deliver(wire_packet(0, 1, wire_flying(0, 1) - 1));
            assert_true(request_is_complete(recv) || t->granted - t->moved <= GRANT);
        }
    }
    assert_int_equal(granted, n);
    assert_true(n_grants >= 4 && n_grants <= 8);
    wire_hold(false);
    wire_settle();
    wire_finish(0, send, MPI_STATUS_IGNORE);
    wire_finish(1, recv, MPI_STATUS_IGNORE);
    assert_memory_equal(room, data, (size_t)n);
    wire_check_quiet();
}

/* The receiver's record says how far it is. */
static void test_record(void **state)
{
    const MPI_Count n = GRANT;

    (void)state;
    fill(n);
    wire_hold(true);
    struct request *recv = wire_irecv(1, 0, 1, room, n), *send = wire_isend(0, 1, 1, data, n);
    const struct queue_record *in = transfer_of(recv)->record, *out = transfer_of(send)->record;
    assert_int_equal(in->state, QUEUE_POSTED);
    assert_int_equal(out->state, QUEUE_RENDEZVOUS_OUT);
    assert_int_equal(out->bytes, n);
    wire_deliver(wire_packet(0, 1, 0));
    assert_int_equal(in->state, QUEUE_RENDEZVOUS_IN);
    assert_int_equal(in->bytes, n);
    assert_int_equal(in->done_bytes, WIRE_PACKET_BYTES - sizeof(struct msg_rts));
    wire_deliver(wire_packet(1, 0, 0));
    wire_turn(0);
    assert_int_equal(out->done_bytes, rendezvous_of(transfer_of(send))->moved);
    wire_deliver(wire_packet(0, 1, 0));
    assert_int_equal(in->done_bytes, 2 * WIRE_PACKET_BYTES - sizeof(struct msg_rts));
    wire_hold(false);
    wire_settle();
    wire_finish(0, send, MPI_STATUS_IGNORE);
    wire_finish(1, recv, MPI_STATUS_IGNORE);
    assert_int_equal(in->state, QUEUE_FREE);
    assert_int_equal(out->state, QUEUE_FREE);
}

/* Late copies of what an earlier transfer said do not touch the one that has its number now. */
static void test_late_packets(void **state)
{
    const MPI_Count n = 50000;
    struct packet *old[2] = {NULL, NULL};

    (void)state;
    wire_hold(true);
    for (int round = 0; round < 2; round++) {
        fill(n + round);
        struct request *recv = wire_irecv(1, 0, 1, room, n), *send = wire_isend(0, 1, 1, data, n);
        wire_deliver(wire_packet(0, 1, 0));
        struct packet *pull = wire_find(1, 0, MSG_PULL);
        if (round == 0) {
            wire_deliver_copy(pull);
        } else {
            wire_deliver_copy(old[0]); /* grants nothing to the new one */
            assert_int_equal(rendezvous_of(transfer_of(send))->granted,
                             rendezvous_of(transfer_of(send))->moved);
            wire_deliver_copy(pull);
        }
        wire_turn(0);
        struct packet *piece = wire_find(0, 1, MSG_DATA);
        if (round == 1) {
            MPI_Count before = rendezvous_of(transfer_of(recv))->moved;
            wire_deliver_copy(old[1]);
            assert_int_equal(rendezvous_of(transfer_of(recv))->moved, before);
        }
        list_remove(&pull->link);
        free(old[0]);
        free(old[1]);
        old[0] = pull;
        old[1] = malloc(sizeof *piece + piece->slot.len);
        memcpy(old[1], piece, sizeof *piece + piece->slot.len);
        while (wire_flying(0, 1) > 0)
            wire_deliver(wire_packet(0, 1, 0));
        wire_finish(0, send, MPI_STATUS_IGNORE);
        wire_finish(1, recv, MPI_STATUS_IGNORE);
        assert_memory_equal(room, data, (size_t)n);
        if (round == 1) {
            wire_deliver_copy(old[0]);
            wire_deliver_copy(old[1]);
        }
    }
    free(old[0]);
    free(old[1]);
    wire_hold(false);
    wire_check_quiet();
}

/* Grants that take back, go beyond the end, or come from somebody else, and data beyond its grant
 * or from somebody else change nothing. */
static void test_unbelievable(void **state)
{
    const MPI_Count n = 2 * GRANT;
    unsigned char bad[64];

    (void)state;
    memset(bad, 0xbb, sizeof bad);
    fill(n);
    wire_hold(true);
    struct request *recv = wire_irecv(1, 0, 1, room, n), *send = wire_isend(0, 1, 1, data, n);
    struct rendezvous_transfer *out = rendezvous_of(transfer_of(send)),
                               *in = rendezvous_of(transfer_of(recv));
    wire_deliver(wire_packet(0, 1, 0));
    struct ring_slot pull = {.kind = MSG_PULL, .len = sizeof(struct msg_pull)};
    pull.context = out->number;
    MPI_Count before = out->granted;
    wire_forge(1, 0, &pull, &(struct msg_pull){.granted = (uint64_t)before - 1, .transfer = 1});
    wire_forge(1, 0, &pull, &(struct msg_pull){.granted = (uint64_t)n + 1, .transfer = 1});
    wire_forge(2, 0, &pull, &(struct msg_pull){.granted = (uint64_t)n, .transfer = 1});
    pull.context += 1;
    wire_forge(1, 0, &pull, &(struct msg_pull){.granted = (uint64_t)n, .transfer = 1});
    assert_int_equal(out->granted, before);

    struct ring_slot piece = {.kind = MSG_DATA, .len = sizeof bad, .context = in->number};
    before = in->moved;
    piece.tag = (int32_t)in->granted - (int32_t)sizeof bad + 1; /* one byte too far */
    wire_forge(0, 1, &piece, bad);
    piece.tag = (int32_t)in->granted + 1;
    wire_forge(0, 1, &piece, bad);
    piece.tag = 100000;
    piece.order = 1; /* 4 GiB further */
    wire_forge(0, 1, &piece, bad);
    piece.order = 0;
    wire_forge(2, 1, &piece, bad);
    struct ring_slot finished = {.kind = MSG_FINISHED, .context = out->number};
    wire_forge(2, 0, &finished, NULL);
    assert_false(request_is_complete(send));
    assert_int_equal(in->moved, before);
    assert_int_equal(room[100000], 0xee);
    assert_int_equal(room[in->granted], 0xee);
    wire_hold(false);
    wire_settle();
    wire_finish(0, send, MPI_STATUS_IGNORE);
    wire_finish(1, recv, MPI_STATUS_IGNORE);
    assert_memory_equal(room, data, (size_t)n);
    wire_check_quiet();
}

/* Beyond 4 GiB the offset of a packet needs its upper half. The message is one byte again and
 * again. */
static void test_offset_beyond_4_gib(void **state)
{
    struct datatype *same;
    struct request *send;
    const MPI_Count n = (MPI_Count)1 << 33, at = ((MPI_Count)1 << 32) + 4096;

    (void)state;
    struct comm *world = wire_as(0);
    assert_int_equal(mpi_type_create_hvector(n, 1, 0, datatype_from_handle(MPI_BYTE), &same, true),
                     0);
    assert_int_equal(mpi_type_commit(&same), 0);
    wire_hold(true);
    mpi_isend(data, 1, same, 1, 1, world, &send);
    struct rendezvous_transfer *t = rendezvous_of(transfer_of(send));
    t->moved = at;
    type_cursor_seek(&t->cursor, at);
    struct ring_slot pull = {
        .kind = MSG_PULL, .len = sizeof(struct msg_pull), .context = t->number};
    wire_forge(1, 0, &pull, &(struct msg_pull){.granted = (uint64_t)at + 10, .transfer = 9});
    wire_turn(0);
    struct packet *piece = wire_find(0, 1, MSG_DATA);
    assert_int_equal(piece->slot.len, 10);
    assert_int_equal(piece->slot.context, 9);
    assert_int_equal(piece->slot.tag, 4096);
    assert_int_equal(piece->slot.order, 1);
    struct ring_slot finished = {.kind = MSG_FINISHED, .context = t->number};
    wire_forge(1, 0, &finished, NULL);
    wire_finish(0, send, MPI_STATUS_IGNORE);
    mpi_type_free(&same);
}

/* Datatypes with gaps on either side. */
static void test_gaps(void **state)
{
    enum { N = 200000 };
    struct datatype *byte = datatype_from_handle(MPI_BYTE);
    struct datatype *types[2][2];

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        wire_as(i);
        mpi_type_vector(N / 4, 4, 7, byte, &types[i][0], false);
        mpi_type_contiguous(N, byte, &types[i][1], false);
        mpi_type_commit(&types[i][0]);
        mpi_type_commit(&types[i][1]);
    }
    for (int shape = 0; shape < 3; shape++) {
        struct request *send, *recv;
        bool gaps_out = shape != 1, gaps_in = shape != 0;
        fill(2 * N);
        struct comm *world = wire_as(0);
        mpi_isend(data, 1, types[0][!gaps_out], 1, 1, world, &send);
        world = wire_as(1);
        mpi_irecv(room, 1, types[1][!gaps_in], 0, 1, world, &recv);
        wire_settle();
        wire_finish(0, send, MPI_STATUS_IGNORE);
        wire_finish(1, recv, MPI_STATUS_IGNORE);
        for (int i = 0; i < N; i++)
            assert_int_equal(room[gaps_in ? i / 4 * 7 + i % 4 : i],
                             data[gaps_out ? i / 4 * 7 + i % 4 : i]);
    }
    for (uint32_t i = 0; i < 2; i++) {
        wire_as(i);
        mpi_type_free(&types[i][0]);
        mpi_type_free(&types[i][1]);
    }
    wire_check_quiet();
}

/* A receive that is too short takes what it has room for, and the sender waits no longer. */
static void test_truncated(void **state)
{
    (void)state;
    for (MPI_Count n = 20000; n < 3 * GRANT; n = n * 5 / 2) {
        fill(3 * GRANT);
        struct request *send = wire_isend(0, 1, 1, data, 3 * GRANT);
        struct request *recv = wire_irecv(1, 0, 1, room, n);
        wire_settle();
        assert_int_equal(wire_finish(0, send, MPI_STATUS_IGNORE), MPI_SUCCESS);
        assert_int_equal(wire_finish(1, recv, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
        assert_memory_equal(room, data, (size_t)n);
        assert_int_equal(room[n], 0xee);
    }
    wire_check_quiet();
}

/* A synchronous send is complete when its receive has the message, and no sooner. */
static void test_synchronous(void **state)
{
    (void)state;
    const MPI_Count lengths[] = {0, 8, 5000, 50000};
    for (unsigned i = 0; i < 4; i++) {
        struct request *send;
        fill(lengths[i]);
        struct comm *world = wire_as(0);
        mpi_issend(data, lengths[i], datatype_from_handle(MPI_BYTE), 1, 1, world, &send);
        wire_settle();
        assert_false(request_is_complete(send));
        struct request *recv = wire_irecv(1, 0, 1, room, lengths[i]);
        wire_settle();
        wire_finish(0, send, MPI_STATUS_IGNORE);
        wire_finish(1, recv, MPI_STATUS_IGNORE);
        assert_memory_equal(room, data, (size_t)lengths[i]);
    }
    wire_check_quiet();
}

/* Numbers are given back: however many messages there were, no more than were under way at once are
 * in use. */
static void test_numbers_come_back(void **state)
{
    (void)state;
    fill(20000);
    for (int i = 0; i < 200; i++) {
        struct request *send = wire_isend(0, 1, 1, data, 20000);
        struct request *recv = wire_irecv(1, 0, 1, room, i % 2 ? 20000 : 15000);
        wire_settle();
        wire_finish(0, send, MPI_STATUS_IGNORE);
        wire_finish(1, recv, MPI_STATUS_IGNORE);
    }
    assert_int_equal(wire_protocols(0)->rendezvous.n_numbers, 1);
    assert_int_equal(wire_protocols(1)->rendezvous.n_numbers, 1);
    wire_check_quiet();
}

/* More transfers at once than the table of numbers begins with; each number is another one, none is
 * 0, and one that is used again has another generation. */
static void test_numbers(void **state)
{
    enum { N = 300 };
    static struct rendezvous_transfer all[N];
    struct rendezvous *r = &wire_protocols(0)->rendezvous;

    (void)state;
    for (int i = 0; i < N; i++) {
        all[i].base.world = 1;
        all[i].base.dir = TRANSFER_SEND;
        assert_true(rendezvous_take_number(r, &all[i]));
        assert_int_not_equal(all[i].number, 0);
    }
    for (int i = 0; i < N; i++) {
        assert_ptr_equal(rendezvous_find(r, all[i].number, 1, TRANSFER_SEND), &all[i]);
        assert_null(rendezvous_find(r, all[i].number, 2, TRANSFER_SEND));
        assert_null(rendezvous_find(r, all[i].number, 1, TRANSFER_RECV));
    }
    assert_null(rendezvous_find(r, 0, 1, TRANSFER_SEND));
    assert_null(rendezvous_find(r, UINT32_MAX, 1, TRANSFER_SEND));
    /* 12 bits of generation go round without ever giving the number 0. */
    list_init(&all[0].base.link);
    all[0].base.engine = r->engine;
    for (int i = 0; i < 5000; i++) {
        uint32_t before = all[0].number;
        rendezvous_finish(r, &all[0], MPI_SUCCESS);
        assert_null(rendezvous_find(r, before, 1, TRANSFER_SEND));
        assert_true(rendezvous_take_number(r, &all[0]));
        assert_int_not_equal(all[0].number, 0);
        assert_int_not_equal(all[0].number, before);
        assert_ptr_equal(rendezvous_find(r, all[0].number, 1, TRANSFER_SEND), &all[0]);
    }
}

int main(void)
{
#define APART(name) cmocka_unit_test_setup_teardown(name, set_up, wire_tear_down)
#define NODE(name)  cmocka_unit_test_setup_teardown(name, set_up_node, wire_tear_down)
    const struct CMUnitTest tests[] = {
        APART(test_lengths),
        NODE(test_lengths),
        APART(test_budget),
        NODE(test_budget),
        APART(test_longest_wait_is_first),
        NODE(test_longest_wait_is_first),
        APART(test_grants),
        APART(test_record),
        APART(test_late_packets),
        APART(test_unbelievable),
        APART(test_offset_beyond_4_gib),
        APART(test_gaps),
        NODE(test_gaps),
        APART(test_truncated),
        NODE(test_truncated),
        APART(test_synchronous),
        NODE(test_synchronous),
        APART(test_numbers),
        APART(test_numbers_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
