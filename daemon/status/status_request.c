/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/status/status_request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/segment.h"
#include "proto/status_views.h"

#define DEFAULT_LIMIT 10000u

const char *const status_wait_names[] = {
    [WAIT_ADAPTIVE] = "adaptive", [WAIT_SPIN] = "spin", [WAIT_EVENT] = "event"};

bool status_privileged(uid_t uid)
{
    return uid == 0 || uid == geteuid();
}

int status_refuse(struct status_refusal *r, const char *code, const char *text)
{
    r->code = code;
    snprintf(r->text, sizeof r->text, "%s", text);
    return -EINVAL;
}

/* Names those that there are. */
static int refuse_view(struct status_refusal *why)
{
    size_t n = (size_t)snprintf(why->text, sizeof why->text, "get: expected ");

    for (size_t i = 0; i < STATUS_VIEWS_N && n < sizeof why->text; i++)
        n += (size_t)snprintf(why->text + n, sizeof why->text - n, "%s%s", status_views[i].name,
                              i + 1 < STATUS_VIEWS_N ? ", " : " or all");
    why->code = "bad_request";
    return -EINVAL;
}

int status_request_parse(json_t *json, uid_t uid, struct status_request *ret_request,
                         struct status_refusal *why)
{
    struct status_request q = {.rank = -1, .limit = DEFAULT_LIMIT, .uid = uid};
    const char *job = NULL;
    json_int_t rank = -1, limit = DEFAULT_LIMIT;
    json_error_t error;
    json_t *id = NULL;

    if (json_unpack_ex(json, &error, JSON_STRICT, "{s?s, s?s, s?s, s?s, s?s, s?s, s?I, s?I, s?o}",
                       "get", &q.get, "set", &q.set, "value", &q.value, "channel", &q.channel,
                       "node", &q.node, "job", &job, "rank", &rank, "limit", &limit, "id", &id) < 0)
        return status_refuse(why, "bad_request", error.text);
    if ((q.get == NULL) == (q.set == NULL))
        return status_refuse(why, "bad_request", "expected either get or set");
    if (q.get && strcmp(q.get, "all") != 0 && !status_views_find(q.get))
        return refuse_view(why);
    if (q.set && strcmp(q.set, "wait_mode") != 0 && strcmp(q.set, "log_level") != 0 &&
        strcmp(q.set, "kill") != 0)
        return status_refuse(why, "bad_request", "set: expected wait_mode, log_level or kill");
    if (q.set && !q.value)
        return status_refuse(why, "bad_request", "set: value is missing");
    if (job) {
        char *end;
        q.job = strtoull(job, &end, 16);
        q.has_job = true;
        if (*end != '\0' || end == job)
            return status_refuse(why, "bad_request", "job: expected 16 hexadecimal digits");
    }
    if (rank < -1 || rank > UINT32_MAX || limit < 1 || limit > STATUS_MAX_ROWS)
        return status_refuse(why, "bad_request", "rank or limit is out of range");
    q.rank = rank;
    q.limit = (uint32_t)limit;
    *ret_request = q;
    return 0;
}
