/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a call cannot fail and memory is out, the job ends with a reason and the exit code of
 * MPI_Abort: every such place, by an allocation that fails there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/coll/family/coll.h"
#include "client/coll/node/node.h"
#include "client/coll/schedule/schedule.h"
#include "client/object/comm.h"
#include "client/p2p/inbound.h"
#include "client/p2p/peer.h"
#include "client/process/phase.h"
#include "client/progress/progress.h"
#include "client/transport/cells.h"
#include "client/transport/end.h"
#include "mpi.h"
#include "tests/client/ranks.h"

static bool fails;                       /* every allocation */
static size_t asked_bytes, asked_at_end; /* by the last one */
static jmp_buf ended;
static int exit_code, abort_code;
static char abort_text[256];

void *__real_malloc(size_t n_bytes);
void *__real_calloc(size_t n, size_t n_bytes);
void *__wrap_malloc(size_t n_bytes);
void *__wrap_calloc(size_t n, size_t n_bytes);
_Noreturn void __wrap__exit(int code);
bool __wrap_transport_abort(int code, const char *text);

void *__wrap_malloc(size_t n_bytes)
{
    asked_bytes = n_bytes;
    return fails ? NULL : __real_malloc(n_bytes);
}

void *__wrap_calloc(size_t n, size_t n_bytes)
{
    asked_bytes = n * n_bytes;
    return fails ? NULL : __real_calloc(n, n_bytes);
}

bool __wrap_transport_abort(int code, const char *text)
{
    abort_code = code;
    snprintf(abort_text, sizeof abort_text, "%s", text ? text : "(nothing)");
    return false; /* nobody was told: the process ends at once */
}

_Noreturn void __wrap__exit(int code)
{
    fails = false;
    asked_at_end = asked_bytes;
    exit_code = code;
    longjmp(ended, 1);
}

/* Runs `what` without memory; it must end the job and name the function and the bytes (0: what the
 * refused allocation asked for). */
static void expect_end(void (*what)(struct ranks *ranks), const char *function, size_t n_bytes)
{
    struct ranks *r = ranks_new(2, MPI_THREAD_SINGLE);
    char wanted[64];

    exit_code = abort_code = 0;
    if (setjmp(ended) == 0) {
        what(r);
        fails = false;
        fail_msg("%s went on", function);
    }
    snprintf(wanted, sizeof wanted, ": %s wanted %zu bytes", function,
             n_bytes ? n_bytes : asked_at_end);
    assert_int_equal(exit_code, MPI_ERR_NO_MEM);
    assert_int_equal(abort_code, MPI_ERR_NO_MEM);
    if (!strstr(abort_text, "no memory for ") || !strstr(abort_text, wanted))
        fail_msg("'%s' does not say '%s'", abort_text, wanted);
    ranks_free(r);
}

static struct engine *engine(void)
{
    return vci_here->table[0].engine;
}

static void first_message_to_a_peer(struct ranks *r)
{
    struct outbox box;

    (void)r;
    assert_int_equal(outbox_init(&box, 0), 0);
    fails = true;
    outbox_local(&box, 1);
}

static void peer(struct ranks *r)
{
    (void)r;
    fails = true;
    peer_get(engine(), 1);
}

static void control_message(struct ranks *r)
{
    struct peer *p = peer_get(engine(), 1);

    (void)r;
    fails = true;
    for (int i = 0; i < 100000; i++) /* the ring is full some time */
        peer_send_control(p, MSG_FINISHED, 1, NULL, 0);
}

static void unexpected_message(struct ranks *r)
{
    int value = 1;
    MPI_Request send;

    peer_get(engine(), 1);
    ranks_turn(r, 1);
    MPI_Isend(&value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, &send);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    ranks_turn(r, 0);
    fails = true;
    progress_poll();
}

static void early_message(struct ranks *r)
{
    struct ring_slot slot = {.kind = MSG_EAGER, .flags = MSG_F_ORDERED, .order = 3, .len = 8};
    char payload[8] = "";

    (void)r;
    peer_get(engine(), 1);
    fails = true;
    inbound_message(engine(), 1, &slot, slot.len, payload);
}

static void late_readers(struct ranks *r)
{
    uint32_t locals[] = {0, 1};
    struct cells *x = cells_open(3, 0, 0, 2, locals, 0);

    (void)r;
    uint64_t step = cells_take(x);
    memcpy(cells_claim(x, step, 8), "contents", 8);
    cells_publish(x, step, CELLS_ALL);
    fails = true;
    cells_close(x);
}

/* Of the collectives of a communicator within the node; the allocations before it succeed. */
static void cells_of_a_communicator(struct ranks *r)
{
    struct schedule s;

    (void)r;
    coll_shape_of(comm_here->world);
    schedule_begin(&s, comm_here->world, 0);
    fails = true;
    schedule_has_steps(&s);
}

static void test_places(void **state)
{
    (void)state;
    struct segment_shape shape = {.n_world = 2, .n_nodes = 1, .n_local = 2};
    segment_shape_defaults(&shape);
    expect_end(first_message_to_a_peer, "outbox_make_ready",
               shape.local.n_slots * sizeof(uint32_t));
    expect_end(peer, "peer_make", sizeof(struct peer));
    expect_end(control_message, "peer_send_control", 0);
    expect_end(unexpected_message, "inbound_keep_unexpected", 0);
    expect_end(early_message, "inbound_keep_early", 0);
    expect_end(late_readers, "cells_close", 2 * sizeof(uint32_t));
    expect_end(cells_of_a_communicator, "node_open_rows",
               2 * (sizeof(uint32_t) + 2 * sizeof(void *)));
}

static void abort_by_program(struct ranks *r)
{
    (void)r;
    MPI_Abort(MPI_COMM_WORLD, 42);
}

static void fatal_error(struct ranks *r)
{
    (void)r;
    MPI_Send(NULL, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
}

static void call_too_early(struct ranks *r)
{
    (void)r;
    phase_set(PHASE_BEFORE);
    phase_refuse("MPI_Send");
}

static void expect(void (*what)(struct ranks *ranks), int code, const char *text)
{
    struct ranks *r = ranks_new(2, MPI_THREAD_SINGLE);

    exit_code = abort_code = 0;
    if (setjmp(ended) == 0) {
        what(r);
        fail_msg("%s went on", text);
    }
    assert_int_equal(exit_code, code);
    assert_int_equal(abort_code, code);
    assert_string_equal(abort_text, text);
    ranks_free(r);
}

/* The same way out as for MPI_Abort. */
static void test_other_ends(void **state)
{
    (void)state;
    expect(abort_by_program, 42, "MPI_Abort(MPI_COMM_WORLD, 42)");
    expect(fatal_error, MPI_ERR_RANK, "error in MPI_Send");
    expect(call_too_early, EXIT_FAILURE, "MPI_Send was called before MPI_Init");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_other_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
