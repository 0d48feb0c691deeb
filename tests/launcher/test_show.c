/* SPDX-License-Identifier: BSD-3-Clause */
/* What motetctl prints: tables, quantities, Prometheus' text, what the doctor says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/motetctl/doctor.h"
#include "launcher/motetctl/human.h"
#include "launcher/motetctl/metrics.h"
#include "launcher/motetctl/show.h"
#include "launcher/motetctl/table.h"
#include "tests/launcher/memory.h"

/* ---- what is printed, to be freed ---- */

static char *shown(const char *data)
{
    char *text = NULL;
    size_t n;
    FILE *to = open_memstream(&text, &n);
    json_t *json = json_loads(data, JSON_DECODE_ANY, NULL);

    assert_non_null(json);
    assert_int_equal(show_data(json, to), 0);
    json_decref(json);
    fclose(to);
    return text;
}

static void prints(const char *data, const char *expected)
{
    char *text = shown(data);
    assert_string_equal(text, expected);
    free(text);
}

/* ---- quantities ---- */

static void bytes_have_three_digits(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {{0, "0 B"},
                 {1023, "1023 B"},
                 {1024, "1.00 KiB"},
                 {1536, "1.50 KiB"},
                 {10234, "9.99 KiB"},
                 {10235, "10.0 KiB"},
                 {102348, "99.9 KiB"},
                 {102349, "100 KiB"},
                 {1023487, "999 KiB"},
                 {1023488, "0.98 MiB"},
                 {1ull << 30, "1.00 GiB"},
                 {UINT64_MAX, "16.0 EiB"}};
    char text[HUMAN_ROOM];
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        human_bytes(cases[i].bytes, text);
        assert_string_equal(text, cases[i].text);
    }
}

static void durations_have_two_units(void **state)
{
    static const struct {
        int64_t ns;
        const char *text;
    } cases[] = {{0, "0 ns"},
                 {999, "999 ns"},
                 {1000, "1.00 us"},
                 {1250000, "1.25 ms"},
                 {12300000000, "12.3 s"},
                 {59999000000, "60.0 s"},
                 {60000000000, "1 min 0 s"},
                 {200000000000, "3 min 20 s"},
                 {7500000000000, "2 h 5 min"},
                 {367200000000000, "4 d 6 h"},
                 {-1500000000, "-1.5 s"}};
    char text[HUMAN_ROOM];
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        human_duration(cases[i].ns, text);
        assert_string_equal(text, cases[i].text);
    }
}

/* ---- tables ---- */

static void a_table_fits_its_content(void **state)
{
    (void)state;
    prints("[{\"node\":\"a\",\"ranks\":3},{\"node\":\"longer\",\"ranks\":12}]", "NODE    RANKS\n"
                                                                                "a           3\n"
                                                                                "longer     12\n");
    /* A letter of two bytes takes the room of one. */
    prints("[{\"a\":\"\\u00e9\",\"b\":\"x\"},{\"a\":\"yz\",\"b\":\"x\"}]", "A   B\n"
                                                                           "\u00e9   x\n"
                                                                           "yz  x\n");
}

static void values_have_their_units(void **state)
{
    (void)state;
    prints("[{\"x_bytes\":2048,\"bytes\":1,\"rtt_us\":40,\"age_ms\":1500,\"for_s\":90,"
           "\"mbytes_per_s\":125,\"up\":true,\"down\":false,\"none\":null,\"share\":0.33333}]",
           "       X  BYTES      RTT     AGE         FOR  MBYTES PER S  UP   DOWN  NONE   SHARE\n"
           "2.00 KiB    1 B  40.0 us  1.50 s  1 min 30 s           125  yes  no    -     0.3333\n");
}

static void nested_values(void **state)
{
    (void)state;
    prints("[{\"quick\":{\"next\":\"b\"},\"empty\":{},\"list\":[\"x\",\"y\"],\"none\":[],"
           "\"ways\":[{\"via\":\"a\",\"rtt_us\":20},{\"via\":\"b\",\"rtt_us\":30}]}]",
           "NEXT  EMPTY  LIST  NONE  WAYS\n"
           "b            x,y   -     via=a rtt=20.0 us, via=b rtt=30.0 us\n");
    /* Two of one name are told apart. */
    prints("[{\"quick\":{\"next\":\"b\"},\"slow\":{\"next\":\"c\"},\"waiting\":true,"
           "\"waiting_ms\":5}]",
           "QUICK.NEXT  SLOW.NEXT  WAITING  WAITING TIME\n"
           "b           c          yes           5.00 ms\n");
}

static void kinds_stand_apart(void **state)
{
    (void)state;
    prints("[{\"a\":1,\"b\":2},{\"c\":3,\"d\":4},{\"a\":5,\"b\":6}]",
           "A  B\n1  2\n5  6\n\nC  D\n3  4\n");
    prints("[{\"subject\":\"jobs\",\"node\":\"n\",\"rows\":[]},"
           "{\"subject\":\"x\",\"node\":\"n\",\"rows\":[{\"a\":1}]}]",
           "subject jobs, node n:\nnone\n\nsubject x, node n:\nA\n1\n\n");
    prints("[]", "none\n");
    prints("{\"a\":1}", "A  1\n");
    prints("[1,2]", "[\n  1,\n  2\n]\n");
    prints("7", "7\n");
}

static void wide_and_low_is_turned(void **state)
{
    char data[8192] = "[{\"name\":\"left\"", *text;
    (void)state;

    for (int i = 0; i < 30; i++)
        snprintf(data + strlen(data), sizeof data - strlen(data), ",\"a_long_counter_%d\":%d", i,
                 i);
    strcat(data, "}]");
    text = shown(data);
    assert_int_equal(strncmp(text, "NAME", 4), 0);
    assert_non_null(strstr(text, "\nA LONG COUNTER 29    29\n"));
    free(text);
}

static void nothing_moves_the_cursor(void **state)
{
    char *text = shown("[{\"name\":\"a\\u001b[2Jb\\nc\\u007f\"}]");
    (void)state;
    assert_string_equal(text, "NAME\na?[2Jb?c?\n");
    free(text);
}

static void memory_may_run_out(void **state)
{
    json_t *data = json_loads("[{\"a\":1,\"b\":[1,2]},{\"a\":2,\"b\":[{\"c\":\"d\"}]}]", 0, NULL);
    FILE *nowhere = fopen("/dev/null", "w");
    int rc = -ENOMEM, n_failed = 0;
    (void)state;

    setvbuf(nowhere, NULL, _IONBF, 0);
    for (long n = 0; n < 40; n++) {
        memory_until_none = n;
        rc = show_data(data, nowhere);
        memory_until_none = -1;
        n_failed += rc == -ENOMEM;
    }
    assert_int_equal(rc, 0);
    assert_true(n_failed > 2);
    fclose(nowhere);
    json_decref(data);
}

/* ---- metrics ---- */

static json_t *parsed(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    return json;
}

static void metrics_are_prometheus_text(void **state)
{
    json_t *counters =
        parsed("[{\"channel\":0,\"name\":\"l\\\"e\\\\f\\nt\",\"counters\":{\"packets_out\":5,"
               "\"blocks_free\":7}},"
               "{\"channel\":1,\"name\":\"right\",\"counters\":{\"packets_out\":6}},"
               "{\"channel\":2,\"name\":\"odd\",\"counters\":{\"packets_out\":\"six\"}},"
               "{\"channel\":null,\"name\":\"daemon\",\"counters\":{\"uptime_ms\":1500,\"jobs_"
               "here\":1}}]");
    json_t *nodes = parsed("[{\"node\":\"n1\",\"state\":\"self\"},{\"node\":\"n2\",\"state\":"
                           "\"reachable\"},{\"node\":\"n3\",\"state\":\"lost\"}]");
    json_t *links = parsed("[{\"from\":\"n1\",\"to\":\"n2\",\"network\":\"x\",\"rtt_us\":250,"
                           "\"both_ways\":true,\"control\":\"up\"},"
                           "{\"from\":\"n1\",\"to\":\"n3\",\"network\":\"x\",\"rtt_us\":0,"
                           "\"both_ways\":true,\"control\":\"down\"},"
                           "{\"from\":\"n2\",\"to\":\"n1\",\"network\":\"x\"}]");
    json_t *ranks = parsed("[{\"state\":\"running\",\"waiting\":true,\"waiting_ms\":2500},"
                           "{\"state\":\"running\",\"waiting\":true,\"waiting_ms\":1500},"
                           "{\"state\":\"running\",\"waiting\":false,\"waiting_ms\":9000},"
                           "{\"state\":\"exited\",\"waiting\":true,\"waiting_ms\":99000}, 7]");
    struct metrics_rows rows = {"n1", counters, nodes, links, ranks};
    static const char *const lines[] = {
        "motet_uptime_seconds{node=\"n1\"} 1.5\n",
        "motet_jobs_here{node=\"n1\"} 1\n",
        "motet_node_reachable{node=\"n1\",to=\"n1\"} 1\n",
        "motet_node_reachable{node=\"n1\",to=\"n2\"} 1\n",
        "motet_node_reachable{node=\"n1\",to=\"n3\"} 0\n",
        "motet_link_up{node=\"n1\",to=\"n2\",network=\"x\"} 1\n",
        "motet_link_up{node=\"n1\",to=\"n3\",network=\"x\"} 0\n",
        "motet_link_rtt_seconds{node=\"n1\",to=\"n2\",network=\"x\"} 0.000250\n",
        "motet_ranks{node=\"n1\"} 4\n",
        "motet_ranks_waiting{node=\"n1\"} 2\n",
        "motet_longest_wait_seconds{node=\"n1\"} 2.5\n",
        "# TYPE motet_channel_packets_out_total counter\n"
        "motet_channel_packets_out_total{node=\"n1\",channel=\"l\\\"e\\\\f\\nt\"} 5\n"
        "motet_channel_packets_out_total{node=\"n1\",channel=\"right\"} 6\n",
        "# TYPE motet_channel_blocks_free gauge\n",
    };
    char *text = NULL;
    size_t n;
    FILE *to = open_memstream(&text, &n);
    (void)state;

    metrics_print(&rows, to);
    fclose(to);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!strstr(text, lines[i]))
            fail_msg("\"%s\" is not in\n%s", lines[i], text);
    assert_null(strstr(text, "six"));
    assert_null(strstr(text, "to=\"n1\",network"));
    free(text);
    json_decref(counters);
    json_decref(nodes);
    json_decref(links);
    json_decref(ranks);
}

/* ---- doctor ---- */

static const char *found(const json_t *rows, const char *node, const char *check, const char *state)
{
    const json_t *row;
    size_t i;

    json_array_foreach(rows, i, row) {
        if (strcmp(json_string_value(json_object_get(row, "node")), node) == 0 &&
            strcmp(json_string_value(json_object_get(row, "check")), check) == 0 &&
            strcmp(json_string_value(json_object_get(row, "state")), state) == 0)
            return json_string_value(json_object_get(row, "text"));
    }
    fail_msg("nothing of %s, %s, %s", node, check, state);
    return "";
}

static json_t *daemon_row(const char *node, const char *version, json_int_t clock_ms)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:n, s:s, s:I}", "node", node, "check", "daemon",
                     "state", "ok", "text", "it runs", "advice", "version", version, "clock_ms",
                     clock_ms);
}

static void the_doctor_compares(void **state)
{
    json_t *rows = json_array(),
           *errors = parsed("[{\"node\":\"d\",\"message\":\"no answer within 2 s\"}]");
    (void)state;

    json_array_append_new(rows, daemon_row("a", "1", 100000));
    json_array_append_new(rows, daemon_row("b", "2", 100000 - 1001));
    json_array_append_new(rows, daemon_row("c", "1", 100500 + 61000));
    doctor_compare(rows, errors, 100000, 100500);
    assert_string_equal(found(rows, "b", "version", "warn"), "2, but node a has 1");
    assert_string_equal(found(rows, "b", "clock", "warn"), "its clock is 1.00 s behind this one's");
    assert_string_equal(found(rows, "c", "clock", "warn"),
                        "its clock is 1 min 1 s ahead of this one's");
    assert_string_equal(found(rows, "d", "answer", "fail"), "no answer within 2 s");
    assert_int_equal(doctor_failed(rows), 1);
    json_decref(rows);
    json_decref(errors);
}

static void the_doctor_is_content(void **state)
{
    json_t *rows = json_array();
    char *text = NULL;
    size_t n;
    (void)state;

    json_array_append_new(rows, daemon_row("a", "1", 99000));
    json_array_append_new(rows, daemon_row("b", "1", 101500));
    json_array_append_new(rows,
                          json_pack("{s:s, s:s, s:s, s:s, s:s}", "node", "b", "check", "cores",
                                    "state", "warn", "text", "few\x1b", "advice", "buy some"));
    doctor_compare(rows, NULL, 100000, 100500);
    assert_string_equal(found(rows, "*", "version", "ok"), "1 on 2 nodes");
    assert_string_equal(found(rows, "*", "clock", "ok"), "all within a second");
    FILE *to = open_memstream(&text, &n);
    assert_int_equal(doctor_show(rows, to), 0);
    fclose(to);
    assert_non_null(strstr(text, "warn  b     cores    few?\n"));
    assert_non_null(strstr(text, "do: buy some\n"));
    assert_non_null(strstr(text, "4 ok, 1 to look at, 0 failed\n"));
    free(text);
    json_decref(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_have_three_digits),
        cmocka_unit_test(durations_have_two_units),
        cmocka_unit_test(a_table_fits_its_content),
        cmocka_unit_test(values_have_their_units),
        cmocka_unit_test(nested_values),
        cmocka_unit_test(kinds_stand_apart),
        cmocka_unit_test(wide_and_low_is_turned),
        cmocka_unit_test(nothing_moves_the_cursor),
        cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(metrics_are_prometheus_text),
        cmocka_unit_test(the_doctor_compares),
        cmocka_unit_test(the_doctor_is_content),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
