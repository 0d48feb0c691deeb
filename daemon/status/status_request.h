/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One request of the status socket: checking it, and doing on this node what it asks. Called by
 * status.c for its own clients and for other daemons. Control thread.
 */
#pragma once

#include <jansson.h>
#include <sys/types.h>

#include "daemon/status/status_rows.h"

/* Most rows of one reply. */
#define STATUS_MAX_ROWS 200000u

/* Why a request is refused. */
struct status_refusal {
    const char *code; /* NULL: it is not */
    char text[200];
};

/* Fills it. Returns -EINVAL. */
int status_refuse(struct status_refusal *why, const char *code, const char *text);

/* Checks a request of this user. The strings of *ret_request belong to json. 0, or -EINVAL with the
 * reason. */
int status_request_parse(json_t *json, uid_t uid, struct status_request *ret_request,
                         struct status_refusal *why);
/* Does what a checked request asks of this node and returns the rows; ret_truncated: there are more
 * than its limit. NULL with the reason. */
json_t *status_request_answer(struct node *node, const struct status_request *request,
                              bool *ret_truncated, struct status_refusal *why);
