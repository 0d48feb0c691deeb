/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data representations: how elements look in a file (MPI-5.0 section 14.5).
 *
 * "native" and "internal" are what memory has; "external32" is what MPI_Pack_external makes; others
 * are the application's, by MPI_Register_datarep. What the layers above need of one: the size that
 * data have in the file, the layout of a filetype there, and the two conversions. Library lock
 * held; the application's functions are called with it.
 */
#ifndef MOTET_CLIENT_IO_DATAREP_H
#define MOTET_CLIENT_IO_DATAREP_H

#include <stdbool.h>

#include "mpi.h"

#include "client/datatype/buffer.h"

struct datarep;

const struct datarep *datarep_native(void);
/* NULL: no such representation. */
const struct datarep *datarep_find(const char *name);
const char *datarep_name(const struct datarep *rep);
/* Do data look in the file as they do in memory, when they are written or read? */
bool datarep_is_plain(const struct datarep *rep, bool write);

/* The type as its bytes lie in a file: itself, or one of bytes in which every basic type has its
 * size of the representation and whatever was counted in elements has moved along. Committed, with
 * a reference for the caller, without handle. */
int datarep_layout(const struct datarep *rep, struct datatype *type, struct datatype **ret_layout);

/* Bytes of data in the file that one element of the type is. */
int datarep_size(const struct datarep *rep, struct datatype *type, MPI_Count *ret_bytes);

/* The buffer's data to `file` and back. Of what is read, n_bytes are there: whole elements are
 * converted. Condition: MPI_ERR_CONVERSION. */
int datarep_write(const struct datarep *rep, struct buffer from, void *file);
int datarep_read(const struct datarep *rep, void *file, MPI_Count n_bytes, struct buffer to);

#endif
