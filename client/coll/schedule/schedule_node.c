/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of a schedule in the memory of the node. */
#include "client/coll/schedule/coll_comm.h"
#include "client/coll/schedule/schedule_step.h"
#include "client/object/err.h"

#include <stdint.h>
#include <string.h>

static inline struct cells *schedule_row(const struct schedule *s)
{
    if (s->repeats)
        return NULL;
    const struct coll_comm *c = s->view.comm->coll;
    const struct node_rows *rows =
        __builtin_expect(c && c->rows.tried, 1) ? &c->rows : coll_rows_of(s->view.comm);
    if (!rows || !rows->row[0] || (s->view.map ? s->view.map != rows->members : !rows->whole))
        return NULL;
    /* Some of the node's ranks, from the first one on: the others would not count the step. */
    if (s->view.size != rows->n_members)
        return NULL;
    enum coll_form form = coll_form_of(s->tag);
    return form <= COLL_NONBLOCKING ? rows->row[form] : NULL;
}

bool schedule_has_steps(const struct schedule *s)
{
    return schedule_row(s) != NULL;
}

struct node_step schedule_take_step(const struct schedule *s)
{
    struct cells *row = schedule_row(s);
    return (struct node_step){.cells = row,
                              .number = cells_take(row),
                              .members = s->view.comm->coll->rows.members,
                              .comm = s->view.comm,
                              .tag = s->tag};
}

void schedule_look_ahead(const struct schedule *s, const struct node_step *at)
{
    if (!s->recording)
        cells_prefetch(at->cells, at->number);
}

bool schedule_try_claim(struct schedule *s, const struct node_step *at, MPI_Count n_bytes)
{
    s->claimed = cells_claim(at->cells, at->number, (uint32_t)n_bytes);
    return s->claimed != NULL;
}

void schedule_carry_fill(struct schedule *s, MPI_Count off, struct buffer buf)
{
    schedule_carry_copy(buf, buffer_of_bytes(s->claimed + off, buffer_size(buf)));
}

/* The piece of a publication that a step wants: its address and bytes. */
static const unsigned char *schedule_piece(struct schedule *s, const unsigned char *published,
                                           uint32_t len, MPI_Count off, int self, MPI_Count want,
                                           MPI_Count *ret_bytes)
{
    *ret_bytes = want;
    if (off == SCHEDULE_WHOLE) {
        if ((MPI_Count)len > want)
            schedule_note(s, err_set(MPI_ERR_TRUNCATE,
                                     "a collective operation met %u bytes where %lld were expected",
                                     len, (long long)want));
        else
            *ret_bytes = len;
        return published;
    }
    if (off < SCHEDULE_WHOLE) {
        uint32_t n_pieces = (uint32_t)(SCHEDULE_WHOLE - off), at = UINT32_MAX;
        if (len % n_pieces == 0)
            at = want <= (MPI_Count)(len / n_pieces) ? (uint32_t)self * (len / n_pieces) : len;
        else if (((uint32_t)self + 1) * sizeof at <= len)
            memcpy(&at, published + (uint32_t)self * sizeof at, sizeof at);
        off = at;
    }
    if (off + want > (MPI_Count)len) {
        schedule_note(
            s, err_set(MPI_ERR_TRUNCATE,
                       "a collective operation met %u bytes where at least %lld were expected", len,
                       (long long)(off + want)));
        *ret_bytes = 0;
        return published;
    }
    return published + off;
}

static void schedule_carry_get(struct schedule *s, const unsigned char *published, uint32_t len,
                               MPI_Count off, int self, struct buffer buf)
{
    MPI_Count n_bytes;
    const unsigned char *piece =
        schedule_piece(s, published, len, off, self, buffer_size(buf), &n_bytes);
    schedule_carry_copy(buffer_of_bytes(piece, n_bytes), buf);
}

static void schedule_carry_get_reduce(struct schedule *s, const unsigned char *published,
                                      uint32_t len, MPI_Count off, struct buffer inout,
                                      struct op *op)
{
    MPI_Count n_bytes;
    const unsigned char *piece =
        schedule_piece(s, published, len, off, 0, buffer_size(inout), &n_bytes);
    if (n_bytes < buffer_size(inout))
        inout.count = inout.type->size ? n_bytes / inout.type->size : 0;
    if (inout.type->contiguous) {
        const void *in = (const void *)((uintptr_t)piece - (uintptr_t)inout.type->true_lb);
        schedule_note(s, op_apply(op, in, inout.base, inout.count, inout.type));
        return;
    }
    void *in = schedule_temp_typed(s, inout.count, inout.type);
    if (!in)
        return;
    schedule_carry_copy(buffer_of_bytes(piece, n_bytes), buffer_like(inout, in));
    schedule_note(s, op_apply(op, in, inout.base, inout.count, inout.type));
}

void schedule_claim(struct schedule *s, const struct node_step *at, MPI_Count n_bytes)
{
    if (s->broken)
        return;
    if (!s->recording) {
        if (!schedule_try_claim(s, at, n_bytes))
            s->claimed = node_wait_room(at, (uint32_t)n_bytes);
        return;
    }
    struct schedule_step *step = schedule_record(s, STEP_CLAIM);
    if (!step)
        return;
    step->at = *at;
    step->off = n_bytes;
}

void schedule_fill(struct schedule *s, MPI_Count off, struct buffer buf)
{
    if (s->broken || buf.count == 0)
        return;
    if (!s->recording) {
        schedule_carry_fill(s, off, buf);
        return;
    }
    struct schedule_step *step = schedule_record(s, STEP_FILL);
    if (!step)
        return;
    step->off = off;
    step->in = schedule_hold(buf);
}

void schedule_publish(struct schedule *s, const struct node_step *at, int to)
{
    if (s->broken)
        return;
    if (!s->recording) {
        cells_publish(at->cells, at->number, to);
        return;
    }
    struct schedule_step *step = schedule_record(s, STEP_PUBLISH);
    if (!step)
        return;
    step->at = *at;
    step->peer = to;
}

void schedule_put(struct schedule *s, const struct node_step *at, struct buffer buf, int to)
{
    schedule_claim(s, at, buffer_size(buf));
    schedule_fill(s, 0, buf);
    schedule_publish(s, at, to);
}

void schedule_get(struct schedule *s, const struct node_step *at, int member, MPI_Count off,
                  struct buffer buf)
{
    if (s->broken)
        return;
    if (!s->recording) {
        uint32_t len;
        const void *published = node_wait_for(at, member, &len);
        schedule_carry_get(s, published, len, off, s->view.rank, buf);
        return;
    }
    struct schedule_step *step = schedule_record(s, STEP_GET);
    if (!step)
        return;
    step->at = *at;
    step->peer = member;
    step->self = s->view.rank;
    step->off = off;
    step->out = schedule_hold(buf);
}

void schedule_get_reduce(struct schedule *s, const struct node_step *at, int member, MPI_Count off,
                         struct buffer inout, struct op *op)
{
    if (s->broken || inout.count == 0)
        return;
    if (!s->recording) {
        uint32_t len;
        const void *published = node_wait_for(at, member, &len);
        schedule_carry_get_reduce(s, published, len, off, inout, op);
        return;
    }
    struct schedule_step *step = schedule_record(s, STEP_GET_REDUCE);
    if (!step)
        return;
    step->at = *at;
    step->peer = member;
    step->off = off;
    step->out = schedule_hold(inout);
    op_ref(op);
    step->op = op;
}

void schedule_await(struct schedule *s, const struct node_step *at, int member)
{
    if (s->broken)
        return;
    if (!s->recording) {
        uint32_t len;
        node_wait_for(at, member, &len);
        return;
    }
    struct schedule_step *step = schedule_record(s, STEP_AWAIT);
    if (!step)
        return;
    step->at = *at;
    step->peer = member;
}

void schedule_finish(struct schedule *s, const struct node_step *at)
{
    if (!s->recording) {
        cells_finish(at->cells, at->number); /* in the order of steps: always counted */
        return;
    }
    struct schedule_step *step = s->broken ? NULL : schedule_record(s, STEP_FINISH);
    if (step)
        step->at = *at;
}

bool schedule_run_node_step(struct schedule *s, const struct schedule_step *step)
{
    uint32_t len;
    const void *published = cells_peek(step->at.cells, (uint32_t)step->peer, step->at.number, &len);
    if (!published)
        return false;
    if (step->kind == STEP_GET)
        schedule_carry_get(s, published, len, step->off, step->self, step->out);
    else if (step->kind == STEP_GET_REDUCE)
        schedule_carry_get_reduce(s, published, len, step->off, step->out, step->op);
    return true;
}
