/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/motetctl_picture.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/motetctl_waits.h"

const char *const picture_moods[MOOD_N] = {"computing",  "waiting", "stopped",
                                           "out of MPI", "ended",   "unseen"};

/* ---- values ---- */

const char *picture_text(const json_t *row, const char *key)
{
    const char *s = json_string_value(json_object_get(row, key));
    return s ? s : "";
}

json_int_t picture_number(const json_t *row, const char *key)
{
    return json_integer_value(json_object_get(row, key));
}

bool picture_of_job(const struct picture *p, const json_t *row)
{
    return strcmp(picture_text(row, "job"), p->job) == 0;
}

bool picture_same(const json_t *a, const json_t *b, const char *key)
{
    return json_equal(json_object_get(a, key), json_object_get(b, key));
}

bool picture_is_collective(const json_t *row)
{
    return json_is_true(json_object_get(row, "collective"));
}

void *picture_zeroed(size_t n, size_t size)
{
    void *p = calloc(n + 1, size);

    if (!p) {
        fputs("out of memory\n", stderr);
        exit(1);
    }
    return p;
}

/* ---- making it ---- */

/* In a blocking call. A rank that sleeps wakes once a second to look around, so one of two looks
 * may miss it. */
static bool is_in_mpi(const json_t *row, const json_t *later)
{
    return json_is_true(json_object_get(row, "waiting")) ||
           json_is_true(json_object_get(later, "waiting"));
}

/* And nothing has come or gone since then. */
static bool stays_in_mpi(const json_t *row, const json_t *later)
{
    return is_in_mpi(row, later) && picture_same(row, later, "sent_messages") &&
           picture_same(row, later, "received_messages") &&
           picture_same(row, later, "sent_bytes") && picture_same(row, later, "received_bytes");
}

static enum picture_mood mood_of(const json_t *row, const json_t *later)
{
    const char *mpi = picture_text(row, "mpi");

    if (strcmp(picture_text(row, "state"), "exited") == 0 || strcmp(mpi, "gone") == 0)
        return MOOD_GONE;
    if (strcmp(picture_text(row, "process"), "stopped") == 0)
        return MOOD_STOPPED;
    if (strcmp(mpi, "finalized") == 0)
        return MOOD_LEFT;
    return stays_in_mpi(row, later) ? MOOD_WAITING : MOOD_FREE;
}

static bool asleep(const json_t *row, const json_t *later)
{
    return strcmp(picture_text(row, "process"), "sleeping") == 0 &&
           strcmp(picture_text(later, "process"), "sleeping") == 0 &&
           json_is_integer(json_object_get(row, "cpu_ms")) && picture_same(row, later, "cpu_ms");
}

static int by_number(const void *a, const void *b)
{
    json_int_t x = ((const struct picture_rank *)a)->number,
               y = ((const struct picture_rank *)b)->number;
    return (x > y) - (x < y);
}

ssize_t picture_find_rank(const struct picture *p, json_int_t number)
{
    struct picture_rank key = {.number = number};
    const struct picture_rank *r =
        p->n_ranks ? bsearch(&key, p->ranks, p->n_ranks, sizeof key, by_number) : NULL;
    return r ? r - p->ranks : -1;
}

static int by_from(const void *a, const void *b)
{
    size_t x = ((const struct picture_edge *)a)->from, y = ((const struct picture_edge *)b)->from;
    return (x > y) - (x < y);
}

static int by_rank(const void *a, const void *b)
{
    size_t x = ((const struct picture_call *)a)->rank, y = ((const struct picture_call *)b)->rank;
    return (x > y) - (x < y);
}

static void take_ranks(struct picture *p, const json_t *rows, const json_t *later)
{
    const json_t *row, *again;
    size_t i, k = 0;

    p->ranks = picture_zeroed(json_array_size(rows) + json_array_size(p->queues), sizeof *p->ranks);
    json_array_foreach(rows, i, row) {
        if (!picture_of_job(p, row))
            continue;
        /* Both are in the order of jobs and ranks; who is missing later has ended. */
        while ((again = json_array_get(later, k)) != NULL &&
               (!picture_of_job(p, again) ||
                picture_number(again, "rank") < picture_number(row, "rank")))
            k++;
        bool there = again && picture_number(again, "rank") == picture_number(row, "rank");
        p->ranks[p->n_ranks++] =
            (struct picture_rank){.number = picture_number(row, "rank"),
                                  .node = picture_text(row, "node"),
                                  .mood = there ? mood_of(again, row) : MOOD_GONE,
                                  .in_mpi = there && is_in_mpi(row, again),
                                  .asleep = there && asleep(row, again)};
    }
    qsort(p->ranks, p->n_ranks, sizeof *p->ranks, by_number);
}

/* Adds the ranks that others wait for and that no node has told of. */
static void take_unseen(struct picture *p)
{
    const json_t *row;
    size_t i, n_seen = p->n_ranks, n = n_seen;

    json_array_foreach(p->queues, i, row) {
        const json_t *peer = json_object_get(row, "peer_world");
        if (picture_of_job(p, row) && json_is_integer(peer) && json_integer_value(peer) >= 0 &&
            picture_find_rank(p, json_integer_value(peer)) < 0)
            p->ranks[n++] = (struct picture_rank){
                .number = json_integer_value(peer), .node = "", .mood = MOOD_UNSEEN};
    }
    qsort(p->ranks + n_seen, n - n_seen, sizeof *p->ranks, by_number);
    for (i = n_seen; i < n; i++)
        if (i == n_seen || p->ranks[i].number != p->ranks[p->n_ranks - 1].number)
            p->ranks[p->n_ranks++] = p->ranks[i];
    qsort(p->ranks, p->n_ranks, sizeof *p->ranks, by_number);
}

static int by_rank_and_communicator(const void *a, const void *b)
{
    const struct picture_member *x = a, *y = b;
    int order = (x->rank > y->rank) - (x->rank < y->rank);
    return order ? order
                 : (x->communicator > y->communicator) - (x->communicator < y->communicator);
}

const json_t *picture_member_of(const struct picture *p, size_t rank, json_int_t communicator)
{
    struct picture_member key = {.rank = rank, .communicator = communicator};
    const struct picture_member *m =
        p->n_members ? bsearch(&key, p->members, p->n_members, sizeof key, by_rank_and_communicator)
                     : NULL;
    return m ? m->row : NULL;
}

static void take_members(struct picture *p, const json_t *rows)
{
    const json_t *row;
    size_t i;

    p->members = picture_zeroed(json_array_size(rows), sizeof *p->members);
    json_array_foreach(rows, i, row) {
        ssize_t rank =
            picture_of_job(p, row) ? picture_find_rank(p, picture_number(row, "rank")) : -1;
        if (rank >= 0)
            p->members[p->n_members++] =
                (struct picture_member){(size_t)rank, picture_number(row, "communicator"), row};
    }
    qsort(p->members, p->n_members, sizeof *p->members, by_rank_and_communicator);
}

static void take_call(struct picture *p, size_t rank, const json_t *row)
{
    struct picture_call *call = &p->calls[p->n_calls++];
    const json_t *member = picture_member_of(p, rank, picture_number(row, "communicator"));

    *call = (struct picture_call){.rank = rank,
                                  .waits = strcmp(picture_text(row, "queue"), "call") == 0,
                                  .collective = picture_is_collective(row),
                                  .communicator = picture_number(row, "communicator"),
                                  .sequence = picture_number(row, "sequence"),
                                  .leader = member ? picture_number(member, "leader_world") : -1,
                                  .form = picture_text(row, "form"),
                                  .row = row};
}

static void take_queues(struct picture *p)
{
    const json_t *row;
    size_t i;

    p->edges = picture_zeroed(json_array_size(p->queues), sizeof *p->edges);
    p->calls = picture_zeroed(json_array_size(p->queues), sizeof *p->calls);
    json_array_foreach(p->queues, i, row) {
        const char *queue = picture_text(row, "queue");
        ssize_t from =
            picture_of_job(p, row) ? picture_find_rank(p, picture_number(row, "rank")) : -1;
        if (from < 0 || strcmp(queue, "unexpected") == 0)
            continue;
        if (json_is_string(json_object_get(row, "call"))) {
            take_call(p, (size_t)from, row);
            continue;
        }
        if (p->ranks[from].mood != MOOD_WAITING || !json_object_get(row, "peer"))
            continue;
        json_t *peer = json_object_get(row, "peer_world");
        ssize_t to = json_is_integer(peer) ? picture_find_rank(p, json_integer_value(peer)) : -1;
        p->edges[p->n_edges++] = (struct picture_edge){.from = (size_t)from, .to = to, .row = row};
        p->ranks[from].has_edges = true;
    }
    qsort(p->edges, p->n_edges, sizeof *p->edges, by_from);
    qsort(p->calls, p->n_calls, sizeof *p->calls, by_rank);
}

/* Who is in young calls only does not wait for long; where no calls are shown, who waits for young
 * requests only. */
static void drop_young(struct picture *p)
{
    json_int_t *edge_ms = picture_zeroed(p->n_ranks, sizeof *edge_ms),
               *call_ms = picture_zeroed(p->n_ranks, sizeof *call_ms);
    bool *has_call = picture_zeroed(p->n_ranks, sizeof *has_call);
    size_t n = 0;

    for (size_t i = 0; i < p->n_edges; i++) {
        json_int_t age_ms = picture_number(p->edges[i].row, "age_ms");
        if (age_ms > edge_ms[p->edges[i].from])
            edge_ms[p->edges[i].from] = age_ms;
    }
    for (size_t i = 0; i < p->n_calls; i++) {
        json_int_t age_ms = picture_number(p->calls[i].row, "age_ms");
        has_call[p->calls[i].rank] |= p->calls[i].waits;
        if (p->calls[i].waits && age_ms > call_ms[p->calls[i].rank])
            call_ms[p->calls[i].rank] = age_ms;
    }
    for (size_t r = 0; r < p->n_ranks; r++) {
        struct picture_rank *rank = &p->ranks[r];
        bool young = has_call[r] ? call_ms[r] < MOTETCTL_WAITS_MS
                                 : rank->has_edges && edge_ms[r] < MOTETCTL_WAITS_MS;
        if (rank->mood == MOOD_WAITING && young)
            rank->mood = MOOD_FREE;
    }
    for (size_t i = 0; i < p->n_edges; i++)
        if (p->ranks[p->edges[i].from].mood == MOOD_WAITING)
            p->edges[n++] = p->edges[i];
    p->n_edges = n;
    free(edge_ms);
    free(call_ms);
    free(has_call);
}

void picture_make(const char *job, const json_t *ranks, const json_t *queues,
                  const json_t *communicators, const json_t *later, struct picture *ret_picture)
{
    *ret_picture = (struct picture){.job = job, .queues = queues, .findings = json_array()};
    take_ranks(ret_picture, ranks, later);
    take_unseen(ret_picture);
    take_members(ret_picture, communicators);
    take_queues(ret_picture);
    drop_young(ret_picture);
}

void picture_free(struct picture *p)
{
    free(p->ranks);
    free(p->edges);
    free(p->calls);
    free(p->members);
}

/* ---- looking at it ---- */

const struct picture_edge *picture_edges_of(const struct picture *p, size_t rank, size_t *ret_n)
{
    struct picture_edge key = {.from = rank};
    const struct picture_edge *e =
        p->n_edges ? bsearch(&key, p->edges, p->n_edges, sizeof key, by_from) : NULL;

    *ret_n = 0;
    if (!e)
        return p->edges;
    while (e > p->edges && e[-1].from == rank)
        e--;
    while (e + *ret_n < p->edges + p->n_edges && e[*ret_n].from == rank)
        ++*ret_n;
    return e;
}

const struct picture_call *picture_calls_of(const struct picture *p, size_t rank, size_t *ret_n)
{
    struct picture_call key = {.rank = rank};
    const struct picture_call *c =
        p->n_calls ? bsearch(&key, p->calls, p->n_calls, sizeof key, by_rank) : NULL;

    *ret_n = 0;
    if (!c)
        return p->calls;
    while (c > p->calls && c[-1].rank == rank)
        c--;
    while (c + *ret_n < p->calls + p->n_calls && c[*ret_n].rank == rank)
        ++*ret_n;
    return c;
}

const struct picture_call *picture_call_of(const struct picture *p, size_t rank,
                                           const json_t *entry)
{
    size_t n;
    const struct picture_call *calls = picture_calls_of(p, rank, &n), *best = NULL;
    bool best_fits = false;

    for (const struct picture_call *c = calls; c < calls + n; c++) {
        bool fits = entry && c->collective == picture_is_collective(entry);
        if (!c->waits || (best && best_fits && !fits))
            continue;
        if (!best || (fits && !best_fits) ||
            picture_number(c->row, "age_ms") > picture_number(best->row, "age_ms"))
            best = c;
        best_fits = best == c ? fits : best_fits;
    }
    return best;
}

static bool is_wait(const struct picture_call *c)
{
    return c->waits && strncmp(picture_text(c->row, "call"), "MPI_Wait", 8) == 0;
}

const struct picture_call *picture_wait_of(const struct picture *p,
                                           const struct picture_call *collective)
{
    size_t n;
    const struct picture_call *calls = picture_calls_of(p, collective->rank, &n);

    if (collective->waits)
        return collective;
    for (const struct picture_call *c = calls; c < calls + n; c++)
        if (is_wait(c))
            return c;
    return NULL;
}

/* ---- words ---- */

json_t *picture_say(struct picture *p, const char *kind, const char *fmt, ...)
{
    json_t *ranks = json_array();
    char text[PICTURE_TEXT];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    json_array_append_new(p->findings,
                          json_pack("{s:s, s:o, s:s}", "kind", kind, "ranks", ranks, "text", text));
    return ranks;
}

const char *picture_tag(const json_t *row, char text[32])
{
    json_t *tag = json_object_get(row, "tag");

    if (json_is_integer(tag))
        snprintf(text, 32, "tag %" JSON_INTEGER_FORMAT, json_integer_value(tag));
    else
        snprintf(text, 32, "any tag");
    return text;
}

const char *picture_comm(const json_t *row, char text[PICTURE_WORDS])
{
    json_int_t id = picture_number(row, "communicator");
    const char *name = picture_text(row, "communicator_name");

    if (id == 0)
        snprintf(text, PICTURE_WORDS, "MPI_COMM_WORLD");
    else if (name[0])
        snprintf(text, PICTURE_WORDS, "communicator %" JSON_INTEGER_FORMAT " (%.64s)", id, name);
    else
        snprintf(text, PICTURE_WORDS, "communicator %" JSON_INTEGER_FORMAT, id);
    return text;
}

const char *picture_doing(const json_t *row)
{
    static const char *const words[][2] = {{"posted", "receive"},
                                           {"pending", "send without room"},
                                           {"rendezvous_out", "announced send"},
                                           {"rendezvous_in", "large receive"}};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(picture_text(row, "queue"), words[i][0]) == 0)
            return words[i][1];
    return "request";
}

/* "in MPI_Barrier on MPI_COMM_WORLD", "in MPI_Wait for MPI_Ibarrier on MPI_COMM_WORLD", "in
 * MPI_Recv, receive from rank 3, tag 7". */
static const char *in_call(const struct picture *p, size_t rank, const struct picture_call *call,
                           char text[PICTURE_WORDS])
{
    char comm[PICTURE_WORDS], tag[32], peer[40] = "any rank";
    const char *function = call ? picture_text(call->row, "call") : "MPI";
    size_t n_edges, n_calls;
    const struct picture_edge *e = picture_edges_of(p, rank, &n_edges), *end = e + n_edges;
    const struct picture_call *c = picture_calls_of(p, rank, &n_calls), *last = c + n_calls;

    snprintf(text, PICTURE_WORDS, "in %.40s", function);
    if (call && call->collective) {
        snprintf(text, PICTURE_WORDS, "in %.40s on %.120s", function,
                 picture_comm(call->row, comm));
        return text;
    }
    while (e < end && picture_is_collective(e->row))
        e++;
    if (e < end) {
        if (e->to >= 0)
            snprintf(peer, sizeof peer, "rank %" JSON_INTEGER_FORMAT, p->ranks[e->to].number);
        snprintf(text, PICTURE_WORDS, "in %.40s, %s %s %s, %s", function, picture_doing(e->row),
                 strstr(picture_doing(e->row), "send") ? "to" : "from", peer,
                 picture_tag(e->row, tag));
        return text;
    }
    while (c < last && (c->waits || !c->collective))
        c++;
    if (c < last && call && is_wait(call))
        snprintf(text, PICTURE_WORDS, "in %.40s for %.40s on %.120s", function,
                 picture_text(c->row, "call"), picture_comm(c->row, comm));
    return text;
}

/* All that its threads are in. */
static const char *in_calls(const struct picture *p, size_t rank, char text[PICTURE_WORDS])
{
    char one[PICTURE_WORDS];
    size_t n, len = 0;
    const struct picture_call *calls = picture_calls_of(p, rank, &n);

    for (const struct picture_call *c = calls; c < calls + n && len < PICTURE_WORDS; c++)
        if (c->waits)
            len += (size_t)snprintf(text + len, PICTURE_WORDS - len, "%s%s", len ? " and " : "",
                                    in_call(p, rank, c, one));
    return len ? text : in_call(p, rank, NULL, text);
}

const char *picture_rank_does(const struct picture *p, size_t rank, char text[PICTURE_WORDS])
{
    char call[PICTURE_WORDS];

    switch (p->ranks[rank].mood) {
    case MOOD_FREE:
        return p->ranks[rank].in_mpi   ? "goes on in MPI"
               : p->ranks[rank].asleep ? "sleeps outside MPI"
                                       : "computes";
    case MOOD_STOPPED:
        return "is stopped by a signal";
    case MOOD_LEFT:
        return "has called MPI_Finalize";
    case MOOD_WAITING:
        snprintf(text, PICTURE_WORDS, "is %.240s", in_calls(p, rank, call));
        return text;
    case MOOD_UNSEEN:
        return "is on a node that does not answer";
    case MOOD_GONE:
    case MOOD_N:
        break;
    }
    return "has ended";
}

const char *picture_ranks(const struct picture *p, const bool *marked, char text[PICTURE_WORDS])
{
    size_t n = 0, n_rows = 0, len = 0;

    for (size_t r = 0; r < p->n_ranks; r++)
        n += marked[r];
    len = (size_t)snprintf(text, PICTURE_WORDS, n == 1 ? "rank " : "ranks ");
    for (size_t r = 0; r < p->n_ranks; r++) {
        size_t end = r;
        if (!marked[r])
            continue;
        while (end + 1 < p->n_ranks && marked[end + 1] &&
               p->ranks[end + 1].number == p->ranks[end].number + 1)
            end++;
        if (n_rows++ == PICTURE_NAMED) {
            snprintf(text + len, PICTURE_WORDS - len, " and more");
            return text;
        }
        /* Sixteen rows of two numbers of seven digits leave room. */
        len += (size_t)snprintf(text + len, PICTURE_WORDS - len, "%s%" JSON_INTEGER_FORMAT,
                                n_rows > 1 ? ", " : "", p->ranks[r].number);
        if (end > r && len < PICTURE_WORDS)
            len += (size_t)snprintf(text + len, PICTURE_WORDS - len, "%s%" JSON_INTEGER_FORMAT,
                                    end == r + 1 ? ", " : "-", p->ranks[end].number);
        if (len >= PICTURE_WORDS)
            return text;
        r = end;
    }
    return text;
}
