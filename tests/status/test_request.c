/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of the status socket: what is taken, and what is refused in which words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/status/status_request.h"
#include "proto/status_views.h"

static struct status_refusal why;

/* The strings of the request live as long as this. */
static json_t *json;

static int parse(const char *text, struct status_request *ret_request)
{
    json_decref(json);
    json = json_loads(text, 0, NULL);
    assert_non_null(json);
    why = (struct status_refusal){0};
    return status_request_parse(json, 1000, ret_request, &why);
}

static void takes_every_view(void **state)
{
    struct status_request q;
    char text[64];
    (void)state;

    for (size_t i = 0; i <= STATUS_VIEWS_N; i++) {
        const char *name = i < STATUS_VIEWS_N ? status_views[i].name : "all";
        snprintf(text, sizeof text, "{\"get\":\"%s\"}", name);
        assert_int_equal(parse(text, &q), 0);
        assert_string_equal(q.get, name);
        assert_null(q.set);
        assert_int_equal(q.rank, -1);
        assert_int_equal(q.limit, 10000);
        assert_int_equal(q.uid, 1000);
        assert_false(q.has_job);
    }
}

static void takes_all_keys(void **state)
{
    struct status_request q;
    (void)state;

    assert_int_equal(
        parse("{\"get\":\"queues\",\"job\":\"4049c22c81710001\",\"rank\":3,\"limit\":200000,"
              "\"node\":\"a\",\"id\":[1]}",
              &q),
        0);
    assert_true(q.has_job);
    assert_int_equal(q.job, 0x4049c22c81710001ull);
    assert_int_equal(q.rank, 3);
    assert_int_equal(q.limit, 200000);
    assert_string_equal(q.node, "a");
    assert_int_equal(parse("{\"set\":\"wait_mode\",\"value\":\"spin\",\"channel\":\"left\"}", &q),
                     0);
    assert_string_equal(q.set, "wait_mode");
    assert_string_equal(q.value, "spin");
    assert_string_equal(q.channel, "left");
}

static void refuses_with_a_reason(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"{\"get\":\"clocks\"}", "get: expected info, nodes, "},
        {"{}", "expected either get or set"},
        {"{\"get\":\"info\",\"set\":\"kill\"}", "expected either get or set"},
        {"{\"set\":\"kill\"}", "set: value is missing"},
        {"{\"set\":\"colour\",\"value\":\"red\"}", "set: expected wait_mode, log_level or kill"},
        {"{\"get\":\"jobs\",\"job\":\"\"}", "job: expected 16 hexadecimal digits"},
        {"{\"get\":\"jobs\",\"job\":\"12x\"}", "job: expected 16 hexadecimal digits"},
        {"{\"get\":\"jobs\",\"rank\":-2}", "rank or limit is out of range"},
        {"{\"get\":\"jobs\",\"rank\":4294967296}", "rank or limit is out of range"},
        {"{\"get\":\"jobs\",\"limit\":0}", "rank or limit is out of range"},
        {"{\"get\":\"jobs\",\"limit\":200001}", "rank or limit is out of range"},
        {"{\"get\":\"jobs\",\"more\":1}", "more"},
        {"{\"get\":7}", "string"},
        {"[1]", "object"},
    };
    struct status_request q;
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(parse(cases[i].text, &q) < 0);
        assert_string_equal(why.code, "bad_request");
        if (!strstr(why.text, cases[i].says))
            fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].text, why.text, cases[i].says);
    }
    assert_true(parse("{\"get\":\"clocks\"}", &q) < 0);
    char last[80];
    snprintf(last, sizeof last, ", %s or all", status_views[STATUS_VIEWS_N - 1].name);
    assert_non_null(strstr(why.text, last));
}

static void who_may_see_everything(void **state)
{
    (void)state;
    assert_true(status_privileged(0));
    assert_true(status_privileged(geteuid()));
    assert_false(status_privileged(geteuid() + 1));
}

static void views_are_found(void **state)
{
    (void)state;
    assert_null(status_views_find("all"));
    assert_null(status_views_find("inf"));
    const struct status_view *counters = status_views_find("counters");
    assert_non_null(counters);
    assert_false(counters->for_everybody);
    assert_true(counters->of_cluster);
    assert_false(status_views_find("nodes")->of_cluster);
    assert_true(status_views_find("ranks")->limited);
    assert_false(status_views_find("doctor")->in_all);
}

static int forget(void **state)
{
    (void)state;
    json_decref(json);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_every_view),      cmocka_unit_test(takes_all_keys),
        cmocka_unit_test(refuses_with_a_reason), cmocka_unit_test(who_may_see_everything),
        cmocka_unit_test(views_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, forget);
}
