/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/io/exchange.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "client/io/access/access.h"
#include "client/io/access/marks.h"
#include "client/io/parcel.h"
#include "client/transport/end.h"

/* Shares begin on pages where no other unit is asked for: two ranks in one page wait for one
 * another. */
#define SHARE_UNIT ((int64_t)4096)

enum aggregator_state { AGGREGATOR_NEXT, AGGREGATOR_GATHER, AGGREGATOR_FILE, AGGREGATOR_BACK };

struct exchange {
    struct exchange_call call;
    int size, rank, n_aggregators;
    MPI_Offset low, high; /* of all */
    int64_t share;        /* bytes of the file of each aggregator */
    int64_t window_bytes;
    int64_t n_rounds;

    /* This rank's bytes. */
    int64_t round;
    bool posted;
    MPI_Count *next; /* of the stream, for each aggregator: where its next window begins */
    struct parcel *parcels;
    bool *in_flight;
    MPI_Count done;

    /* As an aggregator. */
    int own;
    enum aggregator_state state;
    int64_t own_round;
    MPI_Count own_next;         /* of this rank's own stream in the own share */
    MPI_Count own_from, own_to; /* of it in this window */
    struct source *sources;     /* [size] */
    struct file_window buffer;
    struct window window;
    struct marks marks;
    struct job job;
    int errnum;
};

/* Zeroed, or the job ends: in the middle of a collective call the others wait for this rank. */
static void *exchange_alloc(size_t n_bytes)
{
    return memset(parcel_alloc(n_bytes), 0, n_bytes);
}

/* ---- shares, windows, rounds ---- */

static MPI_Offset share_begin(const struct exchange *x, int aggregator)
{
    MPI_Offset at = x->low + aggregator * x->share;
    return at < x->high ? at : x->high;
}

static void window_of(const struct exchange *x, int aggregator, int64_t round, MPI_Offset *begin,
                      MPI_Offset *end)
{
    MPI_Offset last = share_begin(x, aggregator + 1);
    *begin = share_begin(x, aggregator) + round * x->window_bytes;
    if (*begin > last)
        *begin = last;
    *end = last - *begin < x->window_bytes ? last : *begin + x->window_bytes;
}

static bool touches(const struct exchange *x, int rank, MPI_Offset begin, MPI_Offset end)
{
    const struct member *m = &x->call.members[rank];
    return m->bytes > 0 && begin < end && m->low < end && m->high > begin;
}

/* Where the stream reaches an offset of the file, within what this call accesses. */
static MPI_Count stream_at(const struct exchange *x, MPI_Offset offset)
{
    MPI_Count at = view_below(x->call.view, offset), end = x->call.from + x->call.bytes;
    at = at > x->call.from ? at : x->call.from;
    return at < end ? at : end;
}

static void lay_out_shares(struct exchange *x)
{
    const struct file *file = x->call.file;
    int64_t unit = file->hints.striping_unit ? file->hints.striping_unit : SHARE_UNIT;
    bool first = true;
    for (int i = 0; i < x->size; i++) {
        const struct member *m = &x->call.members[i];
        if (m->bytes == 0)
            continue;
        x->low = first || m->low < x->low ? m->low : x->low;
        x->high = first || m->high > x->high ? m->high : x->high;
        first = false;
    }
    x->low -= x->low % unit;
    int64_t share = (x->high - x->low + x->n_aggregators - 1) / x->n_aggregators;
    x->share = (share + unit - 1) / unit * unit;
    x->window_bytes = file->hints.cb_buffer_size < x->share ? file->hints.cb_buffer_size : x->share;
    x->n_rounds = x->window_bytes > 0 ? (x->share + x->window_bytes - 1) / x->window_bytes : 0;
}

/* ---- this rank's bytes ---- */

static void post_round(struct exchange *x)
{
    for (int a = 0; a < x->n_aggregators; a++) {
        MPI_Offset begin, end;
        window_of(x, a, x->round, &begin, &end);
        if (a == x->own || !touches(x, x->rank, begin, end))
            continue;
        MPI_Count to = stream_at(x, end);
        if (x->round == 0 || x->next[a] < 0)
            x->next[a] = stream_at(x, begin);
        parcel_post(&x->parcels[a], &x->call, x->call.file->aggregators.ranks[a], x->next[a],
                    to - x->next[a]);
        x->next[a] = to;
        x->in_flight[a] = true;
    }
    x->posted = true;
}

static bool round_over(struct exchange *x)
{
    bool over = true;
    for (int a = 0; a < x->n_aggregators; a++) {
        MPI_Count moved = 0;
        if (!x->in_flight[a])
            continue;
        if (parcel_is_over(&x->parcels[a], &x->call, &moved)) {
            x->in_flight[a] = false;
            x->done += moved;
        } else {
            over = false;
        }
    }
    return over;
}

static int advance_own_bytes(struct exchange *x)
{
    int n = 0;
    while (x->round < x->n_rounds) {
        if (!x->posted)
            post_round(x);
        if (!round_over(x))
            break;
        x->round++;
        x->posted = false;
        n++;
    }
    return n;
}

/* ---- the aggregator ---- */

/* This rank's bytes in its own window go by copy. */
static void copy_own(struct exchange *x, bool into_window)
{
    struct type_cursor file, memory;
    struct iovec pieces[64];
    size_t bytes;
    int n;
    if (x->own_from == x->own_to)
        return;
    view_cursor(x->call.view, x->own_from, x->own_to - x->own_from, &file);
    type_cursor_init(&memory, x->call.memory.type, x->call.memory.count, x->call.memory.base);
    type_cursor_seek(&memory, x->own_from - x->call.from);
    while ((n = type_cursor_iov(&file, pieces, 64, SIZE_MAX, &bytes)) > 0) {
        for (int i = 0; i < n; i++) {
            MPI_Offset at = (MPI_Offset)(uintptr_t)pieces[i].iov_base - x->window.begin;
            int64_t length = (int64_t)pieces[i].iov_len, left = x->window.valid - at;
            if (into_window) {
                type_cursor_pack(&memory, x->window.bytes + at, (size_t)length);
                marks_set(&x->marks, (size_t)at, (size_t)length);
                continue;
            }
            left = left < 0 ? 0 : left < length ? left : length;
            x->done += (MPI_Count)type_cursor_unpack(&memory, x->window.bytes + at, (size_t)left);
            if (left < length)
                return;
        }
    }
}

/* An access of one run of the file, between it and the window. */
static size_t access_run_of_window(struct exchange *x, size_t at, size_t n)
{
    struct file *file = x->call.file;
    struct datatype *byte = datatype_predefined(MPI_BYTE);
    struct access a = {.fd = file->fd, .write = x->call.write};
    type_cursor_init(&a.file, byte, (MPI_Count)n,
                     (const void *)(uintptr_t)(x->window.begin + (MPI_Offset)at));
    type_cursor_init(&a.memory, byte, (MPI_Count)n, x->window.bytes + at);
    a.lock.mutex = &file->range_mutex;
    a.lock.each = x->call.write && file->hints.ds_write == FILE_HINT_ENABLE;
    access_run(&a);
    if (a.errnum)
        x->errnum = a.errnum;
    return (size_t)a.done;
}

/* On any thread: what was given goes to the file. */
static void write_window(struct job *job)
{
    struct exchange *x = (struct exchange *)((char *)job - offsetof(struct exchange, job));
    size_t at = 0, n;
    while (!x->errnum && (n = marks_next(&x->marks, at, &at)) > 0) {
        access_run_of_window(x, at, n);
        at += n;
    }
}

/* On any thread: what is wanted comes from the file. */
static void read_window(struct job *job)
{
    struct exchange *x = (struct exchange *)((char *)job - offsetof(struct exchange, job));
    MPI_Offset low = x->window.begin + x->window.n_bytes, high = x->window.begin;
    for (int i = 0; i < x->size; i++)
        if (x->sources[i].state == SOURCE_READY)
            source_span(&x->sources[i], &low, &high);
    if (x->own_from < x->own_to) {
        MPI_Offset first = view_offset(x->call.view, x->own_from);
        MPI_Offset last = view_offset(x->call.view, x->own_to - 1) + 1;
        low = first < low ? first : low;
        high = last > high ? last : high;
    }
    x->window.valid = 0;
    if (low >= high)
        return;
    size_t at = (size_t)(low - x->window.begin);
    x->window.valid = (int64_t)(at + access_run_of_window(x, at, (size_t)(high - low)));
    if (x->errnum)
        x->window.valid = 0;
}

static void begin_window(struct exchange *x)
{
    MPI_Offset begin, end;
    window_of(x, x->own, x->own_round, &begin, &end);
    x->window.begin = begin;
    x->window.n_bytes = end - begin;
    x->window.valid = 0;
    x->own_from = x->own_to = x->call.from;
    if (touches(x, x->rank, begin, end)) {
        x->own_from = stream_at(x, begin);
        x->own_to = stream_at(x, end);
    }
    for (int i = 0; i < x->size; i++)
        if (i != x->rank && touches(x, i, begin, end))
            source_post(&x->sources[i], &x->call, i);
    if (x->call.write) {
        marks_clear(&x->marks, x->marks.n_bits);
        copy_own(x, true);
        x->done += x->own_to - x->own_from;
    }
    x->state = AGGREGATOR_GATHER;
}

/* True when every source has said all that the access of the file needs. */
static bool gathered(struct exchange *x, int *n_steps)
{
    bool all = true;
    for (int i = 0; i < x->size; i++) {
        struct source *s = &x->sources[i];
        if (s->state == SOURCE_IDLE)
            continue;
        *n_steps += source_advance(s, &x->call, i, &x->window, &x->marks);
        all = all && s->state == SOURCE_READY;
    }
    return all;
}

static bool all_back(struct exchange *x)
{
    bool all = true;
    for (int i = 0; i < x->size; i++)
        all = source_is_back(&x->sources[i]) && all;
    return all;
}

static void begin_reply(struct exchange *x)
{
    x->state = AGGREGATOR_BACK;
    if (x->call.write)
        return;
    for (int i = 0; i < x->size; i++)
        if (x->sources[i].state == SOURCE_READY)
            source_reply(&x->sources[i], &x->call, i, &x->window);
    copy_own(x, false);
}

static int advance_aggregator(struct exchange *x)
{
    int n = 0;
    while (x->own >= 0 && x->own_round < x->n_rounds) {
        if (x->state == AGGREGATOR_NEXT)
            begin_window(x);
        if (x->state == AGGREGATOR_GATHER) {
            if (!gathered(x, &n))
                break;
            x->state = AGGREGATOR_FILE;
            x->job = (struct job){.run = x->call.write ? write_window : read_window};
            x->call.submit(x->call.arg, &x->job);
        }
        if (x->state == AGGREGATOR_FILE) {
            if (!worker_done(&x->job))
                break;
            begin_reply(x);
            n++;
        }
        if (!all_back(x))
            break;
        x->own_round++;
        x->state = AGGREGATOR_NEXT;
        n++;
    }
    return n;
}

/* ---- life ---- */

static void take_window(struct exchange *x)
{
    struct file *file = x->call.file;
    size_t n = (size_t)file->hints.cb_buffer_size;
    x->sources = exchange_alloc((size_t)x->size * sizeof *x->sources);
    if (file->window.n_bytes == n) {
        x->buffer = file->window;
        file->window = (struct file_window){0};
    } else {
        x->buffer = (struct file_window){.bytes = parcel_alloc(n), .n_bytes = n};
    }
    x->window.bytes = x->buffer.bytes;
    if (x->call.write && marks_init(&x->marks, (size_t)x->window_bytes) != 0)
        end_no_memory(__func__, "a collective access of a file", (size_t)x->window_bytes / 8);
}

struct exchange *exchange_new(const struct exchange_call *call)
{
    struct file *file = call->file;
    struct exchange *x = exchange_alloc(sizeof *x);
    x->call = *call;
    x->size = file->comm->size;
    x->rank = file->comm->rank;
    x->n_aggregators = file->aggregators.n;
    x->own = file->aggregators.own;
    lay_out_shares(x);
    size_t n = (size_t)x->n_aggregators;
    x->next = exchange_alloc(n * sizeof *x->next);
    x->parcels = exchange_alloc(n * sizeof *x->parcels);
    x->in_flight = exchange_alloc(n * sizeof *x->in_flight);
    for (size_t a = 0; a < n; a++)
        x->next[a] = -1;
    if (x->own >= 0)
        take_window(x);
    return x;
}

int exchange_advance(struct exchange *x)
{
    int n = advance_own_bytes(x);
    return n + advance_aggregator(x);
}

bool exchange_is_over(const struct exchange *x)
{
    return x->round == x->n_rounds && (x->own < 0 || x->own_round == x->n_rounds);
}

MPI_Count exchange_done(const struct exchange *x)
{
    return x->done;
}

int exchange_errnum(const struct exchange *x)
{
    return x->errnum;
}

void exchange_free(struct exchange *x)
{
    if (!x)
        return;
    if (x->buffer.bytes) {
        free(x->call.file->window.bytes);
        x->call.file->window = x->buffer;
    }
    marks_deinit(&x->marks);
    free(x->sources);
    free(x->in_flight);
    free(x->parcels);
    free(x->next);
    free(x);
}
