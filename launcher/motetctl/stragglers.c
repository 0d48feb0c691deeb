/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/motetctl/stragglers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "launcher/motetctl/human.h"
#include "launcher/motetctl/row.h"
#include "launcher/motetctl/snapshot.h"

/* Counts and tags go round (client/coll/family/coll.c). */
#define ROUND (1 << 24)
/* So many missing ranks are told what they do. */
#define MAX_DESCRIBED 3

/* One collective of one communicator, in which ranks wait. */
struct gathering {
    const struct snapshot_call *first; /* who has been in it longest */
    bool *inside;                      /* by rank: it is in it, or runs it */
    bool *waiting;                     /* of those: it is in a call and does not go on */
    bool *missing;
    size_t n_missing;
};

/* How long a rank waits in this call, or for what runs; -1: it does not. */
static json_int_t waited_ms(const struct snapshot *p, const struct snapshot_call *c)
{
    const struct snapshot_call *wait =
        c->collective && p->ranks[c->rank].mood == MOOD_WAITING ? snapshot_wait_of(p, c) : NULL;
    return wait ? row_number(wait->row, "age_ms") : -1;
}

static bool same_collective(const struct snapshot_call *a, const struct snapshot_call *b)
{
    return b->collective && a->communicator == b->communicator && a->sequence == b->sequence &&
           a->leader == b->leader && strcmp(a->form, b->form) == 0;
}

/* What a member shows of the communicator, or NULL: it is none, or shows nothing. */
static const json_t *gathering_member(const struct snapshot *p, const struct gathering *g,
                                      size_t rank)
{
    const json_t *member = snapshot_member_of(p, rank, g->first->communicator);
    return member && row_number(member, "leader_world") == g->first->leader ? member : NULL;
}

static void mark_inside(struct snapshot *p, struct gathering *g)
{
    for (size_t i = 0; i < p->n_calls; i++) {
        const struct snapshot_call *c = &p->calls[i];
        if (!same_collective(g->first, c))
            continue;
        g->inside[c->rank] = true;
        g->waiting[c->rank] |=
            p->ranks[c->rank].mood == MOOD_WAITING && snapshot_wait_of(p, c) != NULL;
    }
}

/* The tag of the collective's messages. */
static json_int_t tag_of(const struct snapshot_call *call)
{
    json_int_t form = strcmp(call->form, "blocking") == 0      ? 0
                      : strcmp(call->form, "nonblocking") == 0 ? 1
                                                               : 2;
    return form * ROUND + call->sequence;
}

static bool gathering_persistent(const struct gathering *g)
{
    return strcmp(g->first->form, "persistent") == 0;
}

static const json_t *gathering_entered(const struct gathering *g, const json_t *member)
{
    return json_object_get(json_object_get(member, "entered"), g->first->form);
}

static void gathering_miss(const struct snapshot *p, struct gathering *g, size_t rank)
{
    if (p->ranks[rank].mood == MOOD_UNSEEN)
        return; /* nobody knows where it is */
    g->n_missing += !g->missing[rank];
    g->missing[rank] = true;
}

static void find_missing(struct snapshot *p, struct gathering *g)
{
    for (size_t r = 0; r < p->n_ranks; r++) {
        const json_t *member = gathering_member(p, g, r);
        json_int_t behind =
            (g->first->sequence - row_number(gathering_entered(g, member), "count")) & (ROUND - 1);
        if (member && !g->inside[r] && behind > 0 && behind < ROUND / 2)
            gathering_miss(p, g, r);
    }
    if (g->n_missing > 0 && !gathering_persistent(g))
        return;
    /* Members that cannot be counted: those from whom somebody inside wants a message of this
     * collective. */
    for (size_t i = 0; i < p->n_edges; i++) {
        const struct snapshot_edge *e = &p->edges[i];
        if (e->to < 0 || !g->inside[e->from] || g->inside[e->to] || !row_is_collective(e->row) ||
            row_number(e->row, "communicator") != g->first->communicator ||
            row_number(e->row, "tag") != tag_of(g->first))
            continue;
        if (gathering_persistent(g) || !gathering_member(p, g, (size_t)e->to))
            gathering_miss(p, g, (size_t)e->to);
    }
}

/* "MPI_COMM_WORLD (8 ranks)". */
static const char *gathering_where(const struct gathering *g, char text[SNAPSHOT_WORDS])
{
    char comm[SNAPSHOT_WORDS];
    json_int_t members = row_number(g->first->row, "members");

    if (members > 0)
        snprintf(text, SNAPSHOT_WORDS, "%.200s (%" JSON_INTEGER_FORMAT " ranks)",
                 snapshot_comm(g->first->row, comm), members);
    else
        snprintf(text, SNAPSHOT_WORDS, "%.200s", snapshot_comm(g->first->row, comm));
    return text;
}

/* What the missing ones do: "it computes", "rank 5 computes, rank 6 is in MPI_Recv". */
static void describe_missing(const struct snapshot *p, const struct gathering *g, char *text,
                             size_t room)
{
    char words[SNAPSHOT_WORDS];
    size_t n = 0, len = 0;

    for (size_t r = 0; r < p->n_ranks && len < room; r++) {
        if (!g->missing[r] || n++ >= MAX_DESCRIBED)
            continue;
        if (g->n_missing == 1)
            len +=
                (size_t)snprintf(text + len, room - len, "it %s", snapshot_rank_does(p, r, words));
        else
            len += (size_t)snprintf(text + len, room - len, "%srank %" JSON_INTEGER_FORMAT " %s",
                                    n > 1 ? ", " : "", p->ranks[r].number,
                                    snapshot_rank_does(p, r, words));
    }
    if (n > MAX_DESCRIBED && len < room)
        snprintf(text + len, room - len, ", and so on");
}

static void append_marked(const struct snapshot *p, const bool *marked, json_t *ranks)
{
    for (size_t r = 0; r < p->n_ranks; r++)
        if (marked[r])
            json_array_append_new(ranks, json_integer(p->ranks[r].number));
}

static void say_missing(struct snapshot *p, const struct gathering *g)
{
    char missing[SNAPSHOT_WORDS], inside[SNAPSHOT_WORDS], comm[SNAPSHOT_WORDS], age[HUMAN_ROOM],
        does[SNAPSHOT_TEXT / 2] = "";

    if (g->n_missing == 0)
        return;
    human_duration(waited_ms(p, g->first) * (json_int_t)CLOCK_NS_PER_MS, age);
    describe_missing(p, g, does, sizeof does);
    snapshot_ranks(p, g->waiting, inside);
    bool one = g->n_missing == 1;
    json_t *ranks =
        snapshot_say(p, "absent", "%s %s not %s %s on %s, in which %s wait%s, the first for %s: %s",
                     snapshot_ranks(p, g->missing, missing), one ? "has" : "have",
                     gathering_persistent(g) ? "started what was made with" : "entered",
                     row_text(g->first->row, "call"), gathering_where(g, comm), inside,
                     inside[4] == 's' ? "" : "s", age, does);
    append_marked(p, g->missing, ranks);
}

/* Length of the name without the suffix of its large form. */
static size_t function_bare(const char *function)
{
    size_t n = strlen(function);
    return n > 2 && strcmp(function + n - 2, "_c") == 0 ? n - 2 : n;
}

static bool same_function(const char *a, const char *b)
{
    return function_bare(a) == function_bare(b) && strncmp(a, b, function_bare(a)) == 0;
}

/* The functions by which the ranks came to the collective, to be freed; NULL: no memory. */
static const char **functions_of(struct snapshot *p, const struct gathering *g)
{
    const char **functions = snapshot_zeroed(p, p->n_ranks, sizeof *functions);

    for (size_t i = 0; functions && i < p->n_calls; i++)
        if (same_collective(g->first, &p->calls[i]))
            functions[p->calls[i].rank] = row_text(p->calls[i].row, "call");
    for (size_t r = 0; functions && r < p->n_ranks && !gathering_persistent(g); r++) {
        const json_t *last = gathering_entered(g, gathering_member(p, g, r));
        /* It has been there and gone on, and to no other since. */
        if (last && !functions[r] && row_number(last, "count") == g->first->sequence)
            functions[r] = row_text(last, "last");
    }
    return functions;
}

/* Ranks that came to one and the same collective by different functions. */
static size_t say_different(struct snapshot *p, const struct gathering *g)
{
    SNAPSHOT_AUTO bool *here = snapshot_zeroed(p, p->n_ranks, sizeof *here);
    SNAPSHOT_AUTO bool *told = snapshot_zeroed(p, p->n_ranks, sizeof *told);
    SNAPSHOT_AUTO const char **functions = functions_of(p, g);
    char list[SNAPSHOT_TEXT / 2] = "", names[SNAPSHOT_WORDS], comm[SNAPSHOT_WORDS];
    size_t n_functions = 0, len = 0;

    for (size_t r = 0; here && told && functions && r < p->n_ranks; r++) {
        if (!functions[r] || !functions[r][0] || told[r])
            continue;
        memset(here, 0, p->n_ranks * sizeof *here);
        for (size_t k = r; k < p->n_ranks; k++) {
            here[k] = functions[k] && same_function(functions[r], functions[k]);
            told[k] |= here[k];
        }
        n_functions++;
        if (len < sizeof list)
            len += (size_t)snprintf(list + len, sizeof list - len, "%s%s %.40s", len ? ", " : "",
                                    snapshot_ranks(p, here, names), functions[r]);
    }
    if (n_functions > 1)
        append_marked(p, told,
                      snapshot_say(p, "collective", "ranks call different collectives on %s: %s",
                                   gathering_where(g, comm), list));
    return n_functions > 1;
}

/* Each collective once: at the call of the rank that has waited in it longest. */
static bool gathering_begins(const struct snapshot *p, const struct snapshot_call *c)
{
    json_int_t ours = waited_ms(p, c);

    if (ours < SNAPSHOT_YOUNG_MS)
        return false;
    for (const struct snapshot_call *o = p->calls; o < p->calls + p->n_calls; o++) {
        if (o == c || !same_collective(c, o))
            continue;
        json_int_t theirs = waited_ms(p, o);
        if (theirs > ours || (theirs == ours && o < c))
            return false;
    }
    return true;
}

/* `cause`: those whose missing ranks wait for nobody, else the others. */
static size_t stragglers_look(struct snapshot *p, bool cause)
{
    size_t n = 0;

    for (size_t i = 0; i < p->n_calls; i++) {
        if (!gathering_begins(p, &p->calls[i]))
            continue;
        SNAPSHOT_AUTO bool *marks = snapshot_zeroed(p, 3 * p->n_ranks, sizeof *marks);
        if (!marks)
            break;
        struct gathering g = {.first = &p->calls[i],
                              .inside = marks,
                              .waiting = marks + p->n_ranks,
                              .missing = marks + 2 * p->n_ranks};
        mark_inside(p, &g);
        find_missing(p, &g);
        bool all_wait = g.n_missing > 0;
        for (size_t r = 0; r < p->n_ranks; r++)
            all_wait = all_wait && (!g.missing[r] || p->ranks[r].mood == MOOD_WAITING);
        if (all_wait != cause) {
            n += say_different(p, &g) + (g.n_missing > 0);
            say_missing(p, &g);
        }
    }
    return n;
}

size_t stragglers_in_collectives(struct snapshot *p)
{
    size_t n = stragglers_look(p, true);
    return n + stragglers_look(p, false);
}

void stragglers_in_messages(struct snapshot *p)
{
    SNAPSHOT_AUTO bool *waiting = snapshot_zeroed(p, p->n_ranks, sizeof *waiting);
    char names[SNAPSHOT_WORDS], does[SNAPSHOT_WORDS], example[SNAPSHOT_WORDS];

    for (size_t r = 0; waiting && r < p->n_ranks; r++) {
        ssize_t first = -1;
        if (p->ranks[r].mood != MOOD_FREE || p->ranks[r].in_mpi)
            continue;
        memset(waiting, 0, p->n_ranks * sizeof *waiting);
        for (size_t i = 0; i < p->n_edges; i++) {
            const struct snapshot_edge *e = &p->edges[i];
            if (e->to != (ssize_t)r || row_is_collective(e->row))
                continue;
            waiting[e->from] = true;
            first = first < 0 ? (ssize_t)e->from : first;
        }
        if (first < 0)
            continue;
        snapshot_ranks(p, waiting, names);
        json_t *ranks = snapshot_say(p, "computing",
                                     "rank %" JSON_INTEGER_FORMAT
                                     " %s, and %s wait%s for it: rank %" JSON_INTEGER_FORMAT " %s",
                                     p->ranks[r].number, snapshot_rank_does(p, r, does), names,
                                     names[4] == 's' ? "" : "s", p->ranks[first].number,
                                     snapshot_rank_does(p, (size_t)first, example));
        json_array_append_new(ranks, json_integer(p->ranks[r].number));
        append_marked(p, waiting, ranks);
    }
}
