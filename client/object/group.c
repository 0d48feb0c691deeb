/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/object/group.h"

#include "client/abi/semantics.h"
#include "client/client.h"
#include "client/object/err.h"
#include "client/object/handle.h"
#include "client/object/session.h"

#include <stdlib.h>
#include <string.h>

static struct group_state group_first;
struct group_state *group_here = &group_first;

void group_set_own_proc(int proc)
{
    group_here->own_proc = proc;
}

static void group_part_init(void)
{
    group_here->empty =
        (struct group){.obj = {.refs = 1, .kind = OBJECT_GROUP}, .rank = MPI_UNDEFINED};
    group_here->own_proc = -1;
    handle_set_predefined((uintptr_t)MPI_GROUP_EMPTY, &group_here->empty.obj);
}
CLIENT_PART(group_here, group_first, .init = group_part_init);

/* ---- life ---- */

static struct group *alloc_group(int size)
{
    struct group *group = calloc(1, sizeof *group);
    if (!group)
        return NULL;
    group->procs = malloc((size_t)size * sizeof(int));
    if (!group->procs) {
        free(group);
        return NULL;
    }
    group->obj.kind = OBJECT_GROUP;
    group->obj.refs = 1;
    group->size = size;
    return group;
}

/* Derives what follows from procs. */
static void group_settle(struct group *group)
{
    group->row = true;
    group->rank = MPI_UNDEFINED;
    for (int i = 0; i < group->size; i++) {
        if (group->procs[i] != group->procs[0] + i)
            group->row = false;
        if (group->procs[i] == group_here->own_proc)
            group->rank = i;
    }
}

static int no_memory(int size)
{
    return err_set(MPI_ERR_NO_MEM, "no memory for a group of %d processes", size);
}

int group_new(int size, const int *procs, struct group **ret_group)
{
    if (size == 0) {
        group_ref(&group_here->empty);
        *ret_group = &group_here->empty;
        return MPI_SUCCESS;
    }
    struct group *group = alloc_group(size);
    if (!group)
        return no_memory(size);
    memcpy(group->procs, procs, (size_t)size * sizeof(int));
    group_settle(group);
    *ret_group = group;
    return MPI_SUCCESS;
}

int group_new_row(int first, int size, struct group **ret_group)
{
    struct group *group = alloc_group(size);
    if (!group)
        return no_memory(size);
    for (int i = 0; i < size; i++)
        group->procs[i] = first + i;
    group_settle(group);
    *ret_group = group;
    return MPI_SUCCESS;
}

void group_unref(struct group *group)
{
    if (!group || !object_unref(&group->obj) || group == &group_here->empty)
        return;
    handle_free(&group->obj);
    session_unref(group->session);
    free(group->procs);
    free(group->index);
    free(group);
}

void group_set_session(struct group *group, struct session *session)
{
    if (group == &group_here->empty || group->session)
        return;
    group->session = session;
    session_ref(session);
}

int group_publish(struct group *group, struct group **ret_group)
{
    if (!group->obj.handle && !handle_new(&group->obj)) {
        group_unref(group);
        return err_set(MPI_ERR_NO_MEM, "no handle is left for a group");
    }
    group->n_user_refs++;
    *ret_group = group;
    return MPI_SUCCESS;
}

/* ---- looking up ---- */

/* Makes the inverse map. Without memory the group works on by searching. */
static void make_index(struct group *group)
{
    int max = 0;
    for (int i = 0; i < group->size; i++)
        if (group->procs[i] > max)
            max = group->procs[i];
    int *index = malloc(((size_t)max + 1) * sizeof(int));
    if (!index)
        return;
    for (int i = 0; i <= max; i++)
        index[i] = MPI_UNDEFINED;
    for (int i = 0; i < group->size; i++)
        index[group->procs[i]] = i;
    group->index = index;
    group->n_index = max + 1;
}

int group_rank_of(struct group *group, int proc)
{
    if (group->size == 0)
        return MPI_UNDEFINED;
    if (group->row) {
        int rank = proc - group->procs[0];
        return rank >= 0 && rank < group->size ? rank : MPI_UNDEFINED;
    }
    /* Below this a search is as quick as making the map; a choice of order of magnitude only. */
    if (!group->index && group->size > 16)
        make_index(group);
    if (group->index)
        return proc >= 0 && proc < group->n_index ? group->index[proc] : MPI_UNDEFINED;
    for (int i = 0; i < group->size; i++)
        if (group->procs[i] == proc)
            return i;
    return MPI_UNDEFINED;
}

int group_compare(struct group *a, struct group *b)
{
    if (a == b)
        return MPI_IDENT;
    if (a->size != b->size)
        return MPI_UNEQUAL;
    if (a->size == 0 || memcmp(a->procs, b->procs, (size_t)a->size * sizeof(int)) == 0)
        return MPI_IDENT;
    for (int i = 0; i < a->size; i++)
        if (group_rank_of(b, a->procs[i]) == MPI_UNDEFINED)
            return MPI_UNEQUAL;
    return MPI_SIMILAR;
}

/* ---- MPI functions ---- */

int mpi_group_size(struct group *group, int *size)
{
    *size = group->size;
    return MPI_SUCCESS;
}

int mpi_group_rank(struct group *group, int *rank)
{
    *rank = group->rank;
    return MPI_SUCCESS;
}

int mpi_group_compare(struct group *group1, struct group *group2, int *result)
{
    *result = group_compare(group1, group2);
    return MPI_SUCCESS;
}

int mpi_group_translate_ranks(struct group *group1, MPI_Count n, const int ranks1[],
                              struct group *group2, int ranks2[])
{
    for (MPI_Count i = 0; i < n; i++) {
        int rank = ranks1[i];
        if (rank == MPI_PROC_NULL) {
            ranks2[i] = MPI_PROC_NULL;
            continue;
        }
        if (rank < 0 || rank >= group1->size)
            return err_set(MPI_ERR_RANK, "ranks1[%lld] is %d, not in 0..%d", (long long)i, rank,
                           group1->size - 1);
        ranks2[i] = group_rank_of(group2, group1->procs[rank]);
    }
    return MPI_SUCCESS;
}

int mpi_group_free(struct group **group)
{
    struct group *freed = *group;
    *group = NULL;
    if (--freed->n_user_refs == 0)
        handle_free(&freed->obj);
    group_unref(freed);
    return MPI_SUCCESS;
}
