/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Comm_create, MPI_Comm_create_group, MPI_Comm_create_from_group and what all creation
 * functions share. */
#include "client/comm/create.h"

#include "base/hash.h"
#include "client/abi/semantics.h"
#include "client/coll/family/coll.h"
#include "client/comm/context.h"
#include "client/comm/split.h"
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

static int check_members(const struct comm *comm, const struct group *group)
{
    for (int i = 0; i < group->size; i++)
        if (group_rank_of(comm->group, group->procs[i]) == MPI_UNDEFINED)
            return err_set(MPI_ERR_GROUP, "rank %d of the group is no member of %s", i,
                           comm->name[0] ? comm->name : "the communicator");
    return MPI_SUCCESS;
}

int mpi_comm_create(struct comm *comm, struct group *group, struct comm **ret_newcomm)
{
    int err = check_members(comm, group);
    if (err)
        return err;
    if (comm_is_inter(comm)) /* the remote group is not known here: the same exchange as a split */
        return split_comm(comm, group->rank == MPI_UNDEFINED ? MPI_UNDEFINED : 0, group->rank,
                          ret_newcomm);
    /* One id for all: the groups that different members give are disjoint (MPI-5.0 section
     * 7.4.2). */
    struct schedule s;
    uint32_t id = 0;
    schedule_begin(&s, comm, coll_next_tag(comm));
    err = context_agree(&s, &id);
    int end = schedule_end(&s);
    if (err || end)
        return err ? err : end;
    return create_published(id, comm, group, NULL, ret_newcomm);
}

/* Agreement among the members of a group, whose messages travel on `comm` under a tag that the user
 * gave for it. */
static int create_among(struct comm *comm, struct group *group, const int *map, int tag,
                        struct comm **ret_newcomm)
{
    struct schedule s;
    uint32_t id = 0;
    schedule_begin(&s, comm, coll_group_tag(tag));
    schedule_enter(&s, (struct schedule_view){comm, group->rank, group->size, map});
    int err = context_agree(&s, &id);
    int end = schedule_end(&s);
    if (err || end)
        return err ? err : end;
    return create_published(id, comm, group, NULL, ret_newcomm);
}

int mpi_comm_create_group(struct comm *comm, struct group *group, int tag,
                          struct comm **ret_newcomm)
{
    if (comm_is_inter(comm))
        return err_set(MPI_ERR_COMM, "%s is an intercommunicator", comm->name);
    int err = check_members(comm, group);
    if (err)
        return err;
    *ret_newcomm = NULL;
    if (group->rank == MPI_UNDEFINED)
        return MPI_SUCCESS;
    int *map = malloc((size_t)group->size * sizeof(int));
    if (!map)
        return err_set(MPI_ERR_NO_MEM, "no memory for a group of %d processes", group->size);
    for (int i = 0; i < group->size; i++)
        map[i] = group_rank_of(comm->group, group->procs[i]);
    err = create_among(comm, group, map, tag, ret_newcomm);
    free(map);
    return err;
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

/* MPI_COMM_WORLD carries the messages; its ranks are the process indices of the group. */
int mpi_comm_create_from_group(struct group *group, const char *stringtag, struct info *info,
                               struct errhandler *errhandler, struct comm **ret_newcomm)
{
    *ret_newcomm = NULL;
    if (group->size == 0)
        return MPI_SUCCESS;
    if (group->rank == MPI_UNDEFINED)
        return err_set(MPI_ERR_GROUP, "this process is no member of the group");
    int err =
        create_among(comm_here->world, group, group->procs, create_tag_of(stringtag), ret_newcomm);
    return err ? err : create_dress(*ret_newcomm, info, errhandler);
}
