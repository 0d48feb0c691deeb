/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of the job by this rank's will: MPI_Abort, an error that is fatal, and what the library
 * itself cannot survive. There is no other way out of the library: nothing in it calls abort() or
 * exit().
 */
#ifndef MOTET_CLIENT_TRANSPORT_END_H
#define MOTET_CLIENT_TRANSPORT_END_H

#include <stddef.h>

/* Ends the whole job with this exit code; `text` (may be NULL) is what mpiexec prints. */
_Noreturn void end_job(int code, const char *text);

/* The same where a call cannot fail and memory is out: `function` (__func__) wanted n_bytes for
 * `what`. The exit code is MPI_ERR_NO_MEM. */
_Noreturn void end_no_memory(const char *function, const char *what, size_t n_bytes);

#endif
