/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/motetctl_absent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "launcher/human.h"
#include "launcher/motetctl_picture.h"
#include "launcher/motetctl_waits.h"

/* Counts and tags go round (client/coll/coll.c). */
#define ROUND (1 << 24)
/* So many missing ranks are told what they do. */
#define MAX_DESCRIBED 3

/* One collective of one communicator, in which ranks wait. */
struct gathering {
    const struct picture_call *first; /* who has been in it longest */
    bool *inside;                     /* by rank: it is in it, or runs it */
    bool *waiting;                    /* of those: it is in a call and does not go on */
    bool *missing;
    size_t n_missing;
};

/* How long a rank waits in this call, or for what runs; -1: it does not. */
static json_int_t waited_ms(const struct picture *p, const struct picture_call *c)
{
    const struct picture_call *wait =
        c->collective && p->ranks[c->rank].mood == MOOD_WAITING ? picture_wait_of(p, c) : NULL;
    return wait ? picture_number(wait->row, "age_ms") : -1;
}

static bool same_collective(const struct picture_call *a, const struct picture_call *b)
{
    return b->collective && a->communicator == b->communicator && a->sequence == b->sequence &&
           a->leader == b->leader && strcmp(a->form, b->form) == 0;
}

/* What a member shows of the communicator, or NULL: it is none, or shows nothing. */
static const json_t *member_of(const struct picture *p, const struct gathering *g, size_t rank)
{
    const json_t *member = picture_member_of(p, rank, g->first->communicator);
    return member && picture_number(member, "leader_world") == g->first->leader ? member : NULL;
}

static void mark_inside(struct picture *p, struct gathering *g)
{
    for (size_t i = 0; i < p->n_calls; i++) {
        const struct picture_call *c = &p->calls[i];
        if (!same_collective(g->first, c))
            continue;
        g->inside[c->rank] = true;
        g->waiting[c->rank] |=
            p->ranks[c->rank].mood == MOOD_WAITING && picture_wait_of(p, c) != NULL;
    }
}

/* The tag of the collective's messages. */
static json_int_t tag_of(const struct picture_call *call)
{
    json_int_t form = strcmp(call->form, "blocking") == 0      ? 0
                      : strcmp(call->form, "nonblocking") == 0 ? 1
                                                               : 2;
    return form * ROUND + call->sequence;
}

static bool is_persistent(const struct gathering *g)
{
    return strcmp(g->first->form, "persistent") == 0;
}

static const json_t *entered(const struct gathering *g, const json_t *member)
{
    return json_object_get(json_object_get(member, "entered"), g->first->form);
}

static void miss(const struct picture *p, struct gathering *g, size_t rank)
{
    if (p->ranks[rank].mood == MOOD_UNSEEN)
        return; /* nobody knows where it is */
    g->n_missing += !g->missing[rank];
    g->missing[rank] = true;
}

static void find_missing(struct picture *p, struct gathering *g)
{
    for (size_t r = 0; r < p->n_ranks; r++) {
        const json_t *member = member_of(p, g, r);
        json_int_t behind =
            (g->first->sequence - picture_number(entered(g, member), "count")) & (ROUND - 1);
        if (member && !g->inside[r] && behind > 0 && behind < ROUND / 2)
            miss(p, g, r);
    }
    if (g->n_missing > 0 && !is_persistent(g))
        return;
    /* Members that cannot be counted: those from whom somebody inside wants a message of this
     * collective. */
    for (size_t i = 0; i < p->n_edges; i++) {
        const struct picture_edge *e = &p->edges[i];
        if (e->to < 0 || !g->inside[e->from] || g->inside[e->to] ||
            !picture_is_collective(e->row) ||
            picture_number(e->row, "communicator") != g->first->communicator ||
            picture_number(e->row, "tag") != tag_of(g->first))
            continue;
        if (is_persistent(g) || !member_of(p, g, (size_t)e->to))
            miss(p, g, (size_t)e->to);
    }
}

/* "MPI_COMM_WORLD (8 ranks)". */
static const char *where(const struct gathering *g, char text[PICTURE_WORDS])
{
    char comm[PICTURE_WORDS];
    json_int_t members = picture_number(g->first->row, "members");

    if (members > 0)
        snprintf(text, PICTURE_WORDS, "%.200s (%" JSON_INTEGER_FORMAT " ranks)",
                 picture_comm(g->first->row, comm), members);
    else
        snprintf(text, PICTURE_WORDS, "%.200s", picture_comm(g->first->row, comm));
    return text;
}

/* What the missing ones do: "it computes", "rank 5 computes, rank 6 is in MPI_Recv". */
static void describe_missing(const struct picture *p, const struct gathering *g, char *text,
                             size_t room)
{
    char words[PICTURE_WORDS];
    size_t n = 0, len = 0;

    for (size_t r = 0; r < p->n_ranks && len < room; r++) {
        if (!g->missing[r] || n++ >= MAX_DESCRIBED)
            continue;
        if (g->n_missing == 1)
            len +=
                (size_t)snprintf(text + len, room - len, "it %s", picture_rank_does(p, r, words));
        else
            len += (size_t)snprintf(text + len, room - len, "%srank %" JSON_INTEGER_FORMAT " %s",
                                    n > 1 ? ", " : "", p->ranks[r].number,
                                    picture_rank_does(p, r, words));
    }
    if (n > MAX_DESCRIBED && len < room)
        snprintf(text + len, room - len, ", and so on");
}

static void append_marked(const struct picture *p, const bool *marked, json_t *ranks)
{
    for (size_t r = 0; r < p->n_ranks; r++)
        if (marked[r])
            json_array_append_new(ranks, json_integer(p->ranks[r].number));
}

static void say_missing(struct picture *p, const struct gathering *g)
{
    char missing[PICTURE_WORDS], inside[PICTURE_WORDS], comm[PICTURE_WORDS], age[HUMAN_ROOM],
        does[PICTURE_TEXT / 2] = "";

    if (g->n_missing == 0)
        return;
    human_duration(waited_ms(p, g->first) * (json_int_t)CLOCK_NS_PER_MS, age);
    describe_missing(p, g, does, sizeof does);
    picture_ranks(p, g->waiting, inside);
    bool one = g->n_missing == 1;
    json_t *ranks =
        picture_say(p, "absent", "%s %s not %s %s on %s, in which %s wait%s, the first for %s: %s",
                    picture_ranks(p, g->missing, missing), one ? "has" : "have",
                    is_persistent(g) ? "started what was made with" : "entered",
                    picture_text(g->first->row, "call"), where(g, comm), inside,
                    inside[4] == 's' ? "" : "s", age, does);
    append_marked(p, g->missing, ranks);
}

/* Length of the name without the suffix of its large form. */
static size_t bare(const char *function)
{
    size_t n = strlen(function);
    return n > 2 && strcmp(function + n - 2, "_c") == 0 ? n - 2 : n;
}

static bool same_function(const char *a, const char *b)
{
    return bare(a) == bare(b) && strncmp(a, b, bare(a)) == 0;
}

/* The functions by which the ranks came to the collective, or NULL. */
static const char **functions_of(const struct picture *p, const struct gathering *g)
{
    const char **functions = picture_zeroed(p->n_ranks, sizeof *functions);

    for (size_t i = 0; i < p->n_calls; i++)
        if (same_collective(g->first, &p->calls[i]))
            functions[p->calls[i].rank] = picture_text(p->calls[i].row, "call");
    for (size_t r = 0; r < p->n_ranks && !is_persistent(g); r++) {
        const json_t *last = entered(g, member_of(p, g, r));
        /* It has been there and gone on, and to no other since. */
        if (last && !functions[r] && picture_number(last, "count") == g->first->sequence)
            functions[r] = picture_text(last, "last");
    }
    return functions;
}

/* Ranks that came to one and the same collective by different functions. */
static size_t say_different(struct picture *p, const struct gathering *g)
{
    bool *here = picture_zeroed(p->n_ranks, sizeof *here),
         *told = picture_zeroed(p->n_ranks, sizeof *told);
    const char **functions = functions_of(p, g);
    char list[PICTURE_TEXT / 2] = "", names[PICTURE_WORDS], comm[PICTURE_WORDS];
    size_t n_functions = 0, len = 0;

    for (size_t r = 0; r < p->n_ranks; r++) {
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
                                    picture_ranks(p, here, names), functions[r]);
    }
    if (n_functions > 1)
        append_marked(p, told,
                      picture_say(p, "collective", "ranks call different collectives on %s: %s",
                                  where(g, comm), list));
    free(functions);
    free(here);
    free(told);
    return n_functions > 1;
}

/* Each collective once: at the call of the rank that has waited in it longest. */
static bool begins(const struct picture *p, const struct picture_call *c)
{
    json_int_t ours = waited_ms(p, c);

    if (ours < MOTETCTL_WAITS_MS)
        return false;
    for (const struct picture_call *o = p->calls; o < p->calls + p->n_calls; o++) {
        if (o == c || !same_collective(c, o))
            continue;
        json_int_t theirs = waited_ms(p, o);
        if (theirs > ours || (theirs == ours && o < c))
            return false;
    }
    return true;
}

/* `cause`: those whose missing ranks wait for nobody, else the others. */
static size_t look(struct picture *p, bool cause)
{
    size_t n = 0;

    for (size_t i = 0; i < p->n_calls; i++) {
        if (!begins(p, &p->calls[i]))
            continue;
        struct gathering g = {.first = &p->calls[i],
                              .inside = picture_zeroed(p->n_ranks, sizeof(bool)),
                              .waiting = picture_zeroed(p->n_ranks, sizeof(bool)),
                              .missing = picture_zeroed(p->n_ranks, sizeof(bool))};
        mark_inside(p, &g);
        find_missing(p, &g);
        bool all_wait = g.n_missing > 0;
        for (size_t r = 0; r < p->n_ranks; r++)
            all_wait = all_wait && (!g.missing[r] || p->ranks[r].mood == MOOD_WAITING);
        if (all_wait != cause) {
            n += say_different(p, &g) + (g.n_missing > 0);
            say_missing(p, &g);
        }
        free(g.inside);
        free(g.waiting);
        free(g.missing);
    }
    return n;
}

size_t absent_from_collectives(struct picture *p)
{
    size_t n = look(p, true);
    return n + look(p, false);
}

void absent_from_messages(struct picture *p)
{
    bool *waiting = picture_zeroed(p->n_ranks, sizeof *waiting);
    char names[PICTURE_WORDS], does[PICTURE_WORDS], example[PICTURE_WORDS];

    for (size_t r = 0; r < p->n_ranks; r++) {
        ssize_t first = -1;
        if (p->ranks[r].mood != MOOD_FREE || p->ranks[r].in_mpi)
            continue;
        memset(waiting, 0, p->n_ranks * sizeof *waiting);
        for (size_t i = 0; i < p->n_edges; i++) {
            const struct picture_edge *e = &p->edges[i];
            if (e->to != (ssize_t)r || picture_is_collective(e->row))
                continue;
            waiting[e->from] = true;
            first = first < 0 ? (ssize_t)e->from : first;
        }
        if (first < 0)
            continue;
        picture_ranks(p, waiting, names);
        json_t *ranks = picture_say(p, "computing",
                                    "rank %" JSON_INTEGER_FORMAT
                                    " %s, and %s wait%s for it: rank %" JSON_INTEGER_FORMAT " %s",
                                    p->ranks[r].number, picture_rank_does(p, r, does), names,
                                    names[4] == 's' ? "" : "s", p->ranks[first].number,
                                    picture_rank_does(p, (size_t)first, example));
        json_array_append_new(ranks, json_integer(p->ranks[r].number));
        append_marked(p, waiting, ranks);
    }
    free(waiting);
}
