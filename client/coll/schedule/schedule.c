/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/schedule/schedule.h"

#include "client/coll/family/coll.h"
#include "client/coll/node/node.h"
#include "client/object/err.h"
#include "client/p2p/engine.h"
#include "client/p2p/p2p.h"
#include "client/progress/vci.h"
#include "client/transport/cells.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum step_kind {
    STEP_SEND,
    STEP_RECV,
    STEP_WAIT,
    STEP_WAIT_ONE,
    STEP_COPY,
    STEP_REDUCE,
    STEP_CLAIM,
    STEP_FILL,
    STEP_PUBLISH,
    STEP_GET,
    STEP_GET_REDUCE,
    STEP_AWAIT,
    STEP_FINISH,
    STEP_CALL,
    STEP_JUDGE
};

struct schedule_step {
    enum step_kind kind;
    int peer; /* communicator rank; number of the post for STEP_WAIT_ONE; label for STEP_CALL;
                 member of the cells */
    int tag;
    struct comm *comm;
    struct buffer in, out;
    const void *operand; /* of STEP_REDUCE, the left one; it is like `out` */
    struct op *op;
    int (*fn)(void *arg);
    void *arg;
    struct shared shared;
    int self;      /* own place, for tables of offsets */
    MPI_Count off; /* in a publication; its bytes for STEP_CLAIM */
};

struct schedule_temp {
    struct schedule_temp *next;
    _Alignas(64) unsigned char bytes[];
};

/* ---- life ---- */

static void init(struct schedule *s, struct comm *comm, bool recording)
{
    s->view =
        (struct schedule_view){.comm = comm, .rank = comm->rank, .size = comm->size, .map = NULL};
    s->tag = 0;
    s->err = MPI_SUCCESS;
    s->detail = 0;
    s->recording = recording;
    s->broken = s->repeats = false;
    s->n_pending = 0;
    s->max_pending = SCHEDULE_INLINE_PENDING;
    s->pending = s->inline_pending;
    s->temps = NULL;
    s->scratch_used = 0;
    s->place = NULL;
    s->steps = NULL;
    s->n_steps = s->max_steps = 0;
    s->n_posts = 0;
    s->next_step = 0;
    s->record = NULL;
    s->advancing = false;
}

static void note(struct schedule *s, int err)
{
    if (err != MPI_SUCCESS && s->err == MPI_SUCCESS) {
        s->err = err;
        err_stow(err, &s->detail);
    }
}

void schedule_no_memory(struct schedule *s)
{
    s->broken = true;
    note(s, err_set(MPI_ERR_NO_MEM,
                    "a collective operation found no memory for its temporary buffers"));
}

static void release_temps(struct schedule *s)
{
    while (s->temps) {
        struct schedule_temp *next = s->temps->next;
        free(s->temps);
        s->temps = next;
    }
}

void schedule_begin(struct schedule *s, struct comm *comm, int tag)
{
    init(s, comm, false);
    s->tag = tag;
}

int schedule_end(struct schedule *s)
{
    if (s->n_pending > 0)
        schedule_wait(s);
    if (s->temps)
        release_temps(s);
    if (s->pending != s->inline_pending)
        free(s->pending);
    return schedule_result(s);
}

int schedule_result(struct schedule *s)
{
    if (__builtin_expect(s->err != MPI_SUCCESS, 0))
        err_unstow(s->err, &s->detail);
    return s->err;
}

struct schedule *schedule_new(struct comm *comm, int tag)
{
    struct schedule *s = malloc(sizeof *s);
    if (!s)
        return NULL;
    init(s, comm, true);
    s->tag = tag;
    comm_ref(comm);
    s->owner = comm;
    return s;
}

void schedule_free(struct schedule *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n_steps; i++) {
        struct schedule_step *step = &s->steps[i];
        if (step->in.type)
            type_unref(step->in.type);
        if (step->out.type)
            type_unref(step->out.type);
        if (step->op)
            op_unref(step->op);
    }
    free(s->steps);
    release_temps(s);
    if (s->pending != s->inline_pending)
        free(s->pending);
    comm_unref(s->owner);
    free(s);
}

struct schedule_view schedule_enter(struct schedule *s, struct schedule_view view)
{
    struct schedule_view old = s->view;
    s->view = view;
    return old;
}

void *schedule_temp(struct schedule *s, size_t n_bytes)
{
    if (!s->recording && n_bytes <= SCHEDULE_SCRATCH_BYTES - s->scratch_used) {
        void *p = s->scratch + s->scratch_used;
        s->scratch_used += (n_bytes + 15) & ~(size_t)15;
        if (s->scratch_used > SCHEDULE_SCRATCH_BYTES)
            s->scratch_used = SCHEDULE_SCRATCH_BYTES;
        return p;
    }
    struct schedule_temp *temp = NULL;
    if (n_bytes <= SIZE_MAX / 2)
        temp = aligned_alloc(64, (sizeof *temp + n_bytes + 63) & ~(size_t)63);
    if (!temp) {
        schedule_no_memory(s);
        return NULL;
    }
    temp->next = s->temps;
    s->temps = temp;
    return temp->bytes;
}

void *schedule_temp_typed(struct schedule *s, MPI_Count count, const struct datatype *type)
{
    MPI_Count low = 0, high = 0;
    if (count > 0)
        datatype_span(type, count, &low, &high);
    void *p = schedule_temp(s, (size_t)(high - low));
    return p ? (void *)((uintptr_t)p - (uintptr_t)low) : NULL;
}

/* ---- recording ---- */

static struct schedule_step *record(struct schedule *s, enum step_kind kind)
{
    if (s->n_steps == s->max_steps) {
        int max = s->max_steps ? 2 * s->max_steps : 8;
        struct schedule_step *steps = realloc(s->steps, (size_t)max * sizeof *steps);
        if (!steps) {
            schedule_no_memory(s);
            return NULL;
        }
        s->steps = steps;
        s->max_steps = max;
    }
    struct schedule_step *step = &s->steps[s->n_steps++];
    *step = (struct schedule_step){.kind = kind, .tag = s->tag};
    return step;
}

static struct buffer hold(struct buffer buf)
{
    type_ref(buf.type);
    return buf;
}

/* ---- carrying out ---- */

static inline int comm_rank_of(const struct schedule *s, int view_rank)
{
    return s->view.map ? s->view.map[view_rank] : view_rank;
}

/* Room for more than n pending requests; false: no memory. A recorded schedule does this while it
 * is recorded, so that its run never allocates. */
static bool reserve_pending(struct schedule *s, int n)
{
    if (n < s->max_pending)
        return true;
    int max = 2 * s->max_pending;
    struct request **pending = malloc((size_t)max * sizeof(struct request *));
    if (!pending)
        return false;
    memcpy(pending, s->pending, (size_t)s->n_pending * sizeof(struct request *));
    if (s->pending != s->inline_pending)
        free(s->pending);
    s->pending = pending;
    s->max_pending = max;
    return true;
}

static struct schedule_step *record_post(struct schedule *s, enum step_kind kind)
{
    if (!reserve_pending(s, s->n_posts)) {
        schedule_no_memory(s);
        return NULL;
    }
    return record(s, kind);
}

static void post_send(struct schedule *s, struct comm *comm, struct buffer buf, int peer, int tag)
{
    if (!reserve_pending(s, s->n_pending)) {
        schedule_no_memory(s);
        return;
    }
    struct request *r = NULL;
    note(s, p2p_isend(buf, envelope_of(comm, peer, tag, P2P_CONTEXT_COLL), P2P_STANDARD, &r));
    s->pending[s->n_pending++] = r;
}

static void post_recv(struct schedule *s, struct comm *comm, struct buffer buf, int peer, int tag)
{
    if (!reserve_pending(s, s->n_pending)) {
        schedule_no_memory(s);
        return;
    }
    struct request *r = NULL;
    note(s, p2p_irecv(buf, envelope_of(comm, peer, tag, P2P_CONTEXT_COLL), &r));
    s->pending[s->n_pending++] = r;
}

static void carry_out_copy(struct buffer src, struct buffer dst)
{
    MPI_Count n_bytes = buffer_size(src);
    /* One address with two types is two places when displacements are addresses (MPI_BOTTOM). */
    if ((src.base == dst.base && src.type == dst.type) || n_bytes == 0)
        return;
    if (datatype_is_run(src.type, src.count) && datatype_is_run(dst.type, dst.count) &&
        n_bytes <= buffer_size(dst))
        memcpy(datatype_run_start(dst.type, dst.base), datatype_run_start(src.type, src.base),
               (size_t)n_bytes);
    else
        datatype_copy(src.base, src.count, src.type, dst.base, dst.count, dst.type);
}

/* ---- the calls of the algorithms ---- */

static struct envelope envelope_to(const struct schedule *s, int peer)
{
    return envelope_of(s->view.comm, comm_rank_of(s, peer), s->tag, P2P_CONTEXT_COLL);
}

void schedule_send(struct schedule *s, struct buffer buf, int to)
{
    if (s->recording) {
        schedule_isend(s, buf, to);
        schedule_wait(s);
    } else if (to >= 0 && !s->broken) {
        note(s, p2p_send(buf, envelope_to(s, to), P2P_STANDARD));
    }
}

void schedule_recv(struct schedule *s, struct buffer buf, int from)
{
    if (s->recording) {
        schedule_irecv(s, buf, from);
        schedule_wait(s);
    } else if (from >= 0 && !s->broken) {
        note(s, p2p_recv(buf, envelope_to(s, from), MPI_STATUS_IGNORE));
    }
}

void schedule_sendrecv(struct schedule *s, struct buffer sbuf, int to, struct buffer rbuf, int from)
{
    if (to < 0) {
        schedule_recv(s, rbuf, from);
    } else if (from < 0) {
        schedule_send(s, sbuf, to);
    } else if (s->recording) {
        schedule_irecv(s, rbuf, from);
        schedule_isend(s, sbuf, to);
        schedule_wait(s);
    } else if (!s->broken) {
        note(s,
             p2p_sendrecv(sbuf, envelope_to(s, to), rbuf, envelope_to(s, from), MPI_STATUS_IGNORE));
    }
}

int schedule_isend(struct schedule *s, struct buffer buf, int to)
{
    if (to < 0 || s->broken)
        return -1;
    if (!s->recording) {
        post_send(s, s->view.comm, buf, comm_rank_of(s, to), s->tag);
        return s->n_pending - 1;
    }
    struct schedule_step *step = record_post(s, STEP_SEND);
    if (!step)
        return -1;
    step->peer = comm_rank_of(s, to);
    step->comm = s->view.comm;
    step->in = hold(buf);
    return s->n_posts++;
}

int schedule_irecv(struct schedule *s, struct buffer buf, int from)
{
    if (from < 0 || s->broken)
        return -1;
    if (!s->recording) {
        post_recv(s, s->view.comm, buf, comm_rank_of(s, from), s->tag);
        return s->n_pending - 1;
    }
    struct schedule_step *step = record_post(s, STEP_RECV);
    if (!step)
        return -1;
    step->peer = comm_rank_of(s, from);
    step->comm = s->view.comm;
    step->out = hold(buf);
    return s->n_posts++;
}

static void finish_one(struct schedule *s, int id)
{
    struct request *r = s->pending[id];
    s->pending[id] = NULL;
    if (r)
        note(s, request_wait(r, MPI_STATUS_IGNORE));
}

static void finish_all(struct schedule *s)
{
    for (int i = 0; i < s->n_pending; i++)
        finish_one(s, i);
    s->n_pending = 0;
}

void schedule_wait(struct schedule *s)
{
    if (!s->recording) {
        finish_all(s);
    } else if (s->n_posts > 0 && !s->broken) {
        record(s, STEP_WAIT);
        s->n_posts = 0;
    }
}

void schedule_wait_one(struct schedule *s, int id)
{
    if (id < 0)
        return;
    if (!s->recording) {
        finish_one(s, id);
    } else if (!s->broken) {
        struct schedule_step *step = record(s, STEP_WAIT_ONE);
        if (step)
            step->peer = id;
    }
}

void schedule_copy(struct schedule *s, struct buffer src, struct buffer dst)
{
    if (s->broken || (src.base == dst.base && src.type == dst.type))
        return;
    if (!s->recording) {
        carry_out_copy(src, dst);
        return;
    }
    struct schedule_step *step = record(s, STEP_COPY);
    if (!step)
        return;
    step->in = hold(src);
    step->out = hold(dst);
}

void schedule_reduce(struct schedule *s, const void *in, struct buffer inout, struct op *op)
{
    if (s->broken || inout.count == 0)
        return;
    if (!s->recording) {
        note(s, op_apply(op, in, inout.base, inout.count, inout.type));
        return;
    }
    struct schedule_step *step = record(s, STEP_REDUCE);
    if (!step)
        return;
    step->operand = in;
    step->out = hold(inout);
    op_ref(op);
    step->op = op;
}

int schedule_label(struct schedule *s)
{
    s->repeats = true;
    return s->n_steps;
}

void schedule_call(struct schedule *s, int (*fn)(void *arg), void *arg, int label)
{
    assert(s->recording);
    struct schedule_step *step = s->broken ? NULL : record(s, STEP_CALL);
    if (!step)
        return;
    step->fn = fn;
    step->arg = arg;
    step->peer = label;
}

/* ---- the cells ---- */

/* Room for the publication; false: not yet. */
static bool try_claim(struct schedule *s, const struct shared *sh, MPI_Count n_bytes)
{
    s->place = cells_claim(sh->cells, sh->step, (uint32_t)n_bytes);
    return s->place != NULL;
}

static void carry_out_fill(struct schedule *s, MPI_Count off, struct buffer buf)
{
    carry_out_copy(buf, buffer_of_bytes(s->place + off, buffer_size(buf)));
}

/* The piece of a publication that a step wants: its address and bytes. */
static const unsigned char *piece_of(struct schedule *s, const unsigned char *published,
                                     uint32_t len, MPI_Count off, int self, MPI_Count want,
                                     MPI_Count *ret_bytes)
{
    *ret_bytes = want;
    if (off == SHARED_WHOLE) {
        if ((MPI_Count)len > want)
            note(s, err_set(MPI_ERR_TRUNCATE,
                            "a collective operation met %u bytes where %lld were expected", len,
                            (long long)want));
        else
            *ret_bytes = len;
        return published;
    }
    if (off < SHARED_WHOLE) {
        uint32_t n_pieces = (uint32_t)(SHARED_WHOLE - off), at = UINT32_MAX;
        if (len % n_pieces == 0)
            at = want <= (MPI_Count)(len / n_pieces) ? (uint32_t)self * (len / n_pieces) : len;
        else if (((uint32_t)self + 1) * sizeof at <= len)
            memcpy(&at, published + (uint32_t)self * sizeof at, sizeof at);
        off = at;
    }
    if (off + want > (MPI_Count)len) {
        note(s, err_set(MPI_ERR_TRUNCATE,
                        "a collective operation met %u bytes where at least %lld were expected",
                        len, (long long)(off + want)));
        *ret_bytes = 0;
        return published;
    }
    return published + off;
}

static void carry_out_get(struct schedule *s, const unsigned char *published, uint32_t len,
                          MPI_Count off, int self, struct buffer buf)
{
    MPI_Count n_bytes;
    const unsigned char *piece = piece_of(s, published, len, off, self, buffer_size(buf), &n_bytes);
    carry_out_copy(buffer_of_bytes(piece, n_bytes), buf);
}

static void carry_out_get_reduce(struct schedule *s, const unsigned char *published, uint32_t len,
                                 MPI_Count off, struct buffer inout, struct op *op)
{
    MPI_Count n_bytes;
    const unsigned char *piece = piece_of(s, published, len, off, 0, buffer_size(inout), &n_bytes);
    if (n_bytes < buffer_size(inout))
        inout.count = inout.type->size ? n_bytes / inout.type->size : 0;
    if (inout.type->contiguous) {
        const void *in = (const void *)((uintptr_t)piece - (uintptr_t)inout.type->true_lb);
        note(s, op_apply(op, in, inout.base, inout.count, inout.type));
        return;
    }
    void *in = schedule_temp_typed(s, inout.count, inout.type);
    if (!in)
        return;
    carry_out_copy(buffer_of_bytes(piece, n_bytes), buffer_like(inout, in));
    note(s, op_apply(op, in, inout.base, inout.count, inout.type));
}

void schedule_claim(struct schedule *s, const struct shared *sh, MPI_Count n_bytes)
{
    if (s->broken)
        return;
    if (!s->recording) {
        if (!try_claim(s, sh, n_bytes))
            s->place = shared_wait_room(sh, (uint32_t)n_bytes);
        return;
    }
    struct schedule_step *step = record(s, STEP_CLAIM);
    if (!step)
        return;
    step->shared = *sh;
    step->off = n_bytes;
}

void schedule_fill(struct schedule *s, MPI_Count off, struct buffer buf)
{
    if (s->broken || buf.count == 0)
        return;
    if (!s->recording) {
        carry_out_fill(s, off, buf);
        return;
    }
    struct schedule_step *step = record(s, STEP_FILL);
    if (!step)
        return;
    step->off = off;
    step->in = hold(buf);
}

void schedule_publish(struct schedule *s, const struct shared *sh, int to)
{
    if (s->broken)
        return;
    if (!s->recording) {
        cells_publish(sh->cells, sh->step, to);
        return;
    }
    struct schedule_step *step = record(s, STEP_PUBLISH);
    if (!step)
        return;
    step->shared = *sh;
    step->peer = to;
}

void schedule_put(struct schedule *s, const struct shared *sh, struct buffer buf, int to)
{
    schedule_claim(s, sh, buffer_size(buf));
    schedule_fill(s, 0, buf);
    schedule_publish(s, sh, to);
}

void schedule_get(struct schedule *s, const struct shared *sh, int member, MPI_Count off,
                  struct buffer buf)
{
    if (s->broken)
        return;
    if (!s->recording) {
        uint32_t len;
        const void *published = shared_wait_for(sh, member, &len);
        carry_out_get(s, published, len, off, s->view.rank, buf);
        return;
    }
    struct schedule_step *step = record(s, STEP_GET);
    if (!step)
        return;
    step->shared = *sh;
    step->peer = member;
    step->self = s->view.rank;
    step->off = off;
    step->out = hold(buf);
}

void schedule_get_reduce(struct schedule *s, const struct shared *sh, int member, MPI_Count off,
                         struct buffer inout, struct op *op)
{
    if (s->broken || inout.count == 0)
        return;
    if (!s->recording) {
        uint32_t len;
        const void *published = shared_wait_for(sh, member, &len);
        carry_out_get_reduce(s, published, len, off, inout, op);
        return;
    }
    struct schedule_step *step = record(s, STEP_GET_REDUCE);
    if (!step)
        return;
    step->shared = *sh;
    step->peer = member;
    step->off = off;
    step->out = hold(inout);
    op_ref(op);
    step->op = op;
}

void schedule_await(struct schedule *s, const struct shared *sh, int member)
{
    if (s->broken)
        return;
    if (!s->recording) {
        uint32_t len;
        shared_wait_for(sh, member, &len);
        return;
    }
    struct schedule_step *step = record(s, STEP_AWAIT);
    if (!step)
        return;
    step->shared = *sh;
    step->peer = member;
}

void schedule_finish(struct schedule *s, const struct shared *sh)
{
    if (!s->recording) {
        cells_finish(sh->cells, sh->step); /* in the order of steps: always counted */
        return;
    }
    struct schedule_step *step = s->broken ? NULL : record(s, STEP_FINISH);
    if (step)
        step->shared = *sh;
}

/* Carries out a step that looks at another member's publication; false: it is not there yet. */
static bool run_shared_step(struct schedule *s, const struct schedule_step *step)
{
    uint32_t len;
    const void *published =
        cells_peek(step->shared.cells, (uint32_t)step->peer, step->shared.step, &len);
    if (!published)
        return false;
    if (step->kind == STEP_GET)
        carry_out_get(s, published, len, step->off, step->self, step->out);
    else if (step->kind == STEP_GET_REDUCE)
        carry_out_get_reduce(s, published, len, step->off, step->out, step->op);
    return true;
}

enum progress_news schedule_news(struct schedule *s)
{
    if (s->next_step >= s->n_steps)
        return PROGRESS_NO_NEWS;
    const struct schedule_step *step = &s->steps[s->next_step];
    uint32_t len;
    switch (step->kind) {
    case STEP_GET:
    case STEP_GET_REDUCE:
    case STEP_AWAIT:
        if (cells_peek(step->shared.cells, (uint32_t)step->peer, step->shared.step, &len))
            return PROGRESS_NEWS;
        shared_show(&step->shared, step->peer, &s->record);
        return PROGRESS_NO_NEWS;
    case STEP_CLAIM:
    case STEP_FINISH:
        return PROGRESS_SOON;
    default:
        return PROGRESS_NO_NEWS;
    }
}

void schedule_judge(struct schedule *s, int (*fn)(void *arg), void *arg)
{
    if (s->broken)
        return;
    if (!s->recording) {
        int err = fn(arg);
        note(s, err);
        s->broken = err != MPI_SUCCESS;
        return;
    }
    struct schedule_step *step = record(s, STEP_JUDGE);
    if (!step)
        return;
    step->fn = fn;
    step->arg = arg;
}

/* The rest is not carried out, but its steps of the cells are counted. */
static void skip_the_rest(struct schedule *s)
{
    for (; s->next_step + 1 < s->n_steps; s->next_step++) {
        const struct schedule_step *step = &s->steps[s->next_step + 1];
        if (step->kind == STEP_FINISH)
            cells_finish(step->shared.cells, step->shared.step);
    }
}

/* ---- running a recorded schedule ---- */

static bool all_complete(const struct schedule *s)
{
    for (int i = 0; i < s->n_pending; i++)
        if (s->pending[i] && !request_is_complete(s->pending[i]))
            return false;
    return true;
}

/* Carries out one step; false when it has to wait. */
static bool run_step(struct schedule *s, const struct schedule_step *step)
{
    switch (step->kind) {
    case STEP_SEND:
        post_send(s, step->comm, step->in, step->peer, step->tag);
        break;
    case STEP_RECV:
        post_recv(s, step->comm, step->out, step->peer, step->tag);
        break;
    case STEP_WAIT:
        if (!all_complete(s))
            return false;
        finish_all(s);
        break;
    case STEP_WAIT_ONE:
        if (s->pending[step->peer] && !request_is_complete(s->pending[step->peer]))
            return false;
        finish_one(s, step->peer);
        break;
    case STEP_COPY:
        carry_out_copy(step->in, step->out);
        break;
    case STEP_REDUCE:
        note(s, op_apply(step->op, step->operand, step->out.base, step->out.count, step->out.type));
        break;
    case STEP_CLAIM:
        return try_claim(s, &step->shared, step->off);
    case STEP_FILL:
        carry_out_fill(s, step->off, step->in);
        break;
    case STEP_PUBLISH:
        cells_publish(step->shared.cells, step->shared.step, step->peer);
        break;
    case STEP_GET:
    case STEP_GET_REDUCE:
    case STEP_AWAIT:
        return run_shared_step(s, step);
    case STEP_FINISH:
        return cells_finish(step->shared.cells, step->shared.step);
    case STEP_CALL: {
        int rc = step->fn(step->arg);
        if (rc == SCHEDULE_AGAIN) {
            s->next_step = step->peer - 1; /* the caller adds one */
            break;
        }
        note(s, rc);
        break;
    }
    case STEP_JUDGE: {
        int err = step->fn(step->arg);
        note(s, err);
        if (err)
            skip_the_rest(s);
        break;
    }
    }
    return true;
}

bool schedule_advance(struct schedule *s)
{
    if (s->advancing)
        return false;
    s->advancing = true;
    int first = s->next_step;
    while (s->next_step < s->n_steps && run_step(s, &s->steps[s->next_step]))
        s->next_step++;
    bool at_end = s->next_step == s->n_steps && all_complete(s);
    if (at_end)
        finish_all(s);
    if (s->record && (at_end || s->next_step != first))
        record_hide(&vci_here->table[0].engine->records,
                    &s->record); /* what it waited for has come */
    s->advancing = false;
    return at_end;
}

void schedule_rewind(struct schedule *s)
{
    assert(s->n_pending == 0);
    s->next_step = 0;
    s->err = MPI_SUCCESS;
    s->detail = 0;
}
