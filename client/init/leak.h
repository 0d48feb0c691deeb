/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MOTET_DEBUG=handles: which handles an application has not freed when MPI ends, and where it got
 * them.
 *
 * The handle table then tells of every new handle; the last user of the library calls
 * leak_report(). With the library lock held.
 */
#ifndef MOTET_CLIENT_INIT_LEAK_H
#define MOTET_CLIENT_INIT_LEAK_H

/* At MPI_Init: 0, or MPI_ERR_OTHER when MOTET_DEBUG has a word that is not known. */
int leak_check_environment(void);

/* Lists the live handles on the standard error output, those of one kind from one place in one
 * line. */
void leak_report(void);

#endif
