/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Comm_create, MPI_Comm_create_group and MPI_Comm_create_from_group: communicators over a group
 * that is given. */
#include "client/abi/semantics.h"
#include "client/coll/family/coll.h"
#include "client/comm/context.h"
#include "client/comm/create.h"
#include "client/comm/split.h"
#include "client/object/err.h"
#include "client/object/group.h"

#include <stdlib.h>

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
