/* SPDX-License-Identifier: BSD-3-Clause */
/* The MPI functions that make groups from groups (MPI-5.0 section 7.3.2). Linear in the sizes of
 * the groups. */
#include "client/abi/semantics.h"
#include "client/object/err.h"
#include "client/object/group.h"

#include <stdint.h>
#include <stdlib.h>

/* Room for the processes of a new group; NULL with an error set in *ret_err. */
static int *alloc_procs(MPI_Count n, int *ret_err)
{
    int *procs = malloc(((size_t)n + 1) * sizeof(int));
    *ret_err =
        procs ? MPI_SUCCESS
              : err_set(MPI_ERR_NO_MEM, "no memory for a group of %lld processes", (long long)n);
    return procs;
}

/* Makes the group, gives it a handle and frees procs. It comes from where `from` comes from. */
static int group_ops_finish(int *procs, int n, const struct group *from,
                            struct group **ret_newgroup)
{
    struct group *group;
    int err = group_new(n, procs, &group);
    free(procs);
    if (err)
        return err;
    group_set_session(group, from->session);
    return group_publish(group, ret_newgroup);
}

int mpi_group_union(struct group *group1, struct group *group2, struct group **ret_newgroup)
{
    int err, n = group1->size;
    int *procs = alloc_procs((MPI_Count)group1->size + group2->size, &err);
    if (err)
        return err;
    for (int i = 0; i < group1->size; i++)
        procs[i] = group1->procs[i];
    for (int i = 0; i < group2->size; i++)
        if (group_rank_of(group1, group2->procs[i]) == MPI_UNDEFINED)
            procs[n++] = group2->procs[i];
    return group_ops_finish(procs, n, group1, ret_newgroup);
}

/* The members of group1 that are in group2 (common) or are not. */
static int group_ops_filter(struct group *group1, struct group *group2, bool common,
                            struct group **ret_newgroup)
{
    int err, n = 0;
    int *procs = alloc_procs(group1->size, &err);
    if (err)
        return err;
    for (int i = 0; i < group1->size; i++)
        if ((group_rank_of(group2, group1->procs[i]) != MPI_UNDEFINED) == common)
            procs[n++] = group1->procs[i];
    return group_ops_finish(procs, n, group1, ret_newgroup);
}

int mpi_group_intersection(struct group *group1, struct group *group2, struct group **ret_newgroup)
{
    return group_ops_filter(group1, group2, true, ret_newgroup);
}

int mpi_group_difference(struct group *group1, struct group *group2, struct group **ret_newgroup)
{
    return group_ops_filter(group1, group2, false, ret_newgroup);
}

/* Marks a rank as used, once. `used` has a byte per rank. */
static int group_ops_mark(const struct group *group, long long rank, uint8_t *used)
{
    if (rank < 0 || rank >= group->size)
        return err_set(MPI_ERR_RANK, "rank %lld is not in 0..%d of the group", rank,
                       group->size - 1);
    if (used[rank])
        return err_set(MPI_ERR_RANK, "rank %lld is given twice", rank);
    used[rank] = 1;
    return MPI_SUCCESS;
}

static uint8_t *alloc_used(const struct group *group, int *ret_err)
{
    uint8_t *used = calloc((size_t)group->size + 1, 1);
    *ret_err = used ? MPI_SUCCESS : err_set(MPI_ERR_NO_MEM, "no memory for a group operation");
    return used;
}

/* The members that are not marked. Frees `used`. */
static int keep_unmarked(const struct group *group, uint8_t *used, struct group **ret_newgroup)
{
    int err, n = 0;
    int *procs = alloc_procs(group->size, &err);
    for (int i = 0; !err && i < group->size; i++)
        if (!used[i])
            procs[n++] = group->procs[i];
    free(used);
    return err ? err : group_ops_finish(procs, n, group, ret_newgroup);
}

int mpi_group_incl(struct group *group, MPI_Count n, const int ranks[], struct group **ret_newgroup)
{
    int err;
    if (n > group->size)
        return err_set(MPI_ERR_ARG, "n is %lld, the group has %d processes", (long long)n,
                       group->size);
    uint8_t *used = alloc_used(group, &err);
    if (err)
        return err;
    int *procs = alloc_procs(n, &err);
    for (MPI_Count i = 0; !err && i < n; i++) {
        err = group_ops_mark(group, ranks[i], used);
        if (!err)
            procs[i] = group->procs[ranks[i]];
    }
    free(used);
    if (!err)
        return group_ops_finish(procs, (int)n, group, ret_newgroup);
    free(procs);
    return err;
}

int mpi_group_excl(struct group *group, MPI_Count n, const int ranks[], struct group **ret_newgroup)
{
    int err;
    uint8_t *used = alloc_used(group, &err);
    for (MPI_Count i = 0; !err && i < n; i++)
        err = group_ops_mark(group, ranks[i], used);
    if (!err)
        return keep_unmarked(group, used, ret_newgroup);
    free(used);
    return err;
}

/* Number of ranks in a (first, last, stride) triplet; the ranks are first + k * stride. */
static int range_length(const int range[3], MPI_Count at, long long *ret_n)
{
    long long first = range[0], last = range[1], stride = range[2];
    if (stride == 0)
        return err_set(MPI_ERR_ARG, "ranges[%lld] has stride 0", (long long)at);
    *ret_n = (last - first) / stride + 1;
    /* MPI-5.0 section 7.3.2: floor of the quotient; a triplet that runs the other way is empty. */
    if ((stride > 0) != (last >= first) && last != first)
        *ret_n = 0;
    return MPI_SUCCESS;
}

int mpi_group_range_incl(struct group *group, MPI_Count n, int ranges[][3],
                         struct group **ret_newgroup)
{
    int err, n_procs = 0;
    uint8_t *used = alloc_used(group, &err);
    if (err)
        return err;
    int *procs = alloc_procs(group->size, &err); /* no rank may come twice, so this is enough */
    for (MPI_Count i = 0; !err && i < n; i++) {
        long long length = 0;
        err = range_length(ranges[i], i, &length);
        for (long long k = 0; !err && k < length; k++) {
            long long rank = ranges[i][0] + k * ranges[i][2];
            err = group_ops_mark(group, rank, used);
            if (!err)
                procs[n_procs++] = group->procs[rank];
        }
    }
    free(used);
    if (!err)
        return group_ops_finish(procs, n_procs, group, ret_newgroup);
    free(procs);
    return err;
}

int mpi_group_range_excl(struct group *group, MPI_Count n, int ranges[][3],
                         struct group **ret_newgroup)
{
    int err;
    uint8_t *used = alloc_used(group, &err);
    for (MPI_Count i = 0; !err && i < n; i++) {
        long long length = 0;
        err = range_length(ranges[i], i, &length);
        for (long long k = 0; !err && k < length; k++)
            err = group_ops_mark(group, ranges[i][0] + k * (long long)ranges[i][2], used);
    }
    if (!err)
        return keep_unmarked(group, used, ret_newgroup);
    free(used);
    return err;
}
