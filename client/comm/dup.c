/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Comm_dup, MPI_Comm_idup and their forms with info.
 *
 * The nonblocking form makes the communicator and runs the attribute callbacks at once and agrees
 * on the context id in a schedule; the id is what it lacks until its request is complete.
 */
#include "client/abi/semantics.h"
#include "client/coll/family/coll.h"
#include "client/coll/schedule/coll_request.h"
#include "client/comm/context.h"
#include "client/comm/create.h"
#include "client/object/attr.h"
#include "client/object/err.h"
#include "client/object/info.h"
#include "client/object/topo.h"

#include <stdlib.h>

/* Everything of the duplicate but its id, which is given back on failure. */
static int clone(const struct comm *comm, const struct info *info, uint32_t id,
                 struct comm **ret_newcomm)
{
    struct comm *copy;
    int err = create_comm(id, comm, comm->group, comm->remote_group, &copy);
    if (err)
        return err;
    copy->topo = comm->topo;
    topo_ref(copy->topo);
    err = info ? info_copy(info, &copy->info) : MPI_SUCCESS;
    if (!err)
        err = comm_publish(copy); /* before the callbacks, which may not see it, for the delete
                                     callbacks, which may */
    if (!err) {
        err = attr_copy_all(comm->attrs, ATTR_COMM, comm->obj.handle, &copy->attrs);
        if (err)
            attr_delete_all(&copy->attrs, ATTR_COMM, copy->obj.handle);
    }
    if (err)
        comm_unref(copy);
    else
        *ret_newcomm = copy;
    return err;
}

static int duplicate(struct comm *comm, const struct info *info, struct comm **ret_newcomm)
{
    struct schedule s;
    uint32_t id = 0;
    schedule_begin(&s, comm, coll_next_tag(comm));
    int err = context_agree(&s, &id);
    int end = schedule_end(&s);
    if (err || end)
        return err ? err : end;
    return clone(comm, info, id, ret_newcomm);
}

/* Without info the duplicate has no hints, whatever the original has (MPI-4.0 section 7.4.2; up to
 * MPI-3.1 they were copied). */
int mpi_comm_dup(struct comm *comm, struct comm **ret_newcomm)
{
    return duplicate(comm, NULL, ret_newcomm);
}

int mpi_comm_dup_with_info(struct comm *comm, struct info *info, struct comm **ret_newcomm)
{
    return duplicate(comm, info, ret_newcomm);
}

/* ---- nonblocking ---- */

struct pending_dup {
    struct context_try try;
    struct comm *copy;
};

static int offer(void *arg)
{
    struct pending_dup *dup = arg;
    context_offer(&dup->try);
    return MPI_SUCCESS;
}

static int settle(void *arg)
{
    struct pending_dup *dup = arg;
    int rc = context_settle(&dup->try);
    if (rc == CONTEXT_AGAIN)
        return rc;
    if (!rc) {
        dup->copy->context_id = dup->try.id;
        if (dup->copy->local_comm)
            dup->copy->local_comm->context_id = dup->try.id + 2;
    }
    comm_unref(dup->copy);
    return rc;
}

/* An id of none: never given back (context.c knows multiples of 4 only), never sent on. */
#define NO_ID 1u

static int start_duplicate(struct comm *comm, const struct info *info, struct comm **ret_newcomm,
                           struct request **ret_request)
{
    struct schedule *s = schedule_new(comm, coll_next_nonblocking_tag(comm));
    struct pending_dup *dup = s ? schedule_temp(s, sizeof *dup) : NULL;
    if (!dup) {
        schedule_free(s);
        return err_set(MPI_ERR_NO_MEM, "no memory to duplicate a communicator");
    }
    context_begin(&dup->try, comm->context_id, s->tag);
    dup->try.with_slot = !comm_is_inter(comm);
    int label = schedule_label(s);
    schedule_call(s, offer, dup, label);
    context_vote(s, &dup->try);
    schedule_call(s, settle, dup, label);
    int err = s->err ? s->err : clone(comm, info, NO_ID, &dup->copy);
    if (err) {
        schedule_free(s);
        return err;
    }
    struct comm *copy = dup->copy;
    comm_ref(copy); /* until it has its id, even if the application frees it before */
    err = coll_request_start(s, ret_request);
    if (err) {
        comm_release(copy);
        comm_unref(copy);
        return err;
    }
    *ret_newcomm = copy;
    return MPI_SUCCESS;
}

int mpi_comm_idup(struct comm *comm, struct comm **ret_newcomm, struct request **ret_request)
{
    return start_duplicate(comm, NULL, ret_newcomm, ret_request);
}

int mpi_comm_idup_with_info(struct comm *comm, struct info *info, struct comm **ret_newcomm,
                            struct request **ret_request)
{
    return start_duplicate(comm, info, ret_newcomm, ret_request);
}
