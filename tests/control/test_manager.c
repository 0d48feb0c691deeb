/* SPDX-License-Identifier: BSD-3-Clause */
/* The job as a whole: every order of failing ends in JobEnd for every node and for mpiexec, with
 * the first reason. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rand.h"
#include "daemon/jobs/manager.h"

struct world {
    struct manager *manager;
    uint64_t now_ns;
    /* What was sent: counts by type, per node 1..3 and for mpiexec (0). */
    int sent[4][64];
    int32_t last_signal, code;
    char message[512], submit_error[512];
    bool done;            /* client_done was called */
    uint32_t unreachable; /* this node, 0: none */
    size_t queued;
    uint64_t window;
};

static void to_node(void *ctx, uint32_t node_id, uint16_t type, const ProtobufCMessage *msg)
{
    struct world *w = ctx;

    assert_in_range(node_id, 1, 3);
    w->sent[node_id][type]++;
    if (type == MOTET__FRAME_TYPE__KILL)
        w->last_signal = ((const Motet__Kill *)msg)->signal;
    if (type == MOTET__FRAME_TYPE__STDIO_WINDOW)
        w->window = ((const Motet__StdioWindow *)msg)->consumed;
}

static int to_client(void *ctx, void *client, uint16_t type, const ProtobufCMessage *msg)
{
    struct world *w = ctx;

    assert_ptr_equal(client, w);
    assert_false(w->done);
    w->sent[0][type]++;
    if (type == MOTET__FRAME_TYPE__JOB_END) {
        w->code = ((const Motet__JobEnd *)msg)->code;
        snprintf(w->message, sizeof w->message, "%s",
                 ((const Motet__JobEnd *)msg)->message ? ((const Motet__JobEnd *)msg)->message
                                                       : "");
    }
    if (type == MOTET__FRAME_TYPE__SUBMITTED && !((const Motet__Submitted *)msg)->ok)
        snprintf(w->submit_error, sizeof w->submit_error, "%s",
                 ((const Motet__Submitted *)msg)->error);
    return 0;
}

static size_t client_queued(void *ctx, void *client)
{
    (void)client;
    return ((struct world *)ctx)->queued;
}

static void client_done(void *ctx, void *client)
{
    (void)client;
    ((struct world *)ctx)->done = true;
}

static bool reachable(void *ctx, uint32_t node_id)
{
    return node_id != ((struct world *)ctx)->unreachable;
}

static size_t nodes(void *ctx, struct placement_node *ret_nodes, size_t max)
{
    static const struct placement_node all[] = {
        {.name = "me", .node_id = 1}, {.name = "a", .node_id = 2}, {.name = "b", .node_id = 3}};

    (void)ctx;
    assert_true(max >= 3);
    memcpy(ret_nodes, all, sizeof all);
    return 3;
}

static const struct manager_ops ops = {.to_node = to_node,
                                       .to_client = to_client,
                                       .client_queued = client_queued,
                                       .client_done = client_done,
                                       .reachable = reachable,
                                       .nodes = nodes};

/* Six ranks, two per node. */
static struct manager_job *submit(struct world *w)
{
    Motet__Submit msg = MOTET__SUBMIT__INIT;
    Motet__App app = MOTET__APP__INIT;
    Motet__App *apps[] = {&app};
    char *argv[] = {(char *)"/bin/prog"};
    uint8_t key[16] = {1};

    app.n_ranks = 6;
    app.n_argv = 1;
    app.argv = argv;
    msg.n_apps = 1;
    msg.apps = apps;
    msg.has_ranks_per_node = true;
    msg.ranks_per_node = 2;
    msg.wdir = (char *)"/";
    return manager_submit(w->manager, w, 1000, 1000, &msg, key, w->now_ns);
}

static void world_init(struct world *w)
{
    memset(w, 0, sizeof *w);
    log_set_level(LOG_ERROR);
    w->now_ns = CLOCK_NS_PER_S;
    w->manager = manager_new("me", 1, 77, &ops, w);
}

static void launched(struct world *w, uint64_t job, uint32_t node, const char *error)
{
    Motet__Launched msg = MOTET__LAUNCHED__INIT;

    msg.job = job;
    msg.ok = !error;
    msg.error = (char *)error;
    manager_on_launched(w->manager, node, &msg, w->now_ns);
}

static struct manager_job *running(struct world *w)
{
    world_init(w);
    struct manager_job *h = submit(w);
    /* Node 3 is below node 2 in the tree, which answers for both. */
    launched(w, h->id, 1, NULL);
    launched(w, h->id, 2, NULL);
    assert_int_equal(h->state, MANAGER_RUNNING);
    return h;
}

static void rank_exit(struct world *w, uint64_t job, uint32_t rank, int status, bool entered,
                      bool finalized)
{
    Motet__RankExit msg = MOTET__RANK_EXIT__INIT;

    msg.job = job;
    msg.rank = rank;
    msg.node = (char *)"x";
    msg.status = status;
    msg.finalized = finalized;
    msg.has_entered = true;
    msg.entered = entered;
    manager_on_rank_exit(w->manager, 1 + rank / 2, &msg, w->now_ns);
}

static void output(struct world *w, uint64_t job, uint32_t rank, uint32_t stream, size_t len)
{
    Motet__Stdio msg = MOTET__STDIO__INIT;
    static uint8_t data[65536];

    msg.job = job;
    msg.rank = rank;
    msg.stream = stream;
    msg.data.data = data;
    msg.data.len = len;
    manager_on_stdio(w->manager, 1 + rank / 2, &msg, w->now_ns);
}

static void all_over(struct world *w, uint64_t job, int status)
{
    for (uint32_t r = 0; r < 6 && manager_find(w->manager, job); r++) {
        output(w, job, r, 1, 0);
        output(w, job, r, 2, 0);
        rank_exit(w, job, r, status, true, true);
    }
}

static void expect_over(struct world *w, uint64_t job, int32_t code, const char *part)
{
    assert_null(manager_find(w->manager, job));
    assert_true(w->done);
    for (int n = 1; n <= 3; n++)
        assert_int_equal(w->sent[n][MOTET__FRAME_TYPE__JOB_END], 1);
    assert_int_equal(w->sent[0][MOTET__FRAME_TYPE__JOB_END], 1);
    assert_int_equal(w->code, code);
    if (!strstr(w->message, part))
        fail_msg("message is '%s'", w->message);
    manager_free(w->manager);
}

static void test_good(void **state)
{
    struct world w;
    struct manager_job *h = running(&w);
    uint64_t id = h->id;

    (void)state;
    for (int n = 1; n <= 3; n++) {
        assert_int_equal(w.sent[n][MOTET__FRAME_TYPE__LAUNCH], n < 3);
        assert_int_equal(w.sent[n][MOTET__FRAME_TYPE__START], n < 3);
    }
    assert_int_equal(w.sent[0][MOTET__FRAME_TYPE__SUBMITTED], 1);
    all_over(&w, id, 0);
    assert_int_equal(w.sent[0][MOTET__FRAME_TYPE__RANK_EXIT], 6);
    expect_over(&w, id, 0, "");
}

static void test_start_waits_for_all(void **state)
{
    struct world w;

    (void)state;
    world_init(&w);
    struct manager_job *h = submit(&w);
    uint64_t id = h->id;
    launched(&w, id, 1, NULL);
    launched(&w, id, 1, NULL);
    launched(&w, id, 3, NULL);
    assert_int_equal(w.sent[1][MOTET__FRAME_TYPE__START], 0);
    launched(&w, id, 2, "no room");
    assert_null(manager_find(w.manager, id));
    assert_string_equal(w.submit_error, "no room");
    assert_int_equal(w.sent[2][MOTET__FRAME_TYPE__JOB_END], 1);
    assert_int_equal(w.sent[1][MOTET__FRAME_TYPE__START], 0);
    assert_true(w.done);
    manager_free(w.manager);
}

static void test_launch_limit(void **state)
{
    struct world w;

    (void)state;
    world_init(&w);
    uint64_t id = submit(&w)->id;
    manager_run(w.manager, manager_deadline(w.manager));
    assert_null(manager_find(w.manager, id));
    assert_non_null(strstr(w.submit_error, "30 s"));
    assert_true(w.done);
    manager_free(w.manager);
}

static void test_rank_fails(void **state)
{
    struct world w;
    struct manager_job *h = running(&w);
    uint64_t id = h->id;

    (void)state;
    rank_exit(&w, id, 3, SIGSEGV, true, false);
    assert_int_equal(w.last_signal, SIGTERM);
    assert_int_equal(h->state, MANAGER_ENDING);
    /* The second failure is a consequence. */
    rank_exit(&w, id, 0, SIGTERM, true, false);
    manager_run(w.manager, w.now_ns + 500 * CLOCK_NS_PER_MS);
    assert_int_equal(w.last_signal, SIGTERM);
    manager_run(w.manager, w.now_ns + 1100 * CLOCK_NS_PER_MS);
    assert_int_equal(w.last_signal, SIGKILL);
    all_over(&w, id, SIGKILL);
    expect_over(&w, id, 128 + SIGSEGV, "rank 3 on node a was killed by signal 11");
}

static void test_exit_codes(void **state)
{
    struct world w;

    (void)state;
    /* Finished with MPI, then exit(3): the others go on. */
    struct manager_job *h = running(&w);
    uint64_t id = h->id;
    rank_exit(&w, id, 2, 3 << 8, true, true);
    assert_int_equal(h->state, MANAGER_RUNNING);
    all_over(&w, id, 0);
    expect_over(&w, id, 3, "rank 2 on node a exited with code 3");
    /* Left MPI without finalize. */
    h = running(&w);
    id = h->id;
    rank_exit(&w, id, 2, 0, true, false);
    assert_int_equal(h->state, MANAGER_ENDING);
    all_over(&w, id, SIGTERM);
    expect_over(&w, id, 1, "without calling MPI_Finalize");
    /* Never entered MPI and failed. */
    h = running(&w);
    id = h->id;
    rank_exit(&w, id, 2, 127 << 8, false, true);
    assert_int_equal(h->state, MANAGER_ENDING);
    all_over(&w, id, SIGTERM);
    expect_over(&w, id, 127, "exited with code 127");
}

static void test_abort(void **state)
{
    struct world w;
    struct manager_job *h = running(&w);
    uint64_t id = h->id;
    Motet__Abort msg = MOTET__ABORT__INIT;

    (void)state;
    msg.job = id;
    msg.rank = 5;
    msg.code = 256;
    msg.text = (char *)"MPI_Abort(MPI_COMM_WORLD, 256)";
    manager_on_abort(w.manager, 2, &msg, w.now_ns); /* not that node's rank */
    assert_int_equal(h->state, MANAGER_RUNNING);
    manager_on_abort(w.manager, 3, &msg, w.now_ns);
    assert_int_equal(h->state, MANAGER_ENDING);
    all_over(&w, id, SIGTERM);
    expect_over(&w, id, 1, "rank 5 on node b ended the job: MPI_Abort(MPI_COMM_WORLD, 256)");
}

static void test_node_lost(void **state)
{
    struct world w;
    struct manager_job *h = running(&w);
    uint64_t id = h->id;

    (void)state;
    manager_on_node_lost(w.manager, 2, "cannot be reached any more", w.now_ns);
    assert_int_equal(h->state, MANAGER_ENDING);
    assert_int_equal(w.sent[2][MOTET__FRAME_TYPE__KILL], 0);
    for (uint32_t r = 0; r < 6; r++) {
        if (r == 2 || r == 3)
            continue;
        output(&w, id, r, 1, 0);
        output(&w, id, r, 2, 0);
        rank_exit(&w, id, r, SIGTERM, true, false);
    }
    expect_over(&w, id, 128 + SIGKILL, "node a cannot be reached any more; it had ranks 2-3");

    /* Only the ranks that were alive are named. */
    id = running(&w)->id;
    rank_exit(&w, id, 2, 0, true, true);
    manager_on_node_lost(w.manager, 2, "has lost its daemon", w.now_ns);
    all_over(&w, id, SIGTERM);
    expect_over(&w, id, 128 + SIGKILL, "node a has lost its daemon; it had rank 3");
}

/* All its ranks were good, but not all that they wrote has come. */
static void test_node_lost_with_output(void **state)
{
    struct world w;
    uint64_t id = running(&w)->id;

    (void)state;
    for (uint32_t r = 0; r < 6; r++) {
        rank_exit(&w, id, r, 0, true, true);
        output(&w, id, r, 1, 0);
        if (r != 3)
            output(&w, id, r, 2, 0);
    }
    assert_false(w.done);
    manager_on_node_lost(w.manager, 2, "has lost its daemon", w.now_ns);
    expect_over(&w, id, 1,
                "node a has lost its daemon before all that rank 3 had written was here");
}

static void ask(struct world *w, uint64_t job, uint32_t node)
{
    Motet__Launched msg = MOTET__LAUNCHED__INIT;

    msg.job = job;
    msg.has_asks = msg.asks = true;
    manager_on_launched(w->manager, node, &msg, w->now_ns);
}

/* A node that asks hears that its part of a job is over when the job is, or when it was given up.
 */
static void test_node_asks(void **state)
{
    struct world w;
    uint64_t id = running(&w)->id;

    (void)state;
    ask(&w, id, 2);
    assert_int_equal(w.sent[2][MOTET__FRAME_TYPE__JOB_END], 0);
    ask(&w, id + 1, 2);
    assert_int_equal(w.sent[2][MOTET__FRAME_TYPE__JOB_END], 1);
    manager_on_node_lost(w.manager, 2, "cannot be reached any more", w.now_ns);
    ask(&w, id, 2);
    assert_int_equal(w.sent[2][MOTET__FRAME_TYPE__JOB_END], 2);
    ask(&w, id, 3);
    assert_int_equal(w.sent[3][MOTET__FRAME_TYPE__JOB_END], 0);
    w.sent[2][MOTET__FRAME_TYPE__JOB_END] = 0;
    all_over(&w, id, SIGTERM);
    expect_over(&w, id, 128 + SIGKILL, "node a cannot be reached any more; it had ranks 2-3");
}

/* A node that cannot be reached is not waited for when the job ends. */
static void test_unreachable_at_the_end(void **state)
{
    struct world w;
    uint64_t id = running(&w)->id, start_ns = w.now_ns;

    (void)state;
    manager_on_node_lost(w.manager, 2, "has lost its daemon", w.now_ns);
    w.unreachable = 3;
    for (uint32_t r = 0; r < 2; r++) {
        output(&w, id, r, 1, 0);
        output(&w, id, r, 2, 0);
        rank_exit(&w, id, r, SIGTERM, true, false);
    }
    for (int i = 0; i < 30 && manager_find(w.manager, id); i++) {
        w.now_ns = manager_deadline(w.manager);
        manager_run(w.manager, w.now_ns);
    }
    assert_true(w.now_ns - start_ns <= 2 * CLOCK_NS_PER_S);
    expect_over(&w, id, 128 + SIGKILL, "node a has lost its daemon");
}

static void test_unkillable(void **state)
{
    struct world w;
    struct manager_job *h = running(&w);
    uint64_t id = h->id;

    (void)state;
    rank_exit(&w, id, 0, 1 << 8, false, true);
    for (int i = 0; i < 30 && manager_find(w.manager, id); i++) {
        w.now_ns = manager_deadline(w.manager);
        manager_run(w.manager, w.now_ns);
    }
    assert_true(w.now_ns < 20 * CLOCK_NS_PER_S);
    expect_over(&w, id, 1, "rank 0");
}

static void test_client(void **state)
{
    struct world w;
    Motet__Kill kill = MOTET__KILL__INIT;
    Motet__Stdio in = MOTET__STDIO__INIT;
    static uint8_t data[200 << 10];

    (void)state;
    struct manager_job *h = running(&w);
    kill.job = h->id;
    kill.signal = SIGINT;
    manager_on_client_kill(w.manager, h, &kill, w.now_ns);
    assert_int_equal(w.last_signal, SIGINT);
    assert_int_equal(h->state, MANAGER_RUNNING);
    /* Input: no more than the window. */
    in.job = h->id;
    in.stream = 0;
    in.data.data = data;
    in.data.len = sizeof data;
    assert_int_equal(manager_on_client_stdin(w.manager, h, &in), 0);
    assert_true(manager_on_client_stdin(w.manager, h, &in) < 0);
    Motet__StdioWindow window = MOTET__STDIO_WINDOW__INIT;
    window.job = h->id;
    window.consumed = sizeof data;
    manager_on_stdin_window(w.manager, 1, &window);
    assert_int_equal(w.sent[0][MOTET__FRAME_TYPE__STDIO_WINDOW], 1);
    assert_int_equal(manager_on_client_stdin(w.manager, h, &in), 0);
    /* mpiexec vanishes: JobEnd to the nodes, nothing to it. */
    uint64_t id = h->id;
    manager_on_client_gone(w.manager, h);
    assert_null(manager_find(w.manager, id));
    assert_int_equal(w.sent[3][MOTET__FRAME_TYPE__JOB_END], 1);
    assert_int_equal(w.sent[0][MOTET__FRAME_TYPE__JOB_END], 0);
    manager_free(w.manager);
}

/* Output is acknowledged while mpiexec takes it, and only then. */
static void test_window(void **state)
{
    struct world w;
    struct manager_job *h = running(&w);

    (void)state;
    for (int i = 0; i < 4; i++)
        output(&w, h->id, 2, 1, 65536);
    assert_int_equal(w.window, 4 * 65536);
    w.queued = 1 << 20;
    for (int i = 0; i < 8; i++)
        output(&w, h->id, 2, 1, 65536);
    assert_int_equal(w.window, 4 * 65536);
    w.queued = 0;
    manager_on_client_drained(w.manager, h);
    assert_int_equal(w.window, 12 * 65536);
    manager_free(w.manager);
}

/* Any order of anything: the job ends, once, and nobody is left with it. */
static void test_random(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        struct rand rand = {seed};
        struct world w;
        world_init(&w);
        uint64_t id = submit(&w)->id;
        for (int step = 0; step < 400 && manager_find(w.manager, id); step++) {
            uint32_t rank = (uint32_t)rand_below(&rand, 6);
            switch (rand_below(&rand, 9)) {
            case 0:
            case 1:
                launched(&w, id, 1 + (uint32_t)rand_below(&rand, 3),
                         rand_below(&rand, 30) ? NULL : "no");
                break;
            case 2:
            case 3:
                rank_exit(&w, id, rank, rand_below(&rand, 3) ? 0 : (int)rand_below(&rand, 512),
                          rand_below(&rand, 2), rand_below(&rand, 4));
                break;
            case 4:
            case 5:
                output(&w, id, rank, 1 + (uint32_t)rand_below(&rand, 2),
                       rand_below(&rand, 2) * 1000);
                break;
            case 6:
                w.now_ns += 100 * CLOCK_NS_PER_MS;
                manager_run(w.manager, w.now_ns);
                break;
            case 7:
                if (rand_below(&rand, 20) == 0)
                    manager_on_node_lost(w.manager, 2 + (uint32_t)rand_below(&rand, 2), "is lost",
                                         w.now_ns);
                break;
            case 8:
                if (rand_below(&rand, 40) == 0)
                    manager_end_all(w.manager, "told to end", w.now_ns);
                break;
            }
        }
        for (int i = 0; i < 5 && manager_find(w.manager, id); i++) {
            manager_end_all(w.manager, "told to end", w.now_ns);
            w.now_ns += 40 * CLOCK_NS_PER_S;
            manager_run(w.manager, w.now_ns);
        }
        if (manager_find(w.manager, id) || !w.done)
            fail_msg("seed %llu: the job does not end", (unsigned long long)seed);
        for (int n = 1; n <= 3; n++)
            assert_int_equal(w.sent[n][MOTET__FRAME_TYPE__JOB_END], 1);
        manager_free(w.manager);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_start_waits_for_all),
        cmocka_unit_test(test_launch_limit),
        cmocka_unit_test(test_rank_fails),
        cmocka_unit_test(test_exit_codes),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_node_lost),
        cmocka_unit_test(test_node_asks),
        cmocka_unit_test(test_node_lost_with_output),
        cmocka_unit_test(test_unreachable_at_the_end),
        cmocka_unit_test(test_unkillable),
        cmocka_unit_test(test_client),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
