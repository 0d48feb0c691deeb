/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Distributed graph topologies (MPI-5.0 section 8.5.4): each process knows its own edges only.
 *
 * In the general form anybody may name any edge, so edges travel to both of their ends first (two
 * alltoallv). Where the order of ranks may change and there are several nodes, every process then
 * learns the whole graph once and they all compute the same order.
 */
#include "client/abi/semantics.h"
#include "client/coll/family/coll.h"
#include "client/object/err.h"
#include "client/topo/reorder.h"
#include "client/topo/topo.h"

#include <stdlib.h>
#include <string.h>

/* The edges of one place. `sources` and the rest point into what the caller owns. */
struct adjacency {
    int n_in, n_out;
    const int *in, *out, *in_weights, *out_weights;
};

static int no_memory(long long n_edges)
{
    return err_set(MPI_ERR_NO_MEM, "no memory for a graph of %lld edges", n_edges);
}

static void copy_ints(int *to, const int *from, int n)
{
    if (n > 0)
        memcpy(to, from, (size_t)n * sizeof(int));
}

static int new_dist_graph(const struct adjacency *a, bool weighted, struct topo **ret_topo)
{
    long long n = (long long)a->n_in + a->n_out;
    struct topo *topo = topo_new(MPI_DIST_GRAPH, weighted ? 2 * n : n);
    if (!topo)
        return no_memory(n);
    int *in = topo->ints, *out = in + a->n_in, *in_weights = out + a->n_out,
        *out_weights = in_weights + a->n_in;
    copy_ints(in, a->in, a->n_in);
    copy_ints(out, a->out, a->n_out);
    if (weighted) {
        copy_ints(in_weights, a->in_weights, a->n_in);
        copy_ints(out_weights, a->out_weights, a->n_out);
        topo->in_weights = in_weights;
        topo->out_weights = out_weights;
    }
    topo->n_in = a->n_in;
    topo->n_out = a->n_out;
    topo->in = in;
    topo->out = out;
    topo->weighted = weighted;
    *ret_topo = topo;
    return MPI_SUCCESS;
}

/* ---- the order of ranks ---- */

/* A graph of more ints than this stays in its order: everybody would have to hold all of it. 64
 * MiB. */
#define MAX_GATHERED (16 << 20)

/* The whole graph as every process gets it: for place i, edges from first[i] on, its in-edges
 * before its out-edges. */
struct whole {
    int *first;   /* [size + 1] */
    int *n_in;    /* [size] */
    int *edges;   /* [first[size]] */
    int *weights; /* the same; NULL: unweighted */
};

static void free_whole(struct whole *w)
{
    free(w->first);
    free(w->n_in);
    free(w->edges);
    free(w->weights);
}

static int gather_row(struct schedule *s, const int *row, int n, int *rows, const struct whole *w,
                      const int *counts)
{
    struct blocks all = {.buf = rows,
                         .type = datatype_predefined(MPI_INT),
                         .counts = intvec_of_int(counts),
                         .displs = intvec_of_int(w->first)};
    coll_allgather(s, buffer_of(row, n, all.type), &all);
    return s->err;
}

/* Fills *ret_whole; its edges stay NULL for a graph that is too large. */
static int gather_graph(struct comm *comm, const struct adjacency *a, bool weighted,
                        struct whole *w)
{
    size_t size = (size_t)comm->size;
    int *degrees = malloc(2 * size * sizeof(int)), *counts = malloc(size * sizeof(int));
    int n = a->n_in + a->n_out, mine[2] = {a->n_in, a->n_out};
    int *row = malloc(((size_t)n + 1) * sizeof(int));
    int err = MPI_SUCCESS;
    *w = (struct whole){.first = malloc((size + 1) * sizeof(int)),
                        .n_in = malloc(size * sizeof(int))};
    if (!degrees || !counts || !row || !w->first || !w->n_in) {
        err = no_memory(n);
        goto out;
    }
    struct schedule s;
    struct blocks pairs = {.buf = degrees, .type = datatype_predefined(MPI_INT), .count = 2};
    schedule_begin(&s, comm, coll_next_tag(comm));
    coll_allgather(&s, buffer_of(mine, 2, pairs.type), &pairs);
    long long total = 0;
    for (size_t i = 0; i < size; i++) {
        w->first[i] = (int)(total <= MAX_GATHERED ? total : 0);
        w->n_in[i] = degrees[2 * i];
        counts[i] = degrees[2 * i] + degrees[2 * i + 1];
        total += counts[i];
    }
    w->first[size] = (int)(total <= MAX_GATHERED ? total : 0);
    if (!s.err && total <= MAX_GATHERED) {
        w->edges = malloc(((size_t)total + 1) * sizeof(int));
        w->weights = weighted ? malloc(((size_t)total + 1) * sizeof(int)) : NULL;
        if (!w->edges || (weighted && !w->weights)) {
            schedule_end(&s);
            err = no_memory(total);
            goto out;
        }
        copy_ints(row, a->in, a->n_in);
        copy_ints(row + a->n_in, a->out, a->n_out);
        gather_row(&s, row, n, w->edges, w, counts);
        if (weighted) {
            copy_ints(row, a->in_weights, a->n_in);
            copy_ints(row + a->n_in, a->out_weights, a->n_out);
            gather_row(&s, row, n, w->weights, w, counts);
        }
    }
    err = schedule_end(&s);
out:
    free(degrees);
    free(counts);
    free(row);
    return err;
}

/* Gathers the graph and finds an order. *ret_members is NULL when ranks keep theirs; otherwise *a
 * becomes what belongs to this process's new place, in memory of *w. */
static int order(struct comm *comm, struct adjacency *a, bool weighted, struct whole *w,
                 int **ret_members)
{
    bool several;
    int *nodes = topo_nodes(comm, comm->size, &several);
    *ret_members = NULL;
    if (!nodes || !several) {
        free(nodes);
        return MPI_SUCCESS;
    }
    int err = gather_graph(comm, a, weighted, w);
    int *members = malloc((size_t)comm->size * sizeof(int));
    if (!err && members && w->edges &&
        reorder_graph(&(struct reorder_graph){comm->size, w->first, w->edges, w->weights}, nodes,
                      members)) {
        int place = topo_place(members, comm->size, comm->rank), first = w->first[place];
        a->n_in = w->n_in[place];
        a->n_out = w->first[place + 1] - first - a->n_in;
        a->in = w->edges + first;
        a->out = a->in + a->n_in;
        a->in_weights = weighted ? w->weights + first : NULL;
        a->out_weights = weighted ? a->in_weights + a->n_in : NULL;
        *ret_members = members;
        members = NULL;
    }
    free(members);
    free(nodes);
    return err;
}

static int create(struct comm *comm, struct adjacency *a, bool weighted, int reorder,
                  struct comm **ret_comm)
{
    struct whole w = {NULL, NULL, NULL, NULL};
    struct topo *topo = NULL;
    int *members = NULL;
    int err = reorder ? order(comm, a, weighted, &w, &members) : MPI_SUCCESS;
    if (!err)
        err = new_dist_graph(a, weighted, &topo);
    if (!err)
        err = topo_make_comm(comm, comm->size, members, topo, ret_comm);
    free(members);
    free_whole(&w);
    return err;
}

/* ---- the adjacent form ---- */

static int check_ranks(const struct comm *comm, const char *argument, int n, const int *ranks)
{
    if (n > 0 && !ranks)
        return err_set(MPI_ERR_ARG, "%s is a null pointer", argument);
    for (int i = 0; i < n; i++)
        if (ranks[i] < 0 || ranks[i] >= comm->size)
            return err_set(MPI_ERR_RANK, "%s[%d] is %d, not in 0..%d", argument, i, ranks[i],
                           comm->size - 1);
    return MPI_SUCCESS;
}

static int check_weights(const char *argument, int n, const int *weights)
{
    if (weights == MPI_UNWEIGHTED || (weights == MPI_WEIGHTS_EMPTY && n == 0))
        return MPI_SUCCESS;
    if (weights == MPI_WEIGHTS_EMPTY || (n > 0 && !weights))
        return err_set(MPI_ERR_ARG, "%s is %s, but there are %d edges", argument,
                       weights ? "MPI_WEIGHTS_EMPTY" : "a null pointer", n);
    for (int i = 0; i < n; i++)
        if (weights[i] < 0)
            return err_set(MPI_ERR_ARG, "%s[%d] is %d, but must not be negative", argument, i,
                           weights[i]);
    return MPI_SUCCESS;
}

int mpi_dist_graph_create_adjacent(struct comm *comm_old, int indegree, const int sources[],
                                   const int *sourceweights, int outdegree,
                                   const int destinations[], const int *destweights,
                                   struct info *info, int reorder,
                                   struct comm **ret_comm_dist_graph)
{
    (void)info; /* no hints are known for topologies */
    bool weighted = sourceweights != MPI_UNWEIGHTED;
    int err = topo_check_intra(comm_old);
    if (!err)
        err = check_ranks(comm_old, "sources", indegree, sources);
    if (!err)
        err = check_ranks(comm_old, "destinations", outdegree, destinations);
    if (!err)
        err = check_weights("sourceweights", indegree, sourceweights);
    if (!err)
        err = check_weights("destweights", outdegree, destweights);
    if (!err && weighted != (destweights != MPI_UNWEIGHTED))
        err = err_set(MPI_ERR_ARG, "only one of sourceweights and destweights is MPI_UNWEIGHTED");
    if (err)
        return err;
    struct adjacency a = {indegree, outdegree, sources, destinations, sourceweights, destweights};
    return create(comm_old, &a, weighted, reorder, ret_comm_dist_graph);
}

/* ---- the general form ---- */

/* An edge as it travels to one of its ends: the other end and the weight. */
struct half {
    int peer, weight;
};

/* What one process says: n edges from sources[i] to degrees[i] destinations each. */
struct statement {
    int n;
    const int *sources, *degrees, *destinations, *weights; /* weights: NULL for unweighted */
    long long n_edges;
};

/* Sends every edge to its source (to_source) or its destination. The result is malloced: by rank
 * that named the edge, and then in the order in which it did, so that both ends see parallel edges
 * in one order. */
static int deliver(struct comm *comm, const struct statement *st, bool to_source,
                   struct half **ret_halves, int *ret_n)
{
    size_t size = (size_t)comm->size;
    MPI_Count *memory = calloc(4 * size + 1, sizeof(MPI_Count));
    struct half *out = malloc(((size_t)st->n_edges + 1) * sizeof *out), *in = NULL;
    if (!memory || !out) {
        free(memory);
        free(out);
        return no_memory(st->n_edges);
    }
    MPI_Count *n_out = memory, *at_out = memory + size, *n_in = memory + 2 * size,
              *at_in = memory + 3 * size;
    /* Counts and displacements are in ints: two for an edge. */
    for (int i = 0, k = 0; i < st->n; i++)
        for (int j = 0; j < st->degrees[i]; j++, k++)
            n_out[to_source ? st->sources[i] : st->destinations[k]] += 2;
    for (size_t r = 1; r < size; r++)
        at_out[r] = at_out[r - 1] + n_out[r - 1];
    for (int i = 0, k = 0; i < st->n; i++) {
        for (int j = 0; j < st->degrees[i]; j++, k++) {
            int source = st->sources[i], dest = st->destinations[k];
            MPI_Count *at = &at_out[to_source ? source : dest];
            out[*at / 2] =
                (struct half){to_source ? dest : source, st->weights ? st->weights[k] : 1};
            *at += 2;
        }
    }
    for (size_t r = 0; r < size; r++)
        at_out[r] -= n_out[r];

    struct schedule s;
    struct blocks send = {.buf = n_out, .type = datatype_predefined(MPI_COUNT), .count = 1};
    struct blocks recv = {.buf = n_in, .type = send.type, .count = 1};
    schedule_begin(&s, comm, coll_next_tag(comm));
    coll_alltoall(&s, &send, &recv);
    MPI_Count total = 0;
    for (size_t r = 0; r < size; r++) {
        at_in[r] = total;
        total += n_in[r];
    }
    in = malloc((size_t)(total / 2 + 1) * sizeof *in);
    if (!in) {
        s.broken = true;
        s.err = no_memory(total / 2);
    }
    struct datatype *int_type = datatype_predefined(MPI_INT);
    send = (struct blocks){.buf = out,
                           .type = int_type,
                           .counts = intvec_of_count(n_out),
                           .displs = intvec_of_count(at_out)};
    recv = (struct blocks){.buf = in,
                           .type = int_type,
                           .counts = intvec_of_count(n_in),
                           .displs = intvec_of_count(at_in)};
    coll_alltoall(&s, &send, &recv);
    int err = schedule_end(&s);
    free(memory);
    free(out);
    if (err) {
        free(in);
        return err;
    }
    *ret_halves = in;
    *ret_n = (int)(total / 2);
    return MPI_SUCCESS;
}

/* Splits halves into the two arrays of an adjacency, in new memory. */
static int *split(const struct half *halves, int n)
{
    int *ints = malloc((2 * (size_t)n + 1) * sizeof(int));
    for (int i = 0; ints && i < n; i++) {
        ints[i] = halves[i].peer;
        ints[n + i] = halves[i].weight;
    }
    return ints;
}

static int check_statement(const struct comm *comm, struct statement *st)
{
    int err = check_ranks(comm, "sources", st->n, st->sources);
    if (!err && st->n > 0 && !st->degrees)
        err = err_set(MPI_ERR_ARG, "degrees is a null pointer");
    for (int i = 0; !err && i < st->n; i++) {
        if (st->degrees[i] < 0)
            err = err_set(MPI_ERR_ARG, "degrees[%d] is %d, but must not be negative", i,
                          st->degrees[i]);
        st->n_edges += st->degrees[i];
    }
    if (!err && st->n_edges > INT32_MAX)
        err = err_set(MPI_ERR_ARG, "one process names %lld edges", st->n_edges);
    if (!err)
        err = check_ranks(comm, "destinations", (int)st->n_edges, st->destinations);
    return err ? err : check_weights("weights", (int)st->n_edges, st->weights);
}

int mpi_dist_graph_create(struct comm *comm_old, int n, const int sources[], const int degrees[],
                          const int destinations[], const int *weights, struct info *info,
                          int reorder, struct comm **ret_comm_dist_graph)
{
    (void)info; /* no hints are known for topologies */
    bool weighted = weights != MPI_UNWEIGHTED;
    struct statement st = {n, sources, degrees, destinations, weights, 0};
    int err = topo_check_intra(comm_old);
    if (!err)
        err = check_statement(comm_old, &st);
    if (err)
        return err;
    if (!weighted || st.n_edges == 0)
        st.weights = NULL;
    struct half *in_halves = NULL, *out_halves = NULL;
    struct adjacency a = {0, 0, NULL, NULL, NULL, NULL};
    err = deliver(comm_old, &st, true, &out_halves, &a.n_out);
    if (!err)
        err = deliver(comm_old, &st, false, &in_halves, &a.n_in);
    int *in = err ? NULL : split(in_halves, a.n_in), *out = err ? NULL : split(out_halves, a.n_out);
    if (!err && (!in || !out))
        err = no_memory((long long)a.n_in + a.n_out);
    if (!err) {
        a = (struct adjacency){a.n_in, a.n_out, in, out, in + a.n_in, out + a.n_out};
        err = create(comm_old, &a, weighted, reorder, ret_comm_dist_graph);
    }
    free(in);
    free(out);
    free(in_halves);
    free(out_halves);
    return err;
}

/* ---- inquiry ---- */

int mpi_dist_graph_neighbors_count(struct comm *comm, int *indegree, int *outdegree, int *weighted)
{
    int err = topo_check_kind(comm, MPI_DIST_GRAPH);
    if (err)
        return err;
    *indegree = comm->topo->n_in;
    *outdegree = comm->topo->n_out;
    *weighted = comm->topo->weighted;
    return MPI_SUCCESS;
}

/* The first part of the list where there is no room for all of it. */
static void give(const int *ranks, const int *weights, int n, int room, int *ret_ranks,
                 int *ret_weights)
{
    n = n < room ? n : room;
    copy_ints(ret_ranks, ranks, n);
    if (weights && ret_weights != MPI_UNWEIGHTED && ret_weights != MPI_WEIGHTS_EMPTY && ret_weights)
        copy_ints(ret_weights, weights, n);
}

int mpi_dist_graph_neighbors(struct comm *comm, int maxindegree, int sources[], int *sourceweights,
                             int maxoutdegree, int destinations[], int *destweights)
{
    int err = topo_check_kind(comm, MPI_DIST_GRAPH);
    if (err)
        return err;
    const struct topo *topo = comm->topo;
    give(topo->in, topo->in_weights, topo->n_in, maxindegree, sources, sourceweights);
    give(topo->out, topo->out_weights, topo->n_out, maxoutdegree, destinations, destweights);
    return MPI_SUCCESS;
}
