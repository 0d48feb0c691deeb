/* SPDX-License-Identifier: BSD-3-Clause */
/* Split collectives: a file has at most one that has begun and not ended (MPI-5.0 section
 * 14.4.5). */
#ifndef MOTET_CLIENT_IO_CALLS_COLLECTIVE_H
#define MOTET_CLIENT_IO_CALLS_COLLECTIVE_H

#include "client/io/file.h"

struct request;

int split_check_none(const struct file *file);
/* The request is the file's from now on, unless the beginning failed with `err`. */
int split_begun(struct file *file, enum split_form form, int err, struct request *request);
/* Waits for it. MPI_ERR_REQUEST: another one has begun, or none. */
int split_end(struct file *file, enum split_form form, MPI_Status *status);

#endif
