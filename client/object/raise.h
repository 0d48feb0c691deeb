/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors of calls: which communicator's error handler they go to. Called by the bindings. */
#ifndef MOTET_CLIENT_OBJECT_RAISE_H
#define MOTET_CLIENT_OBJECT_RAISE_H

struct comm;

/* Carries out the error handler of comm (NULL: the error is tied to no object) for the error code
 * `err` that `function` ("MPI_Send") met. Returns the code to give to the application; does not
 * return for FATAL and ABORT. */
int raise_on_comm(struct comm *comm, int err, const char *function);

#endif
