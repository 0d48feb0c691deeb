/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/schedule/coll_comm.h"

#include "client/object/group.h"
#include "client/process/job.h"
#include "client/progress/calls.h"

#include <stdlib.h>

struct coll_comm *coll_comm_of(struct comm *comm)
{
    if (!comm->coll)
        comm->coll = calloc(1, sizeof *comm->coll);
    return comm->coll;
}

static int coll_next(struct comm *comm, enum coll_form form)
{
    struct coll_comm *c = coll_comm_of(comm);
    if (!c)
        return 0;
    c->next_tag[form] = (c->next_tag[form] + 1) % COLL_TAG_RANGE;
    calls_collective(comm, (enum calls_form)form, c->next_tag[form]);
    return (int)(form * COLL_TAG_RANGE + c->next_tag[form]);
}

int coll_next_tag(struct comm *comm)
{
    return coll_next(comm, COLL_BLOCKING);
}

int coll_next_nonblocking_tag(struct comm *comm)
{
    return coll_next(comm, COLL_NONBLOCKING);
}

int coll_next_persistent_tag(struct comm *comm)
{
    return coll_next(comm, COLL_PERSISTENT);
}

int coll_next_check_tag(struct comm *comm)
{
    struct coll_comm *c = coll_comm_of(comm);
    if (!c)
        return 0;
    c->next_check = (c->next_check + 1) % COLL_TAG_RANGE;
    return (int)(COLL_FORMS * COLL_TAG_RANGE + c->next_check);
}

uint32_t coll_sequence_of(int tag)
{
    return (uint32_t)tag % COLL_TAG_RANGE;
}

void coll_release(struct comm *comm)
{
    struct coll_comm *c = comm->coll;
    if (!c)
        return;
    comm->coll = NULL;
    node_close_rows(&c->rows);
    shape_free(c->shape);
    shape_free(c->remote);
    free(c->quick);
    free(c);
}

struct shape *coll_shape_of(struct comm *comm)
{
    struct coll_comm *c = coll_comm_of(comm);
    if (c && !c->shape)
        c->shape = shape_new(comm->group, comm->rank, comm->foreign);
    return c ? c->shape : NULL;
}

const struct shape *coll_remote_shape_of(struct comm *comm)
{
    struct coll_comm *c = coll_comm_of(comm);
    if (c && !c->remote)
        c->remote = shape_new(comm->remote_group, -1, comm->foreign);
    return c ? c->remote : NULL;
}

int coll_node_of(const struct comm *comm, int proc)
{
    return comm->foreign ? NODE_APART : job_node_of(proc);
}

struct node_rows *coll_rows_of(struct comm *comm)
{
    struct coll_comm *c = coll_comm_of(comm);
    if (!c || c->rows.tried)
        return c ? &c->rows : NULL;
    if (comm_is_inter(comm))
        c->rows.tried = true;
    else if (coll_shape_of(comm))
        node_open_rows(&c->rows, comm, c->shape);
    return &c->rows;
}
