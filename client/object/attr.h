/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attribute caching on communicators, datatypes and windows: keyvals and the tables that objects
 * carry.
 *
 * The three kinds share one table form and one keyval space; a keyval knows for which kind it was
 * made. Callbacks get the handle of their object. Copies run in the order in which the attributes
 * were set, deletions in reverse order (MPI-5.0 section 7.7, 11.2.4). A freed keyval lives on until
 * the last attribute under it is gone.
 */
#ifndef MOTET_CLIENT_OBJECT_ATTR_H
#define MOTET_CLIENT_OBJECT_ATTR_H

#include "mpi.h"

#include <stdint.h>

enum attr_kind { ATTR_COMM, ATTR_TYPE, ATTR_WIN };

struct attr_table; /* one per object that has attributes; NULL is the empty table */

/* The callback forms of the three kinds are one at machine level: a pointer-sized handle first. */
typedef int(attr_copy_fn)(uintptr_t handle, int keyval, void *extra, void *value_in,
                          void *value_out, int *flag);
typedef int(attr_delete_fn)(uintptr_t handle, int keyval, void *value, void *extra);

/* copy 0: never copied, 1: copied as it is (the ABI's MPI_xxx_DUP_FN); remove 0: nothing to do. */
int attr_keyval_new(enum attr_kind kind, attr_copy_fn *copy, attr_delete_fn *remove, void *extra,
                    int *ret_keyval);
int attr_keyval_free(enum attr_kind kind, int *keyval); /* sets MPI_KEYVAL_INVALID */

int attr_put(struct attr_table **table, enum attr_kind kind, uintptr_t handle, int keyval,
             void *value);
int attr_get(const struct attr_table *table, enum attr_kind kind, int keyval, void **ret_value,
             int *ret_flag);
int attr_delete(struct attr_table **table, enum attr_kind kind, uintptr_t handle, int keyval);

/* For dup: runs the copy callbacks. On failure of one, *ret_to holds what was copied so far (delete
 * it). */
int attr_copy_all(const struct attr_table *from, enum attr_kind kind, uintptr_t from_handle,
                  struct attr_table **ret_to);

/* For free: runs the delete callbacks, last set first. Stops at the first one that fails and
 * returns its code: the object must then not be freed. The empty table is released and *table set
 * to NULL. */
int attr_delete_all(struct attr_table **table, enum attr_kind kind, uintptr_t handle);

#endif
