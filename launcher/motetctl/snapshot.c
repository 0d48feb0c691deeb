/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/motetctl/snapshot.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/motetctl/row.h"

const char *const snapshot_moods[MOOD_N] = {"computing",  "waiting", "stopped",
                                            "out of MPI", "ended",   "unseen"};

/* ---- values ---- */

bool snapshot_of_job(const struct snapshot *p, const json_t *row)
{
    return strcmp(row_text(row, "job"), p->job) == 0;
}

void *snapshot_zeroed(struct snapshot *p, size_t n, size_t size)
{
    void *at = calloc(n + 1, size);

    if (!at)
        p->failed = true;
    return at;
}

/* ---- making it ---- */

/* In a blocking call. A rank that sleeps wakes once a second to look around, so one of two looks
 * may miss it. */
static bool rank_in_mpi(const json_t *row, const json_t *later)
{
    return json_is_true(json_object_get(row, "waiting")) ||
           json_is_true(json_object_get(later, "waiting"));
}

/* And nothing has come or gone since then. */
static bool stays_in_mpi(const json_t *row, const json_t *later)
{
    return rank_in_mpi(row, later) && row_same(row, later, "sent_messages") &&
           row_same(row, later, "received_messages") && row_same(row, later, "sent_bytes") &&
           row_same(row, later, "received_bytes");
}

static enum snapshot_mood mood_of(const json_t *row, const json_t *later)
{
    const char *mpi = row_text(row, "mpi");

    if (strcmp(row_text(row, "state"), "exited") == 0 || strcmp(mpi, "gone") == 0)
        return MOOD_GONE;
    if (strcmp(row_text(row, "process"), "stopped") == 0)
        return MOOD_STOPPED;
    if (strcmp(mpi, "finalized") == 0)
        return MOOD_LEFT;
    return stays_in_mpi(row, later) ? MOOD_WAITING : MOOD_FREE;
}

static bool rank_asleep(const json_t *row, const json_t *later)
{
    return strcmp(row_text(row, "process"), "sleeping") == 0 &&
           strcmp(row_text(later, "process"), "sleeping") == 0 &&
           json_is_integer(json_object_get(row, "cpu_ms")) && row_same(row, later, "cpu_ms");
}

static int by_number(const void *a, const void *b)
{
    json_int_t x = ((const struct snapshot_rank *)a)->number,
               y = ((const struct snapshot_rank *)b)->number;
    return (x > y) - (x < y);
}

ssize_t snapshot_find_rank(const struct snapshot *p, json_int_t number)
{
    struct snapshot_rank key = {.number = number};
    const struct snapshot_rank *r =
        p->n_ranks ? bsearch(&key, p->ranks, p->n_ranks, sizeof key, by_number) : NULL;
    return r ? r - p->ranks : -1;
}

static int by_from(const void *a, const void *b)
{
    size_t x = ((const struct snapshot_edge *)a)->from, y = ((const struct snapshot_edge *)b)->from;
    return (x > y) - (x < y);
}

static int by_rank(const void *a, const void *b)
{
    size_t x = ((const struct snapshot_call *)a)->rank, y = ((const struct snapshot_call *)b)->rank;
    return (x > y) - (x < y);
}

static void take_ranks(struct snapshot *p, const json_t *rows, const json_t *later)
{
    const json_t *row, *again;
    size_t i, k = 0;

    size_t room = json_array_size(rows) + json_array_size(p->queues);
    p->ranks = snapshot_zeroed(p, room, sizeof *p->ranks);
    if (!p->ranks)
        return;
    json_array_foreach(rows, i, row) {
        if (!snapshot_of_job(p, row))
            continue;
        /* Both are in the order of jobs and ranks; who is missing later has ended. */
        while ((again = json_array_get(later, k)) != NULL &&
               (!snapshot_of_job(p, again) || row_number(again, "rank") < row_number(row, "rank")))
            k++;
        bool there = again && row_number(again, "rank") == row_number(row, "rank");
        p->ranks[p->n_ranks++] =
            (struct snapshot_rank){.number = row_number(row, "rank"),
                                   .node = row_text(row, "node"),
                                   .mood = there ? mood_of(again, row) : MOOD_GONE,
                                   .in_mpi = there && rank_in_mpi(row, again),
                                   .asleep = there && rank_asleep(row, again)};
    }
    qsort(p->ranks, p->n_ranks, sizeof *p->ranks, by_number);
}

/* Adds the ranks that others wait for and that no node has told of. */
static void take_unseen(struct snapshot *p)
{
    const json_t *row;
    size_t i, n_seen = p->n_ranks, n = n_seen;

    json_array_foreach(p->queues, i, row) {
        const json_t *peer = json_object_get(row, "peer_world");
        if (snapshot_of_job(p, row) && json_is_integer(peer) && json_integer_value(peer) >= 0 &&
            snapshot_find_rank(p, json_integer_value(peer)) < 0)
            p->ranks[n++] = (struct snapshot_rank){
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
    const struct snapshot_member *x = a, *y = b;
    int order = (x->rank > y->rank) - (x->rank < y->rank);
    return order ? order
                 : (x->communicator > y->communicator) - (x->communicator < y->communicator);
}

const json_t *snapshot_member_of(const struct snapshot *p, size_t rank, json_int_t communicator)
{
    struct snapshot_member key = {.rank = rank, .communicator = communicator};
    const struct snapshot_member *m =
        p->n_members ? bsearch(&key, p->members, p->n_members, sizeof key, by_rank_and_communicator)
                     : NULL;
    return m ? m->row : NULL;
}

static void take_members(struct snapshot *p, const json_t *rows)
{
    const json_t *row;
    size_t i;

    p->members = snapshot_zeroed(p, json_array_size(rows), sizeof *p->members);
    if (!p->members)
        return;
    json_array_foreach(rows, i, row) {
        ssize_t rank =
            snapshot_of_job(p, row) ? snapshot_find_rank(p, row_number(row, "rank")) : -1;
        if (rank >= 0)
            p->members[p->n_members++] =
                (struct snapshot_member){(size_t)rank, row_number(row, "communicator"), row};
    }
    qsort(p->members, p->n_members, sizeof *p->members, by_rank_and_communicator);
}

static void take_call(struct snapshot *p, size_t rank, const json_t *row)
{
    struct snapshot_call *call = &p->calls[p->n_calls++];
    const json_t *member = snapshot_member_of(p, rank, row_number(row, "communicator"));

    *call = (struct snapshot_call){.rank = rank,
                                   .waits = strcmp(row_text(row, "queue"), "call") == 0,
                                   .collective = row_is_collective(row),
                                   .communicator = row_number(row, "communicator"),
                                   .sequence = row_number(row, "sequence"),
                                   .leader = member ? row_number(member, "leader_world") : -1,
                                   .form = row_text(row, "form"),
                                   .row = row};
}

static void take_queues(struct snapshot *p)
{
    const json_t *row;
    size_t i;

    p->edges = snapshot_zeroed(p, json_array_size(p->queues), sizeof *p->edges);
    p->calls = snapshot_zeroed(p, json_array_size(p->queues), sizeof *p->calls);
    if (!p->edges || !p->calls)
        return;
    json_array_foreach(p->queues, i, row) {
        const char *queue = row_text(row, "queue");
        ssize_t from =
            snapshot_of_job(p, row) ? snapshot_find_rank(p, row_number(row, "rank")) : -1;
        if (from < 0 || strcmp(queue, "unexpected") == 0)
            continue;
        if (json_is_string(json_object_get(row, "call"))) {
            take_call(p, (size_t)from, row);
            continue;
        }
        if (p->ranks[from].mood != MOOD_WAITING || !json_object_get(row, "peer"))
            continue;
        json_t *peer = json_object_get(row, "peer_world");
        ssize_t to = json_is_integer(peer) ? snapshot_find_rank(p, json_integer_value(peer)) : -1;
        p->edges[p->n_edges++] = (struct snapshot_edge){.from = (size_t)from, .to = to, .row = row};
        p->ranks[from].has_edges = true;
    }
    qsort(p->edges, p->n_edges, sizeof *p->edges, by_from);
    qsort(p->calls, p->n_calls, sizeof *p->calls, by_rank);
}

/* Who is in young calls only does not wait for long; where no calls are shown, who waits for young
 * requests only. */
static void drop_young(struct snapshot *p)
{
    SNAPSHOT_AUTO json_int_t *edge_ms = snapshot_zeroed(p, p->n_ranks, sizeof *edge_ms);
    SNAPSHOT_AUTO json_int_t *call_ms = snapshot_zeroed(p, p->n_ranks, sizeof *call_ms);
    SNAPSHOT_AUTO bool *has_call = snapshot_zeroed(p, p->n_ranks, sizeof *has_call);
    size_t n = 0;

    if (!edge_ms || !call_ms || !has_call)
        return;

    for (size_t i = 0; i < p->n_edges; i++) {
        json_int_t age_ms = row_number(p->edges[i].row, "age_ms");
        if (age_ms > edge_ms[p->edges[i].from])
            edge_ms[p->edges[i].from] = age_ms;
    }
    for (size_t i = 0; i < p->n_calls; i++) {
        json_int_t age_ms = row_number(p->calls[i].row, "age_ms");
        has_call[p->calls[i].rank] |= p->calls[i].waits;
        if (p->calls[i].waits && age_ms > call_ms[p->calls[i].rank])
            call_ms[p->calls[i].rank] = age_ms;
    }
    for (size_t r = 0; r < p->n_ranks; r++) {
        struct snapshot_rank *rank = &p->ranks[r];
        bool young = has_call[r] ? call_ms[r] < SNAPSHOT_YOUNG_MS
                                 : rank->has_edges && edge_ms[r] < SNAPSHOT_YOUNG_MS;
        if (rank->mood == MOOD_WAITING && young)
            rank->mood = MOOD_FREE;
    }
    for (size_t i = 0; i < p->n_edges; i++)
        if (p->ranks[p->edges[i].from].mood == MOOD_WAITING)
            p->edges[n++] = p->edges[i];
    p->n_edges = n;
}

int snapshot_make(const char *job, const json_t *ranks, const json_t *queues,
                  const json_t *communicators, const json_t *later, struct snapshot *ret_snapshot)
{
    *ret_snapshot = (struct snapshot){.job = job, .queues = queues, .findings = json_array()};
    take_ranks(ret_snapshot, ranks, later);
    if (!ret_snapshot->failed) {
        take_unseen(ret_snapshot);
        take_members(ret_snapshot, communicators);
        take_queues(ret_snapshot);
        drop_young(ret_snapshot);
    }
    if (!ret_snapshot->failed)
        return 0;
    snapshot_free(ret_snapshot);
    json_decref(ret_snapshot->findings);
    return -ENOMEM;
}

void snapshot_free(struct snapshot *p)
{
    free(p->ranks);
    free(p->edges);
    free(p->calls);
    free(p->members);
}

/* ---- looking at it ---- */

const struct snapshot_edge *snapshot_edges_of(const struct snapshot *p, size_t rank, size_t *ret_n)
{
    struct snapshot_edge key = {.from = rank};
    const struct snapshot_edge *e =
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

const struct snapshot_call *snapshot_calls_of(const struct snapshot *p, size_t rank, size_t *ret_n)
{
    struct snapshot_call key = {.rank = rank};
    const struct snapshot_call *c =
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

const struct snapshot_call *snapshot_call_of(const struct snapshot *p, size_t rank,
                                             const json_t *entry)
{
    size_t n;
    const struct snapshot_call *calls = snapshot_calls_of(p, rank, &n), *best = NULL;
    bool best_fits = false;

    for (const struct snapshot_call *c = calls; c < calls + n; c++) {
        bool fits = entry && c->collective == row_is_collective(entry);
        if (!c->waits || (best && best_fits && !fits))
            continue;
        if (!best || (fits && !best_fits) ||
            row_number(c->row, "age_ms") > row_number(best->row, "age_ms"))
            best = c;
        best_fits = best == c ? fits : best_fits;
    }
    return best;
}

static bool call_is_wait(const struct snapshot_call *c)
{
    return c->waits && strncmp(row_text(c->row, "call"), "MPI_Wait", 8) == 0;
}

const struct snapshot_call *snapshot_wait_of(const struct snapshot *p,
                                             const struct snapshot_call *collective)
{
    size_t n;
    const struct snapshot_call *calls = snapshot_calls_of(p, collective->rank, &n);

    if (collective->waits)
        return collective;
    for (const struct snapshot_call *c = calls; c < calls + n; c++)
        if (call_is_wait(c))
            return c;
    return NULL;
}

/* ---- words ---- */

json_t *snapshot_say(struct snapshot *p, const char *kind, const char *fmt, ...)
{
    json_t *ranks = json_array();
    char text[SNAPSHOT_TEXT];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    json_array_append_new(p->findings,
                          json_pack("{s:s, s:o, s:s}", "kind", kind, "ranks", ranks, "text", text));
    return ranks;
}

const char *snapshot_tag(const json_t *row, char text[32])
{
    json_t *tag = json_object_get(row, "tag");

    if (json_is_integer(tag))
        snprintf(text, 32, "tag %" JSON_INTEGER_FORMAT, json_integer_value(tag));
    else
        snprintf(text, 32, "any tag");
    return text;
}

const char *snapshot_comm(const json_t *row, char text[SNAPSHOT_WORDS])
{
    json_int_t id = row_number(row, "communicator");
    const char *name = row_text(row, "communicator_name");

    if (id == 0)
        snprintf(text, SNAPSHOT_WORDS, "MPI_COMM_WORLD");
    else if (name[0])
        snprintf(text, SNAPSHOT_WORDS, "communicator %" JSON_INTEGER_FORMAT " (%.64s)", id, name);
    else
        snprintf(text, SNAPSHOT_WORDS, "communicator %" JSON_INTEGER_FORMAT, id);
    return text;
}

const char *snapshot_doing(const json_t *row)
{
    static const char *const words[][2] = {{"posted", "receive"},
                                           {"pending", "send without room"},
                                           {"rendezvous_out", "announced send"},
                                           {"rendezvous_in", "large receive"}};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(row_text(row, "queue"), words[i][0]) == 0)
            return words[i][1];
    return "request";
}

/* "in MPI_Barrier on MPI_COMM_WORLD", "in MPI_Wait for MPI_Ibarrier on MPI_COMM_WORLD", "in
 * MPI_Recv, receive from rank 3, tag 7". */
static const char *in_call(const struct snapshot *p, size_t rank, const struct snapshot_call *call,
                           char text[SNAPSHOT_WORDS])
{
    char comm[SNAPSHOT_WORDS], tag[32], peer[40] = "any rank";
    const char *function = call ? row_text(call->row, "call") : "MPI";
    size_t n_edges, n_calls;
    const struct snapshot_edge *e = snapshot_edges_of(p, rank, &n_edges), *end = e + n_edges;
    const struct snapshot_call *c = snapshot_calls_of(p, rank, &n_calls), *last = c + n_calls;

    snprintf(text, SNAPSHOT_WORDS, "in %.40s", function);
    if (call && call->collective) {
        snprintf(text, SNAPSHOT_WORDS, "in %.40s on %.120s", function,
                 snapshot_comm(call->row, comm));
        return text;
    }
    while (e < end && row_is_collective(e->row))
        e++;
    if (e < end) {
        if (e->to >= 0)
            snprintf(peer, sizeof peer, "rank %" JSON_INTEGER_FORMAT, p->ranks[e->to].number);
        snprintf(text, SNAPSHOT_WORDS, "in %.40s, %s %s %s, %s", function, snapshot_doing(e->row),
                 strstr(snapshot_doing(e->row), "send") ? "to" : "from", peer,
                 snapshot_tag(e->row, tag));
        return text;
    }
    while (c < last && (c->waits || !c->collective))
        c++;
    if (c < last && call && call_is_wait(call))
        snprintf(text, SNAPSHOT_WORDS, "in %.40s for %.40s on %.120s", function,
                 row_text(c->row, "call"), snapshot_comm(c->row, comm));
    return text;
}

/* All that its threads are in. */
static const char *in_calls(const struct snapshot *p, size_t rank, char text[SNAPSHOT_WORDS])
{
    char one[SNAPSHOT_WORDS];
    size_t n, len = 0;
    const struct snapshot_call *calls = snapshot_calls_of(p, rank, &n);

    for (const struct snapshot_call *c = calls; c < calls + n && len < SNAPSHOT_WORDS; c++)
        if (c->waits)
            len += (size_t)snprintf(text + len, SNAPSHOT_WORDS - len, "%s%s", len ? " and " : "",
                                    in_call(p, rank, c, one));
    return len ? text : in_call(p, rank, NULL, text);
}

const char *snapshot_rank_does(const struct snapshot *p, size_t rank, char text[SNAPSHOT_WORDS])
{
    char call[SNAPSHOT_WORDS];

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
        snprintf(text, SNAPSHOT_WORDS, "is %.240s", in_calls(p, rank, call));
        return text;
    case MOOD_UNSEEN:
        return "is on a node that does not answer";
    case MOOD_GONE:
    case MOOD_N:
        break;
    }
    return "has ended";
}

const char *snapshot_ranks(const struct snapshot *p, const bool *marked, char text[SNAPSHOT_WORDS])
{
    size_t n = 0, n_rows = 0, len = 0;

    for (size_t r = 0; r < p->n_ranks; r++)
        n += marked[r];
    len = (size_t)snprintf(text, SNAPSHOT_WORDS, n == 1 ? "rank " : "ranks ");
    for (size_t r = 0; r < p->n_ranks; r++) {
        size_t end = r;
        if (!marked[r])
            continue;
        while (end + 1 < p->n_ranks && marked[end + 1] &&
               p->ranks[end + 1].number == p->ranks[end].number + 1)
            end++;
        if (n_rows++ == SNAPSHOT_NAMED) {
            snprintf(text + len, SNAPSHOT_WORDS - len, " and more");
            return text;
        }
        /* Sixteen rows of two numbers of seven digits leave room. */
        len += (size_t)snprintf(text + len, SNAPSHOT_WORDS - len, "%s%" JSON_INTEGER_FORMAT,
                                n_rows > 1 ? ", " : "", p->ranks[r].number);
        if (end > r && len < SNAPSHOT_WORDS)
            len += (size_t)snprintf(text + len, SNAPSHOT_WORDS - len, "%s%" JSON_INTEGER_FORMAT,
                                    end == r + 1 ? ", " : "-", p->ranks[end].number);
        if (len >= SNAPSHOT_WORDS)
            return text;
        r = end;
    }
    return text;
}
