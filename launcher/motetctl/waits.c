/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/motetctl/waits.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/motetctl/human.h"
#include "launcher/motetctl/paths.h"
#include "launcher/motetctl/row.h"
#include "launcher/motetctl/show.h"
#include "launcher/motetctl/snapshot.h"
#include "launcher/motetctl/stragglers.h"

/* So many messages that lie unexpected are named beside a receive. */
#define MAX_BESIDE 3

/* ---- who can go on ---- */

static void find_who_can_go_on(struct snapshot *p)
{
    size_t n_free = 0;
    bool changed = true;

    for (size_t r = 0; r < p->n_ranks; r++) {
        struct snapshot_rank *rank = &p->ranks[r];
        /* A stopped one may be continued. Of one that waits with nothing on its board it is not
         * known what for. */
        rank->can_go_on =
            rank->mood == MOOD_FREE || rank->mood == MOOD_STOPPED || rank->mood == MOOD_UNSEEN ||
            (rank->mood == MOOD_WAITING && !rank->has_edges) || rank->moves || rank->carried;
        n_free += rank->can_go_on;
    }
    while (changed) {
        changed = false;
        for (size_t i = 0; i < p->n_edges; i++) {
            const struct snapshot_edge *e = &p->edges[i];
            /* Who waits for a rank that is cut off goes on when the path is back; who waits for
             * any, perhaps too. */
            bool waits_for_path =
                e->to < 0 ? p->blocked : p->ranks[e->from].part != p->ranks[e->to].part;
            if (!p->ranks[e->from].can_go_on &&
                (waits_for_path || (e->to < 0 ? n_free > 0 : p->ranks[e->to].can_go_on))) {
                p->ranks[e->from].can_go_on = changed = true;
                n_free++;
            }
        }
    }
}

/* ---- findings ---- */

/* How an unexpected message fails to be what a receive waits for; NULL: they have nothing in
 * common. */
static const char *waits_difference(const json_t *receive, const json_t *message)
{
    bool source =
        row_same(receive, message, "peer_world") || strcmp(row_text(receive, "peer"), "any") == 0;
    bool tag = row_same(receive, message, "tag") || strcmp(row_text(receive, "tag"), "any") == 0;
    bool comm = row_same(receive, message, "communicator");

    if (row_is_collective(receive) != row_is_collective(message))
        return source && comm ? "" : NULL;
    if (source && comm && !tag)
        return "with another tag";
    if (source && tag && !comm)
        return "in another communicator";
    return tag && comm && !source && !row_is_collective(receive) ? "from another rank" : NULL;
}

/* Messages that lie unexpected at the rank that waits, and are nearly what it waits for. */
static void find_mismatches(struct snapshot *p, const struct snapshot_edge *e)
{
    json_int_t rank = p->ranks[e->from].number;
    char wanted[32], tag[32], comm[SNAPSHOT_WORDS], other[SNAPSHOT_WORDS], size[HUMAN_ROOM],
        from[40] = "any rank";
    const json_t *message;
    size_t i;
    int n = 0;

    if (e->to >= 0)
        snprintf(from, sizeof from, "rank %" JSON_INTEGER_FORMAT, p->ranks[e->to].number);
    json_array_foreach(p->queues, i, message) {
        if (n == MAX_BESIDE || !snapshot_of_job(p, message) ||
            row_number(message, "rank") != rank ||
            strcmp(row_text(message, "queue"), "unexpected") != 0)
            continue;
        const char *how = waits_difference(e->row, message);
        if (!how || (row_is_collective(e->row) && snapshot_call_of(p, e->from, NULL)))
            continue; /* of collectives the calls tell more */
        n++;
        json_t *ranks;
        if (row_is_collective(e->row) && row_is_collective(message)) {
            ranks = snapshot_say(
                p, "collective",
                "rank %" JSON_INTEGER_FORMAT
                " waits for %s in a collective operation on %s, and has a message of another "
                "one from there: the ranks call different collectives, or in another order",
                rank, from, snapshot_comm(e->row, comm));
        } else if (!how[0]) {
            bool there = row_is_collective(message);
            ranks = snapshot_say(
                p, "mismatch",
                "rank %" JSON_INTEGER_FORMAT
                " waits for %s from %s in %s; from rank %" JSON_INTEGER_FORMAT
                " lies a message %s: %s",
                rank, there ? snapshot_tag(e->row, wanted) : "a collective operation", from,
                snapshot_comm(e->row, comm), row_number(message, "peer_world"),
                there ? "of a collective operation" : snapshot_tag(message, tag),
                there ? "it has gone on to that" : "it is not in that operation yet, or in none");
        } else {
            human_bytes((uint64_t)row_number(message, "bytes"), size);
            ranks = snapshot_say(
                p, "mismatch",
                "rank %" JSON_INTEGER_FORMAT
                " waits for %s from %s in %s; unexpected beside it lies a message %s: %s from rank "
                "%" JSON_INTEGER_FORMAT " in %s, %s",
                rank, snapshot_tag(e->row, wanted), from, snapshot_comm(e->row, comm), how,
                snapshot_tag(message, tag), row_number(message, "peer_world"),
                snapshot_comm(message, other), size);
        }
        json_array_append_new(ranks, json_integer(rank));
        json_array_append(ranks, json_object_get(message, "peer_world"));
    }
}

/* One finding for each rank that is gone, stopped or not seen, and that others wait for. */
static void find_waits_for_the_gone(struct snapshot *p)
{
    SNAPSHOT_AUTO bool *waiting = snapshot_zeroed(p, p->n_ranks, sizeof *waiting);
    static const char *const kinds[MOOD_N] = {[MOOD_STOPPED] = "stopped",
                                              [MOOD_LEFT] = "gone",
                                              [MOOD_GONE] = "gone",
                                              [MOOD_UNSEEN] = "unseen"};
    char names[SNAPSHOT_WORDS], does[SNAPSHOT_WORDS];

    for (size_t r = 0; waiting && r < p->n_ranks; r++) {
        bool any = false;
        if (p->ranks[r].mood == MOOD_FREE || p->ranks[r].mood == MOOD_WAITING)
            continue;
        memset(waiting, 0, p->n_ranks * sizeof *waiting);
        for (size_t i = 0; i < p->n_edges; i++)
            if (p->edges[i].to == (ssize_t)r)
                any = waiting[p->edges[i].from] = true;
        if (!any)
            continue;
        snapshot_ranks(p, waiting, names);
        json_t *ranks = snapshot_say(
            p, kinds[p->ranks[r].mood], "%s wait%s for rank %" JSON_INTEGER_FORMAT ", which %s",
            names, names[4] == 's' ? "" : "s", p->ranks[r].number, snapshot_rank_does(p, r, does));
        for (size_t k = 0; k < p->n_ranks; k++)
            if (waiting[k])
                json_array_append_new(ranks, json_integer(p->ranks[k].number));
        json_array_append_new(ranks, json_integer(p->ranks[r].number));
    }
}

/* Tarjan's strongly connected components (1972), with a stack of its own: a job may be a long
 * chain. */
struct frame {
    size_t rank, next;
};

static void components_from(struct snapshot *p, size_t root, struct frame *frames)
{
    size_t depth = 0;

    frames[depth++] = (struct frame){.rank = root};
    while (depth > 0) {
        struct frame *f = &frames[depth - 1];
        struct snapshot_rank *r = &p->ranks[f->rank];
        size_t n;
        const struct snapshot_edge *edges = snapshot_edges_of(p, f->rank, &n);
        if (f->next == 0) {
            r->order = r->low = ++p->n_order;
            r->on_stack = true;
            p->stack[p->n_stack++] = f->rank;
        }
        bool deeper = false;
        while (f->next < n && !deeper) {
            ssize_t to = edges[f->next++].to;
            if (to < 0)
                continue;
            if (p->ranks[to].order == 0) {
                frames[depth++] = (struct frame){.rank = (size_t)to};
                deeper = true;
            } else if (p->ranks[to].on_stack && p->ranks[to].order < r->low) {
                r->low = p->ranks[to].order;
            }
        }
        if (f->next == 0)
            f->next = 1; /* seen, though it waits for nobody */
        if (deeper)
            continue;
        if (r->low == r->order) {
            p->n_components++;
            size_t member;
            do {
                member = p->stack[--p->n_stack];
                p->ranks[member].on_stack = false;
                p->ranks[member].component = p->n_components;
            } while (member != f->rank);
        }
        depth--;
        if (depth > 0 && p->ranks[frames[depth - 1].rank].low > r->low)
            p->ranks[frames[depth - 1].rank].low = r->low;
    }
}

static void find_components(struct snapshot *p)
{
    SNAPSHOT_AUTO struct frame *frames = snapshot_zeroed(p, p->n_ranks, sizeof *frames);

    p->stack = snapshot_zeroed(p, p->n_ranks, sizeof *p->stack);
    for (size_t r = 0; frames && p->stack && r < p->n_ranks; r++)
        if (p->ranks[r].order == 0)
            components_from(p, r, frames);
    free(p->stack);
}

/* One circle through the component of `start`: from each rank along the first edge that stays in
 * it. */
static void describe_circle(struct snapshot *p, size_t start, bool certain)
{
    char path[1024] = "", tag[32];
    size_t at = start, n = 0, len = 0;
    SNAPSHOT_AUTO bool *seen = snapshot_zeroed(p, p->n_ranks, sizeof *seen);

    /* The walk ends in a circle; where it first returns to is where it begins. */
    for (int round = 0; seen && round < 2; round++) {
        memset(seen, 0, p->n_ranks * sizeof *seen);
        while (!seen[at]) {
            size_t n_edges, i = 0;
            const struct snapshot_edge *e = snapshot_edges_of(p, at, &n_edges);
            while (i < n_edges &&
                   (e[i].to < 0 || p->ranks[e[i].to].component != p->ranks[at].component))
                i++;
            if (i == n_edges)
                return; /* a rank alone */
            seen[at] = true;
            if (round == 1 && n++ < SNAPSHOT_NAMED && len < sizeof path)
                len += (size_t)snprintf(path + len, sizeof path - len,
                                        "%srank %" JSON_INTEGER_FORMAT
                                        " waits for rank %" JSON_INTEGER_FORMAT " (%s, %s)",
                                        len ? ", " : "", p->ranks[at].number,
                                        p->ranks[e[i].to].number, snapshot_doing(e[i].row),
                                        row_is_collective(e[i].row) ? "collective"
                                                                    : snapshot_tag(e[i].row, tag));
            at = (size_t)e[i].to;
        }
    }
    json_t *ranks = snapshot_say(
        p, certain ? "deadlock" : "circle", "%s%s%s", path, n > SNAPSHOT_NAMED ? ", and so on" : "",
        certain ? "" : "; one of them waits for others too, so it may still go on");
    for (size_t r = 0; r < p->n_ranks; r++)
        if (p->ranks[r].component == p->ranks[start].component)
            json_array_append_new(ranks, json_integer(p->ranks[r].number));
}

/* Ranks that never go on but are in no circle: they wait for one, or for any rank when none is left
 * that could send. */
static void describe_hangers_on(struct snapshot *p, const bool *in_circle)
{
    char names[256] = "";
    size_t n = 0, len = 0;

    for (size_t r = 0; r < p->n_ranks; r++) {
        if (p->ranks[r].mood != MOOD_WAITING || p->ranks[r].can_go_on || in_circle[r])
            continue;
        if (n++ < SNAPSHOT_NAMED)
            len += (size_t)snprintf(names + len, sizeof names - len, "%s%" JSON_INTEGER_FORMAT,
                                    n > 1 ? ", " : "", p->ranks[r].number);
    }
    if (n == 0)
        return;
    json_t *ranks = snapshot_say(p, "stuck",
                                 "rank%s %s%s wait%s for what cannot come any more: whoever could "
                                 "send it waits too or is gone",
                                 n == 1 ? "" : "s", names, n > SNAPSHOT_NAMED ? " and more" : "",
                                 n == 1 ? "s" : "");
    for (size_t r = 0; r < p->n_ranks; r++)
        if (p->ranks[r].mood == MOOD_WAITING && !p->ranks[r].can_go_on && !in_circle[r])
            json_array_append_new(ranks, json_integer(p->ranks[r].number));
}

static void find_circles(struct snapshot *p)
{
    SNAPSHOT_AUTO size_t *sizes = snapshot_zeroed(p, p->n_components + 1, sizeof *sizes);
    SNAPSHOT_AUTO bool *in_circle = snapshot_zeroed(p, p->n_ranks, sizeof *in_circle);
    SNAPSHOT_AUTO bool *described = snapshot_zeroed(p, p->n_components + 1, sizeof *described);

    if (!sizes || !in_circle || !described)
        return;
    for (size_t r = 0; r < p->n_ranks; r++)
        sizes[p->ranks[r].component]++;
    bool moving = false;
    for (size_t r = 0; r < p->n_ranks; r++)
        moving |= p->ranks[r].moves || p->ranks[r].carried;
    for (size_t i = 0; i < p->n_edges; i++)
        if (p->edges[i].to == (ssize_t)p->edges[i].from)
            sizes[p->ranks[p->edges[i].from].component] = 2; /* waits for itself */
    for (size_t r = 0; r < p->n_ranks; r++) {
        size_t c = p->ranks[r].component;
        in_circle[r] = sizes[c] > 1;
        /* What only looks like a circle while packets are on their way is none. */
        bool for_now = p->ranks[r].can_go_on && (p->blocked || moving);
        if (!in_circle[r] || described[c] || for_now)
            continue;
        described[c] = true;
        describe_circle(p, r, !p->ranks[r].can_go_on);
    }
    describe_hangers_on(p, in_circle);
}

/* ---- the answer ---- */

static json_t *wait_row(const struct snapshot *p, const struct snapshot_edge *e)
{
    const struct snapshot_rank *r = &p->ranks[e->from];
    const struct snapshot_call *call = snapshot_call_of(p, e->from, e->row);
    json_t *row =
        json_pack("{s:I, s:s, s:s?, s:s}", "rank", r->number, "node", r->node, "call",
                  call ? row_text(call->row, "call") : NULL, "waits_in", snapshot_doing(e->row));
    static const char *const keys[] = {"peer_world", "communicator", "communicator_name",
                                       "collective", "tag",          "bytes",
                                       "done_bytes", "age_ms"};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        json_object_set(row, strcmp(keys[i], "peer_world") == 0 ? "for_rank" : keys[i],
                        json_object_get(e->row, keys[i]));
    if (e->to < 0 && strcmp(row_text(e->row, "peer"), "any") == 0)
        json_object_set_new(row, "for_rank", json_string("any"));
    json_object_set_new(row, "which_is",
                        e->to < 0 ? json_null()
                                  : json_string(snapshot_moods[p->ranks[e->to].mood]));
    return row;
}

static json_t *job_answer(struct snapshot *p)
{
    json_t *waits = json_array(), *counts = json_object();
    size_t n_moods[MOOD_N] = {0};

    for (size_t i = 0; i < p->n_edges; i++)
        json_array_append_new(waits, wait_row(p, &p->edges[i]));
    for (size_t r = 0; r < p->n_ranks; r++) {
        const struct snapshot_call *call = snapshot_call_of(p, r, NULL);
        n_moods[p->ranks[r].mood]++;
        if (p->ranks[r].mood == MOOD_WAITING && !p->ranks[r].has_edges)
            json_array_append_new(waits,
                                  json_pack("{s:I, s:s, s:s?, s:s}", "rank", p->ranks[r].number,
                                            "node", p->ranks[r].node, "call",
                                            call ? row_text(call->row, "call") : NULL, "waits_in",
                                            "nothing on its board"));
    }
    for (size_t i = 0; i < MOOD_N; i++)
        json_object_set_new(counts, snapshot_moods[i], json_integer((json_int_t)n_moods[i]));
    return json_pack("{s:s, s:I, s:o, s:o, s:o}", "job", p->job, "ranks", (json_int_t)p->n_ranks,
                     "of_them", counts, "findings", p->findings, "waits", waits);
}

/* The findings, what is behind the others first. */
static json_t *waits_look_at(struct snapshot *p, const struct waits_rows *rows)
{
    paths_find_blocked(p, rows->links);
    paths_find_moving(p, rows->later_queues);
    paths_find_carried(p, &(struct waits_looks){rows->later_queues, rows->links});
    find_who_can_go_on(p);
    find_components(p);
    stragglers_in_collectives(p);
    find_circles(p);
    find_waits_for_the_gone(p);
    for (size_t i = 0; i < p->n_edges; i++)
        if (strcmp(row_text(p->edges[i].row, "queue"), "posted") == 0)
            find_mismatches(p, &p->edges[i]);
    stragglers_in_messages(p);
    return job_answer(p);
}

json_t *waits_find(const struct waits_rows *rows)
{
    json_t *answer = json_array(), *seen = json_object();
    const json_t *row;
    size_t i;

    json_array_foreach(rows->ranks, i, row) {
        const char *job = row_text(row, "job");
        struct snapshot p;
        if (json_object_get(seen, job))
            continue;
        json_object_set_new(seen, job, json_true());
        bool failed =
            snapshot_make(job, rows->ranks, rows->queues, rows->communicators, rows->later, &p) < 0;
        if (!failed) {
            json_array_append_new(answer, waits_look_at(&p, rows));
            failed = p.failed;
            snapshot_free(&p);
        }
        if (failed) {
            json_decref(answer);
            answer = NULL;
            break;
        }
    }
    json_decref(seen);
    return answer;
}

static void show_counts(const json_t *job, FILE *to)
{
    const json_t *of_them = json_object_get(job, "of_them");
    const char *between = " ";

    fprintf(to, "%" JSON_INTEGER_FORMAT " ranks:", row_number(job, "ranks"));
    for (size_t m = 0; m < MOOD_N; m++) {
        if (row_number(of_them, snapshot_moods[m]) == 0)
            continue;
        fprintf(to, "%s%" JSON_INTEGER_FORMAT " %s", between,
                row_number(of_them, snapshot_moods[m]), snapshot_moods[m]);
        between = ", ";
    }
    fputs("\n", to);
}

/* What is wrong stands in the first line. */
int waits_show(const json_t *waits, FILE *to)
{
    const json_t *job, *finding;
    size_t i, k;
    int rc = 0;

    if (json_array_size(waits) == 0)
        fputs("no job runs here\n", to);
    json_array_foreach(waits, i, job) {
        const json_t *findings = json_object_get(job, "findings");
        bool waiting =
            row_number(json_object_get(job, "of_them"), snapshot_moods[MOOD_WAITING]) > 0;
        fprintf(to, "%sjob %s: ", i ? "\n" : "", row_text(job, "job"));
        json_array_foreach(findings, k, finding)
            fprintf(to, "%s: %s\n", row_text(finding, "kind"), row_text(finding, "text"));
        if (json_array_size(findings) == 0)
            fputs(waiting ? "no deadlock: all that wait can go on when those that compute do\n"
                          : "nobody waits for long\n",
                  to);
        show_counts(job, to);
        if (rc == 0 && json_array_size(json_object_get(job, "waits")) > 0)
            rc = show_data(json_object_get(job, "waits"), to);
    }
    return rc;
}
