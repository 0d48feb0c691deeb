/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the status socket reads from a rank's segment: queue records, calls, communicators; honest
 * ones, and what a hostile rank may write. The reader is compiled in here with a job made up around
 * it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/jobs/job.h"
#include "daemon/status/status_node.h"
#include "daemon/status/status_view.h"

static struct job one_job;
#define jobs_first(jobs)       ((void)(jobs), &one_job)
#define status_privileged(uid) ((void)(uid), false)
#include "daemon/status/status_view_ranks.c"

static struct status_node node;
static struct job_rank job_ranks[2];
static struct status_request request;
static json_t *rows;

static int begin(void **state)
{
    struct segment_shape shape = {.n_world = 4, .n_nodes = 1, .n_local = 2};
    (void)state;

    segment_shape_defaults(&shape);
    shape.board_records = 4;
    segment_layout(&shape, &one_job.layout);
    one_job.segment = aligned_alloc(4096, (one_job.layout.total + 4095) / 4096 * 4096);
    assert_non_null(one_job.segment);
    for (uint32_t local = 0; local < 2; local++) {
        memset(segment_rank_at(one_job.segment, &one_job.layout, local), 0,
               sizeof(struct segment_rank));
        memset(segment_board_at(one_job.segment, &one_job.layout, local), 0,
               4 * sizeof(struct queue_record));
        memset(segment_calls_at(one_job.segment, &one_job.layout, local), 0,
               sizeof(struct calls_board));
        job_ranks[local] = (struct job_rank){.world = 2 + local};
    }
    one_job.id = 0xab;
    one_job.node_name = "n1";
    one_job.n_local = 2;
    one_job.ranks = job_ranks;
    one_job.uid = request.uid = 1000;
    request.rank = -1;
    request.limit = 50;
    request.has_job = false;
    rows = json_array();
    return 0;
}

static int end(void **state)
{
    (void)state;
    json_decref(rows);
    free(one_job.segment);
    return 0;
}

static struct calls_board *calls_of(uint32_t local)
{
    return segment_calls_at(one_job.segment, &one_job.layout, local);
}

static void set_call(uint32_t local, uint32_t i, enum calls_state how, const char *function,
                     uint32_t context, uint32_t sequence, uint64_t since_ns)
{
    struct calls_record *r = &calls_of(local)->records[i];
    r->context = context;
    r->form = CALLS_NONBLOCKING;
    r->sequence = sequence;
    r->since_ns = since_ns;
    r->thread = 77;
    memcpy(r->function, function, strlen(function) + 1);
    atomic_store(&r->state, how);
}

static struct calls_comm *set_comm(uint32_t local, uint32_t i, uint32_t context, const char *name)
{
    struct calls_comm *c = &calls_of(local)->comms[i];
    c->context = context;
    c->leader = 2;
    c->rank = 1;
    c->size = 3;
    c->remote_size = 2;
    atomic_store(&c->entered[CALLS_BLOCKING], 9);
    memcpy(c->name, name, strlen(name) + 1);
    memcpy(c->last[CALLS_BLOCKING], "MPI_Bcast", 10);
    atomic_store(&c->state, 1);
    return c;
}

static void row_is(size_t i, const char *expected)
{
    json_t *row = json_array_get(rows, i), *wanted = json_loads(expected, 0, NULL), *value;
    const char *key;

    assert_non_null(row);
    assert_non_null(wanted);
    json_object_foreach(wanted, key, value) {
        if (!json_equal(json_object_get(row, key), value)) {
            char *got = json_dumps(row, JSON_COMPACT);
            fail_msg("%s is not as in %s but %s", key, expected, got);
        }
    }
    json_decref(wanted);
}

static void calls_are_shown(void **state)
{
    (void)state;
    set_comm(1, 3, 12, "rows");
    set_call(1, 0, CALLS_WAITS, "MPI_Wait", CALLS_NO_CONTEXT, 0, 1);
    set_call(1, 5, CALLS_RUNS, "MPI_Ibarrier", 12, 8, UINT64_MAX);
    status_view_queues(&node, &request, rows);
    assert_int_equal(json_array_size(rows), 2);
    row_is(0, "{\"job\":\"00000000000000ab\",\"rank\":3,\"node\":\"n1\",\"queue\":\"call\","
              "\"call\":\"MPI_Wait\",\"collective\":false,\"communicator\":null,"
              "\"communicator_name\":null,\"members\":null,\"form\":null,\"sequence\":null,"
              "\"thread\":77}");
    row_is(1, "{\"queue\":\"running\",\"call\":\"MPI_Ibarrier\",\"collective\":true,"
              "\"communicator\":12,\"communicator_name\":\"rows\",\"members\":5,"
              "\"form\":\"nonblocking\",\"sequence\":8,\"age_ms\":0}");
}

static void communicators_are_shown(void **state)
{
    (void)state;
    set_comm(0, 0, 0, "");
    set_comm(0, 63, 12, "rows")->remote_size = 0;
    status_view_communicators(&node, &request, rows);
    assert_int_equal(json_array_size(rows), 2);
    row_is(0, "{\"rank\":2,\"communicator\":0,\"communicator_name\":null,\"leader_world\":2,"
              "\"rank_in_it\":1,\"members\":5,\"between_groups\":true,\"entered\":{\"blocking\":{"
              "\"count\":9,\"last\":\"MPI_Bcast\"},\"nonblocking\":{\"count\":0,\"last\":\"\"},"
              "\"persistent\":{\"count\":0,\"last\":\"\"}}}");
    row_is(1, "{\"communicator\":12,\"communicator_name\":\"rows\",\"members\":3,"
              "\"between_groups\":false}");
}

static void the_longest_call_counts(void **state)
{
    char function[CALLS_FUNCTION];
    uint64_t since_ns;
    (void)state;

    assert_false(status_calls_longest(&one_job, 0, function, &since_ns));
    set_call(0, 0, CALLS_RUNS, "MPI_Ibcast", 0, 1, 1);
    set_call(0, 1, CALLS_WAITS, "MPI_Recv", CALLS_NO_CONTEXT, 0, 300);
    set_call(0, 2, CALLS_WAITS, "MPI_Barrier", 0, 2, 200);
    set_call(0, 3, CALLS_WAITS, "MPI_Send", CALLS_NO_CONTEXT, 0, 400);
    assert_true(status_calls_longest(&one_job, 0, function, &since_ns));
    assert_string_equal(function, "MPI_Barrier");
    assert_int_equal(since_ns, 200);
    status_view_ranks(&node, &request, rows);
    row_is(0, "{\"rank\":2,\"waiting\":true,\"call\":\"MPI_Barrier\",\"state\":\"planned\","
              "\"mpi\":\"none\",\"process\":\"none\"}");
    row_is(1, "{\"rank\":3,\"waiting\":false,\"call\":null,\"waiting_ms\":0}");
}

static void what_a_rank_writes_is_not_believed(void **state)
{
    struct calls_record *r = &calls_of(0)->records[0];
    struct calls_comm *c = set_comm(0, 0, 12, "");
    (void)state;

    set_call(0, 0, CALLS_WAITS, "", 12, 3, 0);
    memset(r->function, 'x', sizeof r->function); /* without an end */
    r->function[0] = '\x1b';
    r->form = CALLS_FORMS;
    set_call(0, 1, CALLS_N_STATES, "MPI_Recv", 0, 1, 0);
    memset(c->name, '\n', sizeof c->name);
    memset(c->last, 'y', sizeof c->last);
    status_view_queues(&node, &request, rows);
    assert_int_equal(json_array_size(rows), 1);
    row_is(0, "{\"call\":\"?xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\",\"collective\":false}");
    json_array_clear(rows);
    status_view_communicators(&node, &request, rows);
    const char *name =
        json_string_value(json_object_get(json_array_get(rows, 0), "communicator_name"));
    assert_int_equal(strlen(name), CALLS_NAME - 1);
    assert_int_equal(strspn(name, "?"), CALLS_NAME - 1);
    atomic_store(&c->state, 2);
    json_array_clear(rows);
    status_view_communicators(&node, &request, rows);
    assert_int_equal(json_array_size(rows), 0);
}

static void records_are_shown(void **state)
{
    struct queue_record *board = segment_board_at(one_job.segment, &one_job.layout, 0);
    (void)state;

    board[0] = (struct queue_record){
        .context = 13, .peer = 1, .tag = 7, .bytes = 64, .done_bytes = 8, .peer_world = 3};
    atomic_store(&board[0].state, QUEUE_RENDEZVOUS_IN);
    board[3] = (struct queue_record){.context = 0,
                                     .peer = QUEUE_ANY_SOURCE,
                                     .tag = QUEUE_ANY_TAG,
                                     .bytes = UINT64_MAX,
                                     .peer_world = 4}; /* no such rank */
    atomic_store(&board[3].state, QUEUE_POSTED);
    atomic_store(&board[2].state, QUEUE_N_STATES);
    struct segment_rank *s = segment_rank_at(one_job.segment, &one_job.layout, 0);
    atomic_store(&s->board_high, 1000); /* more than there are */
    status_view_queues(&node, &request, rows);
    assert_int_equal(json_array_size(rows), 2);
    row_is(0, "{\"rank\":2,\"queue\":\"rendezvous_in\",\"communicator\":12,\"collective\":true,"
              "\"peer\":1,\"peer_world\":3,\"tag\":7,\"bytes\":64,\"done_bytes\":8}");
    row_is(1, "{\"queue\":\"posted\",\"peer\":\"any\",\"peer_world\":null,\"tag\":\"any\","
              "\"bytes\":9223372036854775807}");
    json_array_clear(rows);
    atomic_store(&s->board_high, 3);
    status_view_queues(&node, &request, rows);
    assert_int_equal(json_array_size(rows), 1);
}

static void only_what_was_asked_for(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 5; i++)
        set_call(i % 2, i, CALLS_WAITS, "MPI_Recv", CALLS_NO_CONTEXT, 0, 1);
    set_comm(0, 0, 0, "");
    set_comm(1, 0, 0, "");
    request.rank = 3;
    status_view_queues(&node, &request, rows);
    assert_int_equal(json_array_size(rows), 2);
    status_view_communicators(&node, &request, rows);
    status_view_ranks(&node, &request, rows);
    assert_int_equal(json_array_size(rows), 4);
    request.rank = -1;
    request.limit = 4;
    json_array_clear(rows);
    status_view_queues(&node, &request, rows);
    assert_int_equal(json_array_size(rows), 4);
    json_array_clear(rows);
    request.uid = 1001; /* another user's */
    status_view_queues(&node, &request, rows);
    status_view_ranks(&node, &request, rows);
    request.uid = 1000;
    request.has_job = true;
    request.job = 0xac;
    status_view_ranks(&node, &request, rows);
    assert_int_equal(json_array_size(rows), 0);
}

#define test(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(calls_are_shown),         test(communicators_are_shown),
        test(the_longest_call_counts), test(what_a_rank_writes_is_not_believed),
        test(records_are_shown),       test(only_what_was_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
