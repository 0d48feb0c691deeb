/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Orders of the status socket: how ranks and channels wait, what is logged, the end of a job.
 * Called by status_answer.c. Control thread.
 */
#pragma once

#include "daemon/status/status_request.h"

struct status_node;

/* Changes something on this node; appends a row for each thing changed. 0 or -EINVAL with the
 * reason. */
int status_order_apply(struct status_node *node, const struct status_request *order, json_t *rows,
                       struct status_refusal *why);
