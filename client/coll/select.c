/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/select.h"

#include "client/coll/coll.h"
#include "client/coll/shared.h"
#include "client/core/err.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What an algorithm cannot do without. */
enum {
    NEEDS_NOTHING = 0,
    NEEDS_REGULAR = 1, /* a commuting operation, blocks of one size */
    NEEDS_POF2 = 2,
    NEEDS_NODES = 4, /* several nodes, one of them with several ranks, and the whole communicator */
    NEEDS_ORDER = 8, /* a commuting operation, or nodes that hold rows of ranks */
    NEEDS_SHARED = 16, /* all ranks on this node, and a slot of its exchange */
};

static const struct {
    const char *name;
    enum select_family family;
    unsigned needs;
} algorithms[SELECT_NAMES] = {
    [BARRIER_DISSEMINATION] = {"dissemination", SELECT_BARRIER, NEEDS_NOTHING},
    [BARRIER_NODES] = {"nodes", SELECT_BARRIER, NEEDS_NODES},
    [BARRIER_SHARED] = {"shared", SELECT_BARRIER, NEEDS_SHARED},
    [BCAST_BINOMIAL] = {"binomial", SELECT_BCAST, NEEDS_NOTHING},
    [BCAST_SCATTER_ALLGATHER] = {"scatter_allgather", SELECT_BCAST, NEEDS_NOTHING},
    [BCAST_PIPELINE] = {"pipeline", SELECT_BCAST, NEEDS_NOTHING},
    [BCAST_NODES] = {"nodes", SELECT_BCAST, NEEDS_NODES},
    [BCAST_SHARED] = {"shared", SELECT_BCAST, NEEDS_SHARED},
    [GATHER_BINOMIAL] = {"binomial", SELECT_GATHER, NEEDS_REGULAR},
    [GATHER_LINEAR] = {"linear", SELECT_GATHER, NEEDS_NOTHING},
    [GATHER_SHARED] = {"shared", SELECT_GATHER, NEEDS_SHARED},
    [SCATTER_BINOMIAL] = {"binomial", SELECT_SCATTER, NEEDS_REGULAR},
    [SCATTER_LINEAR] = {"linear", SELECT_SCATTER, NEEDS_NOTHING},
    [SCATTER_SHARED] = {"shared", SELECT_SCATTER, NEEDS_SHARED},
    [ALLGATHER_RECURSIVE_DOUBLING] = {"recursive_doubling", SELECT_ALLGATHER, NEEDS_REGULAR | NEEDS_POF2},
    [ALLGATHER_BRUCK] = {"bruck", SELECT_ALLGATHER, NEEDS_NOTHING},
    [ALLGATHER_RING] = {"ring", SELECT_ALLGATHER, NEEDS_NOTHING},
    [ALLGATHER_SHARED] = {"shared", SELECT_ALLGATHER, NEEDS_SHARED},
    [ALLTOALL_BRUCK] = {"bruck", SELECT_ALLTOALL, NEEDS_REGULAR},
    [ALLTOALL_LINEAR] = {"linear", SELECT_ALLTOALL, NEEDS_NOTHING},
    [ALLTOALL_PAIRWISE] = {"pairwise", SELECT_ALLTOALL, NEEDS_NOTHING},
    [ALLTOALL_SHARED] = {"shared", SELECT_ALLTOALL, NEEDS_SHARED},
    [REDUCE_BINOMIAL] = {"binomial", SELECT_REDUCE, NEEDS_NOTHING},
    [REDUCE_RABENSEIFNER] = {"rabenseifner", SELECT_REDUCE, NEEDS_NOTHING},
    [REDUCE_NODES] = {"nodes", SELECT_REDUCE, NEEDS_NODES | NEEDS_ORDER},
    [REDUCE_SHARED] = {"shared", SELECT_REDUCE, NEEDS_SHARED},
    [ALLREDUCE_RECURSIVE_DOUBLING] = {"recursive_doubling", SELECT_ALLREDUCE, NEEDS_NOTHING},
    [ALLREDUCE_RABENSEIFNER] = {"rabenseifner", SELECT_ALLREDUCE, NEEDS_NOTHING},
    [ALLREDUCE_RING] = {"ring", SELECT_ALLREDUCE, NEEDS_REGULAR},
    [ALLREDUCE_NODES] = {"nodes", SELECT_ALLREDUCE, NEEDS_NODES | NEEDS_ORDER},
    [ALLREDUCE_SHARED] = {"shared", SELECT_ALLREDUCE, NEEDS_SHARED},
    [REDUCE_SCATTER_HALVING] = {"halving", SELECT_REDUCE_SCATTER, NEEDS_REGULAR},
    [REDUCE_SCATTER_PAIRWISE] = {"pairwise", SELECT_REDUCE_SCATTER, NEEDS_REGULAR},
    [REDUCE_SCATTER_REDUCE_SCATTER] = {"reduce_scatter", SELECT_REDUCE_SCATTER, NEEDS_NOTHING},
    [REDUCE_SCATTER_SHARED] = {"shared", SELECT_REDUCE_SCATTER, NEEDS_SHARED},
    [SCAN_DOUBLING] = {"doubling", SELECT_SCAN, NEEDS_NOTHING},
    [SCAN_SHARED] = {"shared", SELECT_SCAN, NEEDS_SHARED},
};

#define ANY_BYTES INT64_MAX
#define ANY_RANKS INT32_MAX

/* The first rule that fits decides: at most so many bytes and between so many ranks. Short messages are bound
 * by the number of rounds, long ones by the bytes that each rank moves; the borders are where the two cost
 * the same at the half round trip (0.3 us) and bandwidth (10 GB/s) of a node, and are not sensitive: a
 * network has both some ten times worse. A border between networks is worth more than any round, hence the
 * node rules come first. */
static const struct rule {
    enum select_name name;
    MPI_Count max_bytes;
    int min_ranks, max_ranks;
} rules[] = {
    {BARRIER_NODES, ANY_BYTES, 2, ANY_RANKS},
    {BARRIER_SHARED, ANY_BYTES, 2, ANY_RANKS},
    {BARRIER_DISSEMINATION, ANY_BYTES, 1, ANY_RANKS},

    {BCAST_NODES, ANY_BYTES, 2, ANY_RANKS},
    {BCAST_SHARED, 16 << 10, 2, 2},
    {BCAST_SHARED, 1 << 20, 3, ANY_RANKS},
    {BCAST_BINOMIAL, ANY_BYTES, 1, 2},
    {BCAST_BINOMIAL, 32 << 10, 3, ANY_RANKS},
    {BCAST_BINOMIAL, 128 << 10, 3, 4},
    {BCAST_PIPELINE, ANY_BYTES, 3, 8},
    {BCAST_SCATTER_ALLGATHER, ANY_BYTES, 9, ANY_RANKS},

    {GATHER_SHARED, 4 << 10, 2, ANY_RANKS},
    {GATHER_BINOMIAL, 1 << 10, 4, ANY_RANKS},
    {GATHER_LINEAR, ANY_BYTES, 1, ANY_RANKS},
    {SCATTER_SHARED, 4 << 10, 2, ANY_RANKS},
    {SCATTER_BINOMIAL, 1 << 10, 4, ANY_RANKS},
    {SCATTER_LINEAR, ANY_BYTES, 1, ANY_RANKS},

    {ALLGATHER_SHARED, 512 << 10, 2, ANY_RANKS},
    {ALLGATHER_RECURSIVE_DOUBLING, 64 << 10, 2, ANY_RANKS},
    {ALLGATHER_BRUCK, 32 << 10, 2, ANY_RANKS},
    {ALLGATHER_RING, ANY_BYTES, 1, ANY_RANKS},

    {ALLTOALL_SHARED, 4 << 10, 2, ANY_RANKS},
    {ALLTOALL_BRUCK, 256, 8, ANY_RANKS},
    {ALLTOALL_LINEAR, 32 << 10, 1, ANY_RANKS},
    {ALLTOALL_PAIRWISE, ANY_BYTES, 1, ANY_RANKS},

    {REDUCE_NODES, ANY_BYTES, 2, ANY_RANKS},
    {REDUCE_SHARED, 8 << 10, 2, ANY_RANKS},
    {REDUCE_BINOMIAL, 16 << 10, 1, ANY_RANKS},
    {REDUCE_BINOMIAL, ANY_BYTES, 1, 2},
    {REDUCE_RABENSEIFNER, ANY_BYTES, 3, ANY_RANKS},

    {ALLREDUCE_NODES, ANY_BYTES, 2, ANY_RANKS},
    {ALLREDUCE_SHARED, 4 << 10, 2, ANY_RANKS},
    {ALLREDUCE_RECURSIVE_DOUBLING, 8 << 10, 1, ANY_RANKS},
    {ALLREDUCE_RABENSEIFNER, 4 << 20, 2, ANY_RANKS},
    {ALLREDUCE_RING, ANY_BYTES, 5, ANY_RANKS},
    {ALLREDUCE_RABENSEIFNER, ANY_BYTES, 2, ANY_RANKS},

    {REDUCE_SCATTER_SHARED, 32 << 10, 2, ANY_RANKS},
    {REDUCE_SCATTER_HALVING, 256 << 10, 2, ANY_RANKS},
    {REDUCE_SCATTER_PAIRWISE, ANY_BYTES, 2, ANY_RANKS},
    {REDUCE_SCATTER_REDUCE_SCATTER, ANY_BYTES, 1, ANY_RANKS},

    {SCAN_SHARED, 512 << 10, 2, ANY_RANKS},
    {SCAN_DOUBLING, ANY_BYTES, 1, ANY_RANKS},
};

static const char *const family_names[SELECT_FAMILIES] = {
    [SELECT_BARRIER] = "BARRIER",
    [SELECT_BCAST] = "BCAST",
    [SELECT_GATHER] = "GATHER",
    [SELECT_SCATTER] = "SCATTER",
    [SELECT_ALLGATHER] = "ALLGATHER",
    [SELECT_ALLTOALL] = "ALLTOALL",
    [SELECT_REDUCE] = "REDUCE",
    [SELECT_ALLREDUCE] = "ALLREDUCE",
    [SELECT_REDUCE_SCATTER] = "REDUCE_SCATTER",
    [SELECT_SCAN] = "SCAN",
};

static int first_rule[SELECT_FAMILIES + 1];
static int forced[SELECT_FAMILIES]; /* enum select_name, or -1 */

/* Can the largest publication of a step be made? A broadcast is cut into segments. */
static bool fits_exchange(enum select_name name, const struct schedule *s, MPI_Count n_bytes)
{
    MPI_Count n_blocks = name == SCATTER_SHARED || name == ALLTOALL_SHARED ? s->view.size : 1;
    return name == BCAST_SHARED || n_bytes <= shared_max_bytes() / n_blocks;
}

static bool fits(enum select_name name, const struct schedule *s, MPI_Count n_bytes, bool regular)
{
    unsigned needs = algorithms[name].needs;
    if (needs & NEEDS_SHARED)
        return s->view.size > 1 && shared_available(s) && fits_exchange(name, s, n_bytes);
    if ((needs & NEEDS_REGULAR) && !regular)
        return false;
    if ((needs & NEEDS_POF2) && (s->view.size & (s->view.size - 1)))
        return false;
    if (!(needs & NEEDS_NODES))
        return true;
    if (s->view.map || s->view.size < 3 || comm_is_inter(s->view.comm))
        return false;
    const struct coll_comm *c = coll_shape_of(s->view.comm);
    if (!c || c->n_nodes == 1 || c->n_nodes == s->view.size)
        return false;
    return !(needs & NEEDS_ORDER) || regular || c->in_order;
}

enum select_name select_algorithm(enum select_family family, const struct schedule *s, MPI_Count n_bytes,
                                  bool regular)
{
    if (forced[family] >= 0 && fits((enum select_name)forced[family], s, n_bytes, regular))
        return (enum select_name)forced[family];
    for (int i = first_rule[family]; i < first_rule[family + 1] - 1; i++) {
        const struct rule *rule = &rules[i];
        if (n_bytes <= rule->max_bytes && s->view.size >= rule->min_ranks &&
            s->view.size <= rule->max_ranks && fits(rule->name, s, n_bytes, regular))
            return rule->name;
    }
    return rules[first_rule[family + 1] - 1].name; /* the last rule of each family fits always */
}

static int read_forced(enum select_family family)
{
    char variable[64];
    snprintf(variable, sizeof variable, "MOTET_COLL_%s", family_names[family]);
    const char *value = getenv(variable);
    forced[family] = -1;
    if (!value || !*value)
        return MPI_SUCCESS;
    for (int i = 0; i < SELECT_NAMES; i++) {
        if (algorithms[i].family == family && strcmp(algorithms[i].name, value) == 0) {
            forced[family] = i;
            return MPI_SUCCESS;
        }
    }
    return err_set(MPI_ERR_OTHER, "%s=%s names no algorithm of this collective", variable, value);
}

int select_init(void)
{
    int n_rules = (int)(sizeof rules / sizeof rules[0]), at = 0;
    for (int family = 0; family < SELECT_FAMILIES; family++) {
        first_rule[family] = at;
        while (at < n_rules && algorithms[rules[at].name].family == (enum select_family)family)
            at++;
        int err = read_forced((enum select_family)family);
        if (err)
            return err;
    }
    first_rule[SELECT_FAMILIES] = n_rules;
    return MPI_SUCCESS;
}
