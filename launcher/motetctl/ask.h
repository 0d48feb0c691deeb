/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's end of the daemon's status socket: one JSON object per line in both directions. Used
 * by motetctl. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

#define ASK_VERSION 1
/* Daemons wait 2 s for one another. */
#define ASK_LIMIT_NS (10 * CLOCK_NS_PER_S)

/*
 * Connects to the socket named, else to the usual ones (MOTET_STATUS_SOCKET, the runtime
 * directories), else to the private daemon of this user if there is just one. Returns the
 * descriptor, or negative errno with the reason in `why`.
 */
int ask_connect(const char *named, char *why, size_t room);

/* Names of the status sockets of this user's private daemons in the text of /proc/net/unix, one
 * after another. Calls `found` with each, '@' in front. Returns their number. */
typedef void ask_found_fn(void *arg, const char *name);
size_t ask_scan(const char *unix_sockets, unsigned uid, ask_found_fn *found, void *arg);

/*
 * Sends the request (takes over the reference) and waits for its answer at most timeout_ns. 0 and
 * the answer as a new reference, which has `data` (rows), with a text if something is missing in
 * it; or negative errno with the reason, which may be the daemon's own words (-EREMOTEIO).
 */
int ask_daemon(int fd, json_t *request, uint64_t timeout_ns, json_t **ret_answer, char *text,
               size_t room);
/* Takes an answer apart; separate for tests and the fuzzer. As ask_daemon. */
int ask_parse(const char *line, size_t n, json_int_t id, json_t **ret_answer, char *text,
              size_t room);
