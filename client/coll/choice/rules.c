/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/choice/rules.h"

#include <stdint.h>

#define ANY_BYTES INT64_MAX
#define ANY_RANKS INT32_MAX

/* The first rule that fits decides. The rules within a node are what bench/tune measured with 2, 4
 * and 8 ranks on two cores; the borders are not sensitive; they come first, for there every
 * nanosecond counts. A border between networks, or nodes, is worth more than any round, hence their
 * rules come next; messages between nodes are bound by rounds when short and by bytes when long, as
 * on a node but ten times slower in both. */
static const struct rule barrier_rules[] = {
    {BARRIER_SHARED, ANY_BYTES, 2, ANY_RANKS, RULES_ANY_SHAPE},
    {BARRIER_NETWORKS, ANY_BYTES, 3, ANY_RANKS, RULES_SEVERAL_NETWORKS},
    {BARRIER_NODES, ANY_BYTES, 2, ANY_RANKS, RULES_ANY_SHAPE},
    {BARRIER_DISSEMINATION, ANY_BYTES, 1, ANY_RANKS, RULES_ANY_SHAPE},
};

static const struct rule bcast_rules[] = {
    {BCAST_SHARED, 48 << 10, 2, 2, RULES_ANY_SHAPE},
    {BCAST_SHARED, 2 << 20, 3, ANY_RANKS, RULES_ANY_SHAPE},
    {BCAST_NETWORKS, ANY_BYTES, 3, ANY_RANKS, RULES_SEVERAL_NETWORKS},
    {BCAST_NODES, ANY_BYTES, 2, ANY_RANKS, RULES_ANY_SHAPE},
    {BCAST_BINOMIAL, ANY_BYTES, 1, 2, RULES_ANY_SHAPE},
    {BCAST_BINOMIAL, 32 << 10, 3, ANY_RANKS, RULES_ANY_SHAPE},
    {BCAST_BINOMIAL, 128 << 10, 3, 4, RULES_ANY_SHAPE},
    {BCAST_PIPELINE, ANY_BYTES, 3, 8, RULES_ANY_SHAPE},
    {BCAST_SCATTER_ALLGATHER, ANY_BYTES, 9, ANY_RANKS, RULES_ANY_SHAPE},
};

static const struct rule gather_rules[] = {
    {GATHER_SHARED, 32 << 10, 2, ANY_RANKS, RULES_ANY_SHAPE},
    {GATHER_NETWORKS, 16 << 10, 3, ANY_RANKS, RULES_SEVERAL_NETWORKS},
    {GATHER_BINOMIAL, 1 << 10, 4, ANY_RANKS, RULES_ANY_SHAPE},
    {GATHER_LINEAR, ANY_BYTES, 1, ANY_RANKS, RULES_ANY_SHAPE},
};

static const struct rule scatter_rules[] = {
    {SCATTER_SHARED, 32 << 10, 2, ANY_RANKS, RULES_ANY_SHAPE},
    {SCATTER_NETWORKS, 16 << 10, 3, ANY_RANKS, RULES_SEVERAL_NETWORKS},
    {SCATTER_BINOMIAL, 1 << 10, 4, ANY_RANKS, RULES_ANY_SHAPE},
    {SCATTER_LINEAR, ANY_BYTES, 1, ANY_RANKS, RULES_ANY_SHAPE},
};

static const struct rule allgather_rules[] = {
    {ALLGATHER_SHARED, 512 << 10, 2, ANY_RANKS, RULES_ANY_SHAPE},
    {ALLGATHER_NETWORKS, ANY_BYTES, 3, ANY_RANKS, RULES_SEVERAL_NETWORKS},
    {ALLGATHER_RECURSIVE_DOUBLING, 64 << 10, 2, ANY_RANKS, RULES_ANY_SHAPE},
    {ALLGATHER_BRUCK, 32 << 10, 2, ANY_RANKS, RULES_ANY_SHAPE},
    {ALLGATHER_RING, ANY_BYTES, 1, ANY_RANKS, RULES_ANY_SHAPE},
};

static const struct rule alltoall_rules[] = {
    {ALLTOALL_SHARED, 8 << 10, 2, 2, RULES_ANY_SHAPE},
    {ALLTOALL_SHARED, 32 << 10, 3, ANY_RANKS, RULES_ANY_SHAPE},
    {ALLTOALL_LINEAR, 32 << 10, 1, ANY_RANKS,
     RULES_SEVERAL_NETWORKS}, /* Bruck's rounds would cross borders again and again */
    {ALLTOALL_BRUCK, 256, 8, ANY_RANKS, RULES_ANY_SHAPE},
    {ALLTOALL_LINEAR, 32 << 10, 1, ANY_RANKS, RULES_ANY_SHAPE},
    {ALLTOALL_LINEAR, 128 << 10, 1, 16, RULES_ONE_NODE},
    {ALLTOALL_PAIRWISE, ANY_BYTES, 1, ANY_RANKS, RULES_ANY_SHAPE},
};

static const struct rule reduce_rules[] = {
    {REDUCE_SHARED, 128 << 10, 2, ANY_RANKS, RULES_ANY_SHAPE},
    {REDUCE_NETWORKS, ANY_BYTES, 3, ANY_RANKS, RULES_SEVERAL_NETWORKS},
    {REDUCE_NODES, ANY_BYTES, 2, ANY_RANKS, RULES_ANY_SHAPE},
    {REDUCE_BINOMIAL, 16 << 10, 1, ANY_RANKS, RULES_ANY_SHAPE},
    {REDUCE_BINOMIAL, ANY_BYTES, 1, 2, RULES_ANY_SHAPE},
    {REDUCE_RABENSEIFNER, ANY_BYTES, 3, ANY_RANKS, RULES_ANY_SHAPE},
};

static const struct rule allreduce_rules[] = {
    {ALLREDUCE_SHARED, 16 << 10, 2, ANY_RANKS, RULES_ANY_SHAPE},
    {ALLREDUCE_NETWORKS, ANY_BYTES, 3, ANY_RANKS, RULES_SEVERAL_NETWORKS},
    {ALLREDUCE_NODES, ANY_BYTES, 2, ANY_RANKS, RULES_ANY_SHAPE},
    {ALLREDUCE_RECURSIVE_DOUBLING, 8 << 10, 1, ANY_RANKS, RULES_ANY_SHAPE},
    {ALLREDUCE_RING, ANY_BYTES, 2, 2, RULES_ANY_SHAPE},
    {ALLREDUCE_RABENSEIFNER, 4 << 20, 2, ANY_RANKS, RULES_ANY_SHAPE},
    {ALLREDUCE_RING, ANY_BYTES, 5, ANY_RANKS, RULES_ANY_SHAPE},
    {ALLREDUCE_RABENSEIFNER, ANY_BYTES, 1, ANY_RANKS, RULES_ANY_SHAPE},
};

static const struct rule reduce_scatter_rules[] = {
    {REDUCE_SCATTER_SHARED, 32 << 10, 2, 2, RULES_ANY_SHAPE},
    {REDUCE_SCATTER_SHARED, 128 << 10, 3, 5, RULES_ANY_SHAPE},
    {REDUCE_SCATTER_SHARED, 512 << 10, 6, ANY_RANKS, RULES_ANY_SHAPE},
    {REDUCE_SCATTER_NETWORKS, ANY_BYTES, 3, ANY_RANKS, RULES_SEVERAL_NETWORKS},
    {REDUCE_SCATTER_HALVING, 256 << 10, 2, ANY_RANKS, RULES_ANY_SHAPE},
    {REDUCE_SCATTER_PAIRWISE, ANY_BYTES, 2, ANY_RANKS, RULES_ANY_SHAPE},
    {REDUCE_SCATTER_REDUCE_SCATTER, ANY_BYTES, 1, ANY_RANKS, RULES_ANY_SHAPE},
};

static const struct rule scan_rules[] = {
    {SCAN_SHARED, 512 << 10, 2, ANY_RANKS, RULES_ANY_SHAPE},
    {SCAN_NETWORKS, ANY_BYTES, 3, ANY_RANKS, RULES_SEVERAL_NETWORKS},
    {SCAN_DOUBLING, ANY_BYTES, 1, ANY_RANKS, RULES_ANY_SHAPE},
};

#define RULES(list_)                                                                               \
    {                                                                                              \
        list_, sizeof list_ / sizeof list_[0]                                                      \
    }

static const struct rules library_rules[COLL_FAMILIES] = {
    [COLL_BARRIER] = RULES(barrier_rules),
    [COLL_BCAST] = RULES(bcast_rules),
    [COLL_GATHER] = RULES(gather_rules),
    [COLL_SCATTER] = RULES(scatter_rules),
    [COLL_ALLGATHER] = RULES(allgather_rules),
    [COLL_ALLTOALL] = RULES(alltoall_rules),
    [COLL_REDUCE] = RULES(reduce_rules),
    [COLL_ALLREDUCE] = RULES(allreduce_rules),
    [COLL_REDUCE_SCATTER] = RULES(reduce_scatter_rules),
    [COLL_SCAN] = RULES(scan_rules),
};

struct rules rules_of(enum coll_family family)
{
    return library_rules[family];
}

/* Bytes up to which the largest publication of a step can be made among so many ranks. A broadcast
 * is cut into segments. */
static MPI_Count rules_most_shared(enum algorithm_name name, int n_ranks, MPI_Count shared_bytes)
{
    MPI_Count n_blocks = name == SCATTER_SHARED || name == ALLTOALL_SHARED ? n_ranks : 1;
    return name == BCAST_SHARED ? ANY_BYTES : shared_bytes / n_blocks;
}

bool rules_fits(enum algorithm_name name, const struct rules_facts *facts)
{
    unsigned needs = algorithm_table[name].needs;
    if ((needs & NEEDS_SHARED) &&
        (facts->n_ranks < 2 || facts->shared_bytes < 0 ||
         facts->n_bytes > rules_most_shared(name, facts->n_ranks, facts->shared_bytes)))
        return false;
    if ((needs & NEEDS_REGULAR) && !facts->regular)
        return false;
    if ((needs & NEEDS_POF2) && (facts->n_ranks & (facts->n_ranks - 1)))
        return false;
    return (!(needs & NEEDS_NODES) || facts->has_nodes) &&
           (!(needs & NEEDS_NETWORKS) || facts->has_networks);
}

int rules_first(struct rules rules, const struct rules_facts *facts)
{
    for (const struct rule *r = rules.list; r < rules.list + rules.n; r++)
        if (facts->n_bytes <= r->max_bytes && facts->n_ranks >= r->min_ranks &&
            facts->n_ranks <= r->max_ranks &&
            (r->shape == RULES_ANY_SHAPE || r->shape == facts->shape) && rules_fits(r->name, facts))
            return (int)r->name;
    return -1;
}

MPI_Count rules_quick(struct rules rules, int n_ranks, MPI_Count shared_bytes,
                      enum algorithm_name *ret_name)
{
    const struct rule *r = rules.list;
    while (n_ranks < r->min_ranks || n_ranks > r->max_ranks)
        r++;
    *ret_name = r->name;
    if (!(algorithm_table[r->name].needs & NEEDS_SHARED))
        return -1;
    MPI_Count most = rules_most_shared(r->name, n_ranks, shared_bytes);
    return most < r->max_bytes ? most : r->max_bytes;
}
