/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A datatype rebuilt over basic types of other sizes: what a filetype is in a representation that
 * gives elements other lengths than memory does (MPI-5.0 section 14.5.1).
 *
 * The call that made the type is made again, from the inside out, with runs of bytes in place of
 * the basic types. So what was counted in elements (strides, indices, sub-arrays) grows and shrinks
 * with them, as the standard asks of portable types, and what was given in bytes stays.
 */
#ifndef MOTET_CLIENT_IO_RESHAPE_H
#define MOTET_CLIENT_IO_RESHAPE_H

#include "mpi.h"

struct datatype;

/* Bytes of a basic type; an error class stops the rebuilding. */
typedef int reshape_size(const void *arg, struct datatype *basic, MPI_Count *ret_bytes);

/* The result is committed and has one reference and no handle. */
int reshape_type(struct datatype *type, reshape_size *size, const void *arg,
                 struct datatype **ret_type);

#endif
