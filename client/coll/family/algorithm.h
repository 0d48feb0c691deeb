/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The families of collective algorithms: what an algorithm of each gets, and its entry in the table
 * (algorithms/algorithms.txt, from which algorithms.h and the table are generated).
 *
 * Arguments as in coll.h, with what is the same for all algorithms of a family done: reductions
 * find their operand in `send`, which may be the address of the result; allgather's own block is in
 * recv; alltoall's data to be sent never lies in recv. There is something to do, but for gatherv,
 * scatterv, alltoallv, alltoallw and scans maybe for one rank alone.
 */
#ifndef MOTET_CLIENT_COLL_FAMILY_ALGORITHM_H
#define MOTET_CLIENT_COLL_FAMILY_ALGORITHM_H

#include "client/coll/op/op.h"
#include "client/coll/schedule/blocks.h"
#include "client/coll/schedule/schedule.h"

enum coll_family {
    COLL_BARRIER,
    COLL_BCAST,
    COLL_GATHER,
    COLL_SCATTER,
    COLL_ALLGATHER,
    COLL_ALLTOALL,
    COLL_REDUCE,
    COLL_ALLREDUCE,
    COLL_REDUCE_SCATTER,
    COLL_SCAN,
    COLL_FAMILIES
};

typedef void barrier_algorithm(struct schedule *s);
typedef void bcast_algorithm(struct schedule *s, struct buffer buf, int root);
typedef void gather_algorithm(struct schedule *s, struct buffer send, const struct blocks *recv,
                              int root);
typedef void scatter_algorithm(struct schedule *s, const struct blocks *send, struct buffer recv,
                               int root);
typedef void allgather_algorithm(struct schedule *s, const struct blocks *recv);
typedef void alltoall_algorithm(struct schedule *s, const struct blocks *send,
                                const struct blocks *recv);
typedef void reduce_algorithm(struct schedule *s, const void *send, struct buffer recv,
                              struct op *op, int root);
typedef void allreduce_algorithm(struct schedule *s, const void *send, struct buffer recv,
                                 struct op *op);
typedef void reduce_scatter_algorithm(struct schedule *s, const void *send, void *recv,
                                      const struct blocks *counts, struct op *op);
typedef void scan_algorithm(struct schedule *s, const void *send, struct buffer recv, struct op *op,
                            bool inclusive);

/* What an algorithm cannot do without. */
enum algorithm_needs {
    NEEDS_NOTHING = 0,
    NEEDS_REGULAR = 1, /* a commuting operation, blocks of one size */
    NEEDS_POF2 = 2,    /* a power of two of ranks */
    NEEDS_NODES = 4, /* several nodes, one of them with several ranks, and the whole communicator */
    NEEDS_SHARED = 8,    /* all ranks on this node, and a slot of its shared memory */
    NEEDS_NETWORKS = 16, /* several networks, more than two ranks, and the whole communicator */
};

struct algorithm {
    const char *name;
    enum coll_family family;
    unsigned needs; /* enum algorithm_needs */
    union {         /* that of its family */
        barrier_algorithm *barrier;
        bcast_algorithm *bcast;
        gather_algorithm *gather;
        scatter_algorithm *scatter;
        allgather_algorithm *allgather;
        alltoall_algorithm *alltoall;
        reduce_algorithm *reduce;
        allreduce_algorithm *allreduce;
        reduce_scatter_algorithm *reduce_scatter;
        scan_algorithm *scan;
    };
};

#endif
