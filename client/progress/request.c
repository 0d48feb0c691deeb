/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/progress/request.h"

#include <stdlib.h>

#include "client/object/comm.h"
#include "client/object/err.h"
#include "client/object/handle.h"
#include "client/progress/progress.h"
#include "client/progress/status.h"
#include "client/progress/vci.h"

void request_init(struct request *r, const struct request_ops *ops, struct comm *comm,
                  bool persistent)
{
    r->obj = (struct object){.refs = 1, .kind = OBJECT_REQUEST};
    request_renew(r, ops, comm, persistent);
}

/* Returns the error of the kind's callback. */
static int request_destroy(struct request *r)
{
    if (r->obj.predefined)
        return MPI_SUCCESS;
    handle_free(&r->obj);
    int err = r->ops->free ? r->ops->free(r) : MPI_SUCCESS;
    r->ops->destroy(r);
    return err;
}

void request_destroy_orphan(struct request *r)
{
    request_destroy(r);
}

static void complete_destroy(struct request *r)
{
    free(r);
}

static const struct request_ops complete_ops = {.destroy = complete_destroy};

int request_new_complete(struct comm *comm, int source, int tag, MPI_Count bytes,
                         struct request **ret_request)
{
    struct request *r = malloc(sizeof *r);

    if (!r)
        return err_set(MPI_ERR_NO_MEM, "no memory for a request");
    request_init(r, &complete_ops, comm, false);
    request_set_complete(r, true);
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
    if ((*request)->obj.handle || handle_new(&(*request)->obj))
        return MPI_SUCCESS;
    request_release(*request);
    *request = NULL;
    return err_set(MPI_ERR_NO_MEM, "no handle is left for a request");
}

bool request_init_sent(struct request *r, struct vci *vci)
{
    request_init(r, &complete_ops, NULL, false);
    request_set_complete(r, true);
    r->vci = vci;
    if (handle_here->on_new || !handle_new(&r->obj))
        return false;
    r->obj.predefined = true;
    return true;
}

void request_deinit_sent(struct request *r)
{
    r->obj.predefined = false;
    handle_free(&r->obj);
}

int request_finish(struct request *r, MPI_Status *status)
{
    int error = r->error;

    if (__builtin_expect(r->ops->query != NULL, 0)) {
        MPI_Status own;
        MPI_Status *s = status == MPI_STATUS_IGNORE ? &own : status;
        status_set_empty(s);
        int err = r->ops->query(r, s);
        error = error ? error : err;
    } else if (status != MPI_STATUS_IGNORE) {
        status_set_received(status, r->source, r->tag, r->bytes);
        status_set_cancelled_flag(status, r->cancelled);
    }
    if (__builtin_expect(error != MPI_SUCCESS, 0)) {
        err_unstow(error, &r->detail);
        /* The error is raised on the request's communicator, unless this request was the last that
         * kept it alive. */
        if (r->comm && object_n_refs(&r->comm->obj) > 1)
            err_blame(r->comm);
    }
    if (r->persistent) {
        r->active = false;
        return error;
    }
    int err = request_destroy(r);
    return error ? error : err;
}

int request_wait(struct request *r, MPI_Status *status)
{
    if (!request_is_complete(r)) {
        struct progress_wait wait;
        progress_wait_begin(&wait);
        while (!request_is_complete(r))
            progress_wait_step(&wait);
        progress_wait_end(&wait);
    }
    return request_finish(r, status);
}

bool request_test(struct request *r)
{
    if (!request_is_complete(r))
        progress_ask();
    return request_is_complete(r);
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
    struct vci *vci = r->vci;
    bool waits;

    /* Who completes it looks at `orphan` under the lock of its vci. */
    if (vci)
        vci_take(vci);
    waits = r->active && !request_is_complete(r);
    if (waits)
        r->orphan = true;
    int err = waits ? MPI_SUCCESS : request_destroy(r);
    if (vci)
        vci_give(vci);
    return err;
}
