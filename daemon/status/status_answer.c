/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/status/status_answer.h"

#include "daemon/status/status_order.h"
#include "daemon/status/status_view.h"

json_t *status_answer(struct status_node *node, const struct status_request *q, bool *ret_truncated,
                      struct status_refusal *why)
{
    json_t *rows;

    *ret_truncated = false;
    if (q->get && !status_view_allowed(q->get, q->uid)) {
        status_refuse(why, "denied", "only root and the daemon's own user may see this");
        return NULL;
    }
    rows = q->get ? status_view_rows(node, q->get, q, ret_truncated) : json_array();
    if (!rows) {
        status_refuse(why, "internal", "out of memory");
    } else if (q->set && status_order_apply(node, q, rows, why) < 0) {
        json_decref(rows);
        return NULL;
    }
    return rows;
}
