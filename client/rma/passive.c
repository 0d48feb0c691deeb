/* SPDX-License-Identifier: BSD-3-Clause */
/* Passive targets: locks and flushes (MPI-5.0 sections 12.5.3 and 12.5.4). */
#include <stdatomic.h>

#include "client/abi/semantics.h"
#include "client/object/err.h"
#include "client/progress/progress.h"
#include "client/rma/epoch.h"
#include "client/rma/origin.h"

/* Waits for the turn of a ticket; who gives the lock back does not know us, so nobody sleeps for
 * long. */
static void wait_for_ticket(struct ticket_lock *lock, bool exclusive)
{
    uint32_t ticket = ticket_draw(lock);
    if (ticket_enter_as(lock, ticket, exclusive))
        return;
    struct progress_wait wait;
    rma_here->n_waiting++;
    progress_wait_begin(&wait);
    while (!ticket_enter_as(lock, ticket, exclusive))
        progress_wait_step(&wait);
    progress_wait_end(&wait);
    rma_here->n_waiting--;
}

void epoch_lock(struct win *win, int rank, bool exclusive)
{
    struct win_target *target = &win->targets[rank];
    if (target->lock) {
        wait_for_ticket(target->lock, exclusive);
    } else {
        struct message_head head = {.kind = MESSAGE_LOCK,
                                    .flags = exclusive ? MESSAGE_F_EXCLUSIVE : 0};
        message_send(link_of(win, rank), MESSAGE_REQUEST, &head, NULL, NULL, 0);
    }
    target->locked = exclusive ? WIN_LOCKED_EXCLUSIVE : WIN_LOCKED_SHARED;
}

/* Everything to these targets is done there; now the locks go back. */
static void unlock(struct win *win, int first, int end)
{
    for (int i = first; i < end; i++) {
        struct win_target *target = &win->targets[i];
        bool by_message = !target->lock && (target->locked == WIN_LOCKED_SHARED ||
                                            target->locked == WIN_LOCKED_EXCLUSIVE);
        if (by_message)
            origin_unlock(target->link);
    }
    origin_wait_there(win, end - first == 1 ? first : -1);
    for (int i = first; i < end; i++) {
        struct win_target *target = &win->targets[i];
        if (target->lock &&
            (target->locked == WIN_LOCKED_SHARED || target->locked == WIN_LOCKED_EXCLUSIVE))
            ticket_exit(target->lock, target->locked == WIN_LOCKED_EXCLUSIVE);
        target->locked = WIN_UNLOCKED;
    }
}

static int check_lockable(const struct win *win, const char *function)
{
    const struct win_epochs *e = &win->epochs;
    if (win->hints.no_locks)
        return err_set(MPI_ERR_RMA_SYNC, "%s, but %s was made with no_locks", function,
                       win_text(win));
    if (e->access == ACCESS_FENCE || e->access == ACCESS_START || e->access == ACCESS_LOCK_ALL)
        return err_set(MPI_ERR_RMA_SYNC, "%s while an epoch of %s is open on %s", function,
                       e->access == ACCESS_FENCE   ? "MPI_Win_fence"
                       : e->access == ACCESS_START ? "MPI_Win_start"
                                                   : "MPI_Win_lock_all",
                       win_text(win));
    return MPI_SUCCESS;
}

int mpi_win_lock(int lock_type, int rank, int assertion, struct win *win)
{
    struct win_epochs *e = &win->epochs;
    if (rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    int err = epoch_check_rank(win, rank);
    if (!err && lock_type != MPI_LOCK_SHARED && lock_type != MPI_LOCK_EXCLUSIVE)
        err = err_set(MPI_ERR_LOCKTYPE,
                      "lock_type is %d, not MPI_LOCK_SHARED or MPI_LOCK_EXCLUSIVE", lock_type);
    if (!err)
        err = epoch_check_assert(assertion, MPI_MODE_NOCHECK);
    if (!err)
        err = check_lockable(win, "MPI_Win_lock");
    if (!err && win->targets[rank].locked != WIN_UNLOCKED)
        err = err_set(MPI_ERR_RMA_SYNC, "this rank has locked rank %d of %s already", rank,
                      win_text(win));
    if (err)
        return err;
    if (assertion & MPI_MODE_NOCHECK)
        win->targets[rank].locked = WIN_LOCKED_NOCHECK;
    else
        epoch_lock(win, rank, lock_type == MPI_LOCK_EXCLUSIVE);
    e->access = ACCESS_LOCK;
    e->n_locks++;
    return MPI_SUCCESS;
}

int mpi_win_unlock(int rank, struct win *win)
{
    struct win_epochs *e = &win->epochs;
    if (rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    int err = epoch_check_rank(win, rank);
    if (err)
        return err;
    if (e->access != ACCESS_LOCK || win->targets[rank].locked == WIN_UNLOCKED)
        return err_set(MPI_ERR_RMA_SYNC, "this rank has not locked rank %d of %s", rank,
                       win_text(win));
    unlock(win, rank, rank + 1);
    if (--e->n_locks == 0)
        e->access = ACCESS_NONE;
    return epoch_result(win);
}

int mpi_win_lock_all(int assertion, struct win *win)
{
    struct win_epochs *e = &win->epochs;
    int err = epoch_check_assert(assertion, MPI_MODE_NOCHECK);
    if (!err)
        err = check_lockable(win, "MPI_Win_lock_all");
    if (!err && e->access != ACCESS_NONE)
        err = err_set(MPI_ERR_RMA_SYNC,
                      "MPI_Win_lock_all while this rank holds a lock of MPI_Win_lock on %s",
                      win_text(win));
    if (err)
        return err;
    e->access = ACCESS_LOCK_ALL;
    e->lock_all_nocheck = assertion & MPI_MODE_NOCHECK;
    /* What is loaded and stored without calls must be locked now, the rest at the first access. */
    for (int i = 0; !e->lock_all_nocheck && i < win->comm->size; i++)
        if (win->targets[i].direct)
            epoch_lock(win, i, false);
    return MPI_SUCCESS;
}

int mpi_win_unlock_all(struct win *win)
{
    if (win->epochs.access != ACCESS_LOCK_ALL)
        return err_set(MPI_ERR_RMA_SYNC, "MPI_Win_unlock_all without MPI_Win_lock_all on %s",
                       win_text(win));
    unlock(win, 0, win->comm->size);
    win->epochs.access = ACCESS_NONE;
    return epoch_result(win);
}

/* ---- flush ---- */

static int check_passive(const struct win *win, int rank, const char *function)
{
    const struct win_epochs *e = &win->epochs;
    bool locked =
        e->access == ACCESS_LOCK_ALL ||
        (e->access == ACCESS_LOCK && (rank < 0 || win->targets[rank].locked != WIN_UNLOCKED));
    if (locked)
        return MPI_SUCCESS;
    if (rank < 0)
        return err_set(MPI_ERR_RMA_SYNC, "%s outside of a lock epoch on %s", function,
                       win_text(win));
    return err_set(MPI_ERR_RMA_SYNC, "%s of rank %d of %s, which this rank has not locked",
                   function, rank, win_text(win));
}

static int flush(struct win *win, int rank, const char *function,
                 void (*wait)(struct win *win, int rank))
{
    if (rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    int err = rank == -1 ? MPI_SUCCESS : epoch_check_rank(win, rank);
    if (!err)
        err = check_passive(win, rank, function);
    if (err)
        return err;
    wait(win, rank);
    return epoch_result(win);
}

int mpi_win_flush(int rank, struct win *win)
{
    return rank == -1 ? epoch_check_rank(win, rank)
                      : flush(win, rank, "MPI_Win_flush", origin_wait_there);
}

int mpi_win_flush_local(int rank, struct win *win)
{
    return rank == -1 ? epoch_check_rank(win, rank)
                      : flush(win, rank, "MPI_Win_flush_local", origin_wait_here);
}

int mpi_win_flush_all(struct win *win)
{
    return flush(win, -1, "MPI_Win_flush_all", origin_wait_there);
}

int mpi_win_flush_local_all(struct win *win)
{
    return flush(win, -1, "MPI_Win_flush_local_all", origin_wait_here);
}

/* One copy of the window is all there is (MPI_WIN_UNIFIED): loads and stores on either side of the
 * call keep their order. */
int mpi_win_sync(struct win *win)
{
    (void)win;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    progress_poll();
    return MPI_SUCCESS;
}
