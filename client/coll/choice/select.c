/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/choice/select.h"

#include "client/client.h"
#include "client/coll/choice/table.h"
#include "client/coll/family/coll.h"
#include "client/coll/node/node.h"
#include "client/coll/topology/node_groups.h"
#include "client/object/err.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What an algorithm cannot do without. */
enum {
    NEEDS_NOTHING = 0,
    NEEDS_REGULAR = 1, /* a commuting operation, blocks of one size */
    NEEDS_POF2 = 2,
    NEEDS_NODES = 4, /* several nodes, one of them with several ranks, and the whole communicator */
    NEEDS_SHARED = 8,    /* all ranks on this node, and a slot of its cells */
    NEEDS_NETWORKS = 16, /* several networks, more than two ranks, and the whole communicator */
};

static const struct {
    const char *name;
    enum select_family family;
    unsigned needs;
} algorithms[SELECT_NAMES] = {
    [BARRIER_DISSEMINATION] = {"dissemination", SELECT_BARRIER, NEEDS_NOTHING},
    [BARRIER_NODES] = {"nodes", SELECT_BARRIER, NEEDS_NODES},
    [BARRIER_NETWORKS] = {"networks", SELECT_BARRIER, NEEDS_NETWORKS},
    [BARRIER_SHARED] = {"shared", SELECT_BARRIER, NEEDS_SHARED},
    [BCAST_BINOMIAL] = {"binomial", SELECT_BCAST, NEEDS_NOTHING},
    [BCAST_SCATTER_ALLGATHER] = {"scatter_allgather", SELECT_BCAST, NEEDS_NOTHING},
    [BCAST_PIPELINE] = {"pipeline", SELECT_BCAST, NEEDS_NOTHING},
    [BCAST_NODES] = {"nodes", SELECT_BCAST, NEEDS_NODES},
    [BCAST_NETWORKS] = {"networks", SELECT_BCAST, NEEDS_NETWORKS},
    [BCAST_SHARED] = {"shared", SELECT_BCAST, NEEDS_SHARED},
    [GATHER_BINOMIAL] = {"binomial", SELECT_GATHER, NEEDS_REGULAR},
    [GATHER_LINEAR] = {"linear", SELECT_GATHER, NEEDS_NOTHING},
    [GATHER_NODES] = {"nodes", SELECT_GATHER, NEEDS_NODES | NEEDS_REGULAR},
    [GATHER_NETWORKS] = {"networks", SELECT_GATHER, NEEDS_NETWORKS | NEEDS_REGULAR},
    [GATHER_SHARED] = {"shared", SELECT_GATHER, NEEDS_SHARED},
    [SCATTER_BINOMIAL] = {"binomial", SELECT_SCATTER, NEEDS_REGULAR},
    [SCATTER_LINEAR] = {"linear", SELECT_SCATTER, NEEDS_NOTHING},
    [SCATTER_NODES] = {"nodes", SELECT_SCATTER, NEEDS_NODES | NEEDS_REGULAR},
    [SCATTER_NETWORKS] = {"networks", SELECT_SCATTER, NEEDS_NETWORKS | NEEDS_REGULAR},
    [SCATTER_SHARED] = {"shared", SELECT_SCATTER, NEEDS_SHARED},
    [ALLGATHER_RECURSIVE_DOUBLING] = {"recursive_doubling", SELECT_ALLGATHER,
                                      NEEDS_REGULAR | NEEDS_POF2},
    [ALLGATHER_BRUCK] = {"bruck", SELECT_ALLGATHER, NEEDS_NOTHING},
    [ALLGATHER_RING] = {"ring", SELECT_ALLGATHER, NEEDS_NOTHING},
    [ALLGATHER_NODES] = {"nodes", SELECT_ALLGATHER, NEEDS_NODES},
    [ALLGATHER_NETWORKS] = {"networks", SELECT_ALLGATHER, NEEDS_NETWORKS},
    [ALLGATHER_SHARED] = {"shared", SELECT_ALLGATHER, NEEDS_SHARED},
    [ALLTOALL_BRUCK] = {"bruck", SELECT_ALLTOALL, NEEDS_REGULAR},
    [ALLTOALL_LINEAR] = {"linear", SELECT_ALLTOALL, NEEDS_NOTHING},
    [ALLTOALL_PAIRWISE] = {"pairwise", SELECT_ALLTOALL, NEEDS_NOTHING},
    [ALLTOALL_SHARED] = {"shared", SELECT_ALLTOALL, NEEDS_SHARED},
    [REDUCE_BINOMIAL] = {"binomial", SELECT_REDUCE, NEEDS_NOTHING},
    [REDUCE_RABENSEIFNER] = {"rabenseifner", SELECT_REDUCE, NEEDS_NOTHING},
    [REDUCE_NODES] = {"nodes", SELECT_REDUCE, NEEDS_NODES},
    [REDUCE_NETWORKS] = {"networks", SELECT_REDUCE, NEEDS_NETWORKS},
    [REDUCE_SHARED] = {"shared", SELECT_REDUCE, NEEDS_SHARED},
    [ALLREDUCE_RECURSIVE_DOUBLING] = {"recursive_doubling", SELECT_ALLREDUCE, NEEDS_NOTHING},
    [ALLREDUCE_RABENSEIFNER] = {"rabenseifner", SELECT_ALLREDUCE, NEEDS_NOTHING},
    [ALLREDUCE_RING] = {"ring", SELECT_ALLREDUCE, NEEDS_REGULAR},
    [ALLREDUCE_NODES] = {"nodes", SELECT_ALLREDUCE, NEEDS_NODES},
    [ALLREDUCE_NETWORKS] = {"networks", SELECT_ALLREDUCE, NEEDS_NETWORKS},
    [ALLREDUCE_SHARED] = {"shared", SELECT_ALLREDUCE, NEEDS_SHARED},
    [REDUCE_SCATTER_HALVING] = {"halving", SELECT_REDUCE_SCATTER, NEEDS_REGULAR},
    [REDUCE_SCATTER_PAIRWISE] = {"pairwise", SELECT_REDUCE_SCATTER, NEEDS_REGULAR},
    [REDUCE_SCATTER_REDUCE_SCATTER] = {"reduce_scatter", SELECT_REDUCE_SCATTER, NEEDS_NOTHING},
    [REDUCE_SCATTER_NODES] = {"nodes", SELECT_REDUCE_SCATTER, NEEDS_NODES | NEEDS_REGULAR},
    [REDUCE_SCATTER_NETWORKS] = {"networks", SELECT_REDUCE_SCATTER, NEEDS_NETWORKS | NEEDS_REGULAR},
    [REDUCE_SCATTER_SHARED] = {"shared", SELECT_REDUCE_SCATTER, NEEDS_SHARED},
    [SCAN_DOUBLING] = {"doubling", SELECT_SCAN, NEEDS_NOTHING},
    [SCAN_NODES] = {"nodes", SELECT_SCAN, NEEDS_NODES},
    [SCAN_NETWORKS] = {"networks", SELECT_SCAN, NEEDS_NETWORKS},
    [SCAN_SHARED] = {"shared", SELECT_SCAN, NEEDS_SHARED},
};

#define ANY_BYTES INT64_MAX
#define ANY_RANKS INT32_MAX

/* The first rule that fits decides. The rules within a node are what bench/tune measured with 2, 4
 * and 8 ranks on two cores; the borders are not sensitive; they come first, for there every
 * nanosecond counts. A border between networks, or nodes, is worth more than any round, hence their
 * rules come next; messages between nodes are bound by rounds when short and by bytes when long, as
 * on a node but ten times slower in both. */
static const struct select_rule rules[] = {
    {BARRIER_SHARED, ANY_BYTES, 2, ANY_RANKS, SELECT_ANY_SHAPE},
    {BARRIER_NETWORKS, ANY_BYTES, 3, ANY_RANKS, SELECT_SEVERAL_NETWORKS},
    {BARRIER_NODES, ANY_BYTES, 2, ANY_RANKS, SELECT_ANY_SHAPE},
    {BARRIER_DISSEMINATION, ANY_BYTES, 1, ANY_RANKS, SELECT_ANY_SHAPE},

    {BCAST_SHARED, 48 << 10, 2, 2, SELECT_ANY_SHAPE},
    {BCAST_SHARED, 2 << 20, 3, ANY_RANKS, SELECT_ANY_SHAPE},
    {BCAST_NETWORKS, ANY_BYTES, 3, ANY_RANKS, SELECT_SEVERAL_NETWORKS},
    {BCAST_NODES, ANY_BYTES, 2, ANY_RANKS, SELECT_ANY_SHAPE},
    {BCAST_BINOMIAL, ANY_BYTES, 1, 2, SELECT_ANY_SHAPE},
    {BCAST_BINOMIAL, 32 << 10, 3, ANY_RANKS, SELECT_ANY_SHAPE},
    {BCAST_BINOMIAL, 128 << 10, 3, 4, SELECT_ANY_SHAPE},
    {BCAST_PIPELINE, ANY_BYTES, 3, 8, SELECT_ANY_SHAPE},
    {BCAST_SCATTER_ALLGATHER, ANY_BYTES, 9, ANY_RANKS, SELECT_ANY_SHAPE},

    {GATHER_SHARED, 32 << 10, 2, ANY_RANKS, SELECT_ANY_SHAPE},
    {GATHER_NETWORKS, 16 << 10, 3, ANY_RANKS, SELECT_SEVERAL_NETWORKS},
    {GATHER_BINOMIAL, 1 << 10, 4, ANY_RANKS, SELECT_ANY_SHAPE},
    {GATHER_LINEAR, ANY_BYTES, 1, ANY_RANKS, SELECT_ANY_SHAPE},
    {SCATTER_SHARED, 32 << 10, 2, ANY_RANKS, SELECT_ANY_SHAPE},
    {SCATTER_NETWORKS, 16 << 10, 3, ANY_RANKS, SELECT_SEVERAL_NETWORKS},
    {SCATTER_BINOMIAL, 1 << 10, 4, ANY_RANKS, SELECT_ANY_SHAPE},
    {SCATTER_LINEAR, ANY_BYTES, 1, ANY_RANKS, SELECT_ANY_SHAPE},

    {ALLGATHER_SHARED, 512 << 10, 2, ANY_RANKS, SELECT_ANY_SHAPE},
    {ALLGATHER_NETWORKS, ANY_BYTES, 3, ANY_RANKS, SELECT_SEVERAL_NETWORKS},
    {ALLGATHER_RECURSIVE_DOUBLING, 64 << 10, 2, ANY_RANKS, SELECT_ANY_SHAPE},
    {ALLGATHER_BRUCK, 32 << 10, 2, ANY_RANKS, SELECT_ANY_SHAPE},
    {ALLGATHER_RING, ANY_BYTES, 1, ANY_RANKS, SELECT_ANY_SHAPE},

    {ALLTOALL_SHARED, 8 << 10, 2, 2, SELECT_ANY_SHAPE},
    {ALLTOALL_SHARED, 32 << 10, 3, ANY_RANKS, SELECT_ANY_SHAPE},
    {ALLTOALL_LINEAR, 32 << 10, 1, ANY_RANKS,
     SELECT_SEVERAL_NETWORKS}, /* Bruck's rounds would cross borders again and again */
    {ALLTOALL_BRUCK, 256, 8, ANY_RANKS, SELECT_ANY_SHAPE},
    {ALLTOALL_LINEAR, 32 << 10, 1, ANY_RANKS, SELECT_ANY_SHAPE},
    {ALLTOALL_LINEAR, 128 << 10, 1, 16, SELECT_ONE_NODE},
    {ALLTOALL_PAIRWISE, ANY_BYTES, 1, ANY_RANKS, SELECT_ANY_SHAPE},

    {REDUCE_SHARED, 128 << 10, 2, ANY_RANKS, SELECT_ANY_SHAPE},
    {REDUCE_NETWORKS, ANY_BYTES, 3, ANY_RANKS, SELECT_SEVERAL_NETWORKS},
    {REDUCE_NODES, ANY_BYTES, 2, ANY_RANKS, SELECT_ANY_SHAPE},
    {REDUCE_BINOMIAL, 16 << 10, 1, ANY_RANKS, SELECT_ANY_SHAPE},
    {REDUCE_BINOMIAL, ANY_BYTES, 1, 2, SELECT_ANY_SHAPE},
    {REDUCE_RABENSEIFNER, ANY_BYTES, 3, ANY_RANKS, SELECT_ANY_SHAPE},

    {ALLREDUCE_SHARED, 16 << 10, 2, ANY_RANKS, SELECT_ANY_SHAPE},
    {ALLREDUCE_NETWORKS, ANY_BYTES, 3, ANY_RANKS, SELECT_SEVERAL_NETWORKS},
    {ALLREDUCE_NODES, ANY_BYTES, 2, ANY_RANKS, SELECT_ANY_SHAPE},
    {ALLREDUCE_RECURSIVE_DOUBLING, 8 << 10, 1, ANY_RANKS, SELECT_ANY_SHAPE},
    {ALLREDUCE_RING, ANY_BYTES, 2, 2, SELECT_ANY_SHAPE},
    {ALLREDUCE_RABENSEIFNER, 4 << 20, 2, ANY_RANKS, SELECT_ANY_SHAPE},
    {ALLREDUCE_RING, ANY_BYTES, 5, ANY_RANKS, SELECT_ANY_SHAPE},
    {ALLREDUCE_RABENSEIFNER, ANY_BYTES, 2, ANY_RANKS, SELECT_ANY_SHAPE},

    {REDUCE_SCATTER_SHARED, 32 << 10, 2, 2, SELECT_ANY_SHAPE},
    {REDUCE_SCATTER_SHARED, 128 << 10, 3, 5, SELECT_ANY_SHAPE},
    {REDUCE_SCATTER_SHARED, 512 << 10, 6, ANY_RANKS, SELECT_ANY_SHAPE},
    {REDUCE_SCATTER_NETWORKS, ANY_BYTES, 3, ANY_RANKS, SELECT_SEVERAL_NETWORKS},
    {REDUCE_SCATTER_HALVING, 256 << 10, 2, ANY_RANKS, SELECT_ANY_SHAPE},
    {REDUCE_SCATTER_PAIRWISE, ANY_BYTES, 2, ANY_RANKS, SELECT_ANY_SHAPE},
    {REDUCE_SCATTER_REDUCE_SCATTER, ANY_BYTES, 1, ANY_RANKS, SELECT_ANY_SHAPE},

    {SCAN_SHARED, 512 << 10, 2, ANY_RANKS, SELECT_ANY_SHAPE},
    {SCAN_NETWORKS, ANY_BYTES, 3, ANY_RANKS, SELECT_SEVERAL_NETWORKS},
    {SCAN_DOUBLING, ANY_BYTES, 1, ANY_RANKS, SELECT_ANY_SHAPE},
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

struct select_state {
    int first_rule[SELECT_FAMILIES + 1];
    struct table table;          /* rules of the file */
    int forced[SELECT_FAMILIES]; /* enum select_name, or -1 */
};
static struct select_state select_first;
static struct select_state *select_here = &select_first;
CLIENT_PART(select_here, select_first);

/* Bytes up to which the largest publication of a step can be made among so many ranks. A broadcast
 * is cut into segments. */
static MPI_Count most_of_cells(enum select_name name, int size)
{
    MPI_Count n_blocks = name == SCATTER_SHARED || name == ALLTOALL_SHARED ? size : 1;
    return name == BCAST_SHARED ? ANY_BYTES : shared_max_bytes() / n_blocks;
}

/* Is there something between the levels that an algorithm works on? */
static bool fits_levels(unsigned needs, const struct schedule *s)
{
    if (s->view.map || s->view.size < 3 || comm_is_inter(s->view.comm))
        return false;
    const struct coll_comm *c = coll_shape_of(s->view.comm);
    if (!c || c->n_nodes == 1)
        return false;
    return needs & NEEDS_NODES ? c->n_nodes < s->view.size : c->networks->n_groups > 1;
}

static bool fits(enum select_name name, const struct schedule *s, MPI_Count n_bytes, bool regular)
{
    unsigned needs = algorithms[name].needs;
    if (needs & NEEDS_SHARED)
        return s->view.size > 1 && shared_available(s) &&
               n_bytes <= most_of_cells(name, s->view.size);
    if ((needs & NEEDS_REGULAR) && !regular)
        return false;
    if ((needs & NEEDS_POF2) && (s->view.size & (s->view.size - 1)))
        return false;
    return !(needs & (NEEDS_NODES | NEEDS_NETWORKS)) || fits_levels(needs, s);
}

static enum select_shape shape_of(const struct schedule *s)
{
    const struct coll_comm *c = comm_is_inter(s->view.comm) ? NULL : coll_shape_of(s->view.comm);
    if (!c || c->n_nodes == 1 || s->view.map == c->members)
        return SELECT_ONE_NODE;
    return c->networks->n_groups > 1 && !s->view.map ? SELECT_SEVERAL_NETWORKS
                                                     : SELECT_SEVERAL_NODES;
}

/* The first of the rules that fits, or -1. */
static int first_fit(const struct select_rule *list, int n, const struct schedule *s,
                     MPI_Count n_bytes, bool regular)
{
    for (int i = 0; i < n; i++)
        if (n_bytes <= list[i].max_bytes && s->view.size >= list[i].min_ranks &&
            s->view.size <= list[i].max_ranks &&
            (list[i].shape == SELECT_ANY_SHAPE || list[i].shape == shape_of(s)) &&
            fits(list[i].name, s, n_bytes, regular))
            return (int)list[i].name;
    return -1;
}

/* Where the first rule of a family for so many ranks is one over the cells, short calls need not
 * read the rules. */
static void find_quick(struct coll_comm *c, int size)
{
    c->quick_known = true;
    for (int family = 0; family < SELECT_FAMILIES; family++) {
        const struct select_rule *r = &rules[select_here->first_rule[family]];
        while (size < r->min_ranks || size > r->max_ranks)
            r++;
        MPI_Count most = most_of_cells(r->name, size);
        bool is_quick = select_here->forced[family] < 0 && !select_here->table.n[family] &&
                        (algorithms[r->name].needs & NEEDS_SHARED);
        c->quick_name[family] = (uint8_t)r->name;
        c->quick_most[family] = !is_quick ? -1 : most < r->max_bytes ? most : r->max_bytes;
    }
}

enum select_name select_algorithm(enum select_family family, const struct schedule *s,
                                  MPI_Count n_bytes, bool regular)
{
    struct coll_comm *c = s->view.comm->coll;

    if (__builtin_expect(c != NULL, 1)) {
        if (__builtin_expect(!c->quick_known, 0))
            find_quick(c, s->view.comm->size);
        if (n_bytes <= c->quick_most[family] && !s->view.map && shared_available(s))
            return (enum select_name)c->quick_name[family];
    }
    if (select_here->forced[family] >= 0 &&
        fits((enum select_name)select_here->forced[family], s, n_bytes, regular))
        return (enum select_name)select_here->forced[family];
    int name = select_here->table.n[family]
                   ? first_fit(select_here->table.rules[family], select_here->table.n[family], s,
                               n_bytes, regular)
                   : -1;
    if (name < 0)
        name = first_fit(&rules[select_here->first_rule[family]],
                         select_here->first_rule[family + 1] - select_here->first_rule[family], s,
                         n_bytes, regular);
    /* The last rule of each family fits always. */
    return name >= 0 ? (enum select_name)name : rules[select_here->first_rule[family + 1] - 1].name;
}

int select_family_of(const char *name)
{
    for (int family = 0; family < SELECT_FAMILIES; family++)
        if (strcasecmp(family_names[family], name) == 0)
            return family;
    return -1;
}

int select_name_of(enum select_family family, const char *name)
{
    for (int i = 0; i < SELECT_NAMES; i++)
        if (algorithms[i].family == family && strcmp(algorithms[i].name, name) == 0)
            return i;
    return -1;
}

void select_list(enum select_family family, char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (int i = 0; i < SELECT_NAMES; i++)
        if (algorithms[i].family == family && at < size)
            at += (size_t)snprintf(out + at, size - at, "%s%s", at ? ", " : "", algorithms[i].name);
}

static int read_forced(enum select_family family)
{
    char variable[64];
    snprintf(variable, sizeof variable, "MOTET_COLL_%s", family_names[family]);
    const char *value = getenv(variable);
    select_here->forced[family] = -1;
    if (!value || !*value)
        return MPI_SUCCESS;
    select_here->forced[family] = select_name_of(family, value);
    if (select_here->forced[family] >= 0)
        return MPI_SUCCESS;
    char names[256];
    select_list(family, names, sizeof names);
    return err_set(MPI_ERR_OTHER, "%s=%s names no algorithm of this collective (%s)", variable,
                   value, names);
}

int select_init(void)
{
    int n_rules = (int)(sizeof rules / sizeof rules[0]), at = 0;
    for (int family = 0; family < SELECT_FAMILIES; family++) {
        select_here->first_rule[family] = at;
        while (at < n_rules && algorithms[rules[at].name].family == (enum select_family)family)
            at++;
        int err = read_forced((enum select_family)family);
        if (err)
            return err;
    }
    assert(at == n_rules); /* the rules of each family lie together, in the order of the families */
    select_here->first_rule[SELECT_FAMILIES] = n_rules;
    return table_load(&select_here->table);
}
