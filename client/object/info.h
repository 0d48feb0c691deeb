/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Info objects: ordered key and value strings.
 *
 * Few keys are usual, so the store is an array in the order of first setting, searched in a row.
 */
#ifndef MOTET_CLIENT_OBJECT_INFO_H
#define MOTET_CLIENT_OBJECT_INFO_H

#include "client/object/object.h"
#include "mpi.h"

struct info_pair {
    char *key, *value;
};

struct info {
    struct object obj;
    int n_pairs, max_pairs;
    struct info_pair *pairs;
};

struct info_state {
    struct info env; /* MPI_INFO_ENV; valid always, filled by MPI_Init */
};
extern struct info_state *info_here;

int info_new(struct info **ret_info);                           /* no handle; MPI_ERR_NO_MEM */
int info_copy(const struct info *from, struct info **ret_info); /* no handle; from may be NULL */
void info_free(struct info *info);                              /* NULL is fine */
const char *info_get(const struct info *info,
                     const char *key); /* NULL where not set or info is NULL */
int info_put(struct info *info, const char *key, const char *value);
/* Gives a user handle to an object whose filling ended with `err`; where anything failed, frees it.
 * Returns the first error. */
int info_publish(int err, struct info *info, struct info **ret_info);

#endif
