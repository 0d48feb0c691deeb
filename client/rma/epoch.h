/* SPDX-License-Identifier: BSD-3-Clause */
/* Epochs (MPI-5.0 section 12.5): what may be accessed now, and locks. */
#ifndef MOTET_CLIENT_RMA_EPOCH_H
#define MOTET_CLIENT_RMA_EPOCH_H

#include "client/rma/win.h"

/* May this rank access the target now? Else MPI_ERR_RMA_SYNC, naming window and rank. Takes the
 * target's lock if MPI_Win_lock_all left it for later. */
int epoch_access(struct win *win, int target);

/* 0, or the error that a target has reported since the last synchronisation. */
int epoch_result(struct win *win);

/* 0, or MPI_ERR_ASSERT naming an assertion that the call does not take. */
int epoch_check_assert(int given, int allowed);
/* 0, or MPI_ERR_RANK. */
int epoch_check_rank(const struct win *win, int rank);

/* Takes the lock of a target, waiting where it lies in shared memory. */
void epoch_lock(struct win *win, int target, bool exclusive);

#endif
