/* SPDX-License-Identifier: BSD-3-Clause */
/* Running a recorded schedule. */
#include "client/coll/schedule/schedule_step.h"
#include "client/p2p/engine.h"
#include "client/p2p/p2p.h"
#include "client/progress/vci.h"

#include <assert.h>

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
        if (cells_peek(step->at.cells, (uint32_t)step->peer, step->at.number, &len))
            return PROGRESS_NEWS;
        node_show(&step->at, step->peer, &s->record);
        return PROGRESS_NO_NEWS;
    case STEP_CLAIM:
    case STEP_FINISH:
        return PROGRESS_SOON;
    default:
        return PROGRESS_NO_NEWS;
    }
}

static bool schedule_all_complete(const struct schedule *s)
{
    for (int i = 0; i < s->n_pending; i++)
        if (s->pending[i] && !request_is_complete(s->pending[i]))
            return false;
    return true;
}

/* Carries out one step; false when it has to wait. */
static bool schedule_run_step(struct schedule *s, const struct schedule_step *step)
{
    /* The rest is not carried out, but its steps in the node's memory are counted, each when its
     * turn has come. */
    if (s->skips_rest && step->kind != STEP_FINISH)
        return true;
    switch (step->kind) {
    case STEP_SEND:
        schedule_post_send(s, step->comm, step->in, step->peer, step->tag);
        break;
    case STEP_RECV:
        schedule_post_recv(s, step->comm, step->out, step->peer, step->tag);
        break;
    case STEP_WAIT:
        if (!schedule_all_complete(s))
            return false;
        schedule_finish_all(s);
        break;
    case STEP_WAIT_ONE:
        if (s->pending[step->peer] && !request_is_complete(s->pending[step->peer]))
            return false;
        schedule_finish_one(s, step->peer);
        break;
    case STEP_COPY:
        schedule_carry_copy(step->in, step->out);
        break;
    case STEP_REDUCE:
        schedule_note(
            s, op_apply(step->op, step->operand, step->out.base, step->out.count, step->out.type));
        break;
    case STEP_CLAIM:
        return schedule_try_claim(s, &step->at, step->off);
    case STEP_FILL:
        schedule_carry_fill(s, step->off, step->in);
        break;
    case STEP_PUBLISH:
        cells_publish(step->at.cells, step->at.number, step->peer);
        break;
    case STEP_GET:
    case STEP_GET_REDUCE:
    case STEP_AWAIT:
        return schedule_run_node_step(s, step);
    case STEP_FINISH:
        return cells_finish(step->at.cells, step->at.number);
    case STEP_CALL: {
        int rc = step->fn(step->arg);
        if (rc == SCHEDULE_AGAIN) {
            s->next_step = step->peer - 1; /* the caller adds one */
            break;
        }
        schedule_note(s, rc);
        break;
    }
    case STEP_JUDGE: {
        int err = step->fn(step->arg);
        schedule_note(s, err);
        s->skips_rest = err != MPI_SUCCESS;
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
    while (s->next_step < s->n_steps && schedule_run_step(s, &s->steps[s->next_step]))
        s->next_step++;
    bool at_end = s->next_step == s->n_steps && schedule_all_complete(s);
    if (at_end)
        schedule_finish_all(s);
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
    s->skips_rest = false;
    s->err = MPI_SUCCESS;
    s->detail = 0;
}
