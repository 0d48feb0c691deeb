/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this node has to say in each view, as JSON rows: proto/status.views describes the views, and
 * for each there is a function here of its name that makes the rows. Called by status_answer.c.
 * Control thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "daemon/status/status_request.h"
#include "proto/status_views.h"

struct status_node;

/* status_view_info and so on: each appends its rows of this node, at most as many as the request's
 * limit if the view takes one. */
typedef void status_view_fn(struct status_node *node, const struct status_request *request,
                            json_t *rows);
#define STATUS_VIEW_DECLARE(name) status_view_fn status_view_##name;
STATUS_VIEWS(STATUS_VIEW_DECLARE)

/* The id of a node as rows show it. */
json_t *status_view_node_id(uint32_t id);

/* True if the answer to this view, or "all", needs the other nodes. */
bool status_view_of_cluster(const char *view);
/* True if this user may ask for it. */
bool status_view_allowed(const char *view, uid_t uid);
/* The rows of one view, or of "all"; ret_truncated: there are more than the request's limit. NULL:
 * no memory. */
json_t *status_view_rows(struct status_node *node, const char *view,
                         const struct status_request *request, bool *ret_truncated);
