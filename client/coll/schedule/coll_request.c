/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/schedule/coll_request.h"

#include "client/client.h"
#include "client/coll/schedule/coll_comm.h"
#include "client/object/err.h"
#include "client/progress/async.h"
#include "client/progress/calls.h"
#include "client/progress/progress.h"

#include <stdlib.h>

struct coll_request {
    struct request request;
    struct schedule *schedule;
    const char *function;                 /* that made it */
    struct calls_record *record;          /* while it runs */
    struct coll_request *next, *previous; /* while it runs */
};

struct coll_request_state {
    struct coll_request *running; /* the most recently started first */
    int n_running;
};
static struct coll_request_state coll_request_first;
static struct coll_request_state *coll_request_here = &coll_request_first;
CLIENT_PART(coll_request_here, coll_request_first);

static void coll_request_leave(struct coll_request *r)
{
    if (r->previous)
        r->previous->next = r->next;
    else
        coll_request_here->running = r->next;
    if (r->next)
        r->next->previous = r->previous;
    coll_request_here->n_running--;
    calls_hide(&r->record);
    async_end();
}

static int coll_request_poll(void)
{
    int n_done = 0;
    struct coll_request *next;
    for (struct coll_request *r = coll_request_here->running; r; r = next) {
        int at = r->schedule->next_step;
        bool done = schedule_advance(r->schedule);
        next = r->next; /* a step may have polled, and so ended others */
        n_done += done || r->schedule->next_step != at;
        if (done) {
            coll_request_leave(r);
            request_complete(&r->request, schedule_result(r->schedule));
        }
    }
    return n_done;
}

/* What the operations of this rank wait for in the node's memory. */
static enum progress_news coll_request_news(void)
{
    enum progress_news most = node_news();
    for (const struct coll_request *r = coll_request_here->running; r && most != PROGRESS_NEWS;
         r = r->next) {
        enum progress_news one = schedule_news(r->schedule);
        most = one > most ? one : most;
    }
    return most;
}

static void coll_request_destroy(struct request *request)
{
    struct coll_request *r = (struct coll_request *)request;
    schedule_free(r->schedule);
    free(r);
}

/* Runs the first steps at once, so that messages leave and short operations may already be over. */
static int coll_request_begin(struct request *request)
{
    struct coll_request *r = (struct coll_request *)request;
    schedule_rewind(r->schedule);
    request_set_complete(&r->request, false);
    r->request.active = true;
    if (schedule_advance(r->schedule)) {
        request_complete(&r->request, schedule_result(r->schedule));
        return MPI_SUCCESS;
    }
    r->previous = NULL;
    r->next = coll_request_here->running;
    if (coll_request_here->running)
        coll_request_here->running->previous = r;
    coll_request_here->running = r;
    coll_request_here->n_running++;
    enum coll_form form = coll_form_of(r->schedule->tag);
    if (form < COLL_FORMS)
        calls_show_running(&r->record, r->function, r->schedule->owner, (enum calls_form)form,
                           coll_sequence_of(r->schedule->tag));
    async_begin();
    return MPI_SUCCESS;
}

static const struct request_ops nonblocking_ops = {.destroy = coll_request_destroy};
static const struct request_ops persistent_ops = {.destroy = coll_request_destroy,
                                                  .start = coll_request_begin};

static int coll_request_new(struct schedule *s, bool persistent, struct coll_request **ret_request)
{
    int err = s ? s->err
                : err_set(MPI_ERR_NO_MEM, "no memory for the schedule of a collective operation");
    struct coll_request *r = err ? NULL : malloc(sizeof *r);
    if (!r) {
        schedule_free(s);
        return err ? err
                   : err_set(MPI_ERR_NO_MEM, "no memory for the request of a collective operation");
    }
    request_init(&r->request, persistent ? &persistent_ops : &nonblocking_ops, s->owner,
                 persistent);
    r->schedule = s;
    r->function = calls_now.function;
    r->record = NULL;
    *ret_request = r;
    return MPI_SUCCESS;
}

int coll_request_start(struct schedule *s, struct request **ret_request)
{
    struct coll_request *r;
    int err = coll_request_new(s, false, &r);
    if (err)
        return err;
    *ret_request = &r->request;
    return request_publish(coll_request_begin(&r->request), ret_request);
}

int coll_request_persist(struct schedule *s, struct request **ret_request)
{
    struct coll_request *r;
    int err = coll_request_new(s, true, &r);
    if (err)
        return err;
    *ret_request = &r->request;
    return request_publish(MPI_SUCCESS, ret_request);
}

void coll_request_init(void)
{
    progress_register(coll_request_poll, &coll_request_here->n_running, false);
    progress_on_sleep(coll_request_news);
}
