/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The environment of an MPI process: versions, clock, thread level, predefined attributes,
 * MPI_INFO_ENV.
 *
 * Starting up and shutting down is in client/init/init.c, which sets what is kept here. Facts are
 * constant between MPI_Init and MPI_Finalize; the functions that the standard allows before and
 * after read atomic state only.
 */
#ifndef MOTET_CLIENT_INIT_ENV_H
#define MOTET_CLIENT_INIT_ENV_H

#include <stdbool.h>

/* Largest tag a user may give. Tags travel as 32-bit numbers; the collective context has its
 * own. */
#define ENV_TAG_UB 0x7fffffff

/* Called by the first MPI_Init or MPI_Session_init, after job_attach. thread_level: the one
 * granted. argv may be NULL. MPI_ERR_NO_MEM. */
int env_init(int thread_level, const char *argv0);

/* MPI_Init after a session has started everything: the thread level of the program and its main
 * thread. */
int env_set_world(int thread_level, const char *argv0);

/* Address of a predefined attribute of communicators (an int; MPI_UNDEFINED: not set), NULL for
 * other keyvals. */
const int *env_attr(int keyval);

#endif
