/* SPDX-License-Identifier: BSD-3-Clause */
/* motetctl waits, without a daemon: rows of ranks, queues and communicators in, findings out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/motetctl/snapshot.h"
#include "launcher/motetctl/waits.h"
#include "tests/launcher/memory.h"

#define JOB "4049c22c81710001"
#define OLD 5000 /* ms: waits for long */

static json_t *ranks, *queues, *communicators, *later, *later_queues, *links, *answer;

/* ---- the rows ---- */

static int begin(void **state)
{
    (void)state;
    ranks = json_array();
    queues = json_array();
    communicators = json_array();
    later = json_array();
    later_queues = links = NULL;
    answer = NULL;
    return 0;
}

static int end(void **state)
{
    (void)state;
    json_decref(ranks);
    json_decref(queues);
    json_decref(communicators);
    json_decref(later);
    json_decref(later_queues);
    json_decref(links);
    json_decref(answer);
    memory_until_none = -1;
    return 0;
}

static json_t *rank_row(int rank, bool waiting, const char *process, const char *mpi, int sent)
{
    return json_pack("{s:s, s:i, s:s, s:s, s:s, s:s, s:b, s:i, s:i, s:i, s:i, s:i}", "job", JOB,
                     "rank", rank, "node", rank % 2 ? "odd" : "even", "state", "running", "process",
                     process, "mpi", mpi, "waiting", waiting, "cpu_ms", 10, "sent_messages", sent,
                     "received_messages", 1, "sent_bytes", 8, "received_bytes", 8);
}

/* A rank that both looks show alike. */
static void rank_is(int rank, bool waiting, const char *process, const char *mpi)
{
    json_array_append_new(ranks, rank_row(rank, waiting, process, mpi, 1));
    json_array_append_new(later, rank_row(rank, waiting, process, mpi, 1));
}

static void waiting(int rank)
{
    rank_is(rank, true, "running", "attached");
}

static void computing(int rank)
{
    rank_is(rank, false, "running", "attached");
}

/* An entry of a rank's board. peer -1: any; tag -1: any. */
static json_t *entry(int rank, const char *queue, int peer, int tag, int communicator, int age_ms)
{
    json_t *row = json_pack("{s:s, s:i, s:s, s:s, s:i, s:b, s:i, s:i, s:i}", "job", JOB, "rank",
                            rank, "node", "n", "queue", queue, "communicator", communicator,
                            "collective", 0, "bytes", 64, "done_bytes", 0, "age_ms", age_ms);
    json_object_set_new(row, "peer", peer < 0 ? json_string("any") : json_integer(peer));
    json_object_set_new(row, "peer_world", peer < 0 ? json_null() : json_integer(peer));
    json_object_set_new(row, "tag", tag < 0 ? json_string("any") : json_integer(tag));
    json_array_append_new(queues, row);
    return row;
}

static void receives(int rank, int peer)
{
    entry(rank, "posted", peer, 7, 0, OLD);
}

/* A blocking collective on MPI_COMM_WORLD of four. */
static void in_collective(int rank, const char *function, int sequence, int age_ms)
{
    json_array_append_new(queues,
                          json_pack("{s:s, s:i, s:s, s:s, s:s, s:b, s:i, s:i, s:s, s:i, s:i}",
                                    "job", JOB, "rank", rank, "node", "n", "queue", "call", "call",
                                    function, "collective", 1, "communicator", 0, "members", 4,
                                    "form", "blocking", "sequence", sequence, "age_ms", age_ms));
}

static void has_entered(int rank, int count, const char *last)
{
    json_array_append_new(
        communicators,
        json_pack("{s:s, s:i, s:i, s:i, s:{s:{s:i, s:s}, s:{s:i, s:s}, s:{s:i, s:s}}}", "job", JOB,
                  "rank", rank, "communicator", 0, "leader_world", 0, "entered", "blocking",
                  "count", count, "last", last, "nonblocking", "count", 0, "last", "", "persistent",
                  "count", 0, "last", ""));
}

/* ---- the findings ---- */

static json_t *find(void)
{
    const struct waits_rows rows = {ranks, queues, communicators, later, later_queues, links};
    return waits_find(&rows);
}

static size_t look(void)
{
    json_decref(answer);
    answer = find();
    assert_non_null(answer);
    assert_int_equal(json_array_size(answer), 1);
    return json_array_size(json_object_get(json_array_get(answer, 0), "findings"));
}

static const char *of_finding(size_t i, const char *key)
{
    json_t *findings = json_object_get(json_array_get(answer, 0), "findings");
    return json_string_value(json_object_get(json_array_get(findings, i), key));
}

static void finding_is(size_t i, const char *kind, const char *says)
{
    assert_non_null(of_finding(i, "kind"));
    assert_string_equal(of_finding(i, "kind"), kind);
    if (!strstr(of_finding(i, "text"), says))
        fail_msg("\"%s\" does not say \"%s\"", of_finding(i, "text"), says);
}

static void finding_names(size_t i, const char *expected)
{
    json_t *findings = json_object_get(json_array_get(answer, 0), "findings");
    char *text = json_dumps(json_object_get(json_array_get(findings, i), "ranks"), JSON_COMPACT);
    assert_string_equal(text, expected);
    free(text);
}

/* ---- deadlocks ---- */

static void two_for_each_other(void **state)
{
    (void)state;
    waiting(0);
    waiting(1);
    receives(0, 1);
    receives(1, 0);
    assert_int_equal(look(), 1);
    finding_is(0, "deadlock", "rank 0 waits for rank 1 (receive, tag 7), rank 1 waits for rank 0");
    finding_names(0, "[0,1]");
}

static json_t *link_row(const char *from, const char *to, bool both_ways, const char *fault)
{
    return json_pack("{s:s, s:s, s:b, s:s*}", "from", from, "to", to, "both_ways", both_ways,
                     "fault", fault);
}

/* Packets from one node to another that nobody has acknowledged, at both looks. */
static void under_way(const char *from, const char *to, int in_flight, int resent, int resent_later)
{
    if (!later_queues)
        later_queues = json_array();
    for (int again = 0; again < 2; again++)
        json_array_append_new(again ? later_queues : queues,
                              json_pack("{s:s, s:s, s:s, s:i, s:i, s:i}", "queue", "flow", "node",
                                        from, "to", to, "in_flight", in_flight, "queued", 2,
                                        "resent", again ? resent_later : resent));
}

/* Two that wait for each other while packets between their nodes are under way: perhaps the very
 * message. Said with the network's name. */
static void two_on_a_slow_network(void **state)
{
    (void)state;
    waiting(0);
    waiting(1);
    receives(0, 1);
    receives(1, 0);
    under_way("even", "odd", 3, 5, 5);
    json_t *row = link_row("even", "odd", true, NULL);
    json_object_set_new(row, "network", json_string("lan"));
    links = json_pack("[o]", row);
    assert_int_equal(look(), 1);
    finding_is(0, "network", "between the nodes even and odd (network lan) 5 packets");
    finding_names(0, "[0,1]");
    assert_null(strstr(of_finding(0, "text"), "sent again"));
}

/* The other direction counts as much, and lost packets are told. */
static void answers_on_a_lossy_network(void **state)
{
    (void)state;
    waiting(0);
    waiting(1);
    receives(0, 1);
    receives(1, 0);
    under_way("odd", "even", 1, 5, 9);
    assert_int_equal(look(), 1);
    finding_is(0, "network", "4 were sent again within half a second");
    assert_non_null(strstr(of_finding(0, "text"), "by way of other nodes"));
}

/* A large message whose receive is matched travels, also while no packet is seen and nothing has
 * moved for a moment. */
static void a_transfer_that_stalls(void **state)
{
    (void)state;
    waiting(0);
    waiting(1);
    json_object_set_new(entry(0, "rendezvous_out", 1, 7, 0, OLD), "done_bytes", json_integer(32));
    json_object_set_new(entry(1, "rendezvous_in", 0, 7, 0, OLD), "done_bytes", json_integer(32));
    assert_int_equal(look(), 1);
    finding_is(0, "network", "32 B of 64 B are over");
}

/* What passes between other nodes excuses nobody, nor does anything within a node, nor for one that
 * is stopped. */
static void packets_of_others(void **state)
{
    (void)state;
    waiting(0);
    waiting(1);
    receives(0, 1);
    receives(1, 0);
    under_way("even", "third", 9, 0, 0);
    under_way("fourth", "odd", 9, 0, 0);
    assert_int_equal(look(), 1);
    finding_is(0, "deadlock", "rank 0");
}

static void packets_and_one_node(void **state)
{
    (void)state;
    waiting(0);
    waiting(2);
    receives(0, 2);
    receives(2, 0);
    under_way("even", "odd", 9, 0, 0);
    assert_int_equal(look(), 1);
    finding_is(0, "deadlock", "rank 0");
}

static void packets_for_one_that_is_stopped(void **state)
{
    (void)state;
    waiting(0);
    rank_is(1, true, "stopped", "attached");
    receives(0, 1);
    under_way("even", "odd", 9, 0, 0);
    assert_int_equal(look(), 1);
    finding_is(0, "stopped", "rank 0 waits for rank 1");
}

/* A third that waits for one of them can go on as well; a circle elsewhere is still one. */
static void who_waits_for_the_slow(void **state)
{
    (void)state;
    for (int r = 0; r < 5; r++)
        waiting(r);
    receives(0, 1);
    receives(1, 0);
    receives(2, 0);
    receives(4, 4);
    under_way("even", "odd", 1, 0, 0);
    receives(3, 1);
    assert_int_equal(look(), 2);
    finding_is(0, "network", "rank 0 waits for rank 1");
    finding_is(1, "deadlock", "rank 4 waits for rank 4");
}

/* Packets between the two do not pass: no deadlock, whatever they wait for. */
static void two_with_no_way_between(void **state)
{
    (void)state;
    waiting(0);
    waiting(1);
    receives(0, 1);
    receives(1, 0);
    links = json_array();
    json_array_append_new(links, link_row("even", "gate", true, NULL));
    json_array_append_new(links, link_row("gate", "even", true, NULL));
    json_array_append_new(links, link_row("gate", "odd", false, "no data comes from node odd"));
    json_array_append_new(links, link_row("odd", "gate", false, NULL));
    assert_int_equal(look(), 1);
    finding_is(0, "blocked", "no data comes from node odd; the job goes on when");
    finding_names(0, "[1]");
    json_array_remove(links, 2);
    assert_int_equal(look(), 1);
    finding_is(0, "blocked", "no way between the nodes even and odd");
    finding_names(0, "[0,1]");
    json_array_append_new(links, link_row("odd", "even", true, NULL));
    assert_int_equal(look(), 1);
    finding_is(0, "deadlock", "rank 0 waits for rank 1");
}

/* A large message within a node, where the two copy the bytes themselves: each waits for the other
 * until it is there. */
static void two_between_which_bytes_move(void **state)
{
    (void)state;
    waiting(0);
    waiting(2);
    entry(0, "rendezvous_in", 2, 7, 0, OLD);
    entry(2, "rendezvous_out", 0, 7, 0, OLD);
    assert_int_equal(look(), 1);
    finding_is(0, "deadlock", "rank 0 waits for rank 2");
    later_queues = json_deep_copy(queues);
    json_object_set_new(json_array_get(later_queues, 0), "done_bytes", json_integer(32));
    assert_int_equal(look(), 0);
}

static void a_chain_that_ends_in_a_circle(void **state)
{
    (void)state;
    for (int r = 0; r < 5; r++)
        waiting(r);
    receives(0, 1);
    receives(1, 2);
    receives(2, 3);
    receives(3, 4);
    receives(4, 2);
    assert_int_equal(look(), 2);
    finding_is(0, "deadlock", "rank 2 waits for rank 3");
    finding_names(0, "[2,3,4]");
    finding_is(1, "stuck", "ranks 0, 1 wait");
    finding_names(1, "[0,1]");
}

static void waits_for_itself(void **state)
{
    (void)state;
    waiting(0);
    computing(1);
    receives(0, 0);
    assert_int_equal(look(), 1);
    finding_is(0, "deadlock", "rank 0 waits for rank 0");
}

static void a_way_out_makes_a_circle_no_deadlock(void **state)
{
    (void)state;
    waiting(0);
    waiting(1);
    computing(2);
    receives(0, 1);
    receives(1, 0);
    receives(1, 2);
    assert_true(look() >= 1);
    finding_is(0, "circle", "it may still go on");
}

static void any_source_waits_for_all(void **state)
{
    (void)state;
    waiting(0);
    computing(1);
    entry(0, "posted", -1, -1, 0, OLD);
    assert_int_equal(look(), 0);
    begin(state);
    waiting(0);
    rank_is(1, false, "sleeping", "finalized");
    entry(0, "posted", -1, -1, 0, OLD);
    assert_int_equal(look(), 1);
    finding_is(0, "stuck", "rank 0 waits for what cannot come any more");
}

static void young_waits_are_none(void **state)
{
    (void)state;
    waiting(0);
    waiting(1);
    entry(0, "posted", 1, 7, 0, SNAPSHOT_YOUNG_MS - 1);
    entry(1, "posted", 0, 7, 0, SNAPSHOT_YOUNG_MS - 1);
    assert_int_equal(look(), 0);
    entry(0, "posted", 1, 8, 0, SNAPSHOT_YOUNG_MS);
    entry(1, "posted", 0, 8, 0, SNAPSHOT_YOUNG_MS);
    assert_int_equal(look(), 1);
    finding_is(0, "deadlock", "rank 0");
}

static void who_moves_does_not_wait(void **state)
{
    (void)state;
    waiting(0);
    json_array_append_new(ranks, rank_row(1, true, "running", "attached", 1));
    json_array_append_new(later, rank_row(1, true, "running", "attached", 2));
    receives(0, 1);
    receives(1, 0);
    assert_int_equal(look(), 0);
}

static void a_long_ring(void **state)
{
    enum { N = 3000 };
    (void)state;
    for (int r = 0; r < N; r++) {
        waiting(r);
        receives(r, (r + 1) % N);
    }
    assert_int_equal(look(), 1);
    finding_is(0, "deadlock", "and so on");
    json_t *findings = json_object_get(json_array_get(answer, 0), "findings");
    assert_int_equal(json_array_size(json_object_get(json_array_get(findings, 0), "ranks")), N);
}

/* ---- those that do not come ---- */

static void for_one_that_has_ended(void **state)
{
    static const struct {
        const char *process, *mpi, *kind, *says;
    } cases[] = {{"none", "gone", "gone", "which has ended"},
                 {"sleeping", "finalized", "gone", "which has called MPI_Finalize"},
                 {"stopped", "attached", "stopped", "which is stopped by a signal"}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin(state);
        waiting(0);
        waiting(1);
        rank_is(2, false, cases[i].process, cases[i].mpi);
        receives(0, 2);
        receives(1, 2);
        size_t n = look();
        assert_int_equal(
            n, cases[i].kind[0] == 's' ? 1 : 2); /* those who wait for the gone are stuck */
        finding_is(n - 1, cases[i].kind, cases[i].says);
        finding_is(n - 1, cases[i].kind, "ranks 0, 1 wait for rank 2");
        finding_names(n - 1, "[0,1,2]");
        if (i + 1 < sizeof cases / sizeof *cases)
            end(state);
    }
}

static void for_one_of_a_silent_node(void **state)
{
    (void)state;
    waiting(0);
    receives(0, 9);
    assert_int_equal(look(), 1);
    finding_is(0, "unseen", "rank 0 waits for rank 9, which is on a node that does not answer");
    json_t *job = json_array_get(answer, 0);
    assert_int_equal(json_integer_value(json_object_get(job, "ranks")), 2);
}

static void for_one_that_was_there_a_moment_ago(void **state)
{
    (void)state;
    waiting(0);
    json_array_append_new(ranks, rank_row(1, false, "running", "attached", 1));
    receives(0, 1);
    size_t n = look();
    finding_is(n - 1, "gone", "rank 0 waits for rank 1, which has ended");
}

static void for_one_that_computes(void **state)
{
    (void)state;
    waiting(0);
    rank_is(1, false, "sleeping", "attached");
    receives(0, 1);
    assert_int_equal(look(), 1);
    finding_is(0, "computing", "rank 1 sleeps outside MPI, and rank 0 waits for it");
    finding_names(0, "[1,0]");
}

/* ---- messages that nearly fit ---- */

static void near_matches(void **state)
{
    static const struct {
        int peer, tag, communicator;
        const char *says; /* NULL: nothing in common */
    } cases[] = {{1, 8, 0, "with another tag: tag 8 from rank 1"},
                 {1, 7, 4, "in another communicator: tag 7"},
                 {2, 7, 0, "from another rank: tag 7 from rank 2"},
                 {1, 7, 0, NULL}, /* it fits: it came at this moment */
                 {2, 8, 0, NULL},
                 {2, 7, 4, NULL}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin(state);
        waiting(0);
        rank_is(1, true, "running", "attached"); /* in MPI: it may send yet */
        computing(2);
        receives(0, 1);
        entry(0, "unexpected", cases[i].peer, cases[i].tag, cases[i].communicator, OLD);
        size_t n = look();
        if (cases[i].says) {
            assert_int_equal(n, 1);
            finding_is(0, "mismatch", cases[i].says);
        } else {
            assert_int_equal(n, 0);
        }
        if (i + 1 < sizeof cases / sizeof *cases)
            end(state);
    }
}

static void few_near_matches_are_named(void **state)
{
    (void)state;
    waiting(0);
    rank_is(1, true, "running", "attached");
    receives(0, 1);
    for (int tag = 10; tag < 20; tag++)
        entry(0, "unexpected", 1, tag, 0, OLD);
    assert_int_equal(look(), 3);
}

static void rows_of_another_job_are_left_out(void **state)
{
    (void)state;
    waiting(0);
    rank_is(1, true, "running", "attached");
    receives(0, 1);
    json_object_set_new(entry(0, "unexpected", 1, 8, 0, OLD), "job", json_string("2"));
    assert_int_equal(look(), 0);
}

/* ---- collectives ---- */

static void who_has_not_entered(void **state)
{
    (void)state;
    for (int r = 0; r < 3; r++) {
        waiting(r);
        in_collective(r, "MPI_Allreduce", 5, OLD + r);
        has_entered(r, 5, "MPI_Allreduce");
    }
    computing(3);
    has_entered(3, 4, "MPI_Bcast");
    assert_int_equal(look(), 1);
    finding_is(0, "absent",
               "rank 3 has not entered MPI_Allreduce on MPI_COMM_WORLD (4 ranks), in which ranks "
               "0-2 wait, the first for 5.00 s: it computes");
    finding_names(0, "[3]");
}

static void counts_go_round(void **state)
{
    (void)state;
    for (int r = 0; r < 2; r++) {
        waiting(r);
        in_collective(r, "MPI_Barrier", 1, OLD);
        has_entered(r, 1, "MPI_Barrier");
    }
    computing(2);
    has_entered(2, (1 << 24) - 1, "MPI_Barrier"); /* two behind */
    computing(3);
    has_entered(3, 2, "MPI_Barrier"); /* one ahead */
    assert_int_equal(look(), 1);
    finding_names(0, "[2]");
}

static void different_functions(void **state)
{
    (void)state;
    for (int r = 0; r < 4; r++) {
        waiting(r);
        in_collective(r, r == 3 ? "MPI_Bcast" : r ? "MPI_Reduce" : "MPI_Reduce_c", 5, OLD);
        has_entered(r, 5, r == 3 ? "MPI_Bcast" : "MPI_Reduce");
    }
    assert_int_equal(look(), 1);
    finding_is(0, "collective",
               "ranks call different collectives on MPI_COMM_WORLD (4 ranks): ranks 0-2 "
               "MPI_Reduce_c, rank 3 MPI_Bcast");
}

static void the_cause_comes_first(void **state)
{
    (void)state;
    /* 0 and 1 wait for 2 in a barrier; 2 waits in a receive for 3, which computes. */
    for (int r = 0; r < 2; r++) {
        waiting(r);
        in_collective(r, "MPI_Barrier", 9, OLD);
        has_entered(r, 9, "MPI_Barrier");
    }
    waiting(2);
    has_entered(2, 8, "MPI_Barrier");
    receives(2, 3);
    computing(3);
    has_entered(3, 8, "MPI_Barrier");
    assert_true(look() >= 2);
    finding_is(0, "absent", "ranks 2, 3 have not entered MPI_Barrier");
    finding_is(0, "absent", "rank 2 is in MPI, receive from rank 3, tag 7, rank 3 computes");
    finding_is(1, "computing", "rank 3 computes, and rank 2 waits for it");
}

/* ---- what comes may be anything ---- */

static void rubbish_makes_no_finding(void **state)
{
    json_t *odd = json_loads("[{}, 7, null, [], {\"job\":3}, {\"job\":\"" JOB "\"},"
                             "{\"job\":\"" JOB "\",\"rank\":\"x\",\"peer_world\":[]},"
                             "{\"job\":\"" JOB "\",\"rank\":1e300,\"queue\":{},\"peer\":null}]",
                             0, NULL);
    (void)state;
    assert_non_null(odd);
    const struct waits_rows all = {odd, odd, odd, odd, odd, odd}, one = {.ranks = odd};
    json_t *found = waits_find(&all);
    assert_non_null(found);
    FILE *nowhere = fopen("/dev/null", "w");
    assert_int_equal(waits_show(found, nowhere), 0);
    fclose(nowhere);
    json_decref(found);
    found = waits_find(&one);
    assert_non_null(found);
    json_decref(found);
    json_decref(odd);
}

static char *shown(void)
{
    char *text = NULL;
    size_t n;
    FILE *to = open_memstream(&text, &n);

    assert_int_equal(waits_show(answer, to), 0);
    fclose(to);
    return text;
}

static void the_first_line_says_it(void **state)
{
    (void)state;
    waiting(0);
    waiting(1);
    receives(0, 1);
    receives(1, 0);
    look();
    char *text = shown();
    assert_int_equal(strncmp(text, "job " JOB ": deadlock: rank 0", 29), 0);
    assert_non_null(strstr(text, "\n2 ranks: 2 waiting\n"));
    assert_non_null(strstr(text, "FOR RANK"));
    free(text);
    end(state);
    begin(state);
    computing(0);
    look();
    text = shown();
    assert_non_null(strstr(text, "nobody waits for long\n1 ranks: 1 computing\n"));
    free(text);
    json_decref(answer);
    answer = json_array();
    text = shown();
    assert_string_equal(text, "no job runs here\n");
    free(text);
}

static void memory_may_run_out_anywhere(void **state)
{
    int n_failed = 0;
    json_t *found = NULL;
    (void)state;

    for (int r = 0; r < 4; r++) {
        waiting(r);
        receives(r, (r + 1) % 3);
        in_collective(r, "MPI_Barrier", 5 + r % 2, OLD);
        has_entered(r, 5 + r % 2, "MPI_Barrier");
    }
    computing(4);
    has_entered(4, 1, "MPI_Barrier");
    for (long n = 0; !found; n++) {
        memory_until_none = n;
        found = find();
        memory_until_none = -1;
        n_failed += !found;
        assert_true(n < 1000);
    }
    assert_true(n_failed > 10);
    json_decref(found);
}

#define test(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(two_for_each_other),
        test(two_with_no_way_between),
        test(two_between_which_bytes_move),
        test(a_chain_that_ends_in_a_circle),
        test(waits_for_itself),
        test(a_way_out_makes_a_circle_no_deadlock),
        test(any_source_waits_for_all),
        test(young_waits_are_none),
        test(who_moves_does_not_wait),
        test(two_on_a_slow_network),
        test(answers_on_a_lossy_network),
        test(a_transfer_that_stalls),
        test(packets_of_others),
        test(packets_and_one_node),
        test(packets_for_one_that_is_stopped),
        test(who_waits_for_the_slow),
        test(a_long_ring),
        test(for_one_that_has_ended),
        test(for_one_of_a_silent_node),
        test(for_one_that_was_there_a_moment_ago),
        test(for_one_that_computes),
        test(near_matches),
        test(few_near_matches_are_named),
        test(rows_of_another_job_are_left_out),
        test(who_has_not_entered),
        test(counts_go_round),
        test(different_functions),
        test(the_cause_comes_first),
        test(rubbish_makes_no_finding),
        test(the_first_line_says_it),
        test(memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
