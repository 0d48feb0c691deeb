/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Process sets: named groups of processes of the job (MPI-5.0 section 11.3.2).
 *
 * mpi://WORLD and mpi://SELF, which the standard demands, motet://node/NAME for every node of the
 * job, and motet://network/NAME for every network that one of these is on: the processes of all its
 * nodes. Sets follow from where ranks were placed and never change; all processes number them
 * alike.
 */
#ifndef MOTET_CLIENT_COMM_PSET_H
#define MOTET_CLIENT_COMM_PSET_H

#include "client/object/group.h"

int pset_count(void);

/* The name of set idx (0 .. pset_count() - 1), at most MPI_MAX_PSET_NAME_LEN with its end. */
void pset_name(int idx, char *name);

/* "world", "self", "node" or "network", and the name of the node or network, else "". */
const char *pset_kind(int idx, const char **ret_of);

/* The index of a set by its name, -1 for none. Names of the standard are compared without regard to
 * case, as URIs are. */
int pset_find(const char *name);

/* Whether a process (index in the job) is a member. */
bool pset_has(int idx, int proc);

/* A number that the members of a set have in common and no other process has, for splitting:
 * MPI_UNDEFINED for a process (index in the job) outside of the set, and for sets that do not
 * exist. */
int pset_color(const char *name, int proc);

/* Members in the order of their index in the job; a new reference. */
int pset_group(int idx, struct group **ret_group);

#endif
