/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules: which algorithm a collective uses, by number of ranks, bytes and the shape of the cluster.
 *
 * All ranks of a call must choose alike, so a choice depends only on what every rank knows: the
 * facts of the call. Pure functions of these; select.c gathers them.
 */
#ifndef MOTET_CLIENT_COLL_CHOICE_RULES_H
#define MOTET_CLIENT_COLL_CHOICE_RULES_H

#include "client/coll/algorithms/algorithms.h"

/* Where a rule holds: the ranks run on one node, on several of one network, on several networks. */
enum rules_shape { RULES_ANY_SHAPE, RULES_ONE_NODE, RULES_SEVERAL_NODES, RULES_SEVERAL_NETWORKS };

/* At most so many bytes, between so many ranks, on such a shape. */
struct rule {
    enum algorithm_name name;
    MPI_Count max_bytes;
    int min_ranks, max_ranks;
    enum rules_shape shape;
};

struct rules {
    const struct rule *list;
    int n;
};

/* What all ranks of a call know. */
struct rules_facts {
    int n_ranks;
    enum rules_shape shape;
    /* All ranks of a communicator take part, more than two; they run on several nodes with fewer
     * nodes than ranks, and on several networks. */
    bool has_nodes, has_networks;
    /* Largest publication in the memory of the node that they share; -1: they share none. */
    MPI_Count shared_bytes;
    MPI_Count n_bytes; /* as coll_chooser has it */
    bool regular;
};

/* The library's own rules of a family, of which one fits always. */
struct rules rules_of(enum coll_family family);

/* Can the algorithm do it? */
bool rules_fits(enum algorithm_name name, const struct rules_facts *facts);
/* The first of the rules that fits, or -1. */
int rules_first(struct rules rules, const struct rules_facts *facts);
/* Bytes up to which the first rule for so many ranks gives calls to an algorithm in the memory of
 * the node, whose publications may have shared_bytes; -1: it does not. */
MPI_Count rules_quick(struct rules rules, int n_ranks, MPI_Count shared_bytes,
                      enum algorithm_name *ret_name);

#endif
