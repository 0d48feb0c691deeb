/* SPDX-License-Identifier: BSD-3-Clause */
/* What this node says of itself: the daemon, its counters, the jobs that it manages. */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/channel/channel.h"
#include "daemon/cluster/channels.h"
#include "daemon/cluster/cluster.h"
#include "daemon/jobs/client.h"
#include "daemon/jobs/job.h"
#include "daemon/jobs/manager.h"
#include "daemon/port/count.h"
#include "daemon/routing/topology.h"
#include "daemon/status/status_node.h"
#include "daemon/status/status_view.h"

void status_view_info(struct status_node *node, const struct status_request *q, json_t *rows)
{
    const struct config *c = node->config;

    (void)q;
    json_array_append_new(
        rows,
        json_pack("{s:s, s:o, s:I, s:s, s:i, s:i, s:b, s:b, s:s?, s:s, s:s, s:s, s:I, s:I, s:I}",
                  "node", c->name, "node_id", status_view_node_id(node->id), "epoch",
                  (json_int_t)node->epoch, "version", node->software, "pid", (int)getpid(), "uid",
                  (int)geteuid(), "private", (int)node->private_mode, "draining",
                  (int)cluster_draining(node->cluster), "config", node->config_path,
                  "client_socket", c->client_socket, "status_socket", c->status_socket, "wait_mode",
                  status_wait_names[c->wait_mode], "packet_bytes", (json_int_t)c->packet_bytes,
                  "channels", (json_int_t)channels_count(node->channels), "uptime_ms",
                  (json_int_t)((clock_now_ns() - node->started_ns) / CLOCK_NS_PER_MS)));
}

void status_view_counters(struct status_node *node, const struct status_request *q, json_t *rows)
{
    (void)q;
    for (uint32_t ch = 0; ch < channels_count(node->channels); ch++) {
        const struct count *c = channel_counters(channels_at(node->channels, ch));
        json_t *values = json_object();
        for (int i = 0; i < COUNT_N; i++)
            json_object_set_new(values, count_name((enum count_id)i),
                                json_integer((json_int_t)count_get(c, (enum count_id)i)));
        json_array_append_new(rows, json_pack("{s:s, s:I, s:s, s:o}", "node", node->config->name,
                                              "channel", (json_int_t)ch, "name",
                                              node->config->channels[ch].name, "counters", values));
    }
    json_array_append_new(
        rows, json_pack("{s:s, s:n, s:s, s:{s:I, s:I, s:I, s:I, s:I}}", "node", node->config->name,
                        "channel", "name", "daemon", "counters", "uptime_ms",
                        (json_int_t)((clock_now_ns() - node->started_ns) / CLOCK_NS_PER_MS),
                        "jobs_here", (json_int_t)jobs_count(node->jobs), "jobs_home",
                        (json_int_t)manager_count(node->manager), "clients",
                        (json_int_t)clients_count(node->clients), "nodes",
                        (json_int_t)topology_count(node->topology)));
}

static const char *const home_states[] = {
    [MANAGER_LAUNCHING] = "launching", [MANAGER_RUNNING] = "running", [MANAGER_ENDING] = "ending"};

/* Jobs as their homes know them: each job once in the cluster. */
void status_view_jobs(struct status_node *node, const struct status_request *q, json_t *rows)
{
    uint64_t now_ns = clock_now_ns();

    for (struct manager_job *h = manager_first(node->manager);
         h && json_array_size(rows) < q->limit; h = h->hh.next) {
        char id[32];
        if ((q->has_job && h->id != q->job) || (h->uid != q->uid && !status_privileged(q->uid)))
            continue;
        json_t *nodes = json_array();
        for (size_t n = 0; n < h->placement.n_placements; n++)
            json_array_append_new(
                nodes, json_pack("{s:s, s:I}", "node", h->placement.placements[n]->node, "ranks",
                                 (json_int_t)h->placement.placements[n]->n_ranks));
        snprintf(id, sizeof id, "%016llx", (unsigned long long)h->id);
        json_array_append_new(
            rows, json_pack("{s:s, s:s, s:I, s:s, s:s, s:I, s:I, s:o, s:I, s:s?}", "job", id,
                            "name", h->name, "uid", (json_int_t)h->uid, "home", node->config->name,
                            "state", home_states[h->state], "ranks", (json_int_t)h->n_ranks,
                            "exited", (json_int_t)h->n_exited, "nodes", nodes, "age_ms",
                            (json_int_t)((now_ns - h->since_ns) / CLOCK_NS_PER_MS), "message",
                            h->message[0] ? h->message : NULL));
    }
}
