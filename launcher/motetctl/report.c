/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/motetctl/report.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "launcher/motetctl/ask.h"
#include "launcher/motetctl/doctor.h"
#include "launcher/motetctl/metrics.h"
#include "launcher/motetctl/waits.h"

#define EXIT_FAILED 1
/* Between two looks at ranks that seem to hang. */
#define LATER_MS 500
/* The daemons' own limit. */
#define ALL_ROWS 200000

/* The answer to a question about a subject; NULL with a word about it. `quiet`: the caller tells
 * what is missing. */
static json_t *report_fetch(int fd, const char *subject, const char *node, const char *job,
                            bool quiet)
{
    static json_int_t id;
    json_t *request = json_pack("{s:s, s:I, s:i}", "get", subject, "id", ++id, "limit", ALL_ROWS),
           *answer = NULL;
    char text[512] = "";

    if (node)
        json_object_set_new(request, "node", json_string(node));
    if (job)
        json_object_set_new(request, "job", json_string(job));
    int rc = ask_daemon(fd, request, ASK_LIMIT_NS, &answer, text, sizeof text);
    if (text[0] && (rc < 0 || !quiet))
        fprintf(stderr, "motetctl: %s\n", text);
    return rc < 0 ? NULL : answer;
}

static const json_t *report_data(const json_t *answer)
{
    return json_object_get(answer, "data");
}

static void report_dump(const json_t *data)
{
    json_dumpf(data, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
    putchar('\n');
}

int report_waits(int fd, const struct report *what)
{
    json_t *ranks = report_fetch(fd, "ranks", NULL, what->job, false);
    json_t *queues = ranks ? report_fetch(fd, "queues", NULL, what->job, true) : NULL;
    json_t *communicators =
        queues ? report_fetch(fd, "communicators", NULL, what->job, true) : NULL;
    json_t *links = queues ? report_fetch(fd, "links", NULL, NULL, true) : NULL;
    json_t *later = NULL, *later_queues = NULL;
    int code = EXIT_FAILED;

    if (queues) {
        poll(NULL, 0, LATER_MS);
        later = report_fetch(fd, "ranks", NULL, what->job, true);
        later_queues = report_fetch(fd, "queues", NULL, what->job, true);
    }
    if (later) {
        const struct waits_rows rows = {.ranks = report_data(ranks),
                                        .queues = report_data(queues),
                                        .communicators = report_data(communicators),
                                        .later = report_data(later),
                                        .later_queues = report_data(later_queues),
                                        .links = report_data(links)};
        json_t *waits = waits_find(&rows);
        if (!waits) {
            fputs("motetctl: out of memory\n", stderr);
        } else if (what->job && json_array_size(waits) == 0) {
            fprintf(stderr, "motetctl: job %s has no ranks here, or is not yours\n", what->job);
        } else if (what->json) {
            report_dump(waits);
            code = 0;
        } else {
            code = waits_show(waits, stdout) < 0 ? EXIT_FAILED : 0;
        }
        json_decref(waits);
    }
    json_decref(ranks);
    json_decref(queues);
    json_decref(communicators);
    json_decref(later);
    json_decref(later_queues);
    json_decref(links);
    return code;
}

static int64_t wall_clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int report_doctor(int fd, const struct report *what)
{
    int64_t asked_ms = wall_clock_ms();
    json_t *answer = report_fetch(fd, "doctor", what->node, NULL, true);

    if (!answer)
        return EXIT_FAILED;
    json_t *rows = json_object_get(answer, "data");
    doctor_compare(rows, json_object_get(answer, "errors"), asked_ms, wall_clock_ms());
    if (what->json)
        report_dump(rows);
    else
        doctor_show(rows, stdout);
    int code = doctor_failed(rows) > 0 ? EXIT_FAILED : 0;
    json_decref(answer);
    return code;
}

/* Through a file beside it, so that no reader sees half of it. */
static int report_write_file(const char *path, const struct metrics_rows *rows)
{
    char beside[4096];

    if (snprintf(beside, sizeof beside, "%s.%d.tmp", path, (int)getpid()) >= (int)sizeof beside)
        return -ENAMETOOLONG;
    FILE *f = fopen(beside, "we");
    if (!f)
        return -errno;
    metrics_print(rows, f);
    bool bad = ferror(f) != 0;
    if (fclose(f) != 0 || bad || rename(beside, path) < 0) {
        int rc = errno ? -errno : -EIO;
        unlink(beside);
        return rc;
    }
    return 0;
}

int report_metrics(int fd, const struct report *what)
{
    static const char *const subjects[] = {"info", "counters", "nodes", "links", "ranks"};
    json_t *answers[sizeof subjects / sizeof *subjects] = {NULL};
    const char *node = what->node;
    int code = 0;

    for (size_t i = 0; i < sizeof subjects / sizeof *subjects && code == 0; i++) {
        answers[i] = report_fetch(fd, subjects[i], node, NULL, false);
        if (!answers[i])
            code = EXIT_FAILED;
        else if (!node)
            node = json_string_value(
                json_object_get(json_array_get(report_data(answers[0]), 0), "node"));
    }
    if (code == 0) {
        struct metrics_rows rows = {.node = node ? node : "?",
                                    .counters = report_data(answers[1]),
                                    .nodes = report_data(answers[2]),
                                    .links = report_data(answers[3]),
                                    .ranks = report_data(answers[4])};
        int rc = 0;
        if (what->file)
            rc = report_write_file(what->file, &rows);
        else
            metrics_print(&rows, stdout);
        if (rc < 0) {
            fprintf(stderr, "motetctl: %s: %s\n", what->file, strerror(-rc));
            code = EXIT_FAILED;
        }
    }
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
        json_decref(answers[i]);
    return code;
}
