/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log lines as journal entries with fields. Apart from base/log.h, whose levels have the names that
 * the journal's header takes from syslog. Any thread.
 */
#pragma once

#include <stdbool.h>

/* True if standard error is the journal; then lines may be sent with journal_line. Called once,
 * before there are threads. */
bool journal_open(const char *node_name);
/* One entry with MOTET_NODE, and MOTET_JOB, MOTET_RANK, MOTET_CHANNEL where the line names them. */
void journal_line(int level, const char *line);
