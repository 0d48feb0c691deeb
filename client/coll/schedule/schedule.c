/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/schedule/schedule.h"

#include "client/coll/schedule/schedule_step.h"
#include "client/object/err.h"
#include "client/p2p/p2p.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct schedule_temp {
    struct schedule_temp *next;
    _Alignas(64) unsigned char bytes[];
};

/* ---- life ---- */

static void schedule_prepare(struct schedule *s, struct comm *comm, bool recording)
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
    s->claimed = NULL;
    s->steps = NULL;
    s->n_steps = s->max_steps = 0;
    s->n_posts = 0;
    s->next_step = 0;
    s->record = NULL;
    s->skips_rest = false;
    s->advancing = false;
}

void schedule_note(struct schedule *s, int err)
{
    if (err != MPI_SUCCESS && s->err == MPI_SUCCESS) {
        s->err = err;
        err_stow(err, &s->detail);
    }
}

void schedule_no_memory(struct schedule *s)
{
    s->broken = true;
    schedule_note(s, err_set(MPI_ERR_NO_MEM,
                             "a collective operation found no memory for its temporary buffers"));
}

void schedule_fail(struct schedule *s, int err)
{
    s->broken = true;
    schedule_note(s, err);
}

static void schedule_release_temps(struct schedule *s)
{
    while (s->temps) {
        struct schedule_temp *next = s->temps->next;
        free(s->temps);
        s->temps = next;
    }
}

void schedule_begin(struct schedule *s, struct comm *comm, int tag)
{
    schedule_prepare(s, comm, false);
    s->tag = tag;
}

int schedule_end(struct schedule *s)
{
    if (s->n_pending > 0)
        schedule_wait(s);
    if (s->temps)
        schedule_release_temps(s);
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
    schedule_prepare(s, comm, true);
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
    schedule_release_temps(s);
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

struct schedule_step *schedule_record(struct schedule *s, enum step_kind kind)
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

/* ---- carrying out ---- */

static inline int schedule_rank(const struct schedule *s, int view_rank)
{
    return s->view.map ? s->view.map[view_rank] : view_rank;
}

/* Room for more than n pending requests; false: no memory. A recorded schedule does this while it
 * is recorded, so that its run never allocates. */
static bool schedule_reserve(struct schedule *s, int n)
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

static struct schedule_step *schedule_record_post(struct schedule *s, enum step_kind kind)
{
    if (!schedule_reserve(s, s->n_posts)) {
        schedule_no_memory(s);
        return NULL;
    }
    return schedule_record(s, kind);
}

void schedule_post_send(struct schedule *s, struct comm *comm, struct buffer buf, int peer, int tag)
{
    if (!schedule_reserve(s, s->n_pending)) {
        schedule_no_memory(s);
        return;
    }
    struct request *r = NULL;
    schedule_note(s,
                  p2p_isend(buf, envelope_of(comm, peer, tag, P2P_CONTEXT_COLL), P2P_STANDARD, &r));
    s->pending[s->n_pending++] = r;
}

void schedule_post_recv(struct schedule *s, struct comm *comm, struct buffer buf, int peer, int tag)
{
    if (!schedule_reserve(s, s->n_pending)) {
        schedule_no_memory(s);
        return;
    }
    struct request *r = NULL;
    schedule_note(s, p2p_irecv(buf, envelope_of(comm, peer, tag, P2P_CONTEXT_COLL), &r));
    s->pending[s->n_pending++] = r;
}

/* ---- the calls of the algorithms ---- */

static struct envelope schedule_envelope(const struct schedule *s, int peer)
{
    return envelope_of(s->view.comm, schedule_rank(s, peer), s->tag, P2P_CONTEXT_COLL);
}

void schedule_send(struct schedule *s, struct buffer buf, int to)
{
    if (s->recording) {
        schedule_isend(s, buf, to);
        schedule_wait(s);
    } else if (to >= 0 && !s->broken) {
        schedule_note(s, p2p_send(buf, schedule_envelope(s, to), P2P_STANDARD));
    }
}

void schedule_recv(struct schedule *s, struct buffer buf, int from)
{
    if (s->recording) {
        schedule_irecv(s, buf, from);
        schedule_wait(s);
    } else if (from >= 0 && !s->broken) {
        schedule_note(s, p2p_recv(buf, schedule_envelope(s, from), MPI_STATUS_IGNORE));
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
        schedule_note(s, p2p_sendrecv(sbuf, schedule_envelope(s, to), rbuf,
                                      schedule_envelope(s, from), MPI_STATUS_IGNORE));
    }
}

int schedule_isend(struct schedule *s, struct buffer buf, int to)
{
    if (to < 0 || s->broken)
        return -1;
    if (!s->recording) {
        schedule_post_send(s, s->view.comm, buf, schedule_rank(s, to), s->tag);
        return s->n_pending - 1;
    }
    struct schedule_step *step = schedule_record_post(s, STEP_SEND);
    if (!step)
        return -1;
    step->peer = schedule_rank(s, to);
    step->comm = s->view.comm;
    step->in = schedule_hold(buf);
    return s->n_posts++;
}

int schedule_irecv(struct schedule *s, struct buffer buf, int from)
{
    if (from < 0 || s->broken)
        return -1;
    if (!s->recording) {
        schedule_post_recv(s, s->view.comm, buf, schedule_rank(s, from), s->tag);
        return s->n_pending - 1;
    }
    struct schedule_step *step = schedule_record_post(s, STEP_RECV);
    if (!step)
        return -1;
    step->peer = schedule_rank(s, from);
    step->comm = s->view.comm;
    step->out = schedule_hold(buf);
    return s->n_posts++;
}

void schedule_finish_one(struct schedule *s, int id)
{
    struct request *r = s->pending[id];
    s->pending[id] = NULL;
    if (r)
        schedule_note(s, request_wait(r, MPI_STATUS_IGNORE));
}

void schedule_finish_all(struct schedule *s)
{
    for (int i = 0; i < s->n_pending; i++)
        schedule_finish_one(s, i);
    s->n_pending = 0;
}

void schedule_wait(struct schedule *s)
{
    if (!s->recording) {
        schedule_finish_all(s);
    } else if (s->n_posts > 0 && !s->broken) {
        schedule_record(s, STEP_WAIT);
        s->n_posts = 0;
    }
}

void schedule_wait_one(struct schedule *s, int id)
{
    if (id < 0)
        return;
    if (!s->recording) {
        schedule_finish_one(s, id);
    } else if (!s->broken) {
        struct schedule_step *step = schedule_record(s, STEP_WAIT_ONE);
        if (step)
            step->peer = id;
    }
}

void schedule_copy(struct schedule *s, struct buffer src, struct buffer dst)
{
    if (s->broken || (src.base == dst.base && src.type == dst.type))
        return;
    if (!s->recording) {
        schedule_carry_copy(src, dst);
        return;
    }
    struct schedule_step *step = schedule_record(s, STEP_COPY);
    if (!step)
        return;
    step->in = schedule_hold(src);
    step->out = schedule_hold(dst);
}

void schedule_reduce(struct schedule *s, const void *in, struct buffer inout, struct op *op)
{
    if (s->broken || inout.count == 0)
        return;
    if (!s->recording) {
        schedule_note(s, op_apply(op, in, inout.base, inout.count, inout.type));
        return;
    }
    struct schedule_step *step = schedule_record(s, STEP_REDUCE);
    if (!step)
        return;
    step->operand = in;
    step->out = schedule_hold(inout);
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
    struct schedule_step *step = s->broken ? NULL : schedule_record(s, STEP_CALL);
    if (!step)
        return;
    step->fn = fn;
    step->arg = arg;
    step->peer = label;
}

void schedule_judge(struct schedule *s, int (*fn)(void *arg), void *arg)
{
    if (s->broken)
        return;
    if (!s->recording) {
        int err = fn(arg);
        schedule_note(s, err);
        s->broken = err != MPI_SUCCESS;
        return;
    }
    struct schedule_step *step = schedule_record(s, STEP_JUDGE);
    if (!step)
        return;
    step->fn = fn;
    step->arg = arg;
}
