/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/io/parcel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/io/access/marks.h"
#include "client/p2p/p2p.h"
#include "client/transport/end.h"

void *parcel_alloc(size_t n_bytes)
{
    void *p = malloc(n_bytes > 0 ? n_bytes : 1);
    if (!p)
        end_no_memory(__func__, "a collective access of a file", n_bytes);
    return p;
}

void parcel_must(int err)
{
    if (err)
        end_no_memory(__func__, "messages of a collective access of a file", 0);
}

static void parcel_isend(const struct exchange_call *call, int rank, enum parcel_tag tag,
                         const void *data, size_t n, struct request **ret_request)
{
    parcel_must(p2p_isend(buffer_of_bytes(data, (MPI_Count)n),
                          envelope_user(call->file->comm, rank, call->tag + (int)tag), P2P_STANDARD,
                          ret_request));
}

static void parcel_irecv(const struct exchange_call *call, int rank, enum parcel_tag tag,
                         void *data, size_t n, struct request **ret_request)
{
    parcel_must(p2p_irecv(buffer_of_bytes(data, (MPI_Count)n),
                          envelope_user(call->file->comm, rank, call->tag + (int)tag),
                          ret_request));
}

/* True when there is none, or it is over and forgotten; then *ret_bytes received. */
static bool request_gone(struct request **r, MPI_Count *ret_bytes)
{
    if (!*r)
        return true;
    if (!request_is_complete(*r))
        return false;
    if (ret_bytes)
        *ret_bytes = (*r)->bytes;
    request_finish(*r, MPI_STATUS_IGNORE);
    *r = NULL;
    return true;
}

/* ---- the sender's side ---- */

static void add_pieces(struct parcel *p, const struct pieces *more)
{
    size_t n = (size_t)p->head.n_pieces + more->n;
    if (n > p->max_pieces) {
        size_t most = n < 2 * p->max_pieces ? 2 * p->max_pieces : n;
        struct piece *grown = parcel_alloc(most * sizeof *grown);
        memcpy(grown, p->pieces, (size_t)p->head.n_pieces * sizeof *grown);
        if (p->pieces != p->head.pieces)
            free(p->pieces);
        p->pieces = grown;
        p->max_pieces = most;
    }
    memcpy(p->pieces + p->head.n_pieces, more->at, more->n * sizeof more->at[0]);
    p->head.n_pieces = n;
}

static void find_pieces(struct parcel *p, const struct exchange_call *call, MPI_Count at,
                        MPI_Count bytes)
{
    struct pieces_cursor c = {.element = NULL};
    struct pieces some;
    p->pieces = p->head.pieces;
    p->max_pieces = PARCEL_INLINE;
    view_cursor(call->view, at, bytes, &c.type);
    while (pieces_next(&c, INT64_MAX, &some) > 0)
        add_pieces(p, &some);
    if (p->pieces != p->head.pieces)
        memcpy(p->head.pieces, p->pieces, sizeof p->head.pieces);
}

/* Where the bytes from `at` of the stream on are in memory if they are one run there. */
static char *in_place(const struct exchange_call *call, MPI_Count at)
{
    const struct buffer *b = &call->memory;
    if (!datatype_is_run(b->type, b->count))
        return NULL;
    return (char *)datatype_run_start(b->type, b->base) + (at - call->from);
}

static void memory_cursor(const struct exchange_call *call, MPI_Count at, struct type_cursor *c)
{
    type_cursor_init(c, call->memory.type, call->memory.count, call->memory.base);
    type_cursor_seek(c, at - call->from);
}

void parcel_post(struct parcel *p, const struct exchange_call *call, int aggregator, MPI_Count at,
                 MPI_Count bytes)
{
    struct type_cursor c;
    memset(p, 0, sizeof *p);
    p->at = at;
    p->head.bytes = (uint64_t)bytes;
    if (bytes > 0)
        find_pieces(p, call, at, bytes);
    parcel_isend(call, aggregator, PARCEL_HEAD, &p->head, sizeof p->head, &p->requests[0]);
    if (p->head.n_pieces > PARCEL_INLINE)
        parcel_isend(call, aggregator, PARCEL_PIECES, p->pieces,
                     (size_t)p->head.n_pieces * sizeof *p->pieces, &p->requests[1]);
    if (bytes == 0)
        return;
    char *data = in_place(call, at);
    if (!data)
        data = p->data = parcel_alloc((size_t)bytes);
    if (!call->write) {
        parcel_irecv(call, aggregator, PARCEL_BACK, data, (size_t)bytes, &p->requests[2]);
        return;
    }
    if (p->data) {
        memory_cursor(call, at, &c);
        type_cursor_pack(&c, data, (size_t)bytes);
    }
    parcel_isend(call, aggregator, PARCEL_DATA, data, (size_t)bytes, &p->requests[2]);
}

bool parcel_is_over(struct parcel *p, const struct exchange_call *call, MPI_Count *ret_moved)
{
    MPI_Count came = 0;
    bool over = request_gone(&p->requests[0], NULL);
    over = request_gone(&p->requests[1], NULL) && over;
    if (!over || !request_gone(&p->requests[2], &came))
        return false;
    if (!call->write && p->data && came > 0) {
        struct type_cursor c;
        memory_cursor(call, p->at, &c);
        type_cursor_unpack(&c, p->data, (size_t)came);
    }
    *ret_moved = call->write ? (MPI_Count)p->head.bytes : came;
    free(p->data);
    if (p->pieces != p->head.pieces)
        free(p->pieces);
    return true;
}

/* ---- the aggregator's side ---- */

void source_post(struct source *s, const struct exchange_call *call, int rank)
{
    s->state = SOURCE_HEAD;
    s->pieces = NULL;
    s->data = NULL;
    parcel_irecv(call, rank, PARCEL_HEAD, &s->head, sizeof s->head, &s->request);
}

static _Noreturn void refuse(int rank)
{
    char text[96];
    snprintf(text, sizeof text, "rank %d sent pieces outside of a window of a collective access",
             rank);
    end_job(EXIT_FAILURE, text);
}

/* Numbers of another process: they must lie in the window and add up. */
static void check_pieces(const struct source *s, int rank, const struct window *w)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < s->head.n_pieces; i++) {
        const struct piece *p = &s->pieces[i];
        int64_t low, high;
        uint64_t bytes;
        if (!piece_span(p, &low, &high) || low < w->begin || high - w->begin > w->n_bytes ||
            __builtin_mul_overflow(p->bytes, p->count, &bytes) ||
            __builtin_add_overflow(sum, bytes, &sum))
            refuse(rank);
    }
    if (sum != s->head.bytes)
        refuse(rank);
}

static bool is_one_run(const struct source *s)
{
    return s->head.n_pieces == 1 && s->pieces[0].count == 1;
}

/* Copies the pieces' bytes between the window and a stream of them; of what is read, up to the end
 * of the file. Returns the bytes. */
static size_t copy_pieces(const struct source *s, const struct window *w, char *stream,
                          struct marks *marks)
{
    size_t done = 0;
    for (uint64_t i = 0; i < s->head.n_pieces; i++) {
        const struct piece *p = &s->pieces[i];
        size_t n = (size_t)p->bytes;
        int64_t at = p->offset - w->begin;
        for (uint64_t k = 0; k < p->count; k++, at += p->stride, done += n) {
            if (marks) {
                memcpy(w->bytes + at, stream + done, n);
                marks_set(marks, (size_t)at, n);
                continue;
            }
            if (at + (int64_t)n > w->valid) {
                size_t left = at < w->valid ? (size_t)(w->valid - at) : 0;
                memcpy(stream + done, w->bytes + at, left);
                return done + left;
            }
            memcpy(stream + done, w->bytes + at, n);
        }
    }
    return done;
}

static void source_take_pieces(struct source *s, const struct exchange_call *call, int rank,
                               const struct window *w)
{
    check_pieces(s, rank, w);
    if (!call->write || s->head.bytes == 0) {
        s->state = SOURCE_READY;
        return;
    }
    char *to = is_one_run(s) ? w->bytes + (s->pieces[0].offset - w->begin) : NULL;
    if (!to)
        to = s->data = parcel_alloc((size_t)s->head.bytes);
    s->state = SOURCE_DATA;
    parcel_irecv(call, rank, PARCEL_DATA, to, (size_t)s->head.bytes, &s->request);
}

static void source_take_head(struct source *s, const struct exchange_call *call, int rank,
                             const struct window *w)
{
    if (s->head.n_pieces > s->head.bytes || s->head.bytes > (uint64_t)w->n_bytes)
        refuse(rank);
    s->pieces = s->head.pieces;
    if (s->head.n_pieces <= PARCEL_INLINE) {
        source_take_pieces(s, call, rank, w);
        return;
    }
    size_t n = (size_t)s->head.n_pieces * sizeof *s->pieces;
    s->pieces = parcel_alloc(n);
    s->state = SOURCE_PIECES;
    parcel_irecv(call, rank, PARCEL_PIECES, s->pieces, n, &s->request);
}

static void source_take_data(struct source *s, const struct window *w, struct marks *marks)
{
    if (s->data)
        copy_pieces(s, w, s->data, marks);
    else
        marks_set(marks, (size_t)(s->pieces[0].offset - w->begin), (size_t)s->head.bytes);
    free(s->data);
    s->data = NULL;
    s->state = SOURCE_READY;
}

int source_advance(struct source *s, const struct exchange_call *call, int rank,
                   const struct window *w, struct marks *marks)
{
    int n = 0;
    while (s->state >= SOURCE_HEAD && s->state <= SOURCE_DATA && request_gone(&s->request, NULL)) {
        n++;
        if (s->state == SOURCE_HEAD)
            source_take_head(s, call, rank, w);
        else if (s->state == SOURCE_PIECES)
            source_take_pieces(s, call, rank, w);
        else
            source_take_data(s, w, marks);
    }
    return n;
}

void source_reply(struct source *s, const struct exchange_call *call, int rank,
                  const struct window *w)
{
    s->state = SOURCE_BACK;
    if (s->head.bytes == 0)
        return;
    size_t n = (size_t)s->head.bytes;
    const char *from;
    if (is_one_run(s)) {
        int64_t at = s->pieces[0].offset - w->begin, left = w->valid > at ? w->valid - at : 0;
        from = w->bytes + at;
        n = left < (int64_t)n ? (size_t)left : n;
    } else {
        from = s->data = parcel_alloc(n);
        n = copy_pieces(s, w, s->data, NULL);
    }
    parcel_isend(call, rank, PARCEL_BACK, from, n, &s->request);
}

bool source_is_back(struct source *s)
{
    if (s->state == SOURCE_IDLE)
        return true;
    if (!request_gone(&s->request, NULL))
        return false;
    if (s->pieces != s->head.pieces)
        free(s->pieces);
    free(s->data);
    s->data = NULL;
    s->state = SOURCE_IDLE;
    return true;
}

void source_span(const struct source *s, MPI_Offset *low, MPI_Offset *high)
{
    for (uint64_t i = 0; i < s->head.n_pieces; i++) {
        int64_t from = 0, to = 0;
        piece_span(&s->pieces[i], &from, &to);
        *low = from < *low ? from : *low;
        *high = to > *high ? to : *high;
    }
}
