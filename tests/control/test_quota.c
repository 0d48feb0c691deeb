/* SPDX-License-Identifier: BSD-3-Clause */
/* What a user gets and is refused, in which words, and that something is left for one more whatever
 * the others take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/config.h"
#include "daemon/jobs/quota.h"

#define OWN 77u

struct world {
    struct config config;
    struct quota *quota;
    uint64_t now_ns;
    char why[QUOTA_WHY_BYTES];
    unsigned n_lines; /* of the log */
    unsigned n_shown;
    struct quota_refusal shown;
};

static struct world *world;

static void on_line(enum log_level level, const char *line)
{
    (void)level, (void)line;
    world->n_lines++;
}

static int set_up(void **state)
{
    const struct quota_host host = {.n_files = 4000, .memory_bytes = 1000, .own = OWN};

    *state = world = calloc(1, sizeof *world);
    assert_non_null(world);
    config_defaults(&world->config);
    world->config.max_clients = 100;
    world->config.user_connections = 40;
    world->config.max_jobs = 10;
    world->config.user_jobs = 8;
    world->now_ns = 100 * CLOCK_NS_PER_S;
    world->quota = quota_new(&world->config, &host);
    assert_non_null(world->quota);
    log_set_sink(on_line);
    log_set_stderr(false);
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    log_set_sink(NULL);
    log_set_stderr(true);
    quota_free(w->quota);
    free(w);
    return 0;
}

static int take(struct world *w, enum quota_kind kind, uid_t uid, uint64_t n)
{
    return quota_take(w->quota, kind, uid, n, w->now_ns, w->why);
}

/* So many as the user gets one by one. */
static unsigned take_all(struct world *w, enum quota_kind kind, uid_t uid)
{
    unsigned n = 0;

    while (take(w, kind, uid, 1) == 0)
        n++;
    return n;
}

static void test_own_limit(void **state)
{
    struct world *w = *state;

    assert_int_equal(take_all(w, QUOTA_CLIENTS, 1000), 40);
    assert_string_equal(w->why, "user 1000 has 40 connections to the client socket, 1 more are too "
                                "many: user_connections = 40");
    quota_give(w->quota, QUOTA_CLIENTS, 1000, 5);
    assert_int_equal(quota_used(w->quota, QUOTA_CLIENTS, 1000), 35);
    assert_int_equal(take(w, QUOTA_CLIENTS, 1000, 6), QUOTA_E_OVER);
    assert_int_equal(take(w, QUOTA_CLIENTS, 1000, 5), 0);
    /* Another kind is counted by itself. */
    assert_int_equal(take_all(w, QUOTA_STATUS, 1000), 40);
}

/* However many users take all that they get, one more finds something, and so does root. */
static void test_share(void **state)
{
    struct world *w = *state;
    unsigned last = 40;

    for (uid_t uid = 1; uid < 6; uid++) {
        unsigned n = take_all(w, QUOTA_CLIENTS, uid);
        assert_in_range(n, 1, last);
        last = n;
    }
    assert_non_null(strstr(w->why, "half of what others leave of max_clients = 100"));
    assert_true(take_all(w, QUOTA_CLIENTS, 0) > 0);
    assert_non_null(strstr(w->why, "100 are in use: max_clients = 100"));
}

static void test_root_and_own_user(void **state)
{
    struct world *w = *state;

    assert_int_equal(take_all(w, QUOTA_JOBS, OWN), 10);
    quota_give(w->quota, QUOTA_JOBS, OWN, 10);
    assert_int_equal(take_all(w, QUOTA_JOBS, 0), 10);
    assert_int_equal(take(w, QUOTA_JOBS, 1000, 1), QUOTA_E_OVER);
    quota_give(w->quota, QUOTA_JOBS, 0, 9);
    assert_int_equal(take_all(w, QUOTA_JOBS, 1000), 5);
    /* One of one is not half of nothing. */
    w->config.max_jobs = 7;
    assert_int_equal(take(w, QUOTA_JOBS, 1001, 1), 0);
}

/* The files that the daemon may open count as well. */
static void test_few_files(void **state)
{
    struct world *w = *state;

    w->config.max_clients = 65536;
    w->config.user_connections = 65536;
    assert_int_equal(take_all(w, QUOTA_STATUS, 0), 500);
    assert_non_null(strstr(w->why, "LimitNOFILE"));
    assert_int_equal(take_all(w, QUOTA_CLIENTS, 1000), 1000);
}

/* What is found afterwards is charged in any case. */
static void test_change(void **state)
{
    struct world *w = *state;

    assert_int_equal(quota_change(w->quota, QUOTA_SEGMENT, 1000, 0, 400, w->now_ns, w->why), 0);
    assert_int_equal(quota_change(w->quota, QUOTA_SEGMENT, 1000, 400, 501, w->now_ns, w->why),
                     QUOTA_E_OVER);
    assert_non_null(strstr(w->why, "user_segment_bytes = 500"));
    assert_int_equal(quota_used(w->quota, QUOTA_SEGMENT, 1000), 501);
    assert_int_equal(quota_change(w->quota, QUOTA_SEGMENT, 1000, 501, 0, w->now_ns, w->why), 0);
    assert_int_equal(quota_used(w->quota, QUOTA_SEGMENT, 1000), 0);
}

static void show(void *ctx, const struct quota_refusal *refusal)
{
    struct world *w = ctx;

    w->n_shown++;
    w->shown = *refusal;
}

/* A thousand refusals are a few lines in the log, and are shown for a while. */
static void test_said(void **state)
{
    struct world *w = *state;

    take_all(w, QUOTA_CLIENTS, 1000);
    for (int i = 0; i < 999; i++)
        take(w, QUOTA_CLIENTS, 1000, 1);
    assert_int_equal(w->n_lines, 1);
    quota_refusals(w->quota, w->now_ns, show, w);
    assert_int_equal(w->n_shown, 1);
    assert_int_equal(w->shown.n, 1000);
    assert_int_equal(w->shown.uid, 1000);
    w->now_ns += 31 * CLOCK_NS_PER_S;
    take(w, QUOTA_CLIENTS, 1000, 1);
    assert_int_equal(w->n_lines, 2);
    /* Also when he has gone. */
    quota_give(w->quota, QUOTA_CLIENTS, 1000, 40);
    quota_refusals(w->quota, w->now_ns, show, w);
    assert_int_equal(w->n_shown, 2);
    w->now_ns += QUOTA_SHOWN_NS;
    quota_refusals(w->quota, w->now_ns, show, w);
    assert_int_equal(w->n_shown, 2);
}

/* Users that come, are refused and go are not kept for ever. */
static void test_many_users(void **state)
{
    struct world *w = *state;

    w->config.user_connections = 1;
    for (uid_t uid = 1000; uid < 6000; uid++) {
        assert_int_equal(take(w, QUOTA_CLIENTS, uid, 1), 0);
        assert_int_equal(take(w, QUOTA_CLIENTS, uid, 1), QUOTA_E_OVER);
        quota_give(w->quota, QUOTA_CLIENTS, uid, 1);
    }
    quota_refusals(w->quota, w->now_ns, show, w);
    assert_in_range(w->n_shown, 1, 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_own_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_share, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_root_and_own_user, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_few_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_change, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_users, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
