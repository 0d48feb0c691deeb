/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/core/request.h"

#include <stdlib.h>

#include "client/core/comm.h"
#include "client/core/err.h"
#include "client/core/handle.h"
#include "client/core/progress.h"
#include "client/core/status.h"

void request_init(struct request *r, const struct request_ops *ops, struct comm *comm, bool persistent)
{
    *r = (struct request){
        .obj = {.refs = 1, .kind = OBJECT_REQUEST},
        .ops = ops,
        .comm = comm,
        .persistent = persistent,
        .active = !persistent,
        .source = MPI_ANY_SOURCE,
        .tag = MPI_ANY_TAG,
    };
}

/* Returns the error of the kind's callback. */
static int destroy(struct request *r)
{
    handle_free(&r->obj);
    int err = r->ops->free ? r->ops->free(r) : MPI_SUCCESS;
    r->ops->destroy(r);
    return err;
}

void request_complete(struct request *r, int error)
{
    r->error = error;
    r->complete = true;
    progress_wake_sleepers();
    if (r->orphan)
        destroy(r);
}

static void complete_destroy(struct request *r)
{
    free(r);
}

static const struct request_ops complete_ops = {.destroy = complete_destroy};

int request_new_complete(struct comm *comm, int source, int tag, MPI_Count bytes, struct request **ret_request)
{
    struct request *r = malloc(sizeof *r);

    if (!r)
        return err_set(MPI_ERR_NO_MEM, "no memory for a request");
    request_init(r, &complete_ops, comm, false);
    r->complete = true;
    r->source = source;
    r->tag = tag;
    r->bytes = bytes;
    *ret_request = r;
    return MPI_SUCCESS;
}

int request_publish(int err, struct request **request)
{
    if (err)
        return err;
    if (handle_new(&(*request)->obj))
        return MPI_SUCCESS;
    request_release(*request);
    *request = NULL;
    return err_set(MPI_ERR_NO_MEM, "no handle is left for a request");
}

int request_finish(struct request *r, MPI_Status *status)
{
    int error = r->error;

    if (r->ops->query) {
        MPI_Status own;
        MPI_Status *s = status == MPI_STATUS_IGNORE ? &own : status;
        status_set_empty(s);
        int err = r->ops->query(r, s);
        error = error ? error : err;
    } else if (status != MPI_STATUS_IGNORE) {
        status_set_received(status, r->source, r->tag, r->bytes);
        status_set_cancelled_flag(status, r->cancelled);
    }
    /* The error is raised on the request's communicator, unless this request was the last that kept it alive. */
    if (error && r->comm && r->comm->obj.refs > 1)
        err_blame(r->comm);
    if (r->persistent) {
        r->active = false;
        return error;
    }
    int err = destroy(r);
    return error ? error : err;
}

int request_wait(struct request *r, MPI_Status *status)
{
    if (!r->complete) {
        struct progress_wait wait;
        progress_wait_begin(&wait);
        while (!r->complete)
            progress_wait_step(&wait);
        progress_wait_end(&wait);
    }
    return request_finish(r, status);
}

bool request_test(struct request *r)
{
    if (!r->complete)
        progress_poll();
    return r->complete;
}

int request_wait_all(int n, struct request **requests)
{
    int error = MPI_SUCCESS;

    for (int i = 0; i < n; i++) {
        if (!requests[i])
            continue;
        int err = request_wait(requests[i], MPI_STATUS_IGNORE);
        requests[i] = NULL;
        error = error ? error : err;
    }
    return error;
}

int request_release(struct request *r)
{
    if (r->active && !r->complete) {
        r->orphan = true;
        return MPI_SUCCESS;
    }
    return destroy(r);
}

struct request *request_from_handle(MPI_Request handle)
{
    return (struct request *)handle_get(OBJECT_REQUEST, (uintptr_t)handle);
}
