/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/motetctl/paths.h"

#include <inttypes.h>
#include <string.h>

#include "launcher/motetctl/human.h"
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

/* What is under way between two nodes. */
struct paths_traffic {
    json_int_t packets, resent; /* not acknowledged; sent again so far */
};

static struct paths_traffic paths_traffic_between(const json_t *queues, const char *a,
                                                  const char *b)
{
    struct paths_traffic t = {0};
    const json_t *row;
    size_t i;

    json_array_foreach(queues, i, row) {
        const char *from = row_text(row, "node"), *to = row_text(row, "to");
        if (strcmp(row_text(row, "queue"), "flow") != 0 ||
            !((strcmp(from, a) == 0 && strcmp(to, b) == 0) ||
              (strcmp(from, b) == 0 && strcmp(to, a) == 0)))
            continue;
        t.packets += row_number(row, "in_flight") + row_number(row, "queued");
        t.resent += row_number(row, "resent");
    }
    return t;
}

/* A large message whose bytes travel: its receive is matched, so both libraries are at it. */
static bool paths_in_transfer(const json_t *row)
{
    const char *queue = row_text(row, "queue");

    return strcmp(queue, "rendezvous_in") == 0 ||
           (strcmp(queue, "rendezvous_out") == 0 && row_number(row, "done_bytes") > 0);
}

static bool paths_is_carried(const struct snapshot *p, const struct snapshot_edge *e,
                             const json_t *later_queues)
{
    const struct snapshot_rank *from = &p->ranks[e->from],
                               *to = e->to < 0 ? NULL : &p->ranks[e->to];

    if (to && strcmp(from->node, to->node) == 0)
        return false;
    if (to && (to->mood == MOOD_STOPPED || to->mood == MOOD_GONE || to->mood == MOOD_LEFT))
        return false; /* whatever the network does */
    if (to)
        return paths_in_transfer(e->row) ||
               paths_traffic_between(later_queues, from->node, to->node).packets > 0;
    for (size_t r = 0; r < p->n_ranks; r++)
        if (strcmp(p->ranks[r].node, from->node) != 0 &&
            paths_traffic_between(later_queues, from->node, p->ranks[r].node).packets > 0)
            return true;
    return false;
}

/* "network lan", or "several networks" where no link joins the two nodes. */
static void paths_name_link(const json_t *links, const char *a, const char *b, char *out,
                            size_t size)
{
    const json_t *row;
    size_t i, at = 0;

    out[0] = '\0';
    json_array_foreach(links, i, row) {
        const char *network = row_text(row, "network");
        if (strcmp(row_text(row, "from"), a) != 0 || strcmp(row_text(row, "to"), b) != 0 ||
            at >= size)
            continue;
        at += (size_t)snprintf(out + at, size - at, "%s%s", at ? ", " : "network ", network);
    }
    if (at == 0)
        snprintf(out, size, "by way of other nodes");
}

static void paths_say_carried(struct snapshot *p, const struct snapshot_edge *e,
                              const struct waits_looks *looks)
{
    const struct snapshot_rank *from = &p->ranks[e->from], *to = &p->ranks[e->to];
    struct paths_traffic before = paths_traffic_between(p->queues, from->node, to->node),
                         now = paths_traffic_between(looks->later_queues, from->node, to->node);
    char link[SNAPSHOT_WORDS], lost[80] = "", moved[120] = "", done[HUMAN_ROOM], bytes[HUMAN_ROOM];

    paths_name_link(looks->links, from->node, to->node, link, sizeof link);
    if (now.resent > before.resent)
        snprintf(lost, sizeof lost,
                 ", %" JSON_INTEGER_FORMAT " were sent again within half a second",
                 now.resent - before.resent);
    if (paths_in_transfer(e->row)) {
        human_bytes((uint64_t)row_number(e->row, "done_bytes"), done);
        human_bytes((uint64_t)row_number(e->row, "bytes"), bytes);
        snprintf(moved, sizeof moved, "; %s of %s are over", done, bytes);
    }
    json_t *ranks = snapshot_say(
        p, "network",
        "rank %" JSON_INTEGER_FORMAT " waits for rank %" JSON_INTEGER_FORMAT
        ", and the network is at it: between the nodes %s and %s (%s) %" JSON_INTEGER_FORMAT
        " packets are not acknowledged yet%s%s",
        from->number, to->number, from->node, to->node, link, now.packets, lost, moved);
    json_array_append_new(ranks, json_integer(from->number));
    json_array_append_new(ranks, json_integer(to->number));
}

/* Between the same two nodes, in either direction? */
static bool paths_same_nodes(const struct snapshot *p, const struct snapshot_edge *a,
                             const struct snapshot_edge *b)
{
    const char *a1 = p->ranks[a->from].node, *a2 = p->ranks[a->to].node,
               *b1 = p->ranks[b->from].node, *b2 = p->ranks[b->to].node;

    return (strcmp(a1, b1) == 0 && strcmp(a2, b2) == 0) ||
           (strcmp(a1, b2) == 0 && strcmp(a2, b1) == 0);
}

void paths_find_carried(struct snapshot *p, const struct waits_looks *looks)
{
    SNAPSHOT_AUTO const struct snapshot_edge **told = snapshot_zeroed(p, p->n_edges, sizeof *told);
    size_t n_told = 0;

    for (size_t i = 0; told && i < p->n_edges; i++) {
        const struct snapshot_edge *e = &p->edges[i];
        if (!paths_is_carried(p, e, looks->later_queues))
            continue;
        p->ranks[e->from].carried = true;
        size_t k = 0;
        while (e->to >= 0 && k < n_told && !paths_same_nodes(p, e, told[k]))
            k++;
        /* Where nothing passes at all, that is said already. */
        if (p->blocked || e->to < 0 || k < n_told || n_told == MAX_REASONS)
            continue;
        told[n_told++] = e;
        paths_say_carried(p, e, looks);
    }
}
