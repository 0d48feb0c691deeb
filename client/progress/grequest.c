/* SPDX-License-Identifier: BSD-3-Clause */
/* Generalized requests: the operation is the user's, completion is announced by
 * MPI_Grequest_complete (MPI-5.0 section 13.2). */
#include <stdlib.h>

#include "client/abi/semantics.h"
#include "client/object/err.h"
#include "client/progress/request.h"

struct grequest {
    struct request base;
    MPI_Grequest_query_function *query_fn;
    MPI_Grequest_free_function *free_fn;
    MPI_Grequest_cancel_function *cancel_fn;
    void *extra_state;
};

static int call_free(struct request *r)
{
    struct grequest *g = (struct grequest *)r;
    return g->free_fn(g->extra_state);
}

static void grequest_destroy(struct request *r)
{
    free(r);
}

static int grequest_cancel(struct request *r)
{
    struct grequest *g = (struct grequest *)r;
    return g->cancel_fn(g->extra_state, request_is_complete(r));
}

static int grequest_query(struct request *r, MPI_Status *status)
{
    struct grequest *g = (struct grequest *)r;
    return g->query_fn(g->extra_state, status);
}

static const struct request_ops grequest_ops = {.destroy = grequest_destroy,
                                                .cancel = grequest_cancel,
                                                .query = grequest_query,
                                                .free = call_free};

int mpi_grequest_start(MPI_Grequest_query_function *query_fn, MPI_Grequest_free_function *free_fn,
                       MPI_Grequest_cancel_function *cancel_fn, void *extra_state,
                       struct request **ret_request)
{
    struct grequest *g = malloc(sizeof *g);

    if (!g)
        return err_set(MPI_ERR_NO_MEM, "no memory for a request");
    request_init(&g->base, &grequest_ops, NULL, false);
    g->query_fn = query_fn;
    g->free_fn = free_fn;
    g->cancel_fn = cancel_fn;
    g->extra_state = extra_state;
    *ret_request = &g->base;
    return request_publish(MPI_SUCCESS, ret_request);
}

int mpi_grequest_complete(struct request *request)
{
    if (request->ops != &grequest_ops)
        return err_set(MPI_ERR_REQUEST, "the request is no generalized one");
    request_complete(request, MPI_SUCCESS);
    return MPI_SUCCESS;
}
