/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What collectives send over the borders between networks, counted by the fake (fake_networks.h): every payload crosses each border once,
 * in the direction in which it is wanted, for all roots, on the world, on a communicator with its ranks in reverse, and on one of
 * every other rank. Results are the business of collectives.c.
 *
 * Argument "tree": the networks are no ring, so that each border has two sides, and blocks may cross only from where they are to where they
 * are wanted. A last argument "flat": the numbers are printed and not judged, for comparing with other algorithms.
 */
#include "fake_networks.h"

#include "client/core/job.h"

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
static bool side[FAKE_MAX_NETWORKS][FAKE_MAX_NETWORKS][FAKE_MAX_NETWORKS]; /* border a, b: network is on a's side */

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
};

static long payload = BLOCK; /* of the operation that is tested */

static long limit_of(enum limit limit, int a, int b, int root)
{
    if (!is_tree)
        return limit == OF_PAIRS ? payload * size * size : limit < OF_SENDERS ? payload : payload * size;
    switch (limit) {
    case ONE_PAYLOAD:
        return payload;
    case NOTHING_BACK:
        return is_behind(b, a, root) ? 0 : payload;
    case NOTHING_OUT:
        return is_behind(a, b, root) ? 0 : payload;
    case OF_SENDERS:
        return payload * n_behind(a, b);
    case TO_ROOT:
        return is_behind(a, b, root) ? 0 : payload * n_behind(a, b);
    case OF_RECEIVERS:
        return payload * n_behind(b, a);
    case FROM_ROOT:
        return is_behind(b, a, root) ? 0 : payload * n_behind(b, a);
    case OF_PAIRS:
        return payload * n_behind(a, b) * n_behind(b, a);
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

static void end(const char *what, enum limit limit, int root)
{
    MPI_Barrier(comm);
    for (int a = 0; rank == 0 && a < fake_networks_n(); a++) {
        for (int b = 0; b < fake_networks_n(); b++) {
            long got = fake_networks_bytes(a, b), most = limit_of(limit, a, b, root);
            if (!judged && got)
                printf("%s, %s, root %d: %ld blocks from network %d to %d, expected at most %ld\n", what, comm_name, root, got / payload, a,
                       b, most / payload);
            if (judged && got > most && n_failed++ < 5)
                printf("%s, %s, root %d: %ld bytes cross the border from network %d to %d, expected at most %ld\n", what, comm_name,
                       root, got, a, b, most);
        }
    }
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
            if (fake_networks_messages(a, b) > 13 && n_failed++ < 5)
                printf("barrier, %s: %ld messages in 10 from network %d to %d\n", comm_name, fake_networks_messages(a, b), a, b);
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
    payload = BLOCK;
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

/* Rows of ranks in the order of the networks: prefixes, and operations that keep the order of operands, cross once, too. */
static void test_in_rows(char *one, char *other, MPI_Op ordered)
{
    bool rows = true;
    int previous = -1;
    for (int r = 0; r < size; r++) {
        int network = 0;
        while (!fake_networks_has(network, job_node_of(world[r])))
            network++;
        rows = rows && job_node_of(world[r]) >= (r ? job_node_of(world[r - 1]) : 0) && network >= previous;
        previous = network;
    }
    if (!rows || size < 3)
        return;
    begin();
    MPI_Scan(one, other, BLOCK, MPI_BYTE, MPI_BOR, comm);
    end("scan", ONE_PAYLOAD, 0);
    begin();
    MPI_Exscan(one, other, BLOCK, MPI_BYTE, MPI_BOR, comm);
    end("exscan", ONE_PAYLOAD, 0);
    begin();
    MPI_Allreduce(one, other, BLOCK, MPI_BYTE, ordered, comm);
    end("allreduce in order", ONE_PAYLOAD, 0);
    for (int root = 0; root < size; root++) {
        begin();
        MPI_Reduce(one, other, BLOCK, MPI_BYTE, ordered, root, comm);
        end("reduce in order", ONE_PAYLOAD, root);
    }
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
    char *one = calloc(1, BLOCK), *blocks = calloc((size_t)size, BLOCK), *others = calloc((size_t)size, BLOCK);
    test_barrier();
    test_rooted(one, blocks);
    test_unrooted(one, blocks, others);
    test_in_rows(one, others, ordered);
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
