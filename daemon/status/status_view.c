/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/status/status_view.h"

#include <stdio.h>

#include "daemon/status/status_node.h"

#define STATUS_VIEW_ENTRY(name) status_view_##name,
static status_view_fn *const makers[STATUS_VIEWS_N] = {STATUS_VIEWS(STATUS_VIEW_ENTRY)};

json_t *status_view_node_id(uint32_t id)
{
    char text[16];

    snprintf(text, sizeof text, "%08x", id);
    return json_string(text);
}

bool status_view_of_cluster(const char *name)
{
    const struct status_view *view = status_views_find(name);
    return !view || view->of_cluster;
}

bool status_view_allowed(const char *name, uid_t uid)
{
    const struct status_view *view = status_views_find(name);
    return !view || view->for_everybody || status_privileged(uid);
}

/* Some rows take much room or time, and stop at the limit; one more than that tells that there are
 * more. */
static json_t *rows_of(struct status_node *node, const struct status_view *view,
                       const struct status_request *q, bool *ret_truncated)
{
    struct status_request more = *q;
    json_t *rows = json_array();

    more.limit = q->limit + 1;
    if (rows)
        makers[view - status_views](node, &more, rows);
    *ret_truncated = view->limited && json_array_size(rows) > q->limit;
    while (*ret_truncated && json_array_size(rows) > q->limit)
        json_array_remove(rows, json_array_size(rows) - 1);
    return rows;
}

/* "all": one row for each view. */
static json_t *rows_of_all(struct status_node *node, const struct status_request *q,
                           bool *ret_truncated)
{
    json_t *rows = json_array();

    *ret_truncated = false;
    for (const struct status_view *v = status_views; rows && v < status_views + STATUS_VIEWS_N;
         v++) {
        bool truncated;
        if (!v->in_all || !status_view_allowed(v->name, q->uid))
            continue;
        json_t *part = rows_of(node, v, q, &truncated);
        json_t *row = json_pack("{s:s, s:s, s:o}", "subject", v->name, "node", node->config->name,
                                "rows", part ? part : json_null());
        if (row && truncated)
            json_object_set_new(row, "truncated", json_true());
        *ret_truncated |= truncated;
        json_array_append_new(rows, row);
    }
    return rows;
}

json_t *status_view_rows(struct status_node *node, const char *name, const struct status_request *q,
                         bool *ret_truncated)
{
    const struct status_view *view = status_views_find(name);

    return view ? rows_of(node, view, q, ret_truncated) : rows_of_all(node, q, ret_truncated);
}
