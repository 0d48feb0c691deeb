/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Logging for daemon and launcher. One line per decision, lower case, cause first, ids of job,
 * rank, node and channel in it. Goes to stderr with `<N>` priority prefixes when the journal reads
 * it (INVOCATION_ID and JOURNAL_STREAM set), else with a time stamp and the program's name.
 * Thread-safe: one write(2) per line.
 */
#pragma once

#include <stdbool.h>

enum log_level { LOG_ERROR = 3, LOG_WARN = 4, LOG_NOTICE = 5, LOG_INFO = 6, LOG_DEBUG = 7 };

/* Name printed before each line ("motetd node1"); copied, 64 characters at most. */
void log_init(const char *name);
/* Lines above this level are dropped; default LOG_NOTICE. Returns the old level. */
enum log_level log_set_level(enum log_level level);
/* Parses "error", "warn", "notice", "info", "debug". Returns 0, or -EINVAL. */
int log_level_parse(const char *text, enum log_level *ret_level);
/* Every line also goes to this function when set (journal fields in the daemon, announced-warning
 * checks in tests). */
void log_set_sink(void (*sink)(enum log_level level, const char *line));
/* off: lines go to the sink only. */
void log_set_stderr(bool on);

void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)  log_line(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)   log_line(LOG_WARN, __VA_ARGS__)
#define log_notice(...) log_line(LOG_NOTICE, __VA_ARGS__)
#define log_info(...)   log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...)  log_line(LOG_DEBUG, __VA_ARGS__)
