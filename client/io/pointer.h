/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shared file pointer (MPI-5.0 section 14.4.4): a number of etypes in rank 0's memory, which
 * all ranks change by one-sided operations. So nobody needs a file beside the file, or rank 0's
 * attention.
 */
#ifndef MOTET_CLIENT_IO_POINTER_H
#define MOTET_CLIENT_IO_POINTER_H

#include "client/io/file.h"

int pointer_open(struct file *file);   /* collective */
void pointer_close(struct file *file); /* collective; NULL-safe for half-made files */
/* Moves it by n etypes; returns where it was. */
int pointer_add(struct file *file, MPI_Offset n, MPI_Offset *ret_before);
int pointer_get(struct file *file, MPI_Offset *ret_position);
int pointer_set(struct file *file, MPI_Offset position);

#endif
