/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Comm_split and MPI_Comm_split_type.
 *
 * Every member learns all colors and keys (allgather), picks out its own and sorts. The new
 * communicators of one call are disjoint, so one agreed context id serves them all.
 */
#include "client/comm/split.h"

#include "client/abi/semantics.h"
#include "client/coll/family/coll.h"
#include "client/coll/inter/inter.h"
#include "client/comm/context.h"
#include "client/comm/create.h"
#include "client/comm/pset.h"
#include "client/object/err.h"
#include "client/object/info.h"
#include "client/process/hardware.h"
#include "client/process/job.h"

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
static int pick(const struct entry *entries, const struct group *group, int color,
                struct group **ret_group)
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
        err = err_set(MPI_ERR_NO_MEM, "no memory to split a communicator of %d processes",
                      group->size);
    }
    free(places);
    free(procs);
    return err;
}

/* Writes the exchange of n_ints from every member into a schedule: those of the local group from
 * the beginning of `all`, those of the remote one behind them. */
static void gather_from_all(struct schedule *s, const int *mine, int n_ints, int *all)
{
    struct comm *comm = s->view.comm;
    struct blocks local = {.buf = all, .type = datatype_predefined(MPI_INT), .count = n_ints};
    if (!comm_is_inter(comm)) {
        coll_allgather(s, buffer_of(mine, n_ints, local.type), &local);
        return;
    }
    struct blocks remote = local;
    remote.buf = all + (size_t)comm->size * (size_t)n_ints;
    inter_allgather(s, buffer_of(mine, n_ints, local.type), &remote);
    struct schedule_view inter =
        schedule_enter(s, (struct schedule_view){comm->local_comm, comm->rank, comm->size, NULL});
    coll_allgather(s, buffer_of(mine, n_ints, local.type), &local);
    schedule_leave(s, inter);
}

/* Number of members, of both groups of an intercommunicator. */
static int n_members(const struct comm *comm)
{
    return comm->size + (comm_is_inter(comm) ? comm->remote_group->size : 0);
}

static int split_agree(struct comm *comm, struct entry mine, struct entry *entries,
                       uint32_t *ret_id)
{
    struct schedule s;
    schedule_begin(&s, comm, coll_next_tag(comm));
    gather_from_all(&s, &mine.color, 2, &entries->color);
    int err = s.err ? s.err : context_agree(&s, ret_id);
    int end = schedule_end(&s);
    return err ? err : end;
}

int split_comm(struct comm *comm, int color, int key, struct comm **ret_newcomm)
{
    int n = n_members(comm);
    struct entry *entries = malloc((size_t)n * sizeof *entries);
    if (!entries)
        return err_set(MPI_ERR_NO_MEM, "no memory to split a communicator of %d processes", n);
    uint32_t id = 0;
    struct group *group = NULL, *remote = NULL;
    *ret_newcomm = NULL;
    int err = split_agree(comm, (struct entry){color, key}, entries, &id);
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

/* ---- by hardware ---- */

/* Where a process is, in words that several jobs understand: each counts nodes in its own way. */
struct origin {
    uint64_t job, node;
    int64_t color;
};

static int compare_origins(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct origin));
}

/* For members of several jobs: how many different origins there are before this process's own, in
 * an order that all have in common. */
static int place_origin(struct comm *comm, struct origin mine, int *ret_place)
{
    int n = n_members(comm), place = 0;
    struct origin *all = malloc((size_t)n * sizeof *all);
    struct schedule s;
    if (!all)
        return err_set(MPI_ERR_NO_MEM, "no memory to split a communicator of %d processes", n);
    schedule_begin(&s, comm, coll_next_tag(comm));
    gather_from_all(&s, (const int *)&mine, (int)(sizeof mine / sizeof(int)), (int *)all);
    int err = schedule_end(&s);
    qsort(all, (size_t)n, sizeof *all, compare_origins);
    for (int i = 0; i < n && compare_origins(&all[i], &mine) < 0; i++)
        place += i == 0 || compare_origins(&all[i], &all[i - 1]) != 0;
    free(all);
    *ret_place = place;
    return err;
}

/* A number for this process's node that all members understand. */
static int number_node(struct comm *comm, int *ret_node)
{
    *ret_node = job_node_of(job_rank());
    return comm->foreign
               ? place_origin(comm, (struct origin){.node = job_node_id(*ret_node)}, ret_node)
               : MPI_SUCCESS;
}

/* Makes colors that only members of one job have in common into such that all understand. */
static int part_jobs(struct comm *comm, bool by_job, int *color)
{
    int place;
    int err =
        place_origin(comm, (struct origin){.job = by_job ? job_id() : 0, .color = *color}, &place);
    if (!err && *color != MPI_UNDEFINED)
        *color = place;
    return err;
}

/* Instances of a node: their number is below, for any machine that hwloc knows. */
#define PLACES_PER_NODE 65536

/* Of all nodes: a number that the processes restricted to the same instance have in common and no
 * other has. */
static int place_in_all(int node, int type)
{
    int place = hardware_place(type);
    if (place == HARDWARE_NONE || place >= PLACES_PER_NODE)
        return MPI_UNDEFINED;
    return node * PLACES_PER_NODE + place;
}

/* By what an info names: hardware (unguided by a process set), or a process set. */
static int guided_color(const struct comm *comm, int node, const struct info *info, bool by_set)
{
    const char *resource = info_get(info, "mpi_hw_resource_type"),
               *set = info_get(info, "mpi_pset_name");
    if (resource) {
        int type = hardware_find(resource);
        return type < 0 ? MPI_UNDEFINED : place_in_all(node, type);
    }
    return set && by_set ? pset_color(set, comm->group->procs[comm->rank]) : MPI_UNDEFINED;
}

/* Of each member the places in all types of hardware, the first ABSENT for one that does not ask to
 * be split by hardware. */
#define ABSENT (-1)

static int split_gather_places(struct comm *comm, int node, bool asks, int *places)
{
    int mine[HARDWARE_TYPES] = {ABSENT};
    struct schedule s;
    for (int type = 0; asks && type < HARDWARE_TYPES; type++)
        mine[type] = place_in_all(node, type);
    schedule_begin(&s, comm, coll_next_tag(comm));
    gather_from_all(&s, mine, HARDWARE_TYPES, places);
    return schedule_end(&s);
}

/* The largest type of which not all who ask are restricted to the same instance: those who are
 * restricted to one are a strict subset of the members (MPI-5.0 section 7.4.2). HARDWARE_TYPES when
 * there is none. */
static int next_level(const int *places, int n)
{
    for (int type = 0; type < HARDWARE_TYPES; type++) {
        bool any = false, differ = false;
        const int *first = NULL;
        for (const int *at = places; at < places + n * HARDWARE_TYPES; at += HARDWARE_TYPES) {
            if (at[0] == ABSENT)
                continue;
            first = first ? first : at;
            any |= at[type] != MPI_UNDEFINED;
            differ |= at[type] != first[type];
        }
        if (any && differ)
            return type;
    }
    return HARDWARE_TYPES;
}

/* Those who get a communicator find the name of the level in their info object. Others in the same
 * call do not know that some ask for this, so all members come here. */
static int unguided_color(struct comm *comm, int node, bool asks, struct info *info, int *ret_color)
{
    int n = n_members(comm), *places = malloc((size_t)n * HARDWARE_TYPES * sizeof(int));
    if (!places)
        return err_set(MPI_ERR_NO_MEM, "no memory to split a communicator of %d processes", n);
    int err = split_gather_places(comm, node, asks, places);
    int level = err ? HARDWARE_TYPES : next_level(places, n);
    *ret_color = asks && level < HARDWARE_TYPES ? places[comm->rank * HARDWARE_TYPES + level]
                                                : MPI_UNDEFINED;
    free(places);
    if (!err && *ret_color != MPI_UNDEFINED && info && !info->obj.predefined)
        err = info_put(info, "mpi_hw_resource_type", hardware_uri(level));
    return err;
}

/* The color that a way of splitting gives this process, MPI_UNDEFINED where it does not apply to
 * it. */
static int color_of(struct comm *comm, int node, int split_type, struct info *info, int *ret_color)
{
    switch (split_type) {
    case MPI_UNDEFINED:
        *ret_color = MPI_UNDEFINED;
        return MPI_SUCCESS;
    case MPI_COMM_TYPE_SHARED:
        *ret_color = place_in_all(node, 0);
        return MPI_SUCCESS;
    case MPI_COMM_TYPE_HW_UNGUIDED:
        return MPI_SUCCESS; /* together with the others */
    case MPI_COMM_TYPE_HW_GUIDED:
    case MPI_COMM_TYPE_RESOURCE_GUIDED:
        *ret_color = guided_color(comm, node, info, split_type == MPI_COMM_TYPE_RESOURCE_GUIDED);
        return MPI_SUCCESS;
    default:
        return err_set(MPI_ERR_ARG, "split_type is %d, none of MPI_COMM_TYPE_*", split_type);
    }
}

int mpi_comm_split_type(struct comm *comm, int split_type, int key, struct info *info,
                        struct comm **ret_newcomm)
{
    int color = MPI_UNDEFINED, unguided = MPI_UNDEFINED, node;
    bool is_unguided = split_type == MPI_COMM_TYPE_HW_UNGUIDED;
    /* What memory, and process sets, are shared by ends with the job. */
    bool by_job =
        split_type == MPI_COMM_TYPE_SHARED ||
        (split_type == MPI_COMM_TYPE_RESOURCE_GUIDED && !info_get(info, "mpi_hw_resource_type"));
    int err = number_node(comm, &node);
    if (!err)
        err = color_of(comm, node, split_type, info, &color);
    if (!err)
        err = unguided_color(comm, node, is_unguided, info, &unguided);
    if (is_unguided)
        color = unguided;
    if (!err && comm->foreign)
        err = part_jobs(comm, by_job, &color);
    return err ? err : split_comm(comm, color, key, ret_newcomm);
}
