/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/motetctl/metrics.h"

#include <stdbool.h>
#include <string.h>

#include "launcher/motetctl/row.h"

/* Of a channel's counters: how much there is now. All others only grow. */
static const char *const gauges[] = {"blocks_free", "blocks_total", "out_queued",
                                     "held_bytes",  "flows_active", "jobs"};

/* A label's value with what must be escaped. */
static void metrics_label(FILE *to, const char *between, const char *name, const char *value)
{
    fprintf(to, "%s%s=\"", between, name);
    for (; *value; value++) {
        if (*value == '\\' || *value == '"')
            fputc('\\', to);
        if (*value == '\n')
            fputs("\\n", to);
        else
            fputc(*value, to);
    }
    fputc('"', to);
}

static void metrics_family(FILE *to, const char *name, const char *type, const char *help)
{
    fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static bool metrics_is_gauge(const char *counter)
{
    for (size_t i = 0; i < sizeof gauges / sizeof *gauges; i++)
        if (strcmp(gauges[i], counter) == 0)
            return true;
    return false;
}

/* The counters of the first channel name the families; each has a sample for every channel. */
static void print_channels(const struct metrics_rows *r, FILE *to)
{
    const json_t *row, *first = NULL;
    const char *key;
    json_t *value;
    size_t i;

    json_array_foreach(r->counters, i, row)
        if (!first && json_is_integer(json_object_get(row, "channel")))
            first = row;
    json_object_foreach(json_object_get(first, "counters"), key, value) {
        char name[128], help[160];
        bool gauge = metrics_is_gauge(key);
        snprintf(name, sizeof name, "motet_channel_%s%s", key, gauge ? "" : "_total");
        snprintf(help, sizeof help, "%s of a channel, see status.md", key);
        metrics_family(to, name, gauge ? "gauge" : "counter", help);
        json_array_foreach(r->counters, i, row) {
            const json_t *sample = json_object_get(json_object_get(row, "counters"), key);
            if (!json_is_integer(json_object_get(row, "channel")) || !json_is_integer(sample))
                continue;
            fputs(name, to);
            metrics_label(to, "{", "node", r->node);
            metrics_label(to, ",", "channel", row_text(row, "name"));
            fprintf(to, "} %" JSON_INTEGER_FORMAT "\n", json_integer_value(sample));
        }
    }
}

static void metrics_one(const struct metrics_rows *r, FILE *to, const char *name, const char *help,
                        double value)
{
    metrics_family(to, name, "gauge", help);
    fputs(name, to);
    metrics_label(to, "{", "node", r->node);
    fprintf(to, "} %.15g\n", value);
}

static void print_daemon(const struct metrics_rows *r, FILE *to)
{
    const json_t *row, *daemon = NULL;
    size_t i;

    json_array_foreach(r->counters, i, row)
        if (json_is_null(json_object_get(row, "channel")))
            daemon = json_object_get(row, "counters");
    if (!daemon)
        return;
    metrics_one(r, to, "motet_uptime_seconds", "since the daemon's start",
                (double)json_integer_value(json_object_get(daemon, "uptime_ms")) / 1e3);
    metrics_one(r, to, "motet_jobs_here", "jobs with ranks on this node",
                (double)json_integer_value(json_object_get(daemon, "jobs_here")));
    metrics_one(r, to, "motet_jobs_home", "jobs whose mpiexec is on this node",
                (double)json_integer_value(json_object_get(daemon, "jobs_home")));
    metrics_one(r, to, "motet_clients", "connections of ranks and mpiexec",
                (double)json_integer_value(json_object_get(daemon, "clients")));
}

static void print_nodes(const struct metrics_rows *r, FILE *to)
{
    const json_t *row;
    size_t i;

    metrics_family(to, "motet_node_reachable", "gauge", "1: this node has a way to the other one");
    json_array_foreach(r->nodes, i, row) {
        fputs("motet_node_reachable", to);
        metrics_label(to, "{", "node", r->node);
        metrics_label(to, ",", "to", row_text(row, "node"));
        fprintf(to, "} %d\n",
                strcmp(row_text(row, "state"), "reachable") == 0 ||
                    strcmp(row_text(row, "state"), "self") == 0);
    }
}

/* This node's own links. */
static void print_links(const struct metrics_rows *r, const char *name, const char *help, bool rtt,
                        FILE *to)
{
    const json_t *row;
    size_t i;

    metrics_family(to, name, "gauge", help);
    json_array_foreach(r->links, i, row) {
        if (strcmp(row_text(row, "from"), r->node) != 0)
            continue;
        fputs(name, to);
        metrics_label(to, "{", "node", r->node);
        metrics_label(to, ",", "to", row_text(row, "to"));
        metrics_label(to, ",", "network", row_text(row, "network"));
        if (rtt)
            fprintf(to, "} %.6f\n",
                    (double)json_integer_value(json_object_get(row, "rtt_us")) / 1e6);
        else
            fprintf(to, "} %d\n",
                    json_is_true(json_object_get(row, "both_ways")) &&
                        strcmp(row_text(row, "control"), "up") == 0);
    }
}

/* Ranks of this node, by what they do. */
static void print_ranks(const struct metrics_rows *r, FILE *to)
{
    const json_t *row;
    size_t i, n_alive = 0, n_waiting = 0;
    json_int_t longest_ms = 0;

    json_array_foreach(r->ranks, i, row) {
        if (strcmp(row_text(row, "state"), "exited") == 0)
            continue;
        n_alive++;
        if (!json_is_true(json_object_get(row, "waiting")))
            continue;
        json_int_t ms = json_integer_value(json_object_get(row, "waiting_ms"));
        n_waiting++;
        longest_ms = ms > longest_ms ? ms : longest_ms;
    }
    metrics_one(r, to, "motet_ranks", "ranks on this node that have not exited", (double)n_alive);
    metrics_one(r, to, "motet_ranks_waiting", "of them in a blocking call of MPI",
                (double)n_waiting);
    metrics_one(r, to, "motet_longest_wait_seconds", "how long one of them has been there",
                (double)longest_ms / 1e3);
}

void metrics_print(const struct metrics_rows *rows, FILE *to)
{
    print_daemon(rows, to);
    print_nodes(rows, to);
    print_links(rows, "motet_link_up", "1: both ends use the link", false, to);
    print_links(rows, "motet_link_rtt_seconds", "least round trip of the last ones", true, to);
    print_ranks(rows, to);
    print_channels(rows, to);
}
