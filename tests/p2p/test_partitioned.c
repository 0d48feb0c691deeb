/* SPDX-License-Identifier: BSD-3-Clause */
/* Partitioned sends and receives: parts ready and arriving in any order, sides that cut the message
 * differently, rounds that do not mix. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/abi/semantics.h"
#include "client/progress/status.h"
#include "tests/p2p/wire_check.h"

#define BYTES 1200

static const uint32_t apart[] = {0, 1};
static unsigned char data[BYTES], room[BYTES + 1];
static struct datatype *byte(void)
{
    return datatype_from_handle(MPI_BYTE);
}

static int set_up(void **state)
{
    (void)state;
    wire_start(2, apart);
    memset(room, 0xee, sizeof room);
    return 0;
}

static void fill(int seed)
{
    wire_fill(data, BYTES, seed);
    memset(room, 0xee, sizeof room);
}

static struct request *sender(int n_partitions, int tag)
{
    struct comm *world = wire_as(0);
    struct request *r;

    assert_int_equal(
        mpi_psend_init(data, n_partitions, BYTES / n_partitions, byte(), 1, tag, world, NULL, &r),
        MPI_SUCCESS);
    return r;
}

static struct request *receiver(int n_partitions, struct datatype *type, int tag)
{
    struct comm *world = wire_as(1);
    struct request *r;

    assert_int_equal(mpi_precv_init(room, n_partitions, BYTES / n_partitions / type->size, type, 0,
                                    tag, world, NULL, &r),
                     MPI_SUCCESS);
    return r;
}

static void start(uint32_t rank, struct request *r)
{
    wire_as(rank);
    assert_int_equal(mpi_start(&r), MPI_SUCCESS);
}

static void ready(struct request *r, int partition)
{
    wire_as(0);
    assert_int_equal(mpi_pready(partition, r), MPI_SUCCESS);
}

static bool arrived(struct request *r, int partition)
{
    int flag;

    wire_as(1);
    assert_int_equal(mpi_parrived(r, partition, &flag), MPI_SUCCESS);
    return flag;
}

static void end(struct request *s, struct request *r)
{
    MPI_Status status;

    wire_settle();
    assert_int_equal(wire_finish(0, s, MPI_STATUS_IGNORE), MPI_SUCCESS);
    assert_int_equal(wire_finish(1, r, &status), MPI_SUCCESS);
    assert_int_equal(status.MPI_SOURCE, 0);
    assert_int_equal(status_get_count_bytes(&status), BYTES);
    assert_memory_equal(room, data, BYTES);
    assert_int_equal(room[BYTES], 0xee);
}

static void free_both(struct request *s, struct request *r)
{
    wire_as(0);
    mpi_request_free(&s);
    wire_as(1);
    mpi_request_free(&r);
}

/* Both sides cut the message as they like; a partition has arrived when all its bytes have. */
static void test_cuts(void **state)
{
    const int cuts[] = {1, 2, 3, 4, 5, 12, 100};

    (void)state;
    for (unsigned a = 0; a < sizeof cuts / sizeof *cuts; a++) {
        for (unsigned b = 0; b < sizeof cuts / sizeof *cuts; b++) {
            struct request *s = sender(cuts[a], 3), *r = receiver(cuts[b], byte(), 3);
            for (int round = 0; round < 2; round++) {
                bool is_ready[BYTES] = {false};
                int part = BYTES / cuts[a], own = BYTES / cuts[b];
                fill(round);
                start(round, round ? r : s);
                start(!round, round ? s : r);
                for (int i = 0; i < cuts[a]; i++) {
                    int which = (i * 7 + round) % cuts[a]; /* none of the cuts has a factor 7 */
                    ready(s, which);
                    wire_settle();
                    memset(is_ready + which * part, true, (size_t)part);
                    for (int k = 0; k < cuts[b]; k++)
                        assert_int_equal(arrived(r, k),
                                         !memchr(is_ready + k * own, false, (size_t)own));
                }
                end(s, r);
            }
            free_both(s, r);
        }
    }
}

/* Where parts end within elements of the receive, they arrive beside and are put together. */
static void test_within_elements(void **state)
{
    struct datatype *three[2];

    (void)state;
    wire_as(1);
    mpi_type_contiguous(30, byte(), &three[1], false);
    mpi_type_commit(&three[1]);
    struct request *s = sender(12, 3), *r = receiver(4, three[1], 3);
    for (int round = 0; round < 2; round++) {
        fill(round);
        start(0, s);
        start(1, r);
        for (int i = 11; i >= 0; i--)
            ready(s, i);
        end(s, r);
    }
    free_both(s, r);
    wire_as(1);
    mpi_type_free(&three[1]);
}

/* Announcements meet receives in the order in which both were set up, and rounds do not mix,
 * however the messages overtake one another. */
static void test_order(void **state)
{
    struct request *s[3], *r[3];
    static unsigned char out[3][8], in[3][8];

    (void)state;
    wire_hold(true);
    for (int i = 0; i < 3; i++) {
        struct comm *world = wire_as(0);
        memset(out[i], i + 1, sizeof out[i]);
        mpi_psend_init(out[i], 2, 4, byte(), 1, 3, world, NULL, &s[i]);
        world = wire_as(1);
        mpi_precv_init(in[i], 2, 4, byte(), 0, 3, world, NULL, &r[i]);
        start(0, s[i]);
        start(1, r[i]);
    }
    wire_hold(false);
    wire_settle(); /* all parts are posted */
    wire_hold(true);
    for (int i = 2; i >= 0; i--) {
        ready(s[i], 1);
        ready(s[i], 0);
    }
    while (wire_flying(0, 1) > 0)
        wire_deliver(wire_packet(0, 1, wire_flying(0, 1) - 1));
    wire_hold(false);
    wire_settle();
    for (int i = 0; i < 3; i++) {
        wire_finish(0, s[i], MPI_STATUS_IGNORE);
        assert_int_equal(wire_finish(1, r[i], MPI_STATUS_IGNORE), MPI_SUCCESS);
        assert_memory_equal(in[i], out[i], sizeof in[i]);
        free_both(s[i], r[i]);
    }
}

/* What is refused, and with what. */
static void test_refused(void **state)
{
    int flag;

    (void)state;
    struct request *s = sender(4, 3), *r = receiver(4, byte(), 3);
    wire_as(0);
    assert_int_equal(mpi_pready(0, s), MPI_ERR_REQUEST); /* not started */
    start(0, s);
    start(1, r);
    wire_as(0);
    assert_int_equal(mpi_pready(-1, s), MPI_ERR_ARG);
    assert_int_equal(mpi_pready(4, s), MPI_ERR_ARG);
    assert_int_equal(mpi_pready_range(0, 1, s), MPI_SUCCESS);
    assert_int_equal(mpi_pready(0, s), MPI_ERR_ARG); /* twice */
    assert_int_equal(mpi_pready_list(2, (int[]){3, 2}, s), MPI_SUCCESS);
    assert_int_equal(mpi_parrived(s, 0, &flag), MPI_ERR_REQUEST);
    wire_as(1);
    assert_int_equal(mpi_pready(0, r), MPI_ERR_REQUEST);
    assert_int_equal(mpi_parrived(r, 4, &flag), MPI_ERR_ARG);
    assert_int_equal(mpi_parrived(r, -1, &flag), MPI_ERR_ARG);
    assert_int_equal(mpi_parrived(NULL, 0, &flag), MPI_SUCCESS);
    assert_true(flag);
    fill(0);
    wire_settle();
    wire_finish(0, s, MPI_STATUS_IGNORE);
    wire_finish(1, r, MPI_STATUS_IGNORE);
    free_both(s, r);
}

/* A send that is longer than its receive ends in an error there, in this round and all others. */
static void test_too_long(void **state)
{
    struct request *r;

    (void)state;
    struct request *s = sender(4, 3);
    struct comm *world = wire_as(1);
    mpi_precv_init(room, 1, BYTES - 1, byte(), 0, 3, world, NULL, &r);
    start(1, r);
    wire_settle();
    assert_int_equal(wire_finish(1, r, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    free_both(s, r);
}

static void test_nobody(void **state)
{
    struct request *s, *r;
    MPI_Status status;

    (void)state;
    struct comm *world = wire_as(0);
    mpi_psend_init(data, 4, 4, byte(), MPI_PROC_NULL, 3, world, NULL, &s);
    start(0, s);
    assert_int_equal(mpi_pready(2, s), MPI_SUCCESS);
    wire_finish(0, s, MPI_STATUS_IGNORE);
    mpi_precv_init(room, 4, 4, byte(), MPI_PROC_NULL, 3, world, NULL, &r);
    start(0, r);
    wire_finish(0, r, &status);
    assert_int_equal(status.MPI_SOURCE, MPI_PROC_NULL);
    mpi_request_free(&s);
    mpi_request_free(&r);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, wire_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_cuts),    TEST(test_within_elements), TEST(test_order),
        TEST(test_refused), TEST(test_too_long),        TEST(test_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
