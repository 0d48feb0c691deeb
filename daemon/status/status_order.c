/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/status/status_order.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/cluster/channels.h"
#include "daemon/jobs/job.h"
#include "daemon/jobs/job_site.h"
#include "daemon/jobs/manager.h"
#include "daemon/status/status_node.h"

static int order_parse_wait(const char *value, enum wait_mode *ret_mode)
{
    for (unsigned i = 0; i < WAIT_N_MODES; i++) {
        if (strcmp(status_wait_names[i], value) == 0) {
            *ret_mode = (enum wait_mode)i;
            return 0;
        }
    }
    return -EINVAL;
}

static int order_channel_wait(struct status_node *node, const struct status_request *q,
                              enum wait_mode mode, json_t *rows)
{
    for (uint32_t ch = 0; ch < channels_count(node->channels); ch++) {
        if (strcmp(node->config->channels[ch].name, q->channel) != 0)
            continue;
        channels_set_wait(node->channels, ch, mode);
        node->config->channels[ch].wait_mode = mode;
        json_array_append_new(rows, json_pack("{s:s, s:s, s:s}", "node", node->config->name,
                                              "channel", q->channel, "wait_mode", q->value));
    }
    return 0;
}

/* Ends a job whose home is here; the value is the reason that its mpiexec prints. */
static int order_kill(struct status_node *node, const struct status_request *q, json_t *rows,
                      struct status_refusal *why)
{
    struct manager_job *home = q->has_job ? manager_find(node->manager, q->job) : NULL;
    Motet__Kill order = MOTET__KILL__INIT;
    char id[32];

    if (!q->has_job)
        return status_refuse(why, "bad_request", "kill: expected a job");
    if (!home)
        return 0;
    if (home->uid != q->uid && !status_privileged(q->uid))
        return status_refuse(why, "denied", "the job belongs to another user");
    snprintf(id, sizeof id, "%016llx", (unsigned long long)home->id);
    json_array_append_new(rows, json_pack("{s:s, s:s, s:s}", "job", id, "home", node->config->name,
                                          "state", "ending"));
    order.job = home->id;
    order.signal = SIGKILL;
    order.reason = (char *)q->value;
    manager_on_client_kill(node->manager, home, &order, clock_now_ns());
    return 0;
}

int status_order_apply(struct status_node *node, const struct status_request *q, json_t *rows,
                       struct status_refusal *why)
{
    enum wait_mode mode;
    enum log_level level;

    if (strcmp(q->set, "log_level") == 0) {
        if (!status_privileged(q->uid))
            return status_refuse(why, "denied",
                                 "only root and the daemon's own user may change the log level");
        if (log_level_parse(q->value, &level) < 0)
            return status_refuse(why, "bad_request",
                                 "value: expected error, warn, notice, info or debug");
        log_set_level(level);
        json_array_append_new(
            rows, json_pack("{s:s, s:s}", "node", node->config->name, "log_level", q->value));
        return 0;
    }
    if (strcmp(q->set, "kill") == 0)
        return order_kill(node, q, rows, why);
    if (order_parse_wait(q->value, &mode) < 0)
        return status_refuse(why, "bad_request", "value: expected adaptive, spin or event");
    if (q->channel) {
        if (!status_privileged(q->uid))
            return status_refuse(why, "denied",
                                 "only root and the daemon's own user may change a channel");
        return order_channel_wait(node, q, mode, rows);
    }
    if (!q->has_job)
        return status_refuse(why, "bad_request", "wait_mode: expected a job or a channel");
    struct job *job = jobs_find(node->jobs, q->job);
    if (!job || job->state == JOB_CLOSING)
        return 0;
    if (job->uid != q->uid && !status_privileged(q->uid))
        return status_refuse(why, "denied", "the job belongs to another user");
    job_site_set_wait(job, mode);
    json_array_append_new(rows, json_pack("{s:s, s:I, s:s}", "node", node->config->name, "ranks",
                                          (json_int_t)job->n_local, "wait_mode", q->value));
    return 0;
}
