/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The instance of the library that the world model and all sessions of a process share.
 */
#ifndef MOTET_CLIENT_INIT_INIT_H
#define MOTET_CLIENT_INIT_INIT_H

/* One more user; the first one attaches to the job and sets everything up. *level is the thread
 * level that is wanted; the environment may change it. Called without the library lock. 0 or an MPI
 * error class. */
int init_acquire(int *level, const char *argv0);

/* One user less, with the library lock held. The last one leaves the job, unless the library
 * lingers. */
void init_release(void);

/* From now on the library stays in the job until the process exits. */
void init_linger(void);

/* "multiple", "MPI_THREAD_MULTIPLE" and so on in any case; -1 for other names. */
int init_level_of(const char *name);

#endif
