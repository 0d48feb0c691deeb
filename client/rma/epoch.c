/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/rma/epoch.h"

#include "client/abi/semantics.h"
#include "client/object/err.h"
#include "client/object/group.h"
#include "client/progress/progress.h"
#include "client/rma/origin.h"

/* ---- checks ---- */

int epoch_check_assert(int given, int allowed)
{
    if ((given & ~allowed) == 0)
        return MPI_SUCCESS;
    return err_set(MPI_ERR_ASSERT, "assertion %#x has bits that this call does not know",
                   (unsigned)given);
}

int epoch_check_rank(const struct win *win, int rank)
{
    if (rank >= 0 && rank < win->comm->size)
        return MPI_SUCCESS;
    return err_set(MPI_ERR_RANK, "rank is %d; %s has ranks 0 to %d", rank, win_text(win),
                   win->comm->size - 1);
}

int epoch_access(struct win *win, int target)
{
    struct win_epochs *e = &win->epochs;
    switch ((enum win_access)e->access) {
    case ACCESS_FENCE:
        return MPI_SUCCESS;
    case ACCESS_LOCK_ALL:
        if (win->targets[target].locked == WIN_UNLOCKED && !e->lock_all_nocheck)
            epoch_lock(win, target, false);
        return MPI_SUCCESS;
    case ACCESS_LOCK:
        if (win->targets[target].locked != WIN_UNLOCKED)
            return MPI_SUCCESS;
        return err_set(MPI_ERR_RMA_SYNC, "rank %d of %s is accessed, but not locked: others are",
                       target, win_text(win));
    case ACCESS_START:
        if (e->in_start[target])
            return MPI_SUCCESS;
        return err_set(MPI_ERR_RMA_SYNC,
                       "rank %d of %s is accessed, but not in the group of MPI_Win_start", target,
                       win_text(win));
    case ACCESS_NONE:
        break;
    }
    if (!e->fenced)
        return err_set(MPI_ERR_RMA_SYNC, "rank %d of %s is accessed outside of an epoch", target,
                       win_text(win));
    e->access = ACCESS_FENCE;
    return MPI_SUCCESS;
}

int epoch_result(struct win *win)
{
    int error = win->error;
    if (!error)
        return MPI_SUCCESS;
    win->error = MPI_SUCCESS;
    return err_set(error, "rank %d of %s refused an access: it has no memory there",
                   win->error_target, win_text(win));
}

static int check_closed(const struct win *win, const char *function)
{
    static const char *const names[] = {[ACCESS_FENCE] = "MPI_Win_fence",
                                        [ACCESS_START] = "MPI_Win_start",
                                        [ACCESS_LOCK] = "MPI_Win_lock",
                                        [ACCESS_LOCK_ALL] = "MPI_Win_lock_all"};
    if (win->epochs.access == ACCESS_NONE)
        return MPI_SUCCESS;
    return err_set(MPI_ERR_RMA_SYNC, "%s while an epoch of %s is open on %s", function,
                   names[win->epochs.access], win_text(win));
}

/* ---- fence ---- */

int mpi_win_fence(int assertion, struct win *win)
{
    struct win_epochs *e = &win->epochs;
    int err = epoch_check_assert(assertion, MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE |
                                                MPI_MODE_NOSUCCEED);
    if (err)
        return err;
    if (e->access > ACCESS_FENCE)
        return check_closed(win, "MPI_Win_fence");
    if (e->exposed)
        return err_set(MPI_ERR_RMA_SYNC,
                       "MPI_Win_fence while an epoch of MPI_Win_post is open on %s", win_text(win));
    if ((assertion & MPI_MODE_NOPRECEDE) && e->access == ACCESS_FENCE)
        return err_set(MPI_ERR_ASSERT,
                       "MPI_MODE_NOPRECEDE, but %s was accessed since the last fence",
                       win_text(win));
    /* All that this rank did is done at its targets, and then all that others did here. */
    if (e->access == ACCESS_FENCE)
        origin_wait_there(win, -1);
    err = mpi_barrier(win->comm);
    e->access = ACCESS_NONE;
    e->fenced = !(assertion & MPI_MODE_NOSUCCEED);
    return err ? err : epoch_result(win);
}

/* ---- post, start, complete, wait ---- */

static int rank_in_win(const struct win *win, const struct group *group, int member)
{
    return group_rank_of(win->comm->group, group->procs[member]);
}

static int check_group(const struct win *win, const struct group *group)
{
    for (int i = 0; i < group->size; i++)
        if (rank_in_win(win, group, i) == MPI_UNDEFINED)
            return err_set(MPI_ERR_GROUP, "member %d of the group is no rank of %s", i,
                           win_text(win));
    return MPI_SUCCESS;
}

int mpi_win_post(struct group *group, int assertion, struct win *win)
{
    int err = epoch_check_assert(assertion, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT);
    if (!err)
        err = check_group(win, group);
    if (err)
        return err;
    if (win->epochs.exposed)
        return err_set(MPI_ERR_RMA_SYNC, "MPI_Win_post twice on %s without MPI_Win_wait",
                       win_text(win));
    group_ref(group);
    win->epochs.exposed = group;
    for (int i = 0; i < group->size && !(assertion & MPI_MODE_NOCHECK); i++) {
        struct link *link = link_of(win, rank_in_win(win, group, i));
        struct message_head head = {.kind = MESSAGE_POST};
        if (link->rank == win->comm->rank)
            link->n_posts++;
        else
            message_send(link, MESSAGE_ANSWER, &head, NULL, NULL, 0);
    }
    return MPI_SUCCESS;
}

int mpi_win_start(struct group *group, int assertion, struct win *win)
{
    struct win_epochs *e = &win->epochs;
    int err = epoch_check_assert(assertion, MPI_MODE_NOCHECK);
    if (!err)
        err = check_group(win, group);
    if (!err)
        err = check_closed(win, "MPI_Win_start");
    if (err)
        return err;
    group_ref(group);
    e->start = group;
    e->access = ACCESS_START;
    for (int i = 0; i < group->size; i++) {
        int rank = rank_in_win(win, group, i);
        e->in_start[rank] = 1;
        if (assertion & MPI_MODE_NOCHECK)
            continue;
        struct link *link = link_of(win, rank);
        struct progress_wait wait;
        progress_wait_begin(&wait);
        while (link->n_posts == 0)
            progress_wait_step(&wait);
        progress_wait_end(&wait);
        link->n_posts--;
    }
    return MPI_SUCCESS;
}

int mpi_win_complete(struct win *win)
{
    struct win_epochs *e = &win->epochs;
    if (e->access != ACCESS_START)
        return err_set(MPI_ERR_RMA_SYNC, "MPI_Win_complete without MPI_Win_start on %s",
                       win_text(win));
    struct group *group = e->start;
    for (int i = 0; i < group->size; i++) {
        struct link *link = link_of(win, rank_in_win(win, group, i));
        struct message_head head = {.kind = MESSAGE_COMPLETE};
        e->in_start[link->rank] = 0;
        if (link->rank == win->comm->rank) {
            link->n_completes++;
            continue;
        }
        origin_wait_sent(link);
        message_send(link, MESSAGE_REQUEST, &head, NULL, NULL, 0);
    }
    for (int i = 0; i < group->size; i++)
        origin_wait_here(win, rank_in_win(win, group, i));
    e->start = NULL;
    e->access = ACCESS_NONE;
    group_unref(group);
    return epoch_result(win);
}

static bool all_completed(const struct win *win)
{
    const struct group *group = win->epochs.exposed;
    for (int i = 0; i < group->size; i++) {
        const struct link *link = win->targets[rank_in_win(win, group, i)].link;
        if (!link || link->n_completes == 0)
            return false;
    }
    return true;
}

static void end_exposure(struct win *win)
{
    struct group *group = win->epochs.exposed;
    for (int i = 0; i < group->size; i++)
        win->targets[rank_in_win(win, group, i)].link->n_completes--;
    win->epochs.exposed = NULL;
    group_unref(group);
}

static int check_exposed(const struct win *win, const char *function)
{
    return win->epochs.exposed ? MPI_SUCCESS
                               : err_set(MPI_ERR_RMA_SYNC, "%s without MPI_Win_post on %s",
                                         function, win_text(win));
}

int mpi_win_wait(struct win *win)
{
    int err = check_exposed(win, "MPI_Win_wait");
    if (err)
        return err;
    struct progress_wait wait;
    progress_wait_begin(&wait);
    while (!all_completed(win))
        progress_wait_step(&wait);
    progress_wait_end(&wait);
    end_exposure(win);
    return MPI_SUCCESS;
}

int mpi_win_test(struct win *win, int *flag)
{
    int err = check_exposed(win, "MPI_Win_test");
    if (err)
        return err;
    if (!all_completed(win))
        progress_ask();
    *flag = all_completed(win);
    if (*flag)
        end_exposure(win);
    return MPI_SUCCESS;
}
