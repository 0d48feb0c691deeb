/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/rma/origin.h"

#include <stdlib.h>

#include "client/object/err.h"
#include "client/progress/progress.h"
#include "client/rma/direct.h"
#include "client/rma/operation.h"

/* Operations of a link that wait to be sent; who starts more waits. */
#define MAX_QUEUED 4096u

/* ---- the request of an operation ---- */

static void request_free(struct request *r)
{
    free(r);
}
static const struct request_ops operation_request_ops = {.destroy = request_free};

/* ---- starting ---- */

static void wait_until_queued_less(struct link *link)
{
    struct progress_wait wait;
    progress_wait_begin(&wait);
    while (link->n_queued > MAX_QUEUED)
        progress_wait_step(&wait);
    progress_wait_end(&wait);
}

static struct operation *operation_new(const struct operation_call *call, struct request *request)
{
    struct operation *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    list_init(&o->link);
    o->peer = link_of(call->win, call->target);
    o->call = *call;
    o->request = request;
    o->total = call->bytes;
    o->one_run = datatype_is_run(call->target_type, call->target_count);
    type_ref(call->target_type);
    if (call->origin.type)
        type_ref(call->origin.type);
    if (call->result.type)
        type_ref(call->result.type);
    pieces_begin(&o->at, call->offset, call->target_count, call->target_type, call->element);
    o->at.type.total = call->bytes;
    o->peer->n_open++;
    return o;
}

static int start_by_messages(const struct operation_call *call, struct request *request)
{
    struct operation *o = operation_new(call, request);
    if (!o)
        return err_set(MPI_ERR_NO_MEM, "no memory for a one-sided operation");
    struct link *link = o->peer;
    if (list_empty(&link->queue) && part_send(o))
        return MPI_SUCCESS;
    list_append(&link->queue, &o->link);
    if (list_empty(&link->busy)) {
        list_append(&rma_here->busy, &link->busy);
        rma_here->n_active++;
    }
    if (++link->n_queued > MAX_QUEUED)
        wait_until_queued_less(link);
    return MPI_SUCCESS;
}

int origin_start(const struct operation_call *call, struct request **ret_request)
{
    bool direct = call->win->targets[call->target].direct;
    if (direct || call->bytes == 0) {
        if (call->bytes > 0) {
            int err = direct_do(call);
            if (err)
                return err;
        }
        return ret_request ? request_new_complete(NULL, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, ret_request)
                           : MPI_SUCCESS;
    }
    struct request *request = NULL;
    if (ret_request) {
        request = malloc(sizeof *request);
        if (!request)
            return err_set(MPI_ERR_NO_MEM, "no memory for a request");
        request_init(request, &operation_request_ops, NULL, false);
    }
    int err = start_by_messages(call, request);
    if (err)
        free(request);
    else if (ret_request)
        *ret_request = request;
    return err;
}

/* ---- waiting ---- */

static bool is_over_here(const struct link *link)
{
    return !link || link->n_open == 0;
}

static void wait_here(const struct link *link)
{
    struct progress_wait wait;
    progress_wait_begin(&wait);
    while (!is_over_here(link))
        progress_wait_step(&wait);
    progress_wait_end(&wait);
}

void origin_wait_sent(struct link *link)
{
    struct progress_wait wait;
    progress_wait_begin(&wait);
    while (!list_empty(&link->queue))
        progress_wait_step(&wait);
    progress_wait_end(&wait);
}

void origin_wait_here(struct win *win, int rank)
{
    int first = rank < 0 ? 0 : rank, end = rank < 0 ? win->comm->size : rank + 1;
    for (int i = first; i < end; i++)
        wait_here(win->targets[i].link);
}

/* Asks the target to say when everything so far is done. */
static void ask(struct link *link, uint8_t kind)
{
    struct message_head head = {.kind = kind};
    origin_wait_sent(link);
    message_send(link, MESSAGE_REQUEST, &head, NULL, NULL, 0);
    link->n_asked++;
    link->dirty = false;
}

static void wait_asked(struct link *link)
{
    struct progress_wait wait;
    progress_wait_begin(&wait);
    while (link->n_done != link->n_asked || link->n_open > 0)
        progress_wait_step(&wait);
    progress_wait_end(&wait);
}

void origin_wait_there(struct win *win, int rank)
{
    int first = rank < 0 ? 0 : rank, end = rank < 0 ? win->comm->size : rank + 1;
    for (int i = first; i < end; i++) {
        struct link *link = win->targets[i].link;
        if (link && !list_empty(&link->queue))
            origin_wait_sent(link);
        if (link && link->dirty)
            ask(link, MESSAGE_FLUSH);
    }
    for (int i = first; i < end; i++)
        if (win->targets[i].link)
            wait_asked(win->targets[i].link);
}

void origin_unlock(struct link *link)
{
    ask(link, MESSAGE_UNLOCK);
}
