/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this library keeps in the opaque words of an MPI_Status.
 *
 * Called by everything that completes a request (p2p, collectives, generalized requests) and by the
 * status functions of the standard (status.c), on whatever thread completes. A status belongs to
 * the user; nothing here allocates or locks.
 *
 * MPI_internal[0..1] hold the received bytes as one 64-bit integer, MPI_internal[2] is 1 when the
 * operation was cancelled, the other two stay 0. Counts of elements are derived from the bytes when
 * asked for (type_count.c).
 */
#ifndef MOTET_CLIENT_PROGRESS_STATUS_H
#define MOTET_CLIENT_PROGRESS_STATUS_H

#include <stdbool.h>
#include <string.h>

#include "mpi.h"

/* All functions that write accept MPI_STATUS_IGNORE and then do nothing. */

static inline void status_set_count_bytes(MPI_Status *status, MPI_Count n_bytes)
{
    if (status != MPI_STATUS_IGNORE)
        memcpy(&status->MPI_internal[0], &n_bytes, sizeof n_bytes);
}

static inline MPI_Count status_get_count_bytes(const MPI_Status *status)
{
    MPI_Count n_bytes;
    memcpy(&n_bytes, &status->MPI_internal[0], sizeof n_bytes);
    return n_bytes;
}

static inline void status_set_cancelled_flag(MPI_Status *status, bool cancelled)
{
    if (status != MPI_STATUS_IGNORE)
        status->MPI_internal[2] = cancelled;
}

static inline bool status_is_cancelled(const MPI_Status *status)
{
    return status->MPI_internal[2] != 0;
}

/* Describes a completed receive. MPI_ERROR is left alone: only the calls that complete several
 * requests may write it (MPI-5.0 section 3.2.5). */
static inline void status_set_received(MPI_Status *status, int source, int tag, MPI_Count n_bytes)
{
    if (status == MPI_STATUS_IGNORE)
        return;
    status->MPI_SOURCE = source;
    status->MPI_TAG = tag;
    status_set_count_bytes(status, n_bytes);
    status_set_cancelled_flag(status, false);
}

/* The empty status of a null or inactive request: any source, any tag, no error, no bytes, not
 * cancelled. */
static inline void status_set_empty(MPI_Status *status)
{
    if (status == MPI_STATUS_IGNORE)
        return;
    status_set_received(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
    status->MPI_ERROR = MPI_SUCCESS;
}

/* What a receive from MPI_PROC_NULL yields. */
static inline void status_set_proc_null(MPI_Status *status)
{
    status_set_received(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
}

#endif
