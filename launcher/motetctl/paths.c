/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/motetctl/paths.h"

#include <string.h>

#include "launcher/motetctl/row.h"

/* So many reasons are named. */
#define MAX_REASONS 4

/* Number of the part that a node belongs to; -1: no memory. Nodes not met before get one of their
 * own. */
static json_int_t paths_part(json_t *parts, const char *node)
{
    const json_t *known = json_object_get(parts, node);

    if (known)
        return json_integer_value(known);
    json_int_t part = (json_int_t)json_object_size(parts);
    return json_object_set_new(parts, node, json_integer(part)) == 0 ? part : -1;
}

/* All nodes that data passes between have one number at the end: the least of theirs. */
static int paths_join(json_t *parts, const json_t *links)
{
    const json_t *row;
    bool changed = true;
    size_t i;

    while (changed) {
        changed = false;
        json_array_foreach(links, i, row) {
            json_int_t a = paths_part(parts, row_text(row, "from")),
                       b = paths_part(parts, row_text(row, "to"));
            if (a < 0 || b < 0)
                return -1;
            if (a == b || !json_is_true(json_object_get(row, "both_ways")))
                continue;
            const char *higher = row_text(row, a < b ? "to" : "from");
            if (json_object_set_new(parts, higher, json_integer(a < b ? a : b)) < 0)
                return -1;
            changed = true;
        }
    }
    return 0;
}

static void paths_name_ranks(struct snapshot *p, json_t *ranks, const json_t *row)
{
    for (size_t r = 0; r < p->n_ranks; r++)
        if (strcmp(p->ranks[r].node, row_text(row, "from")) == 0 ||
            strcmp(p->ranks[r].node, row_text(row, "to")) == 0)
            json_array_append_new(ranks, json_integer(p->ranks[r].number));
}

/* Why the parts are apart: links between them over which no data passes. */
static void paths_say_why(struct snapshot *p, json_t *parts, const json_t *links)
{
    const json_t *row;
    size_t i;
    int n = 0;

    json_array_foreach(links, i, row) {
        const char *fault = row_text(row, "fault");
        if (!json_object_get(row, "fault") || n == MAX_REASONS ||
            paths_part(parts, row_text(row, "from")) == paths_part(parts, row_text(row, "to")))
            continue;
        n++;
        paths_name_ranks(p,
                         snapshot_say(p, "blocked",
                                      "%s; the job goes on when data passes there again (motetctl "
                                      "doctor says what to look at)",
                                      fault),
                         row);
    }
    for (size_t r = 1; n == 0 && r < p->n_ranks; r++) {
        if (p->ranks[r].part == p->ranks[0].part)
            continue;
        n++;
        json_t *ranks = snapshot_say(p, "blocked",
                                     "there is no way between the nodes %s and %s of the job now; "
                                     "it goes on when there is one again (motetctl doctor)",
                                     p->ranks[0].node, p->ranks[r].node);
        json_array_append_new(ranks, json_integer(p->ranks[0].number));
        json_array_append_new(ranks, json_integer(p->ranks[r].number));
    }
}

void paths_find_blocked(struct snapshot *p, const json_t *links)
{
    json_t *parts = json_object();

    if (!parts || paths_join(parts, links) < 0)
        p->failed = true;
    if (json_array_size(links) > 0 && !p->failed) {
        for (size_t r = 0; r < p->n_ranks; r++) {
            json_int_t part = paths_part(parts, p->ranks[r].node);
            p->failed |= part < 0;
            p->ranks[r].part = part < 0 ? 0 : (size_t)part;
            p->blocked |= p->ranks[r].part != p->ranks[0].part;
        }
        if (p->blocked)
            paths_say_why(p, parts, links);
    }
    json_decref(parts);
}

static bool paths_same_record(const json_t *a, const json_t *b)
{
    static const char *const keys[] = {"job",  "rank", "queue", "communicator",
                                       "peer", "tag",  "bytes"};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!row_same(a, b, keys[i]))
            return false;
    return true;
}

void paths_find_moving(struct snapshot *p, const json_t *later_queues)
{
    const json_t *row;
    size_t k;

    for (size_t i = 0; i < p->n_edges; i++) {
        const struct snapshot_edge *e = &p->edges[i];
        json_array_foreach(later_queues, k, row)
            if (paths_same_record(e->row, row) &&
                row_number(e->row, "done_bytes") != row_number(row, "done_bytes"))
                p->ranks[e->from].moves = true;
    }
}
