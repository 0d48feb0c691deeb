/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one node answers to a checked request: the rows of a view, or what an order has changed.
 * Called for this node's own clients and for other daemons. Control thread.
 */
#pragma once

#include "daemon/status/status_request.h"

struct status_node;

/* Does what a checked request asks of this node and returns the rows; ret_truncated: there are more
 * than its limit. NULL with the reason. */
json_t *status_answer(struct status_node *node, const struct status_request *request,
                      bool *ret_truncated, struct status_refusal *why);
