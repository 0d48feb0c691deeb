/* SPDX-License-Identifier: BSD-3-Clause */
/* What all functions that create communicators share. */
#include "client/comm/create.h"

#include "base/hash.h"
#include "client/coll/schedule/coll_comm.h"
#include "client/comm/context.h"
#include "client/object/err.h"
#include "client/object/errhandler.h"
#include "client/object/info.h"
#include "client/object/session.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

int create_comm(uint32_t context_id, const struct comm *parent, struct group *group,
                struct group *remote_group, struct comm **ret_comm)
{
    struct comm *comm;
    int err = comm_new(context_id, group, remote_group, &comm);
    if (err) {
        context_give_back(context_id);
        return err;
    }
    errhandler_assign(&comm->errhandler, parent->errhandler, ERRHANDLER_COMM);
    comm->session = parent->session ? parent->session : group->session;
    session_ref(comm->session);
    group_set_session(group, comm->session);
    if (remote_group) {
        /* The ids come in fours; the groups are disjoint, so both may use the same one among
         * themselves. */
        err = comm_new(context_id + 2, group, NULL, &comm->local_comm);
        if (err) {
            comm_unref(comm);
            return err;
        }
        comm->local_comm->foreign |= comm->foreign;
    }
    *ret_comm = comm;
    return MPI_SUCCESS;
}

int create_published(uint32_t context_id, const struct comm *parent, struct group *group,
                     struct group *remote_group, struct comm **ret_comm)
{
    *ret_comm = NULL;
    if (group->rank == MPI_UNDEFINED || (remote_group && remote_group->size == 0)) {
        context_give_back(context_id);
        return MPI_SUCCESS;
    }
    struct comm *comm;
    int err = create_comm(context_id, parent, group, remote_group, &comm);
    if (!err && (err = comm_publish(comm)) != MPI_SUCCESS)
        comm_unref(comm);
    if (!err)
        *ret_comm = comm;
    return err;
}

int create_private(struct comm *comm, struct comm **ret_comm)
{
    struct schedule s;
    uint32_t id = 0;
    schedule_begin(&s, comm, coll_next_tag(comm));
    int err = context_agree(&s, &id);
    int end = schedule_end(&s);
    if (err || end)
        return err ? err : end;
    return create_comm(id, comm, comm->group, NULL, ret_comm);
}

int create_tag_of(const char *stringtag)
{
    return (int)(hash_fnv1a(stringtag, strlen(stringtag)) & INT_MAX);
}

int create_dress(struct comm *comm, const struct info *info, struct errhandler *errhandler)
{
    int err = errhandler_assign(&comm->errhandler, errhandler, ERRHANDLER_COMM);
    if (!err && info)
        err = info_copy(info, &comm->info);
    return err;
}
