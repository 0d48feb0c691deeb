/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What collectives send over the borders between networks, counted by the fake (fake_networks.h):
 * every payload crosses each border once, in the direction in which it is wanted, for all roots, on
 * the world, on a communicator with its ranks in reverse, on one of every other rank, and between
 * two groups. Reductions that keep an order: a payload for each run of ranks on a side. Results are
 * the business of collectives.c and inter.c.
 *
 * Argument "tree": the networks are no ring, so that each border has two sides, and blocks may
 * cross only from where they are to where they are wanted. A last argument "flat": the numbers are
 * printed and not judged, for comparing with other algorithms.
 */
#include "fake_networks.h"

#include "client/process/job.h"

#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 700   /* bytes; odd enough to be told from sums of other sizes */
#define LONG  70000 /* for what travels in segments */

static MPI_Comm comm;
static int rank, size, n_failed;
static const char *comm_name;
static bool is_tree, judged = true;
static int *world; /* [size] world ranks */
static bool side[FAKE_MAX_NETWORKS][FAKE_MAX_NETWORKS]
                [FAKE_MAX_NETWORKS]; /* border a, b: network is on a's side */

/* Without the border between them, which networks does a still reach? */
static void find_sides(void)
{
    int n = fake_networks_n();
    for (int a = 0; a < n; a++) {
        for (int b = 0; b < n; b++) {
            if (fake_networks_distance(a, b) != 1)
                continue;
            /* On a tree: those that are nearer to a than to b. */
            for (int k = 0; k < n; k++)
                side[a][b][k] = fake_networks_distance(k, a) < fake_networks_distance(k, b);
        }
    }
}

/* All networks of the rank's node are on a's side. */
static bool is_behind(int a, int b, int r)
{
    for (int k = 0; k < fake_networks_n(); k++)
        if (fake_networks_has(k, job_node_of(world[r])) && !side[a][b][k])
            return false;
    return true;
}

/* Runs of neighbouring ranks behind a's side of the border, or not behind b's (with those on the
 * gateways between). */
static long n_runs(int a, int b, bool with_gateways)
{
    long n = 0;
    bool before = false;
    for (int r = 0; r < size; r++) {
        bool mine = with_gateways ? !is_behind(b, a, r) : is_behind(a, b, r);
        n += mine && !before;
        before = mine;
    }
    return n;
}

static long most_runs(int a, int b)
{
    long most = n_runs(a, b, false), other = n_runs(a, b, true);
    return other > most ? other : most;
}

static int n_behind(int a, int b)
{
    int n = 0;
    for (int r = 0; r < size; r++)
        n += is_behind(a, b, r);
    return n;
}

/* What a collective may send over the border from a to b. */
enum limit {
    ONE_PAYLOAD,  /* n bytes */
    NOTHING_BACK, /* a payload that starts at the root: none towards it */
    NOTHING_OUT,  /* a payload that ends at the root: only towards it */
    OF_SENDERS,   /* the block of every rank on a's side */
    TO_ROOT,      /* the same, only towards the root */
    OF_RECEIVERS, /* the block for every rank on b's side */
    FROM_ROOT,    /* the same, only away from the root */
    OF_PAIRS,     /* a block for every pair of ranks on different sides */
    OF_RUNS,      /* a payload for each run of ranks on either side */
    RUNS_TO_ROOT, /* a payload for each run of ranks on a's side, only towards the root */
};

static bool by_parity;

static int group_of(int r)
{
    return by_parity ? r % 2 : r >= (size + 2) / 3;
}

/* Is there a network with none of the ranks of a group (-1: of all), other than the root's own? A
 * payload may then have to turn round behind it, and so cross a border also away from where it is
 * wanted most, or on its way up and on its way down. */
static bool has_gaps(int group, int root)
{
    for (int k = 0; k < fake_networks_n(); k++) {
        bool found = root >= 0 && fake_networks_has(k, job_node_of(world[root]));
        for (int r = 0; r < size; r++)
            found = found || ((group < 0 || group_of(r) == group) &&
                              fake_networks_has(k, job_node_of(world[r])));
        if (!found)
            return true;
    }
    return false;
}

static long payload = BLOCK; /* of the operation that is tested */

static long limit_of(enum limit limit, int a, int b, int root)
{
    if (!is_tree)
        return limit >= OF_PAIRS    ? payload * size * size
               : limit < OF_SENDERS ? payload
                                    : payload * size;
    switch (limit) {
    case ONE_PAYLOAD:
        return payload * (1 + has_gaps(-1, -1));
    case NOTHING_BACK:
        return is_behind(b, a, root) && !has_gaps(-1, root) ? 0 : payload;
    case NOTHING_OUT:
        return is_behind(a, b, root) && !has_gaps(-1, root) ? 0 : payload;
    case OF_SENDERS:
        return has_gaps(-1, -1) ? 2 * payload * size : payload * n_behind(a, b);
    case TO_ROOT:
        return is_behind(a, b, root) ? 0 : payload * n_behind(a, b);
    case OF_RECEIVERS:
        return has_gaps(-1, -1) ? 2 * payload * size : payload * n_behind(b, a);
    case FROM_ROOT:
        return is_behind(b, a, root) ? 0 : payload * n_behind(b, a);
    case OF_PAIRS:
        return payload * n_behind(a, b) * n_behind(b, a);
    case OF_RUNS:
        return payload * (1 + has_gaps(-1, -1)) *
               (most_runs(a, b) > most_runs(b, a) ? most_runs(a, b) : most_runs(b, a));
    case RUNS_TO_ROOT:
        return is_behind(a, b, root) && !has_gaps(-1, root)
                   ? 0
                   : payload * (has_gaps(-1, root) ? size : most_runs(a, b));
    }
    return 0;
}

static void begin(void)
{
    MPI_Barrier(comm);
    if (rank == 0)
        fake_networks_reset();
    MPI_Barrier(comm);
}

static void judge(const char *what, int root, long (*most_of)(int a, int b, const void *arg),
                  const void *arg)
{
    for (int a = 0; a < fake_networks_n(); a++) {
        for (int b = 0; b < fake_networks_n(); b++) {
            long got = fake_networks_bytes(a, b), most = most_of(a, b, arg);
            if (!judged && got)
                printf("%s, %s, root %d: %ld blocks from network %d to %d, expected at most %ld\n",
                       what, comm_name, root, got / payload, a, b, most / payload);
            if (judged && got > most && n_failed++ < 5)
                printf("%s, %s, root %d: %ld bytes cross the border from network %d to %d, "
                       "expected at most %ld\n",
                       what, comm_name, root, got, a, b, most);
        }
    }
}

struct rooted_limit {
    enum limit limit;
    int root;
};

static long most_of_rooted(int a, int b, const void *arg)
{
    const struct rooted_limit *l = arg;
    return limit_of(l->limit, a, b, l->root);
}

static void end(const char *what, enum limit limit, int root)
{
    MPI_Barrier(comm);
    if (rank == 0)
        judge(what, root, most_of_rooted, &(struct rooted_limit){limit, root});
    MPI_Barrier(comm);
}

/* An empty operation: messages count, as empty as they are. */
static void test_barrier(void)
{
    begin(); /* what two barriers of its own left behind may come late: so count several */
    for (int i = 0; i < 10; i++)
        MPI_Barrier(comm);
    for (int a = 0; rank == 0 && judged && a < fake_networks_n(); a++)
        for (int b = 0; b < fake_networks_n(); b++)
            if (fake_networks_messages(a, b) > 13 * (1 + has_gaps(-1, -1)) && n_failed++ < 5)
                printf("barrier, %s: %ld messages in 10 from network %d to %d\n", comm_name,
                       fake_networks_messages(a, b), a, b);
    MPI_Barrier(comm);
}

static void test_rooted(char *one, char *all)
{
    for (int root = 0; root < size; root++) {
        begin();
        MPI_Bcast(one, BLOCK, MPI_BYTE, root, comm);
        end("bcast", NOTHING_BACK, root);
        begin();
        MPI_Reduce(rank == root ? MPI_IN_PLACE : one, one, BLOCK, MPI_BYTE, MPI_BOR, root, comm);
        end("reduce", NOTHING_OUT, root);
        begin();
        MPI_Gather(one, BLOCK, MPI_BYTE, all, BLOCK, MPI_BYTE, root, comm);
        end("gather", TO_ROOT, root);
        begin();
        MPI_Scatter(all, BLOCK, MPI_BYTE, one, BLOCK, MPI_BYTE, root, comm);
        end("scatter", FROM_ROOT, root);
        MPI_Request request;
        begin();
        MPI_Ibcast(one, BLOCK, MPI_BYTE, root, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        end("ibcast", NOTHING_BACK, root);
    }
}

/* Payloads that travel in segments: still once over each border. */
static void test_long(void)
{
    char *in = calloc(1, LONG), *out = calloc(1, LONG);
    payload = LONG;
    for (int root = 0; root < size; root++) {
        begin();
        MPI_Bcast(in, LONG, MPI_BYTE, root, comm);
        end("long bcast", NOTHING_BACK, root);
        begin();
        MPI_Reduce(in, out, LONG, MPI_BYTE, MPI_BOR, root, comm);
        end("long reduce", NOTHING_OUT, root);
    }
    begin();
    MPI_Allreduce(in, out, LONG, MPI_BYTE, MPI_BOR, comm);
    end("long allreduce", ONE_PAYLOAD, 0);
    char *blocks = calloc((size_t)size, LONG);
    begin();
    MPI_Allgather(in, LONG, MPI_BYTE, blocks, LONG, MPI_BYTE, comm);
    end("long allgather", OF_SENDERS, 0);
    begin();
    MPI_Reduce_scatter_block(blocks, out, LONG, MPI_BYTE, MPI_BOR, comm);
    end("long reduce_scatter_block", OF_RECEIVERS, 0);
    payload = BLOCK;
    free(blocks);
    free(in);
    free(out);
}

static void test_unrooted(char *one, char *all, char *other)
{
    int *counts = malloc(2 * (size_t)size * sizeof(int)), *displs = counts + size;
    for (int i = 0; i < size; i++) {
        counts[i] = BLOCK - i;
        displs[i] = BLOCK * i;
    }
    begin();
    MPI_Allreduce(MPI_IN_PLACE, one, BLOCK, MPI_BYTE, MPI_BOR, comm);
    end("allreduce", ONE_PAYLOAD, 0);
    begin();
    MPI_Allgather(one, BLOCK, MPI_BYTE, all, BLOCK, MPI_BYTE, comm);
    end("allgather", OF_SENDERS, 0);
    begin();
    MPI_Allgatherv(one, counts[rank], MPI_BYTE, all, counts, displs, MPI_BYTE, comm);
    end("allgatherv", OF_SENDERS, 0);
    begin();
    MPI_Reduce_scatter_block(all, one, BLOCK, MPI_BYTE, MPI_BOR, comm);
    end("reduce_scatter_block", OF_RECEIVERS, 0);
    begin();
    MPI_Reduce_scatter(all, one, counts, MPI_BYTE, MPI_BOR, comm);
    end("reduce_scatter", OF_RECEIVERS, 0);
    begin();
    MPI_Alltoall(all, BLOCK, MPI_BYTE, other, BLOCK, MPI_BYTE, comm);
    end("alltoall", OF_PAIRS, 0);
    for (int i = 0; i < size; i++)
        counts[i] = BLOCK - (rank + i) % 7;
    begin();
    MPI_Alltoallv(all, counts, displs, MPI_BYTE, other, counts, displs, MPI_BYTE, comm);
    end("alltoallv", OF_PAIRS, 0);
    MPI_Request request;
    begin();
    MPI_Iallreduce(MPI_IN_PLACE, one, BLOCK, MPI_BYTE, MPI_BOR, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    end("iallreduce", ONE_PAYLOAD, 0);
    MPI_Allreduce_init(MPI_IN_PLACE, one, BLOCK, MPI_BYTE, MPI_BOR, comm, MPI_INFO_NULL, &request);
    begin();
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    end("allreduce_init", ONE_PAYLOAD, 0);
    MPI_Request_free(&request);
    free(counts);
}

/* Prefixes, and operations that keep the order of operands. */
static void test_ordered(char *one, char *other, MPI_Op ordered)
{
    MPI_Request request;
    begin();
    MPI_Scan(one, other, BLOCK, MPI_BYTE, MPI_BOR, comm);
    end("scan", OF_RUNS, 0);
    begin();
    MPI_Exscan(one, other, BLOCK, MPI_BYTE, MPI_BOR, comm);
    end("exscan", OF_RUNS, 0);
    begin();
    MPI_Iscan(one, other, BLOCK, MPI_BYTE, MPI_BOR, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    end("iscan", OF_RUNS, 0);
    begin();
    MPI_Allreduce(one, other, BLOCK, MPI_BYTE, ordered, comm);
    end("allreduce in order", OF_RUNS, 0);
    for (int root = 0; root < size; root++) {
        begin();
        MPI_Reduce(one, other, BLOCK, MPI_BYTE, ordered, root, comm);
        end("reduce in order", RUNS_TO_ROOT, root);
    }
}

/* ---- between two groups: the lower ranks and the upper ones, or those with even numbers and those
 * with odd ones
 * ---- */

/* Does a group have a rank on this side of the border from a to b, or on a gateway between? */
static int n_with(int group, int a, int b)
{
    int n = 0;
    for (int r = 0; r < size; r++)
        n += group_of(r) == group && !is_behind(b, a, r);
    return n;
}

/* What is sent by one group, or by one rank of it, is wanted by the other group, or by one rank. */
struct flow {
    enum { TO_ALL, TO_ONE, BLOCKS_TO_ALL, BOTH, BOTH_BLOCKS } kind;
    int group, root; /* the sending one; rank in the communicator of both */
};

static long most_of_flow(int a, int b, const void *arg)
{
    const struct flow *f = arg;
    long n = 0;
    if (!is_tree)
        return payload * size * size;
    if (f->kind == TO_ALL)
        return (!is_behind(b, a, f->root) || has_gaps(!f->group, f->root)) &&
                       n_with(!f->group, b, a)
                   ? payload
                   : 0;
    if (f->kind == TO_ONE)
        return (!is_behind(a, b, f->root) || has_gaps(f->group, f->root)) && n_with(f->group, a, b)
                   ? payload
                   : 0;
    for (int g = 0; g < 2; g++) {
        int times = 1 + (has_gaps(0, -1) || has_gaps(1, -1));
        if (f->kind == BOTH) /* an operand or a result */
            n += payload * times;
        else if (f->kind == BLOCKS_TO_ALL)
            n += n_with(!g, b, a) ? payload * (has_gaps(!g, -1) ? size : n_with(g, a, b)) : 0;
        else /* operands, or the blocks of the result for those behind */
            n += n_with(g, a, b) || times > 1 ? times * payload * n_with(0, 0, 0) * n_with(1, 0, 0)
                                              : 0;
    }
    return n;
}

static void end_flow(const char *what, int kind, int group, int root)
{
    MPI_Barrier(comm);
    if (rank == 0)
        judge(what, root, most_of_flow, &(struct flow){kind, group, root});
    MPI_Barrier(comm);
}

static void test_inter(char *one, char *all, char *other, MPI_Op ordered)
{
    MPI_Comm local, inter;
    int mine = group_of(rank), own, n_remote, lead[2] = {0, by_parity ? 1 : (size + 2) / 3};
    MPI_Request request;
    if (size < 2)
        return;
    MPI_Comm_split(comm, mine, rank, &local);
    MPI_Intercomm_create(local, 0, comm, lead[!mine], 3, &inter);
    MPI_Comm_rank(inter, &own);
    MPI_Comm_remote_size(inter, &n_remote);
    for (int root = 0; root < size; root++) {
        int group = group_of(root), theirs = by_parity ? root / 2 : root - lead[group];
        int as = mine != group ? theirs : rank == root ? MPI_ROOT : MPI_PROC_NULL;
        begin();
        MPI_Bcast(one, BLOCK, MPI_BYTE, as, inter);
        end_flow("bcast between groups", TO_ALL, group, root);
        begin();
        MPI_Ibcast(one, BLOCK, MPI_BYTE, as, inter, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        end_flow("ibcast between groups", TO_ALL, group, root);
        begin();
        MPI_Reduce(one, other, BLOCK, MPI_BYTE, MPI_BOR, as, inter);
        end_flow("reduce between groups", TO_ONE, !group, root);
        MPI_Reduce(one, other, BLOCK, MPI_BYTE, ordered, as, inter);
    }
    int *counts = malloc(2 * (size_t)size * sizeof(int)), *displs = counts + size;
    for (int i = 0; i < size; i++) {
        counts[i] = BLOCK;
        displs[i] = BLOCK * (n_remote - 1 - i);
    }
    begin();
    MPI_Allgather(one, BLOCK, MPI_BYTE, all, BLOCK, MPI_BYTE, inter);
    end_flow("allgather between groups", BLOCKS_TO_ALL, 0, 0);
    begin();
    MPI_Allgatherv(one, BLOCK, MPI_BYTE, all, counts, displs, MPI_BYTE, inter);
    end_flow("allgatherv between groups", BLOCKS_TO_ALL, 0, 0);
    begin();
    MPI_Iallgather(one, BLOCK, MPI_BYTE, all, BLOCK, MPI_BYTE, inter, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    end_flow("iallgather between groups", BLOCKS_TO_ALL, 0, 0);
    begin();
    MPI_Allreduce(one, other, BLOCK, MPI_BYTE, MPI_BOR, inter);
    end_flow("allreduce between groups", BOTH, 0, 0);
    /* As many blocks as pairs of ranks, so that both groups can cut them up. */
    char *in = calloc((size_t)size * (size_t)size, BLOCK), *out = calloc((size_t)size, BLOCK);
    begin();
    MPI_Reduce_scatter_block(in, out, BLOCK * n_remote, MPI_BYTE, MPI_BOR, inter);
    end_flow("reduce_scatter_block between groups", BOTH_BLOCKS, 0, 0);
    for (int i = 0; i < size; i++)
        counts[i] = BLOCK * n_remote;
    begin();
    MPI_Reduce_scatter(in, out, counts, MPI_BYTE, MPI_BOR, inter);
    end_flow("reduce_scatter between groups", BOTH_BLOCKS, 0, 0);
    free(in);
    free(out);
    free(counts);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);
}

static void keep_right(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)n, (void)type;
}

static void test_comm(const char *name, MPI_Op ordered)
{
    comm_name = name;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    world = malloc((size_t)size * sizeof(int));
    for (int i = 0; i < size; i++)
        world[i] = i;
    MPI_Group all, own;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Comm_group(comm, &own);
    int *from = malloc((size_t)size * sizeof(int));
    memcpy(from, world, (size_t)size * sizeof(int));
    MPI_Group_translate_ranks(own, size, from, all, world);
    MPI_Group_free(&all);
    MPI_Group_free(&own);
    char *one = calloc(1, BLOCK), *blocks = calloc((size_t)size, BLOCK),
         *others = calloc((size_t)size, BLOCK);
    test_barrier();
    test_rooted(one, blocks);
    test_unrooted(one, blocks, others);
    test_ordered(one, others, ordered);
    for (int parity = 0; parity < 2; parity++) {
        by_parity = parity;
        test_inter(one, blocks, others, ordered);
    }
    test_long();
    free(one);
    free(blocks);
    free(others);
    free(from);
    free(world);
}

int main(int argc, char **argv)
{
    MPI_Op ordered;
    MPI_Init(&argc, &argv);
    is_tree = argc > 1 && strcmp(argv[1], "tree") == 0;
    judged = argc < 2 || strcmp(argv[argc - 1], "flat") != 0;
    find_sides();
    MPI_Op_create(keep_right, 0, &ordered);
    int own;
    MPI_Comm_rank(MPI_COMM_WORLD, &own);
    comm = MPI_COMM_WORLD;
    test_comm("world", ordered);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -own, &comm);
    test_comm("in reverse", ordered);
    MPI_Comm_free(&comm);
    MPI_Comm_split(MPI_COMM_WORLD, own % 2 ? MPI_UNDEFINED : 0, own, &comm);
    if (comm != MPI_COMM_NULL) {
        test_comm("every other rank", ordered);
        MPI_Comm_free(&comm);
    }
    MPI_Op_free(&ordered);
    MPI_Finalize();
    return n_failed != 0;
}
