/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/status/status_request.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/cluster/channels.h"
#include "daemon/control/node.h"
#include "daemon/jobs/job.h"
#include "daemon/jobs/manager.h"

#define DEFAULT_LIMIT 10000u

int status_refuse(struct status_refusal *r, const char *code, const char *text)
{
    r->code = code;
    snprintf(r->text, sizeof r->text, "%s", text);
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
    if (q.get && !status_rows_known(q.get))
        return status_refuse(
            why, "bad_request",
            "get: expected info, nodes, networks, channels, links, routes, jobs, ranks, queues, "
            "communicators, counters, doctor or all");
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

static int parse_wait(const char *value, enum wait_mode *ret_mode)
{
    static const char *const names[] = {
        [WAIT_ADAPTIVE] = "adaptive", [WAIT_SPIN] = "spin", [WAIT_EVENT] = "event"};

    for (unsigned i = 0; i < WAIT_N_MODES; i++) {
        if (strcmp(names[i], value) == 0) {
            *ret_mode = (enum wait_mode)i;
            return 0;
        }
    }
    return -EINVAL;
}

static int set_channel_wait(struct node *node, const struct status_request *q, enum wait_mode mode,
                            json_t *rows)
{
    for (uint32_t ch = 0; ch < channels_n_channels(node->channels); ch++) {
        if (strcmp(node->config.channels[ch].name, q->channel) != 0)
            continue;
        channels_set_wait(node->channels, ch, mode);
        node->config.channels[ch].wait_mode = mode;
        json_array_append_new(rows, json_pack("{s:s, s:s, s:s}", "node", node->config.name,
                                              "channel", q->channel, "wait_mode", q->value));
    }
    return 0;
}

/* Ends a job whose home is here; the value is the reason that its mpiexec prints. */
static int kill_job(struct node *node, const struct status_request *q, json_t *rows,
                    struct status_refusal *why)
{
    struct manager_job *home = q->has_job ? manager_find(node->manager, q->job) : NULL;
    Motet__Kill order = MOTET__KILL__INIT;
    char id[32];

    if (!q->has_job)
        return status_refuse(why, "bad_request", "kill: expected a job");
    if (!home)
        return 0;
    if (home->uid != q->uid && !status_rows_privileged(node, q->uid))
        return status_refuse(why, "denied", "the job belongs to another user");
    snprintf(id, sizeof id, "%016llx", (unsigned long long)home->id);
    json_array_append_new(rows, json_pack("{s:s, s:s, s:s}", "job", id, "home", node->config.name,
                                          "state", "ending"));
    order.job = home->id;
    order.signal = SIGKILL;
    order.reason = (char *)q->value;
    manager_on_client_kill(node->manager, home, &order, clock_now_ns());
    return 0;
}

/* Changes something on this node; a row for each thing changed. 0 or -EINVAL with the reason. */
static int apply_set(struct node *node, const struct status_request *q, json_t *rows,
                     struct status_refusal *why)
{
    enum wait_mode mode;
    enum log_level level;

    if (strcmp(q->set, "log_level") == 0) {
        if (!status_rows_privileged(node, q->uid))
            return status_refuse(why, "denied",
                                 "only root and the daemon's own user may change the log level");
        if (log_level_parse(q->value, &level) < 0)
            return status_refuse(why, "bad_request",
                                 "value: expected error, warn, notice, info or debug");
        log_set_level(level);
        json_array_append_new(
            rows, json_pack("{s:s, s:s}", "node", node->config.name, "log_level", q->value));
        return 0;
    }
    if (strcmp(q->set, "kill") == 0)
        return kill_job(node, q, rows, why);
    if (parse_wait(q->value, &mode) < 0)
        return status_refuse(why, "bad_request", "value: expected adaptive, spin or event");
    if (q->channel) {
        if (!status_rows_privileged(node, q->uid))
            return status_refuse(why, "denied",
                                 "only root and the daemon's own user may change a channel");
        return set_channel_wait(node, q, mode, rows);
    }
    if (!q->has_job)
        return status_refuse(why, "bad_request", "wait_mode: expected a job or a channel");
    struct job *job = jobs_find(node->jobs, q->job);
    if (!job || job->state == JOB_CLOSING)
        return 0;
    if (job->uid != q->uid && !status_rows_privileged(node, q->uid))
        return status_refuse(why, "denied", "the job belongs to another user");
    job_set_wait(job, mode);
    json_array_append_new(rows, json_pack("{s:s, s:I, s:s}", "node", node->config.name, "ranks",
                                          (json_int_t)job->n_local, "wait_mode", q->value));
    return 0;
}

json_t *status_request_answer(struct node *node, const struct status_request *q,
                              bool *ret_truncated, struct status_refusal *why)
{
    *ret_truncated = false;
    if (q->get) {
        if (!status_rows_public(q->get) && !status_rows_privileged(node, q->uid)) {
            status_refuse(why, "denied", "only root and the daemon's own user may see this");
            return NULL;
        }
        json_t *rows = status_rows(node, q->get, q, ret_truncated);
        if (!rows)
            status_refuse(why, "internal", "out of memory");
        return rows;
    }
    json_t *rows = json_array();
    if (!rows || apply_set(node, q, rows, why) < 0) {
        json_decref(rows);
        return NULL;
    }
    return rows;
}
