/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which algorithm a collective uses: a table of rules by number of ranks, bytes and the shape of
 * the cluster.
 *
 * All ranks of a call must choose alike, so a choice depends only on what every rank knows.
 * MOTET_COLL_<FAMILY>=<name> (MOTET_COLL_BCAST=pipeline) forces an algorithm wherever it is
 * applicable, for tests and measurements. A file (table.h) puts rules before those of the library.
 */
#ifndef MOTET_CLIENT_COLL_CHOICE_SELECT_H
#define MOTET_CLIENT_COLL_CHOICE_SELECT_H

#include "client/coll/schedule/schedule.h"

enum select_family {
    SELECT_BARRIER,
    SELECT_BCAST,
    SELECT_GATHER,
    SELECT_SCATTER,
    SELECT_ALLGATHER,
    SELECT_ALLTOALL,
    SELECT_REDUCE,
    SELECT_ALLREDUCE,
    SELECT_REDUCE_SCATTER,
    SELECT_SCAN,
    SELECT_FAMILIES
};

enum select_name {
    BARRIER_DISSEMINATION,
    BARRIER_NODES,
    BARRIER_NETWORKS,
    BARRIER_SHARED,
    BCAST_BINOMIAL,
    BCAST_SCATTER_ALLGATHER,
    BCAST_PIPELINE,
    BCAST_NODES,
    BCAST_NETWORKS,
    BCAST_SHARED,
    GATHER_BINOMIAL,
    GATHER_LINEAR,
    GATHER_NODES,
    GATHER_NETWORKS,
    GATHER_SHARED,
    SCATTER_BINOMIAL,
    SCATTER_LINEAR,
    SCATTER_NODES,
    SCATTER_NETWORKS,
    SCATTER_SHARED,
    ALLGATHER_RECURSIVE_DOUBLING,
    ALLGATHER_BRUCK,
    ALLGATHER_RING,
    ALLGATHER_NODES,
    ALLGATHER_NETWORKS,
    ALLGATHER_SHARED,
    ALLTOALL_BRUCK,
    ALLTOALL_LINEAR,
    ALLTOALL_PAIRWISE,
    ALLTOALL_SHARED,
    REDUCE_BINOMIAL,
    REDUCE_RABENSEIFNER,
    REDUCE_NODES,
    REDUCE_NETWORKS,
    REDUCE_SHARED,
    ALLREDUCE_RECURSIVE_DOUBLING,
    ALLREDUCE_RABENSEIFNER,
    ALLREDUCE_RING,
    ALLREDUCE_NODES,
    ALLREDUCE_NETWORKS,
    ALLREDUCE_SHARED,
    REDUCE_SCATTER_HALVING,
    REDUCE_SCATTER_PAIRWISE,
    REDUCE_SCATTER_REDUCE_SCATTER,
    REDUCE_SCATTER_NODES,
    REDUCE_SCATTER_NETWORKS,
    REDUCE_SCATTER_SHARED,
    SCAN_DOUBLING,
    SCAN_NODES,
    SCAN_NETWORKS,
    SCAN_SHARED,
    SELECT_NAMES
};

/* n_bytes: what the family's table is ordered by (message, block, or total for allgather and
 * reduce_scatter). regular: the operation commutes (reductions), or all blocks are of one size
 * (allgather, alltoall). */
enum select_name select_algorithm(enum select_family family, const struct schedule *s,
                                  MPI_Count n_bytes, bool regular);

/* ---- the table ---- */

/* Where a rule holds: the ranks run on one node, on several of one network, on several networks. */
enum select_shape {
    SELECT_ANY_SHAPE,
    SELECT_ONE_NODE,
    SELECT_SEVERAL_NODES,
    SELECT_SEVERAL_NETWORKS
};

/* At most so many bytes, between so many ranks, on such a shape. */
struct select_rule {
    enum select_name name;
    MPI_Count max_bytes;
    int min_ranks, max_ranks;
    enum select_shape shape;
};

/* By name, as environment and file know them ("bcast", "pipeline"); -1: there is none. */
int select_family_of(const char *name);
int select_name_of(enum select_family family, const char *name);
/* The names of a family's algorithms, "a, b, c", for messages. */
void select_list(enum select_family family, char *out, size_t size);

/* Reads MOTET_COLL_*. MPI_ERR_OTHER with a text for a name that does not exist. */
int select_init(void);

#endif
