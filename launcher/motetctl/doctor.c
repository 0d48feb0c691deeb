/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/motetctl/doctor.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/clock.h"
#include "launcher/motetctl/human.h"
#include "launcher/motetctl/row.h"

/* Logs of nodes whose clocks differ by more cannot be read side by side. */
#define CLOCK_SLACK_MS 1000

static void doctor_add(json_t *rows, const char *node, const char *check, const char *state,
                       const char *advice, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));
static void doctor_add(json_t *rows, const char *node, const char *check, const char *state,
                       const char *advice, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    json_array_append_new(rows, json_pack("{s:s, s:s, s:s, s:s, s:s?}", "node", node, "check",
                                          check, "state", state, "text", text, "advice", advice));
}

static void compare_versions(json_t *rows)
{
    const char *first = NULL, *first_node = "";
    size_t i, n = json_array_size(rows), n_same = 0, n_other = 0;

    for (i = 0; i < n; i++) {
        const json_t *row = json_array_get(rows, i);
        const char *version = json_string_value(json_object_get(row, "version"));
        if (!version)
            continue;
        if (!first) {
            first = version;
            first_node = row_text(row, "node");
        }
        if (strcmp(version, first) == 0) {
            n_same++;
            continue;
        }
        n_other++;
        doctor_add(rows, row_text(row, "node"), "version", "warn",
                   "install the same version on all nodes", "%s, but node %s has %s", version,
                   first_node, first);
    }
    if (first && n_other == 0)
        doctor_add(rows, "*", "version", "ok", NULL, "%s on %zu node%s", first, n_same,
                   n_same == 1 ? "" : "s");
}

static void compare_clocks(json_t *rows, int64_t asked_ms, int64_t answered_ms)
{
    size_t i, n = json_array_size(rows), n_off = 0, n_seen = 0;
    char text[HUMAN_ROOM];

    for (i = 0; i < n; i++) {
        const json_t *row = json_array_get(rows, i), *clock = json_object_get(row, "clock_ms");
        if (!json_is_integer(clock))
            continue;
        int64_t there = json_integer_value(clock);
        int64_t off = there < asked_ms      ? there - asked_ms
                      : there > answered_ms ? there - answered_ms
                                            : 0;
        n_seen++;
        if (off >= -CLOCK_SLACK_MS && off <= CLOCK_SLACK_MS)
            continue;
        n_off++;
        human_duration((off < 0 ? -off : off) > INT64_MAX / (int64_t)CLOCK_NS_PER_MS
                           ? INT64_MAX
                           : (off < 0 ? -off : off) * CLOCK_NS_PER_MS,
                       text);
        doctor_add(rows, row_text(row, "node"), "clock", "warn",
                   "run a time service (chrony, systemd-timesyncd) on all nodes",
                   "its clock is %s %s this one's", text, off < 0 ? "behind" : "ahead of");
    }
    if (n_seen > 0 && n_off == 0)
        doctor_add(rows, "*", "clock", "ok", NULL, "all within a second");
}

void doctor_compare(json_t *rows, const json_t *errors, int64_t asked_ms, int64_t answered_ms)
{
    const json_t *error;
    size_t i;

    compare_versions(rows);
    compare_clocks(rows, asked_ms, answered_ms);
    json_array_foreach(errors, i, error)
        doctor_add(rows, row_text(error, "node"), "answer", "fail",
                   "see whether its daemon runs, and the way to it (motetctl routes)", "%s",
                   row_text(error, "message"));
}

size_t doctor_failed(const json_t *rows)
{
    const json_t *row;
    size_t i, n = 0;

    json_array_foreach(rows, i, row)
        n += strcmp(row_text(row, "state"), "fail") == 0;
    return n;
}

/* Text of others: nothing in it may move the cursor. */
static void doctor_put(FILE *to, const char *text, int width)
{
    int n = 0;

    for (; *text; text++, n++)
        fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, to);
    for (; n < width; n++)
        fputc(' ', to);
}

size_t doctor_show(const json_t *rows, FILE *to)
{
    int node_width = 4, check_width = 5;
    size_t i, n_fail = doctor_failed(rows), n_warn = 0;
    const json_t *row;

    json_array_foreach(rows, i, row) {
        int node = (int)strlen(row_text(row, "node")), check = (int)strlen(row_text(row, "check"));
        node_width = node > node_width ? node : node_width;
        check_width = check > check_width ? check : check_width;
        n_warn += strcmp(row_text(row, "state"), "warn") == 0;
    }
    json_array_foreach(rows, i, row) {
        doctor_put(to, row_text(row, "state"), 6);
        doctor_put(to, row_text(row, "node"), node_width + 2);
        doctor_put(to, row_text(row, "check"), check_width + 2);
        doctor_put(to, row_text(row, "text"), 0);
        if (row_text(row, "advice")[0]) {
            fprintf(to, "\n%*sdo: ", 6 + node_width + 2 + check_width + 2, "");
            doctor_put(to, row_text(row, "advice"), 0);
        }
        fputc('\n', to);
    }
    fprintf(to, "%zu ok, %zu to look at, %zu failed\n", json_array_size(rows) - n_warn - n_fail,
            n_warn, n_fail);
    return n_fail;
}
