/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char program[64] = "motet";
static _Atomic int max_level = LOG_NOTICE;
static bool journal;
static bool to_stderr = true;
static void (*line_sink)(enum log_level, const char *);

static const char *const level_names[] = {[LOG_ERROR] = "error",
                                          [LOG_WARN] = "warn",
                                          [LOG_NOTICE] = "notice",
                                          [LOG_INFO] = "info",
                                          [LOG_DEBUG] = "debug"};

void log_init(const char *name)
{
    snprintf(program, sizeof program, "%s", name);
    journal = getenv("JOURNAL_STREAM") != NULL && getenv("INVOCATION_ID") != NULL;
}

enum log_level log_set_level(enum log_level level)
{
    return (enum log_level)atomic_exchange_explicit(&max_level, (int)level, memory_order_relaxed);
}

int log_level_parse(const char *text, enum log_level *ret_level)
{
    for (int level = LOG_ERROR; level <= LOG_DEBUG; level++) {
        if (strcmp(text, level_names[level]) == 0) {
            *ret_level = (enum log_level)level;
            return 0;
        }
    }
    return -EINVAL;
}

void log_set_sink(void (*sink)(enum log_level level, const char *line))
{
    line_sink = sink;
}

void log_set_stderr(bool on)
{
    to_stderr = on;
}

void log_line(enum log_level level, const char *fmt, ...)
{
    char buf[2048];
    int saved_errno = errno;
    int n;

    if ((int)level > atomic_load_explicit(&max_level, memory_order_relaxed))
        return;
    if (journal) {
        n = snprintf(buf, sizeof buf, "<%d>", (int)level);
    } else {
        struct timespec ts;
        struct tm tm;
        clock_gettime(CLOCK_REALTIME, &ts);
        localtime_r(&ts.tv_sec, &tm);
        n = snprintf(buf, sizeof buf, "%02d:%02d:%02d.%03ld %s: %s: ", tm.tm_hour, tm.tm_min,
                     tm.tm_sec, ts.tv_nsec / 1000000, program, level_names[level]);
    }
    size_t prefix = (size_t)n;

    va_list ap;
    va_start(ap, fmt);
    n = vsnprintf(buf + prefix, sizeof buf - prefix - 1, fmt, ap);
    va_end(ap);
    size_t len = prefix + (n < 0 ? 0 : (size_t)n);
    if (len > sizeof buf - 2)
        len = sizeof buf - 2;
    if (line_sink)
        line_sink(level, buf + prefix);
    if (!to_stderr) {
        errno = saved_errno;
        return;
    }
    buf[len++] = '\n';
    /* A log line that cannot be written has nowhere else to go. */
    ssize_t written = write(STDERR_FILENO, buf, len);
    (void)written;
    errno = saved_errno;
}
