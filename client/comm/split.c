/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Comm_split and MPI_Comm_split_type.
 *
 * Every member learns all colors and keys (allgather), picks out its own and sorts. The new communicators of
 * one call are disjoint, so one agreed context id serves them all.
 */
#include "client/comm/split.h"

#include "client/abi/semantics.h"
#include "client/coll/coll.h"
#include "client/coll/inter.h"
#include "client/comm/context.h"
#include "client/comm/create.h"
#include "client/comm/pset.h"
#include "client/core/err.h"
#include "client/core/info.h"
#include "client/core/job.h"

#include <stdlib.h>
#include <string.h>

struct entry {
    int color, key;
};

struct place {
    int key, rank;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* The members of `group` with this color, by key and then rank. */
static int pick(const struct entry *entries, const struct group *group, int color, struct group **ret_group)
{
    struct place *places = malloc((size_t)group->size * sizeof *places);
    int *procs = malloc((size_t)group->size * sizeof *procs);
    int n = 0, err;
    if (places && procs) {
        for (int i = 0; i < group->size; i++)
            if (entries[i].color == color)
                places[n++] = (struct place){.key = entries[i].key, .rank = i};
        qsort(places, (size_t)n, sizeof *places, compare_places);
        for (int i = 0; i < n; i++)
            procs[i] = group->procs[places[i].rank];
        err = group_new(n, procs, ret_group);
    } else {
        err = err_set(MPI_ERR_NO_MEM, "no memory to split a communicator of %d processes", group->size);
    }
    free(places);
    free(procs);
    return err;
}

/* Entries of the local group at [0], of the remote one behind them. */
static int exchange(struct comm *comm, struct entry mine, struct entry *entries, uint32_t *ret_id)
{
    struct schedule s;
    struct blocks local = {.buf = entries, .type = datatype_predefined(MPI_INT), .count = 2};
    schedule_begin(&s, comm, coll_next_tag(comm));
    if (comm_is_inter(comm)) {
        struct blocks remote = local;
        remote.buf = entries + comm->size;
        inter_allgather(&s, &mine, 2, local.type, &remote);
        struct schedule_view inter =
            schedule_enter(&s, (struct schedule_view){comm->local_comm, comm->rank, comm->size, NULL});
        coll_allgather(&s, &mine, 2, local.type, &local);
        schedule_leave(&s, inter);
    } else {
        coll_allgather(&s, &mine, 2, local.type, &local);
    }
    int err = s.err ? s.err : context_agree(&s, ret_id);
    int end = schedule_end(&s);
    return err ? err : end;
}

int split_comm(struct comm *comm, int color, int key, struct comm **ret_newcomm)
{
    int n = comm->size + (comm_is_inter(comm) ? comm->remote_group->size : 0);
    struct entry *entries = malloc((size_t)n * sizeof *entries);
    if (!entries)
        return err_set(MPI_ERR_NO_MEM, "no memory to split a communicator of %d processes", n);
    uint32_t id = 0;
    struct group *group = NULL, *remote = NULL;
    *ret_newcomm = NULL;
    int err = exchange(comm, (struct entry){color, key}, entries, &id);
    if (!err && color == MPI_UNDEFINED) {
        context_give_back(id);
    } else if (!err) {
        err = pick(entries, comm->group, color, &group);
        if (!err && comm_is_inter(comm))
            err = pick(entries + comm->size, comm->remote_group, color, &remote);
        if (err)
            context_give_back(id);
        else
            err = create_published(id, comm, group, remote, ret_newcomm);
    }
    group_unref(group);
    group_unref(remote);
    free(entries);
    return err;
}

int mpi_comm_split(struct comm *comm, int color, int key, struct comm **ret_newcomm)
{
    if (color < 0 && color != MPI_UNDEFINED)
        return err_set(MPI_ERR_ARG, "color is %d, neither MPI_UNDEFINED nor at least 0", color);
    return split_comm(comm, color, key, ret_newcomm);
}

/* Whether the members of comm run on more than one node. */
static bool spans_nodes(const struct comm *comm)
{
    for (int i = 1; i < comm->size; i++)
        if (job_node_of(comm->group->procs[i]) != job_node_of(comm->group->procs[0]))
            return true;
    return false;
}

static const char resource_key[] = "mpi_hw_resource_type";
static const char shared_memory[] = "mpi_shared_memory";

/* By the resource that an info names: memory that is shared (a node), or a process set. */
static int guided_color(const struct comm *comm, const struct info *info)
{
    const char *resource = info_get(info, resource_key), *set = info_get(info, "mpi_pset_name");
    if (resource)
        return strcmp(resource, shared_memory) == 0 ? job_node_of(comm->group->procs[comm->rank])
                                                          : MPI_UNDEFINED;
    return set ? pset_color(set, comm->group->procs[comm->rank]) : MPI_UNDEFINED;
}

/* The color that a way of splitting gives this process, MPI_UNDEFINED where it does not apply to it. */
static int color_of(const struct comm *comm, int split_type, const struct info *info, int *ret_color)
{
    int node = job_node_of(comm->group->procs[comm->rank]);
    switch (split_type) {
    case MPI_UNDEFINED:
        *ret_color = MPI_UNDEFINED;
        return MPI_SUCCESS;
    case MPI_COMM_TYPE_SHARED:
        *ret_color = node;
        return MPI_SUCCESS;
    case MPI_COMM_TYPE_HW_UNGUIDED:
        /* The next level below must be a strict subset: nodes, below them none (MPI-5.0 section 7.4.2). */
        *ret_color = spans_nodes(comm) ? node : MPI_UNDEFINED;
        return MPI_SUCCESS;
    case MPI_COMM_TYPE_HW_GUIDED:
    case MPI_COMM_TYPE_RESOURCE_GUIDED:
        *ret_color = guided_color(comm, info);
        return MPI_SUCCESS;
    default:
        return err_set(MPI_ERR_ARG, "split_type is %d, none of MPI_COMM_TYPE_*", split_type);
    }
}

int mpi_comm_split_type(struct comm *comm, int split_type, int key, struct info *info,
                        struct comm **ret_newcomm)
{
    int color = MPI_UNDEFINED;
    int err = color_of(comm, split_type, info, &color);
    /* By what a process was split without its guidance is told in its info (MPI-5.0 section 7.4.2). */
    if (!err && split_type == MPI_COMM_TYPE_HW_UNGUIDED && color != MPI_UNDEFINED && info)
        err = info_put(info, resource_key, shared_memory);
    if (err)
        return err;
    return split_comm(comm, color, key, ret_newcomm);
}
