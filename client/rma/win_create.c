/* SPDX-License-Identifier: BSD-3-Clause */
/* Making windows (MPI-5.0 section 12.2). */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "client/abi/semantics.h"
#include "client/datatype/datatype.h"
#include "client/object/err.h"
#include "client/object/group.h"
#include "client/process/job.h"
#include "client/rma/memory.h"
#include "client/rma/win.h"

/* What all ranks tell one another, kept in targets[]. *ret_parts is the caller's. */
static int exchange(struct win *win, MPI_Aint size, MPI_Aint disp_unit,
                    struct memory_part **ret_parts)
{
    size_t n = (size_t)win->comm->size;
    struct memory_part *parts = calloc(n, sizeof *parts);
    struct memory_part own = {
        .bytes = size, .disp_unit = disp_unit, .alignment = win->hints.alignment};
    if (!parts)
        return err_set(MPI_ERR_NO_MEM, "no memory for a window");
    int err = mpi_allgather(&own, sizeof own, datatype_predefined(MPI_BYTE), parts, sizeof own,
                            datatype_predefined(MPI_BYTE), win->comm);
    for (size_t i = 0; i < n; i++) {
        win->targets[i].bytes = parts[i].bytes;
        win->targets[i].disp_unit = parts[i].disp_unit;
    }
    win->bytes = size;
    win->disp_unit = disp_unit > INT_MAX ? INT_MAX : (int)disp_unit;
    *ret_parts = parts;
    return err;
}

/* The own memory, and locks that the node shares. */
static int use_own_memory(struct win *win, void *base)
{
    struct win_target *own = win_own(win);
    win->base = base;
    own->direct = true;
    own->local = base;
    if (!own->lock)
        own->lock = &win->own_lock;
    return MPI_SUCCESS;
}

static int share_locks(struct win *win, const struct memory_part *parts)
{
    bool shared = false;
    if (win->hints.no_locks || win->comm->size == 1)
        return MPI_SUCCESS;
    return memory_share(win, parts, false, false, &shared);
}

int mpi_win_create(void *base, MPI_Aint size, MPI_Aint disp_unit, struct info *info,
                   struct comm *comm, struct win **ret_win)
{
    struct win *win;
    struct memory_part *parts = NULL;
    int err = win_new(comm, info, MPI_WIN_FLAVOR_CREATE, &win);
    if (err)
        return err;
    err = exchange(win, size, disp_unit, &parts);
    if (!err)
        err = share_locks(win, parts);
    if (!err)
        err = use_own_memory(win, base);
    free(parts);
    return win_open(err, win, ret_win);
}

int mpi_win_create_dynamic(struct info *info, struct comm *comm, struct win **ret_win)
{
    struct win *win;
    struct memory_part *parts = NULL;
    int err = win_new(comm, info, MPI_WIN_FLAVOR_DYNAMIC, &win);
    if (err)
        return err;
    err = exchange(win, 0, 1, &parts);
    if (!err)
        err = share_locks(win, parts);
    if (!err)
        err = use_own_memory(win, MPI_BOTTOM);
    free(parts);
    return win_open(err, win, ret_win);
}

static int allocate_alone(struct win *win, MPI_Aint size)
{
    size_t align = win->hints.alignment > 64 ? win->hints.alignment : 64;
    if (posix_memalign(&win->own_memory, align, size ? (size_t)size : 1))
        return err_set(MPI_ERR_NO_MEM, "no memory for a window of %lld bytes", (long long)size);
    return use_own_memory(win, win->own_memory);
}

int mpi_win_allocate(MPI_Aint size, MPI_Aint disp_unit, struct info *info, struct comm *comm,
                     void *baseptr, struct win **ret_win)
{
    struct win *win;
    struct memory_part *parts = NULL;
    bool shared = false;
    int err = win_new(comm, info, MPI_WIN_FLAVOR_ALLOCATE, &win);
    if (err)
        return err;
    err = exchange(win, size, disp_unit, &parts);
    if (!err && win->comm->size > 1)
        err = memory_share(win, parts, true, false, &shared);
    if (!err && shared)
        err = use_own_memory(win, win_own(win)->local);
    else if (!err)
        err = allocate_alone(win, size);
    free(parts);
    err = win_open(err, win, ret_win);
    if (!err)
        *(void **)baseptr = (*ret_win)->base;
    return err;
}

static int check_one_node(const struct win *win)
{
    for (int i = 0; i < win->comm->size; i++)
        if (!job_is_local(win->comm->group->procs[i]))
            return err_set(MPI_ERR_RMA_SHARED,
                           "rank %d of the communicator is on node %s, rank %d on node %s: they "
                           "share no memory",
                           win->comm->rank, job_node_name(job_node_of(job_rank())), i,
                           job_node_name(job_node_of(win->comm->group->procs[i])));
    return MPI_SUCCESS;
}

int mpi_win_allocate_shared(MPI_Aint size, MPI_Aint disp_unit, struct info *info, struct comm *comm,
                            void *baseptr, struct win **ret_win)
{
    struct win *win;
    struct memory_part *parts = NULL;
    bool shared = false;
    int err = win_new(comm, info, MPI_WIN_FLAVOR_SHARED, &win);
    if (err)
        return err;
    err = check_one_node(win);
    if (!err)
        err = exchange(win, size, disp_unit, &parts);
    if (!err)
        err = memory_share(win, parts, true, !win->hints.noncontig, &shared);
    if (!err && !shared)
        err = err_set(MPI_ERR_RMA_SHARED,
                      "the ranks of node %s cannot map memory of one another (%lld bytes here)",
                      job_node_name(job_node_of(job_rank())), (long long)size);
    if (!err)
        err = use_own_memory(win, win_own(win)->local);
    free(parts);
    err = win_open(err, win, ret_win);
    if (!err)
        *(void **)baseptr = (*ret_win)->base;
    return err;
}

int mpi_win_shared_query(struct win *win, int rank, MPI_Aint *size, MPI_Aint *ret_disp_unit,
                         void *baseptr)
{
    if (rank == MPI_PROC_NULL) {
        /* The lowest rank that has any, whether or not it is within reach. */
        rank = 0;
        while (rank < win->comm->size - 1 && win->targets[rank].bytes == 0)
            rank++;
    }
    if (rank < 0 || rank >= win->comm->size)
        return err_set(MPI_ERR_RANK, "rank is %d; %s has ranks 0 to %d", rank, win_text(win),
                       win->comm->size - 1);
    const struct win_target *target = &win->targets[rank];
    *size = target->direct ? target->bytes : 0;
    *ret_disp_unit = target->disp_unit;
    *(void **)baseptr = target->direct && target->bytes > 0 ? target->local : NULL;
    return MPI_SUCCESS;
}
