/* SPDX-License-Identifier: BSD-3-Clause */
/* motetctl's end of the status socket: finding it, asking, and answers of every kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launcher/motetctl/ask.h"

static char text[256];

static int parse(const char *line, json_t **ret_answer)
{
    text[0] = '\0';
    *ret_answer = NULL;
    return ask_parse(line, strlen(line), 7, ret_answer, text, sizeof text);
}

static void refused(const char *line, int rc, const char *says)
{
    json_t *answer;

    assert_int_equal(parse(line, &answer), rc);
    assert_null(answer);
    if (!strstr(text, says))
        fail_msg("%s: \"%s\" does not say \"%s\"", line, text, says);
}

static void answers_that_are_none(void **state)
{
    (void)state;
    refused("", -EPROTO, "not JSON");
    refused("{\"version\":1,\"id\":7,\"ok\":true,\"data\":[", -EPROTO, "not JSON"); /* cut off */
    refused("[]", -EPROTONOSUPPORT, "another version");
    refused("{\"version\":2,\"id\":7,\"ok\":true}", -EPROTONOSUPPORT, "another version");
    refused("{\"version\":\"1\",\"id\":7,\"ok\":true}", -EPROTONOSUPPORT, "another version");
    refused("{\"version\":1,\"id\":8,\"ok\":true}", -EPROTO, "belongs to another request");
    refused("{\"version\":1,\"id\":7}", -EREMOTEIO, "refused without a reason");
    refused("{\"version\":1,\"id\":7,\"ok\":\"yes\"}", -EREMOTEIO, "refused");
    refused("{\"version\":1,\"id\":7,\"ok\":false,\"error\":\"no\"}", -EREMOTEIO, "no");
    refused(
        "{\"version\":1,\"id\":null,\"ok\":false,\"error\":{\"code\":\"x\",\"message\":\"why\"}}",
        -EREMOTEIO, "why");
    refused("{\"version\":1,\"id\":7,\"ok\":false,\"error\":{\"message\":3}}", -EREMOTEIO,
            "refused without a reason");
}

static void answers_with_gaps(void **state)
{
    json_t *answer;
    (void)state;

    assert_int_equal(parse("{\"version\":1,\"id\":7,\"ok\":true,\"data\":[1]}", &answer), 0);
    assert_string_equal(text, "");
    json_decref(answer);
    assert_int_equal(parse("{\"version\":1,\"ok\":true,\"truncated\":true}", &answer), 0);
    assert_true(json_is_array(json_object_get(answer, "data")));
    assert_string_equal(text, "there are more rows (see --limit)");
    json_decref(answer);
    assert_int_equal(
        parse("{\"version\":1,\"id\":7,\"ok\":true,\"data\":[],\"errors\":[{\"node\":\"a\","
              "\"message\":\"lost\"},{},3],\"truncated\":true}",
              &answer),
        0);
    assert_string_equal(text, "node a: lost; node ?: refused without a reason; node ?: refused "
                              "without a reason; there are more rows (see --limit)");
    json_decref(answer);
}

/* The words of other nodes may be longer than the room for them. */
static void many_gaps_do_not_overflow(void **state)
{
    char line[8192] =
        "{\"version\":1,\"id\":7,\"ok\":true,\"data\":[],\"truncated\":true,\"errors\":[";
    json_t *answer;
    (void)state;

    for (int i = 0; i < 60; i++)
        snprintf(line + strlen(line), sizeof line - strlen(line),
                 "%s{\"node\":\"node-%d\",\"message\":\"it cannot be reached\"}", i ? "," : "", i);
    strcat(line, "]}");
    assert_int_equal(parse(line, &answer), 0);
    assert_int_equal(strlen(text), sizeof text - 1);
    json_decref(answer);
}

struct found {
    size_t n;
    char names[4][64];
};

static void remember(void *arg, const char *name)
{
    struct found *f = arg;
    snprintf(f->names[f->n++], sizeof f->names[0], "%s", name);
}

static void private_sockets_are_found(void **state)
{
    struct found f = {0};
    (void)state;

    size_t n = ask_scan(
        "Num       RefCount Protocol Flags    Type St Inode Path\n"
        "0000000000000000: 00000002 00000000 00010000 0001 01 11111 @motet-1000-77-status\n"
        "0000000000000000: 00000003 00000000 00000000 0001 03 11112 @motet-1000-77-status\n"
        "0000000000000000: 00000002 00000000 00010000 0001 01 11113 @motet-1001-78-status\n"
        "0000000000000000: 00000002 00000000 00010000 0001 01 11114 @motet-1000-77-client\n"
        "0000000000000000: 00000002 00000000 00010000 0001 01 11115 @motet-1000-status\n"
        "0000000000000000: 00000002 00000000 00010000 0001 01 11116 /run/motet/status.sock\n"
        "0000000000000000: 00000002 00000000 00010000 0001 01 11117\n"
        "\n"
        "0000000000000000: 00000002 00000000 00010000 0001 01 11118 @motet-1000-99-status",
        1000, remember, &f);
    assert_int_equal(n, 2);
    assert_string_equal(f.names[0], "@motet-1000-77-status");
    assert_string_equal(f.names[1], "@motet-1000-99-status");
    assert_int_equal(ask_scan("", 0, remember, &f), 0);
}

/* ---- over a socket ---- */

static int ask_with(const char *reply, uint64_t timeout_ns, json_t **ret_answer, char *request,
                    size_t room)
{
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    if (reply) {
        assert_int_equal(write(ends[1], reply, strlen(reply)), strlen(reply));
        shutdown(ends[1], SHUT_WR);
    }
    *ret_answer = NULL;
    int rc = ask_daemon(ends[0], json_pack("{s:s, s:i}", "get", "info", "id", 7), timeout_ns,
                        ret_answer, text, sizeof text);
    ssize_t n = recv(ends[1], request, room - 1, MSG_DONTWAIT);
    request[n > 0 ? n : 0] = '\0';
    close(ends[0]);
    close(ends[1]);
    return rc;
}

static void asks_a_line_and_takes_a_line(void **state)
{
    char request[128];
    json_t *answer;
    (void)state;

    assert_int_equal(ask_with("{\"version\":1,\"id\":7,\"ok\":true,\"data\":[]}\nmore",
                              ASK_LIMIT_NS, &answer, request, sizeof request),
                     0);
    assert_string_equal(request, "{\"get\":\"info\",\"id\":7}\n");
    json_decref(answer);
}

static void daemons_that_fail(void **state)
{
    char request[128];
    json_t *answer;
    (void)state;

    assert_int_equal(ask_with("{\"version\":1", ASK_LIMIT_NS, &answer, request, sizeof request),
                     -ECONNRESET);
    assert_string_equal(text, "the daemon closed the connection");
    assert_int_equal(ask_with(NULL, 1, &answer, request, sizeof request), -ETIMEDOUT);
    assert_string_equal(text, "the daemon does not answer");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_that_are_none),        cmocka_unit_test(answers_with_gaps),
        cmocka_unit_test(many_gaps_do_not_overflow),    cmocka_unit_test(private_sockets_are_found),
        cmocka_unit_test(asks_a_line_and_takes_a_line), cmocka_unit_test(daemons_that_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
