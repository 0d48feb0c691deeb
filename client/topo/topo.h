/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the topology functions share: the communicator that carries a topology, and where its ranks
 * run.
 */
#ifndef MOTET_CLIENT_TOPO_TOPO_H
#define MOTET_CLIENT_TOPO_TOPO_H

#include "client/object/comm.h"
#include "client/object/topo.h"

/* The place of a rank of the old communicator in members[n] (NULL: identity), or MPI_UNDEFINED. */
int topo_place(const int *members, int n, int rank);

/* A communicator of the processes members[0..n-1] of comm (NULL: the first n), published, with the
 * topology, whose reference is taken over also on failure. Collective over comm; topo is NULL where
 * this process is no member, and then *ret_comm is NULL. */
int topo_make_comm(struct comm *comm, int n, const int *members, struct topo *topo,
                   struct comm **ret_comm);

/* The node of each rank of an intracommunicator; malloced, NULL without memory. *ret_several: more
 * than one node. */
int *topo_nodes(const struct comm *comm, int n, bool *ret_several);

/* MPI_ERR_COMM for an intercommunicator. */
int topo_check_intra(const struct comm *comm);
/* MPI_ERR_TOPOLOGY unless the communicator has a topology of this kind (0: any). */
int topo_check_kind(const struct comm *comm, int kind);

#endif
