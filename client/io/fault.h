/* SPDX-License-Identifier: BSD-3-Clause */
/* What the system refused about a file, as an error class of MPI (MPI-5.0 section 14.7) and in
 * words. */
#ifndef MOTET_CLIENT_IO_FAULT_H
#define MOTET_CLIENT_IO_FAULT_H

int fault_class(int errnum);
/* err_set() with "NAME: WHAT: the system's words". Returns the class. */
int fault_say(const char *name, const char *what, int errnum);

#endif
