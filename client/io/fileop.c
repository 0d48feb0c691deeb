/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/io/fileop.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "client/abi/semantics.h"
#include "client/client.h"
#include "client/coll/op/op.h"
#include "client/io/access/access.h"
#include "client/io/access/datarep.h"
#include "client/io/access/view.h"
#include "client/io/exchange.h"
#include "client/io/fault.h"
#include "client/io/parcel.h"
#include "client/io/worker.h"
#include "client/object/err.h"
#include "client/progress/async.h"
#include "client/progress/progress.h"
#include "client/progress/request.h"
#include "client/progress/status.h"

/* Between two pieces of a read so much more is read rather than the system called again: copying it
 * takes as long (about 0.5 us). */
#define SIEVE_GAP ((int64_t)4096)
/* No file is longer; sums below it do not overflow. */
#define MOST_OFFSET ((MPI_Offset)1 << 61)
/* Collective accesses whose runs are as long as this on average gain nothing by going together. */
#define LONG_RUN ((int64_t)64 << 10)
/* Two-phase reads and moves a part of the file of which at least one byte in so many is wanted. */
#define LEAST_FILL 16
/* Runs that are looked at for their average. */
#define SAMPLE_RUNS 64
/* Tags of messages: a range that comes round long after its last message is gone. */
#define TAG_EXCHANGES (1u << 20)

/* What a nonblocking one waits for. */
enum fileop_state {
    FILEOP_ALONE,  /* its own access */
    FILEOP_QUEUED, /* the collective ones before it on the file: all ranks have them in one order */
    FILEOP_MEMBERS,  /* what the other ranks have to tell */
    FILEOP_EXCHANGE, /* the two phases */
    FILEOP_END       /* whether it went well at all ranks */
};

struct fileop {
    struct request base;
    struct list link; /* in fileop_here->active */
    struct fileop_call call;
    struct view *view;
    struct buffer memory; /* call.buffer, or the converted copy */
    void *converted;
    MPI_Count from, bytes; /* of the view's stream */
    MPI_Count done;
    enum fileop_state state;
    int errnum, error;
    const char *what; /* of errnum */

    struct access access;
    struct job job;
    bool here;          /* the caller runs the jobs; else the workers */
    struct job *wanted; /* of the caller */

    struct member own, *members;
    struct exchange *exchange;
    struct request *agreement; /* nonblocking: the collective under way */
    uint64_t turn;             /* nonblocking: of the file's collective ones */
    int worst;
};

struct fileop_list {
    struct list active;
    int n_active;
    unsigned n_seen; /* worker_n_ended() at the last poll */
};
static struct fileop_list fileop_first;
static struct fileop_list *fileop_here = &fileop_first;

static void fileop_part_init(void)
{
    list_init(&fileop_here->active);
}
CLIENT_PART(fileop_here, fileop_first, .init = fileop_part_init);

/* ---- what is to be moved ---- */

/* Bytes in the file, a whole number of etypes. */
static int file_bytes(const struct fileop_call *call, MPI_Count *ret_bytes)
{
    const struct view *view = call->file->view;
    MPI_Count size, bytes;
    int err = file_check_access(call->file, call->write);
    err = err ? err : datarep_size(view->rep, call->buffer.type, &size);
    if (err)
        return err;
    if (__builtin_mul_overflow(call->buffer.count, size, &bytes))
        return err_set(MPI_ERR_VALUE_TOO_LARGE, "%lld elements of %s do not fit into a file",
                       (long long)call->buffer.count, datatype_name(call->buffer.type));
    if (bytes % view->etype_bytes != 0)
        return err_set(MPI_ERR_IO,
                       "%s: %lld bytes are no whole number of the view's etypes of %lld bytes",
                       call->file->name, (long long)bytes, (long long)view->etype_bytes);
    *ret_bytes = bytes;
    return MPI_SUCCESS;
}

int fileop_etypes(const struct fileop_call *call, MPI_Offset *ret_n)
{
    MPI_Count bytes;
    int err = file_bytes(call, &bytes);
    if (!err)
        *ret_n = bytes / call->file->view->etype_bytes;
    return err;
}

/* Does all of it lie where a file can have bytes? */
static int check_place(const struct fileop *t)
{
    const struct view *view = t->view;
    const char *name = t->call.file->name;
    MPI_Count last, way;
    if (t->call.offset < 0)
        return err_set(MPI_ERR_ARG, "%s: offset %lld is negative", name, (long long)t->call.offset);
    if (t->bytes > 0 && view->layout->size == 0)
        return err_set(MPI_ERR_IO, "%s: the view's filetype %s has no data", name,
                       datatype_name(view->filetype));
    if (t->bytes > 0 &&
        (__builtin_mul_overflow(t->call.offset, view->etype_bytes, &last) ||
         __builtin_add_overflow(last, t->bytes, &last) ||
         __builtin_mul_overflow(last / view->layout->size + 1, view->layout->extent, &way) ||
         __builtin_add_overflow(way, view->disp, &way) || way > MOST_OFFSET))
        return err_set(MPI_ERR_ARG, "%s: offset %lld is beyond what a file can have", name,
                       (long long)t->call.offset);
    return MPI_SUCCESS;
}

/* A converted copy of what is written, or room for what is read. */
static int take_memory(struct fileop *t)
{
    const struct datarep *rep = t->view->rep;
    t->memory = t->call.buffer;
    if (datarep_is_plain(rep, t->call.write) || t->bytes == 0)
        return MPI_SUCCESS;
    t->converted = malloc((size_t)t->bytes);
    if (!t->converted)
        return err_set(MPI_ERR_NO_MEM, "no memory to convert %lld bytes of %s", (long long)t->bytes,
                       t->call.file->name);
    t->memory = buffer_of_bytes(t->converted, t->bytes);
    return t->call.write ? datarep_write(rep, t->call.buffer, t->converted) : MPI_SUCCESS;
}

static int fileop_set_up(struct fileop *t, const struct fileop_call *call)
{
    t->call = *call;
    t->view = call->file->view;
    view_ref(t->view);
    type_ref(call->buffer.type);
    int err = file_bytes(call, &t->bytes);
    err = err ? err : check_place(t);
    if (!err)
        t->from = call->offset * t->view->etype_bytes;
    err = err ? err : take_memory(t);
    if (err)
        t->bytes = 0; /* nothing is moved */
    return err;
}

static void fileop_tear_down(struct fileop *t)
{
    free(t->members);
    free(t->converted);
    type_unref(t->call.buffer.type);
    view_unref(t->view);
}

/* The result: bytes in memory that were moved, and the error in words. */
static int fileop_settle(struct fileop *t)
{
    const struct datarep *rep = t->view->rep;
    int err = t->error;
    if (!err && t->errnum)
        err = fault_say(t->call.file->name, t->what, t->errnum);
    if (!err && t->converted && !t->call.write)
        err = datarep_read(rep, t->converted, t->done, t->call.buffer);
    /* A status counts what memory has. */
    MPI_Count size = 0, moved = t->done;
    if (!datarep_is_plain(rep, t->call.write) && !datarep_size(rep, t->call.buffer.type, &size))
        moved = size > 0 ? t->done / size * t->call.buffer.type->size : 0;
    t->base.bytes = moved;
    return err;
}

/* ---- each rank by itself ---- */

static void run_access(struct job *job)
{
    struct fileop *t = (struct fileop *)((char *)job - offsetof(struct fileop, job));
    access_run(&t->access);
}

static void set_up_access(struct fileop *t)
{
    struct file *file = t->call.file;
    const struct file_hints *h = &file->hints;
    struct access *a = &t->access;
    uint8_t sieve = t->call.write ? h->ds_write : h->ds_read;
    *a = (struct access){.fd = file->fd, .write = t->call.write};
    view_cursor(t->view, t->from, t->bytes, &a->file);
    type_cursor_init(&a->memory, t->memory.type, t->memory.count, t->memory.base);
    bool readable = !(file->amode & MPI_MODE_WRONLY);
    if (t->call.write && sieve == FILE_HINT_ENABLE && readable)
        a->sieve = (struct access_sieve){h->ind_wr_buffer_size, INT64_MAX};
    if (!t->call.write && sieve != FILE_HINT_DISABLE)
        a->sieve = (struct access_sieve){h->ind_rd_buffer_size,
                                         sieve == FILE_HINT_ENABLE ? INT64_MAX : SIEVE_GAP};
    a->lock.mutex = &file->range_mutex;
    a->lock.whole = file->atomic && t->bytes > 0;
    a->lock.each = !a->lock.whole && t->call.write && h->ds_write == FILE_HINT_ENABLE;
    if (a->lock.whole && t->view->sorted) {
        a->lock.low = view_offset(t->view, t->from);
        a->lock.n_bytes = view_offset(t->view, t->from + t->bytes - 1) + 1 - a->lock.low;
    }
    t->job = (struct job){.run = run_access};
}

static void take_access(struct fileop *t)
{
    t->done = t->access.done;
    t->errnum = t->access.errnum;
    t->what = t->access.what;
}

/* With the library lock given up: other threads of the application go on. */
static void run_outside(struct job *job)
{
    int depth = lock_release();
    worker_run(job);
    if (depth > 0)
        lock_resume(depth);
}

static void run_alone_now(struct fileop *t)
{
    set_up_access(t);
    run_outside(&t->job);
    take_access(t);
}

/* ---- all ranks together ---- */

/* What this rank tells of its access. */
static void describe(struct fileop *t, int error)
{
    struct member *m = &t->own;
    *m = (struct member){.error = error};
    if (error || t->bytes == 0)
        return;
    m->bytes = t->bytes;
    m->unsorted = !t->view->sorted || !t->view->disjoint;
    if (m->unsorted)
        return;
    struct type_cursor c;
    struct iovec runs[SAMPLE_RUNS];
    size_t bytes;
    view_cursor(t->view, t->from, t->bytes, &c);
    int n = type_cursor_iov(&c, runs, SAMPLE_RUNS, SIZE_MAX, &bytes);
    m->low = (int64_t)(uintptr_t)runs[0].iov_base;
    m->high = view_offset(t->view, t->from + t->bytes - 1) + 1;
    m->piece = (int64_t)bytes / n;
}

/* Do all ranks' bytes go through the aggregators? The same answer on all ranks. */
static bool goes_together(const struct fileop *t)
{
    const struct file *file = t->call.file;
    uint8_t hint = t->call.write ? file->hints.cb_write : file->hints.cb_read;
    int64_t low = INT64_MAX, high = 0, bytes = 0, end = 0, longest = 0;
    bool interleaved = false, fine = !file->atomic && hint != FILE_HINT_DISABLE;
    for (int i = 0; i < file->comm->size; i++) {
        const struct member *m = &t->members[i];
        fine = fine && !m->unsorted && !m->error;
        if (m->bytes == 0)
            continue;
        interleaved = interleaved || m->low < end;
        end = m->high > end ? m->high : end;
        low = m->low < low ? m->low : low;
        high = m->high > high ? m->high : high;
        longest = m->piece > longest ? m->piece : longest;
        bytes += m->bytes;
    }
    if (!fine || bytes == 0)
        return false;
    if (hint == FILE_HINT_ENABLE)
        return true;
    return interleaved && longest < LONG_RUN && (high - low) / LEAST_FILL <= bytes;
}

static void submit(void *arg, struct job *job)
{
    struct fileop *t = arg;
    if (t->here)
        t->wanted = job;
    else
        worker_submit(job);
}

static void begin_exchange(struct fileop *t)
{
    struct file *file = t->call.file;
    struct exchange_call call = {
        .file = file,
        .view = t->view,
        .members = t->members,
        .write = t->call.write,
        .tag = (int)((t->here ? 0 : TAG_EXCHANGES) + file->n_exchanges[t->here]++ % TAG_EXCHANGES) *
               EXCHANGE_TAGS,
        .from = t->from,
        .bytes = t->bytes,
        .memory = t->memory,
        .submit = submit,
        .arg = t};
    t->exchange = exchange_new(&call);
}

static void end_exchange(struct fileop *t)
{
    t->done = exchange_done(t->exchange);
    t->errnum = exchange_errnum(t->exchange);
    t->what = t->call.write ? "cannot write" : "cannot read";
    t->worst = t->errnum ? fault_class(t->errnum) : MPI_SUCCESS;
    exchange_free(t->exchange); /* the file may go before the request */
    t->exchange = NULL;
}

/* `worst` is that of all ranks. */
static void judge(struct fileop *t)
{
    if (t->worst && !t->errnum && !t->error)
        t->error = err_set(t->worst, "%s: a rank that accessed the file for all could not %s it",
                           t->call.file->name, t->call.write ? "write" : "read");
}

static int run_exchange_now(struct fileop *t)
{
    struct progress_wait wait;
    t->here = true;
    begin_exchange(t);
    progress_wait_begin(&wait);
    for (;;) {
        int n = exchange_advance(t->exchange);
        if (exchange_is_over(t->exchange))
            break;
        if (t->wanted) {
            struct job *job = t->wanted;
            t->wanted = NULL;
            run_outside(job);
        } else if (n == 0) {
            progress_wait_step(&wait);
        }
    }
    progress_wait_end(&wait);
    end_exchange(t);
    int err = mpi_allreduce(MPI_IN_PLACE, &t->worst, 1, datatype_predefined(MPI_INT),
                            op_predefined(MPI_MAX), t->call.file->comm);
    judge(t);
    return err;
}

static int room_for_members(struct fileop *t)
{
    t->members = calloc((size_t)t->call.file->comm->size, sizeof *t->members);
    return t->members ? MPI_SUCCESS : err_set(MPI_ERR_NO_MEM, "no memory for a collective access");
}

/* `err`: of this rank's arguments; the others must hear of it. */
static int run_together_now(struct fileop *t, int err)
{
    struct datatype *byte = datatype_predefined(MPI_BYTE);
    int failed = room_for_members(t);
    if (failed)
        return failed;
    describe(t, err);
    failed = mpi_allgather(&t->own, sizeof t->own, byte, t->members, sizeof t->own, byte,
                           t->call.file->comm);
    if (failed)
        return failed;
    if (goes_together(t))
        return run_exchange_now(t);
    if (!err)
        run_alone_now(t);
    return err;
}

int fileop_now(const struct fileop_call *call, MPI_Status *status, MPI_Offset *ret_moved)
{
    struct fileop t = {0};
    int err = fileop_set_up(&t, call);
    if (call->collective && call->file->comm->size > 1)
        err = run_together_now(&t, err);
    else if (!err)
        run_alone_now(&t);
    int result = err ? err : fileop_settle(&t);
    status_set_received(status, MPI_ANY_SOURCE, MPI_ANY_TAG, t.base.bytes);
    *ret_moved = (t.done + t.view->etype_bytes - 1) / t.view->etype_bytes;
    fileop_tear_down(&t);
    return result;
}

/* ---- nonblocking ---- */

static void fileop_complete(struct fileop *t)
{
    list_remove(&t->link);
    fileop_here->n_active--;
    t->call.file->n_open--;
    if (t->call.collective) {
        t->call.file->turn++;
        async_end();
    }
    int err = fileop_settle(t);
    request_complete(&t->base, err);
}

static bool agreement_over(struct fileop *t)
{
    if (!request_is_complete(t->agreement))
        return false;
    int err = request_finish(t->agreement, MPI_STATUS_IGNORE);
    t->agreement = NULL;
    t->error = t->error ? t->error : err;
    return true;
}

static void begin_end(struct fileop *t)
{
    end_exchange(t);
    t->state = FILEOP_END;
    parcel_must(mpi_iallreduce(MPI_IN_PLACE, &t->worst, 1, datatype_predefined(MPI_INT),
                               op_predefined(MPI_MAX), t->call.file->comm, &t->agreement));
}

static void begin_alone(struct fileop *t)
{
    t->state = FILEOP_ALONE;
    if (t->error) {
        atomic_store_explicit(&t->job.done, true, memory_order_relaxed);
        return;
    }
    set_up_access(t);
    worker_submit(&t->job);
}

static void begin_members(struct fileop *t)
{
    struct datatype *byte = datatype_predefined(MPI_BYTE);
    t->state = FILEOP_MEMBERS;
    parcel_must(mpi_iallgather(&t->own, sizeof t->own, byte, t->members, sizeof t->own, byte,
                               t->call.file->comm, &t->agreement));
}

/* One step, if it can be made; `*over` after the last. */
static bool fileop_step(struct fileop *t, bool *over)
{
    switch (t->state) {
    case FILEOP_QUEUED:
        if (t->turn != t->call.file->turn)
            return false;
        begin_members(t);
        return true;
    case FILEOP_MEMBERS:
        if (!agreement_over(t))
            return false;
        if (!t->error && goes_together(t)) {
            t->state = FILEOP_EXCHANGE;
            begin_exchange(t);
        } else {
            begin_alone(t);
        }
        return true;
    case FILEOP_EXCHANGE: {
        int n = exchange_advance(t->exchange);
        if (exchange_is_over(t->exchange)) {
            begin_end(t);
            n++;
        }
        return n > 0;
    }
    case FILEOP_ALONE:
        if (!worker_done(&t->job))
            return false;
        take_access(t);
        *over = true;
        return true;
    case FILEOP_END:
    default:
        if (!agreement_over(t))
            return false;
        judge(t);
        *over = true;
        return true;
    }
}

static int fileop_poll(void)
{
    int n = 0;
    fileop_here->n_seen = worker_n_ended();
    list_foreach_safe(it, &fileop_here->active) {
        struct fileop *t = list_entry(it, struct fileop, link);
        bool over = false;
        while (!over && fileop_step(t, &over))
            n++;
        if (over)
            fileop_complete(t);
    }
    return n;
}

/* A job that ended after the last poll, whose thread may not have seen that this one sleeps. */
static enum progress_news fileop_news(void)
{
    return fileop_here->n_active > 0 && worker_n_ended() != fileop_here->n_seen ? PROGRESS_NEWS
                                                                                : PROGRESS_NO_NEWS;
}

void fileop_init(void)
{
    progress_register(fileop_poll, &fileop_here->n_active, false);
    progress_on_sleep(fileop_news);
}

static void fileop_destroy(struct request *r)
{
    struct fileop *t = (struct fileop *)r;
    struct comm *comm = r->comm;
    fileop_tear_down(t);
    free(t);
    comm_unref(comm);
}

static const struct request_ops fileop_ops = {.destroy = fileop_destroy};

/* The others wait for what this rank has to tell, be it that its arguments are wrong: then they
 * hear that, and the call is over for this one. */
static int begin_together(struct fileop *t)
{
    int err = room_for_members(t);
    if (err)
        return err;
    describe(t, t->error);
    t->turn = t->call.file->n_turns++;
    t->state = FILEOP_QUEUED;
    t->base.orphan = t->error != MPI_SUCCESS;
    return MPI_SUCCESS;
}

int fileop_start(const struct fileop_call *call, struct request **ret_request)
{
    struct file *file = call->file;
    struct fileop *t = calloc(1, sizeof *t);
    if (!t)
        return err_set(MPI_ERR_NO_MEM, "no memory for a request");
    request_init(&t->base, &fileop_ops, file->comm, false);
    comm_ref(file->comm);
    t->error = fileop_set_up(t, call);
    int result = t->error;
    bool together = call->collective && file->comm->size > 1;
    t->call.collective = together;
    if (together) {
        int err = begin_together(t);
        result = result ? result : err;
    }
    if (result && !t->members) {
        fileop_destroy(&t->base);
        return result;
    }
    list_append(&fileop_here->active, &t->link);
    fileop_here->n_active++;
    file->n_open++;
    if (together)
        async_begin();
    else
        begin_alone(t);
    *ret_request = &t->base;
    return result;
}
