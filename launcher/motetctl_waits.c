/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/motetctl_waits.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "launcher/human.h"
#include "launcher/motetctl_show.h"

/* So many messages that lie unexpected are named beside a receive, so many ranks in a list. */
#define MAX_BESIDE 3
#define MAX_NAMED  16

enum rank_mood {
    MOOD_FREE,    /* computes, or waits for a moment only */
    MOOD_WAITING, /* in MPI for long */
    MOOD_STOPPED, /* by a signal */
    MOOD_LEFT,    /* has left MPI in order */
    MOOD_GONE,    /* has ended */
};
static const char *const moods[] = {"computing", "waiting", "stopped", "out of MPI", "ended"};

struct rank {
    json_int_t number;
    const char *node;
    enum rank_mood mood;
    bool can_go_on;
    bool has_edges;
    /* Tarjan's numbers. */
    size_t order, low;
    bool on_stack;
    size_t component;
};

/* What a rank waits for: an entry of its board other than an unexpected message. */
struct edge {
    size_t from;
    ssize_t to; /* index of a rank, -1: any */
    const json_t *row;
};

struct picture {
    struct rank *ranks;
    size_t n_ranks;
    struct edge *edges; /* of waiting ranks, ordered by `from` */
    size_t n_edges;
    const json_t *queues; /* of all jobs */
    const char *job;
    json_t *findings;
    /* Search for circles. */
    size_t *stack, n_stack, n_order, n_components;
};

static const char *text_of(const json_t *row, const char *key)
{
    const char *s = json_string_value(json_object_get(row, key));
    return s ? s : "";
}

static json_int_t number_of(const json_t *row, const char *key)
{
    return json_integer_value(json_object_get(row, key));
}

static bool of_job(const json_t *row, const char *job)
{
    return strcmp(text_of(row, "job"), job) == 0;
}

static bool same(const json_t *a, const json_t *b, const char *key)
{
    return json_equal(json_object_get(a, key), json_object_get(b, key));
}

static void *zeroed(size_t n, size_t size)
{
    void *p = calloc(n + 1, size);

    if (!p) {
        fputs("out of memory\n", stderr);
        exit(1);
    }
    return p;
}

/* ---- the picture ---- */

/* In a blocking call, and nothing has come or gone since then. A rank that sleeps wakes once a second to look around, so one of two
 * looks may miss it. */
static bool stays_in_mpi(const json_t *row, const json_t *later)
{
    return (json_is_true(json_object_get(row, "waiting")) || json_is_true(json_object_get(later, "waiting"))) &&
           same(row, later, "sent_messages") && same(row, later, "received_messages") && same(row, later, "sent_bytes") &&
           same(row, later, "received_bytes");
}

static enum rank_mood mood_of(const json_t *row, const json_t *later)
{
    const char *mpi = text_of(row, "mpi");

    if (strcmp(text_of(row, "state"), "exited") == 0 || strcmp(mpi, "gone") == 0)
        return MOOD_GONE;
    if (strcmp(text_of(row, "process"), "stopped") == 0)
        return MOOD_STOPPED;
    if (strcmp(mpi, "finalized") == 0)
        return MOOD_LEFT;
    return stays_in_mpi(row, later) ? MOOD_WAITING : MOOD_FREE;
}

static int by_number(const void *a, const void *b)
{
    json_int_t x = ((const struct rank *)a)->number, y = ((const struct rank *)b)->number;
    return (x > y) - (x < y);
}

static ssize_t find_rank(const struct picture *p, json_int_t number)
{
    struct rank key = {.number = number};
    const struct rank *r = bsearch(&key, p->ranks, p->n_ranks, sizeof key, by_number);
    return r ? r - p->ranks : -1;
}

static int by_from(const void *a, const void *b)
{
    size_t x = ((const struct edge *)a)->from, y = ((const struct edge *)b)->from;
    return (x > y) - (x < y);
}

static void take_ranks(struct picture *p, const json_t *rows, const json_t *later)
{
    const json_t *row, *again;
    size_t i, k = 0;

    p->ranks = zeroed(json_array_size(rows), sizeof *p->ranks);
    json_array_foreach(rows, i, row) {
        if (!of_job(row, p->job))
            continue;
        /* Both are in the order of jobs and ranks; who is missing later has ended. */
        while ((again = json_array_get(later, k)) != NULL &&
               (!of_job(again, p->job) || number_of(again, "rank") < number_of(row, "rank")))
            k++;
        bool there = again && number_of(again, "rank") == number_of(row, "rank");
        p->ranks[p->n_ranks++] = (struct rank){.number = number_of(row, "rank"),
                                               .node = text_of(row, "node"),
                                               .mood = there ? mood_of(again, row) : MOOD_GONE};
    }
    qsort(p->ranks, p->n_ranks, sizeof *p->ranks, by_number);
}

static void take_edges(struct picture *p)
{
    const json_t *row;
    size_t i;

    p->edges = zeroed(json_array_size(p->queues), sizeof *p->edges);
    json_array_foreach(p->queues, i, row) {
        if (!of_job(row, p->job) || !json_object_get(row, "peer") || strcmp(text_of(row, "queue"), "unexpected") == 0)
            continue;
        ssize_t from = find_rank(p, number_of(row, "rank"));
        if (from < 0 || p->ranks[from].mood != MOOD_WAITING)
            continue;
        json_t *peer = json_object_get(row, "peer_world");
        ssize_t to = json_is_integer(peer) ? find_rank(p, json_integer_value(peer)) : -1;
        p->edges[p->n_edges++] = (struct edge){.from = (size_t)from, .to = to, .row = row};
        p->ranks[from].has_edges = true;
    }
    qsort(p->edges, p->n_edges, sizeof *p->edges, by_from);
}

/* Who waits for young requests only does not wait for long. */
static void drop_young(struct picture *p)
{
    json_int_t *oldest_ms = zeroed(p->n_ranks, sizeof *oldest_ms);
    size_t n = 0;

    for (size_t i = 0; i < p->n_edges; i++) {
        json_int_t age_ms = number_of(p->edges[i].row, "age_ms");
        if (age_ms > oldest_ms[p->edges[i].from])
            oldest_ms[p->edges[i].from] = age_ms;
    }
    for (size_t i = 0; i < p->n_edges; i++) {
        if (oldest_ms[p->edges[i].from] >= MOTETCTL_WAITS_MS)
            p->edges[n++] = p->edges[i];
        else
            p->ranks[p->edges[i].from].mood = MOOD_FREE;
    }
    p->n_edges = n;
    free(oldest_ms);
}

/* ---- who can go on ---- */

static void find_who_can_go_on(struct picture *p)
{
    size_t n_free = 0;
    bool changed = true;

    for (size_t r = 0; r < p->n_ranks; r++) {
        struct rank *rank = &p->ranks[r];
        /* A stopped one may be continued. Of one that waits with nothing on its board it is not known what for. */
        rank->can_go_on = rank->mood == MOOD_FREE || rank->mood == MOOD_STOPPED ||
                          (rank->mood == MOOD_WAITING && !rank->has_edges);
        n_free += rank->can_go_on;
    }
    while (changed) {
        changed = false;
        for (size_t i = 0; i < p->n_edges; i++) {
            const struct edge *e = &p->edges[i];
            if (!p->ranks[e->from].can_go_on && (e->to < 0 ? n_free > 0 : p->ranks[e->to].can_go_on)) {
                p->ranks[e->from].can_go_on = changed = true;
                n_free++;
            }
        }
    }
}

/* ---- findings ---- */

static json_t *find(struct picture *p, const char *kind, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Adds a finding; returns its list of ranks. */
static json_t *find(struct picture *p, const char *kind, const char *fmt, ...)
{
    json_t *ranks = json_array();
    char text[2048];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    json_array_append_new(p->findings, json_pack("{s:s, s:o, s:s}", "kind", kind, "ranks", ranks, "text", text));
    return ranks;
}

/* "tag 7", or "any tag". */
static const char *tag_text(const json_t *row, char text[32])
{
    json_t *tag = json_object_get(row, "tag");

    if (json_is_integer(tag))
        snprintf(text, 32, "tag %" JSON_INTEGER_FORMAT, json_integer_value(tag));
    else
        snprintf(text, 32, "any tag");
    return text;
}

static const char *comm_text(const json_t *row, char text[48])
{
    json_int_t id = number_of(row, "communicator");

    if (id == 0)
        snprintf(text, 48, "MPI_COMM_WORLD");
    else
        snprintf(text, 48, "communicator %" JSON_INTEGER_FORMAT, id);
    return text;
}

/* What a rank does about an entry of its board. */
static const char *doing(const json_t *row)
{
    static const char *const words[][2] = {{"posted", "receive"},
                                           {"pending", "send without room"},
                                           {"rendezvous_out", "large send"},
                                           {"rendezvous_in", "large receive"}};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(text_of(row, "queue"), words[i][0]) == 0)
            return words[i][1];
    return "request";
}

static bool is_collective(const json_t *row)
{
    return json_is_true(json_object_get(row, "collective"));
}

/* How an unexpected message fails to be what a receive waits for; NULL: they have nothing in common. */
static const char *difference(const json_t *receive, const json_t *message)
{
    bool source = same(receive, message, "peer_world") || strcmp(text_of(receive, "peer"), "any") == 0;
    bool tag = same(receive, message, "tag") || strcmp(text_of(receive, "tag"), "any") == 0;
    bool comm = same(receive, message, "communicator");

    if (is_collective(receive) != is_collective(message))
        return source && comm ? "" : NULL;
    if (source && comm && !tag)
        return "with another tag";
    if (source && tag && !comm)
        return "in another communicator";
    return tag && comm && !source && !is_collective(receive) ? "from another rank" : NULL;
}

/* Messages that lie unexpected at the rank that waits, and are nearly what it waits for. */
static void find_mismatches(struct picture *p, const struct edge *e)
{
    json_int_t rank = p->ranks[e->from].number;
    char wanted[32], tag[32], comm[48], other[48], size[HUMAN_ROOM], from[40] = "any rank";
    const json_t *message;
    size_t i;
    int n = 0;

    if (e->to >= 0)
        snprintf(from, sizeof from, "rank %" JSON_INTEGER_FORMAT, p->ranks[e->to].number);
    json_array_foreach(p->queues, i, message) {
        if (n == MAX_BESIDE || !of_job(message, p->job) || number_of(message, "rank") != rank ||
            strcmp(text_of(message, "queue"), "unexpected") != 0)
            continue;
        const char *how = difference(e->row, message);
        if (!how)
            continue;
        n++;
        json_t *ranks;
        if (is_collective(e->row) && is_collective(message)) {
            ranks = find(p, "collective",
                         "rank %" JSON_INTEGER_FORMAT " waits for %s in a collective operation on %s, and has a message of another "
                         "one from there: the ranks call different collectives, or in another order",
                         rank, from, comm_text(e->row, comm));
        } else if (!how[0]) {
            bool there = is_collective(message);
            ranks = find(p, "mismatch",
                         "rank %" JSON_INTEGER_FORMAT " waits for %s from %s in %s; from rank %" JSON_INTEGER_FORMAT
                         " lies a message %s: %s",
                         rank, there ? tag_text(e->row, wanted) : "a collective operation", from, comm_text(e->row, comm),
                         number_of(message, "peer_world"), there ? "of a collective operation" : tag_text(message, tag),
                         there ? "it has gone on to that" : "it is not in that operation yet, or in none");
        } else {
            human_bytes((uint64_t)number_of(message, "bytes"), size);
            ranks = find(p, "mismatch",
                         "rank %" JSON_INTEGER_FORMAT " waits for %s from %s in %s; unexpected beside it lies a message %s: %s from rank "
                         "%" JSON_INTEGER_FORMAT " in %s, %s",
                         rank, tag_text(e->row, wanted), from, comm_text(e->row, comm), how, tag_text(message, tag),
                         number_of(message, "peer_world"), comm_text(message, other), size);
        }
        json_array_append_new(ranks, json_integer(rank));
        json_array_append(ranks, json_object_get(message, "peer_world"));
    }
}

static void find_waits_for_the_gone(struct picture *p, const struct edge *e)
{
    if (e->to < 0 || (p->ranks[e->to].mood != MOOD_LEFT && p->ranks[e->to].mood != MOOD_GONE &&
                      p->ranks[e->to].mood != MOOD_STOPPED))
        return;
    bool stopped = p->ranks[e->to].mood == MOOD_STOPPED;
    json_t *ranks = find(p, stopped ? "stopped" : "gone",
                         "rank %" JSON_INTEGER_FORMAT " waits for rank %" JSON_INTEGER_FORMAT ", which %s", p->ranks[e->from].number,
                         p->ranks[e->to].number,
                         stopped                              ? "is stopped by a signal"
                         : p->ranks[e->to].mood == MOOD_LEFT ? "has called MPI_Finalize"
                                                              : "has ended");
    json_array_append_new(ranks, json_integer(p->ranks[e->from].number));
    json_array_append_new(ranks, json_integer(p->ranks[e->to].number));
}

static const struct edge *edges_of(const struct picture *p, size_t rank, size_t *ret_n)
{
    struct edge key = {.from = rank};
    const struct edge *e = p->n_edges ? bsearch(&key, p->edges, p->n_edges, sizeof key, by_from) : NULL;

    *ret_n = 0;
    if (!e)
        return NULL;
    while (e > p->edges && e[-1].from == rank)
        e--;
    while (e + *ret_n < p->edges + p->n_edges && e[*ret_n].from == rank)
        ++*ret_n;
    return e;
}

/* Tarjan's strongly connected components (1972), with a stack of its own: a job may be a long chain. */
struct frame {
    size_t rank, next;
};

static void components_from(struct picture *p, size_t root, struct frame *frames)
{
    size_t depth = 0;

    frames[depth++] = (struct frame){.rank = root};
    while (depth > 0) {
        struct frame *f = &frames[depth - 1];
        struct rank *r = &p->ranks[f->rank];
        size_t n;
        const struct edge *edges = edges_of(p, f->rank, &n);
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

static void find_components(struct picture *p)
{
    struct frame *frames = zeroed(p->n_ranks, sizeof *frames);

    p->stack = zeroed(p->n_ranks, sizeof *p->stack);
    for (size_t r = 0; r < p->n_ranks; r++)
        if (p->ranks[r].order == 0)
            components_from(p, r, frames);
    free(frames);
    free(p->stack);
}

/* One circle through the component of `start`: from each rank along the first edge that stays in it. */
static void describe_circle(struct picture *p, size_t start, bool certain)
{
    char path[1024] = "", tag[32];
    size_t at = start, n = 0, len = 0;
    bool *seen = zeroed(p->n_ranks, sizeof *seen);

    /* The walk ends in a circle; where it first returns to is where it begins. */
    for (int round = 0; round < 2; round++) {
        memset(seen, 0, p->n_ranks * sizeof *seen);
        while (!seen[at]) {
            size_t n_edges, i = 0;
            const struct edge *e = edges_of(p, at, &n_edges);
            while (i < n_edges && (e[i].to < 0 || p->ranks[e[i].to].component != p->ranks[at].component))
                i++;
            if (i == n_edges) {
                free(seen);
                return; /* a rank alone */
            }
            seen[at] = true;
            if (round == 1 && n++ < MAX_NAMED && len < sizeof path)
                len += (size_t)snprintf(path + len, sizeof path - len,
                                        "%srank %" JSON_INTEGER_FORMAT " waits for rank %" JSON_INTEGER_FORMAT " (%s, %s)",
                                        len ? ", " : "", p->ranks[at].number, p->ranks[e[i].to].number,
                                        doing(e[i].row), is_collective(e[i].row) ? "collective" : tag_text(e[i].row, tag));
            at = (size_t)e[i].to;
        }
    }
    json_t *ranks = find(p, certain ? "deadlock" : "circle", "%s%s%s", path, n > MAX_NAMED ? ", and so on" : "",
                         certain ? "" : "; one of them waits for others too, so it may still go on");
    for (size_t r = 0; r < p->n_ranks; r++)
        if (p->ranks[r].component == p->ranks[start].component)
            json_array_append_new(ranks, json_integer(p->ranks[r].number));
    free(seen);
}

/* Ranks that never go on but are in no circle: they wait for one, or for any rank when none is left that could send. */
static void describe_hangers_on(struct picture *p, const bool *in_circle)
{
    char names[256] = "";
    size_t n = 0, len = 0;

    for (size_t r = 0; r < p->n_ranks; r++) {
        if (p->ranks[r].mood != MOOD_WAITING || p->ranks[r].can_go_on || in_circle[r])
            continue;
        if (n++ < MAX_NAMED)
            len += (size_t)snprintf(names + len, sizeof names - len, "%s%" JSON_INTEGER_FORMAT, n > 1 ? ", " : "", p->ranks[r].number);
    }
    if (n == 0)
        return;
    json_t *ranks = find(p, "stuck", "rank%s %s%s wait%s for what cannot come any more: whoever could send it waits too or is gone",
                         n == 1 ? "" : "s", names, n > MAX_NAMED ? " and more" : "", n == 1 ? "s" : "");
    for (size_t r = 0; r < p->n_ranks; r++)
        if (p->ranks[r].mood == MOOD_WAITING && !p->ranks[r].can_go_on && !in_circle[r])
            json_array_append_new(ranks, json_integer(p->ranks[r].number));
}

static void find_circles(struct picture *p)
{
    size_t *sizes = zeroed(p->n_components + 1, sizeof *sizes);
    bool *in_circle = zeroed(p->n_ranks, sizeof *in_circle), *described = zeroed(p->n_components + 1, sizeof *described);

    for (size_t r = 0; r < p->n_ranks; r++)
        sizes[p->ranks[r].component]++;
    for (size_t i = 0; i < p->n_edges; i++)
        if (p->edges[i].to == (ssize_t)p->edges[i].from)
            sizes[p->ranks[p->edges[i].from].component] = 2; /* waits for itself */
    for (size_t r = 0; r < p->n_ranks; r++) {
        size_t c = p->ranks[r].component;
        in_circle[r] = sizes[c] > 1;
        if (!in_circle[r] || described[c])
            continue;
        described[c] = true;
        describe_circle(p, r, !p->ranks[r].can_go_on);
    }
    describe_hangers_on(p, in_circle);
    free(described);
    free(in_circle);
    free(sizes);
}

/* ---- the answer ---- */

static json_t *wait_row(const struct picture *p, const struct edge *e)
{
    const struct rank *r = &p->ranks[e->from];
    json_t *row = json_pack("{s:I, s:s, s:s}", "rank", r->number, "node", r->node, "waits_in", doing(e->row));
    static const char *const keys[] = {"peer_world", "communicator", "collective", "tag", "bytes", "done_bytes", "age_ms"};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        json_object_set(row, strcmp(keys[i], "peer_world") == 0 ? "for_rank" : keys[i], json_object_get(e->row, keys[i]));
    if (e->to < 0 && strcmp(text_of(e->row, "peer"), "any") == 0)
        json_object_set_new(row, "for_rank", json_string("any"));
    json_object_set_new(row, "which_is", e->to < 0 ? json_null() : json_string(moods[p->ranks[e->to].mood]));
    return row;
}

static json_t *job_answer(struct picture *p)
{
    json_t *waits = json_array(), *counts = json_object();
    size_t n_moods[sizeof moods / sizeof *moods] = {0};

    for (size_t i = 0; i < p->n_edges; i++)
        json_array_append_new(waits, wait_row(p, &p->edges[i]));
    for (size_t r = 0; r < p->n_ranks; r++) {
        n_moods[p->ranks[r].mood]++;
        if (p->ranks[r].mood == MOOD_WAITING && !p->ranks[r].has_edges)
            json_array_append_new(waits, json_pack("{s:I, s:s, s:s}", "rank", p->ranks[r].number, "node", p->ranks[r].node,
                                                   "waits_in", "nothing on its board"));
    }
    for (size_t i = 0; i < sizeof moods / sizeof *moods; i++)
        json_object_set_new(counts, moods[i], json_integer((json_int_t)n_moods[i]));
    return json_pack("{s:s, s:I, s:o, s:o, s:o}", "job", p->job, "ranks", (json_int_t)p->n_ranks, "of_them", counts, "waits", waits,
                     "findings", p->findings);
}

static json_t *picture_of(const char *job, const json_t *ranks, const json_t *queues, const json_t *later)
{
    struct picture p = {.job = job, .queues = queues, .findings = json_array()};

    take_ranks(&p, ranks, later);
    take_edges(&p);
    drop_young(&p);
    find_who_can_go_on(&p);
    find_components(&p);
    find_circles(&p);
    for (size_t i = 0; i < p.n_edges; i++) {
        find_waits_for_the_gone(&p, &p.edges[i]);
        if (strcmp(text_of(p.edges[i].row, "queue"), "posted") == 0)
            find_mismatches(&p, &p.edges[i]);
    }
    json_t *answer = job_answer(&p);
    free(p.ranks);
    free(p.edges);
    return answer;
}

json_t *motetctl_waits(const json_t *ranks, const json_t *queues, const json_t *later)
{
    json_t *answer = json_array(), *seen = json_object();
    const json_t *row;
    size_t i;

    json_array_foreach(ranks, i, row) {
        const char *job = text_of(row, "job");
        if (json_object_get(seen, job))
            continue;
        json_object_set_new(seen, job, json_true());
        json_array_append_new(answer, picture_of(job, ranks, queues, later));
    }
    json_decref(seen);
    return answer;
}

void motetctl_waits_show(const json_t *waits, FILE *to)
{
    const json_t *job, *finding;
    size_t i, k;

    if (json_array_size(waits) == 0)
        fputs("no job runs here\n", to);
    json_array_foreach(waits, i, job) {
        const json_t *of_them = json_object_get(job, "of_them"), *findings = json_object_get(job, "findings");
        fprintf(to, "%sjob %s: %" JSON_INTEGER_FORMAT " ranks:", i ? "\n" : "", text_of(job, "job"), number_of(job, "ranks"));
        const char *between = " ";
        for (size_t m = 0; m < sizeof moods / sizeof *moods; m++) {
            if (number_of(of_them, moods[m]) == 0)
                continue;
            fprintf(to, "%s%" JSON_INTEGER_FORMAT " %s", between, number_of(of_them, moods[m]), moods[m]);
            between = ", ";
        }
        fputs("\n", to);
        if (json_array_size(json_object_get(job, "waits")) > 0)
            motetctl_show(json_object_get(job, "waits"), to);
        json_array_foreach(findings, k, finding)
            fprintf(to, "%s: %s\n", text_of(finding, "kind"), text_of(finding, "text"));
        if (json_array_size(findings) == 0)
            fprintf(to, number_of(of_them, moods[MOOD_WAITING]) > 0 ? "no deadlock: all that wait can go on when those that compute do\n"
                                                                    : "nobody waits for long\n");
    }
}
