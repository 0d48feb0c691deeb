/* SPDX-License-Identifier: BSD-3-Clause */
/* The wait and test families, freeing and cancelling (MPI-5.0 sections 3.7.3 to 3.7.6, 3.8.4). */
#include <stdlib.h>

#include "client/abi/semantics.h"
#include "client/object/err.h"
#include "client/object/handle.h"
#include "client/progress/progress.h"
#include "client/progress/request.h"
#include "client/progress/status.h"

/* The request behind a handle if it can complete: null handles and inactive persistent requests
 * cannot. */
static inline struct request *active_request(MPI_Request handle)
{
    struct request *r = handle == MPI_REQUEST_NULL ? NULL : request_from_handle(handle);

    return r && r->active ? r : NULL;
}

static inline MPI_Status *status_at(MPI_Status *statuses, MPI_Count i)
{
    return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
}

/* Finishes a complete request of an array and clears its place unless it is persistent. */
static int finish_at(MPI_Request requests[], MPI_Count i, struct request *r, MPI_Status *status)
{
    bool persistent = r->persistent;
    int err = request_finish(r, status);

    if (!persistent)
        requests[i] = MPI_REQUEST_NULL;
    return err;
}

static void wait_until_complete(struct request *r)
{
    struct progress_wait wait;

    progress_wait_begin(&wait);
    while (!request_is_complete(r))
        progress_wait_step(&wait);
    progress_wait_end(&wait);
}

int mpi_wait(struct request **request, MPI_Status *status)
{
    struct request *r = *request;

    if (!r || !r->active) {
        status_set_empty(status);
        return MPI_SUCCESS;
    }
    if (!r->persistent)
        *request = NULL;
    return request_wait(r, status);
}

int mpi_test(struct request **request, int *flag, MPI_Status *status)
{
    struct request *r = *request;

    *flag = 1;
    if (!r || !r->active) {
        progress_ask();
        status_set_empty(status);
        return MPI_SUCCESS;
    }
    if (!request_test(r)) {
        *flag = 0;
        return MPI_SUCCESS;
    }
    if (!r->persistent)
        *request = NULL;
    return request_finish(r, status);
}

/* Finishes every request of the array, all of which are complete; MPI_ERR_IN_STATUS if any of them
 * failed. */
static int finish_all(MPI_Count count, MPI_Request requests[], MPI_Status statuses[])
{
    int result = MPI_SUCCESS;

    for (MPI_Count i = 0; i < count; i++) {
        struct request *r = active_request(requests[i]);
        MPI_Status *status = status_at(statuses, i);
        int err = MPI_SUCCESS;
        if (r)
            err = finish_at(requests, i, r, status);
        else
            status_set_empty(status);
        if (err && result == MPI_SUCCESS) {
            result = statuses == MPI_STATUSES_IGNORE ? err : MPI_ERR_IN_STATUS;
            for (MPI_Count k = 0; k < i && statuses != MPI_STATUSES_IGNORE; k++)
                statuses[k].MPI_ERROR = MPI_SUCCESS;
        }
        if (result != MPI_SUCCESS && status != MPI_STATUS_IGNORE)
            status->MPI_ERROR = err;
    }
    return result;
}

int mpi_waitall(MPI_Count count, MPI_Request array_of_requests[], MPI_Status array_of_statuses[])
{
    for (MPI_Count i = 0; i < count; i++) {
        struct request *r = active_request(array_of_requests[i]);
        if (r && !request_is_complete(r))
            wait_until_complete(r);
    }
    return finish_all(count, array_of_requests, array_of_statuses);
}

int mpi_testall(MPI_Count count, MPI_Request array_of_requests[], int *flag,
                MPI_Status array_of_statuses[])
{
    progress_ask();
    *flag = 0;
    for (MPI_Count i = 0; i < count; i++) {
        struct request *r = active_request(array_of_requests[i]);
        if (r && !request_is_complete(r))
            return MPI_SUCCESS;
    }
    *flag = 1;
    return finish_all(count, array_of_requests, array_of_statuses);
}

/* First complete request of the array, or -1; *ret_any tells whether there was an active one. */
static MPI_Count find_complete(MPI_Count count, const MPI_Request requests[], bool *ret_any)
{
    *ret_any = false;
    for (MPI_Count i = 0; i < count; i++) {
        struct request *r = active_request(requests[i]);
        if (!r)
            continue;
        *ret_any = true;
        if (request_is_complete(r))
            return i;
    }
    return -1;
}

int mpi_waitany(MPI_Count count, MPI_Request array_of_requests[], int *indx, MPI_Status *status)
{
    struct progress_wait wait;
    bool any;
    MPI_Count at;

    progress_wait_begin(&wait);
    while ((at = find_complete(count, array_of_requests, &any)) < 0 && any)
        progress_wait_step(&wait);
    progress_wait_end(&wait);
    if (at < 0) {
        *indx = MPI_UNDEFINED;
        status_set_empty(status);
        return MPI_SUCCESS;
    }
    *indx = (int)at;
    return finish_at(array_of_requests, at, active_request(array_of_requests[at]), status);
}

int mpi_testany(MPI_Count count, MPI_Request array_of_requests[], int *indx, int *flag,
                MPI_Status *status)
{
    bool any;

    progress_ask();
    MPI_Count at = find_complete(count, array_of_requests, &any);
    *indx = MPI_UNDEFINED;
    *flag = !any;
    if (at < 0) {
        if (!any)
            status_set_empty(status);
        return MPI_SUCCESS;
    }
    *flag = 1;
    *indx = (int)at;
    return finish_at(array_of_requests, at, active_request(array_of_requests[at]), status);
}

static int finish_some(MPI_Count incount, MPI_Request requests[], int *outcount, int indices[],
                       MPI_Status statuses[])
{
    int n = 0;
    int result = MPI_SUCCESS;

    for (MPI_Count i = 0; i < incount; i++) {
        struct request *r = active_request(requests[i]);
        if (!r || !request_is_complete(r))
            continue;
        MPI_Status *status = status_at(statuses, n);
        int err = finish_at(requests, i, r, status);
        if (err && result == MPI_SUCCESS) {
            result = statuses == MPI_STATUSES_IGNORE ? err : MPI_ERR_IN_STATUS;
            for (int k = 0; k < n && statuses != MPI_STATUSES_IGNORE; k++)
                statuses[k].MPI_ERROR = MPI_SUCCESS;
        }
        if (result != MPI_SUCCESS && status != MPI_STATUS_IGNORE)
            status->MPI_ERROR = err;
        indices[n++] = (int)i;
    }
    *outcount = n;
    return result;
}

int mpi_waitsome(MPI_Count incount, MPI_Request array_of_requests[], int *outcount,
                 int array_of_indices[], MPI_Status array_of_statuses[])
{
    struct progress_wait wait;
    bool any;

    progress_wait_begin(&wait);
    while (find_complete(incount, array_of_requests, &any) < 0 && any)
        progress_wait_step(&wait);
    progress_wait_end(&wait);
    if (!any) {
        *outcount = MPI_UNDEFINED;
        return MPI_SUCCESS;
    }
    return finish_some(incount, array_of_requests, outcount, array_of_indices, array_of_statuses);
}

int mpi_testsome(MPI_Count incount, MPI_Request array_of_requests[], int *outcount,
                 int array_of_indices[], MPI_Status array_of_statuses[])
{
    bool any;

    progress_ask();
    find_complete(incount, array_of_requests, &any);
    if (!any) {
        *outcount = MPI_UNDEFINED;
        return MPI_SUCCESS;
    }
    return finish_some(incount, array_of_requests, outcount, array_of_indices, array_of_statuses);
}

/* The status a request would give, without finishing it. */
static int peek_status(struct request *r, MPI_Status *status)
{
    if (!r) {
        status_set_empty(status);
        return MPI_SUCCESS;
    }
    if (r->ops->query) {
        MPI_Status own;
        MPI_Status *s = status == MPI_STATUS_IGNORE ? &own : status;
        status_set_empty(s);
        return r->ops->query(r, s);
    }
    status_set_received(status, r->source, r->tag, r->bytes);
    status_set_cancelled_flag(status, r->cancelled);
    return MPI_SUCCESS;
}

int mpi_request_get_status(struct request *request, int *flag, MPI_Status *status)
{
    progress_ask();
    *flag = !request || !request->active || request_is_complete(request);
    return *flag ? peek_status(request && request->active ? request : NULL, status) : MPI_SUCCESS;
}

int mpi_request_get_status_all(MPI_Count count, const MPI_Request array_of_requests[], int *flag,
                               MPI_Status array_of_statuses[])
{
    int result = MPI_SUCCESS;

    progress_ask();
    *flag = 0;
    for (MPI_Count i = 0; i < count; i++) {
        struct request *r = active_request(array_of_requests[i]);
        if (r && !request_is_complete(r))
            return MPI_SUCCESS;
    }
    *flag = 1;
    for (MPI_Count i = 0; i < count; i++) {
        int err =
            peek_status(active_request(array_of_requests[i]), status_at(array_of_statuses, i));
        result = result ? result : err;
    }
    return result;
}

int mpi_request_get_status_any(MPI_Count count, const MPI_Request array_of_requests[], int *indx,
                               int *flag, MPI_Status *status)
{
    bool any;

    progress_ask();
    MPI_Count at = find_complete(count, array_of_requests, &any);
    *indx = at < 0 ? MPI_UNDEFINED : (int)at;
    *flag = at >= 0 || !any;
    return *flag ? peek_status(at < 0 ? NULL : active_request(array_of_requests[at]), status)
                 : MPI_SUCCESS;
}

int mpi_request_get_status_some(MPI_Count incount, const MPI_Request array_of_requests[],
                                int *outcount, int array_of_indices[],
                                MPI_Status array_of_statuses[])
{
    bool any;
    int n = 0, result = MPI_SUCCESS;

    progress_ask();
    find_complete(incount, array_of_requests, &any);
    for (MPI_Count i = 0; i < incount; i++) {
        struct request *r = active_request(array_of_requests[i]);
        if (!r || !request_is_complete(r))
            continue;
        int err = peek_status(r, status_at(array_of_statuses, n));
        result = result ? result : err;
        array_of_indices[n++] = (int)i;
    }
    *outcount = any ? n : MPI_UNDEFINED;
    return result;
}

int mpi_request_free(struct request **request)
{
    struct request *r = *request;

    *request = NULL;
    /* The handle is gone at once, the operation goes on. */
    handle_free(&r->obj);
    return request_release(r);
}

int mpi_cancel(struct request **request)
{
    struct request *r = *request;

    if (!r->active || !r->ops->cancel)
        return MPI_SUCCESS;
    return r->ops->cancel(r);
}

int mpi_start(struct request **request)
{
    struct request *r = *request;

    if (!r->ops->start)
        return err_set(MPI_ERR_REQUEST, "the request is not persistent");
    if (r->active)
        return err_set(MPI_ERR_REQUEST, "the persistent request is active already");
    return r->ops->start(r);
}

int mpi_startall(MPI_Count count, MPI_Request array_of_requests[])
{
    for (MPI_Count i = 0; i < count; i++) {
        struct request *r = request_from_handle(array_of_requests[i]);
        if (!r)
            return err_set(MPI_ERR_REQUEST, "array_of_requests[%lld] is no valid request",
                           (long long)i);
        int err = mpi_start(&r);
        if (err)
            return err;
    }
    return MPI_SUCCESS;
}
