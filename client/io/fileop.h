/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers: one call that reads or writes, whatever its form.
 *
 * A blocking call runs it on the caller's thread, with the library lock given up while the system
 * works. A nonblocking one (and a split collective) is a request, which progress advances; its
 * accesses of the file are run by the threads of worker.h. Collective ones begin with what every
 * rank tells of its access (struct member), from which all ranks alike choose: each by itself, or
 * two-phase (exchange.h); the latter ends with an agreement, since one rank's bytes may have failed
 * at another.
 *
 * Data whose representation in the file is another one go through a converted copy.
 */
#ifndef MOTET_CLIENT_IO_FILEOP_H
#define MOTET_CLIENT_IO_FILEOP_H

#include <stdbool.h>

#include "mpi.h"

#include "client/datatype/buffer.h"
#include "client/io/file.h"

struct request;

struct fileop_call {
    struct file *file;
    bool write, collective;
    MPI_Offset offset; /* etypes from the beginning of the view */
    struct buffer buffer;
};

/* Etypes that the call is about. Conditions: MPI_ERR_ACCESS, MPI_ERR_READ_ONLY, MPI_ERR_IO. */
int fileop_etypes(const struct fileop_call *call, MPI_Offset *ret_n);

/* ret_moved: etypes that were moved, a part of one counts. */
int fileop_now(const struct fileop_call *call, MPI_Status *status, MPI_Offset *ret_moved);

/* Begins it. The request has no handle yet. */
int fileop_start(const struct fileop_call *call, struct request **ret_request);

/* Registers with progress; once. */
void fileop_init(void);

#endif
