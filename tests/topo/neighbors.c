/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbourhood collectives in all forms, against what the lists of neighbours say.
 *
 * Every block says who sent it and which of the sender's blocks it is. In grids the block for the
 * lower neighbour arrives as that of the upper one, also where both are the same process; in graphs
 * the k-th edge to a process meets the k-th edge from it.
 */
#include "check.h"

#include <stdbool.h>
#include <string.h>

#define MAX_DEGREE 24
#define BLOCK      3 /* ints of a block; of the v and w forms at most */

struct hood {
    MPI_Comm comm;
    bool grid;
    int rank, n_in, n_out, in[MAX_DEGREE], out[MAX_DEGREE];
};

static int world_rank, world_size;

/* Neighbour lists of any rank, by asking all of them. */
static struct hood *gather_hoods(const struct hood *own, int *ret_n)
{
    MPI_Comm_size(own->comm, ret_n);
    struct hood *all = malloc((size_t)*ret_n * sizeof *all);
    MPI_Allgather(own, sizeof *own, MPI_BYTE, all, sizeof *own, MPI_BYTE, own->comm);
    return all;
}

/* Which block of in[i] arrives as block i. */
static int block_of(const struct hood *own, const struct hood *all, int i)
{
    if (own->grid)
        return i ^ 1;
    int nth = 0;
    for (int k = 0; k < i; k++)
        nth += own->in[k] == own->in[i];
    const struct hood *sender = &all[own->in[i]];
    for (int k = 0; k < sender->n_out; k++)
        if (sender->out[k] == own->rank && nth-- == 0)
            return k;
    return -1;
}

static int value(int rank, int block, int i)
{
    return rank * 10000 + block * 100 + i + 1;
}

/* Elements of a block in the v and w forms: also none. */
static int length(int rank, int block)
{
    return (rank + 2 * block) % (BLOCK + 1);
}

enum form { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };

static void complete(enum form form, MPI_Request *request)
{
    if (form == BLOCKING)
        return;
    if (form == PERSISTENT)
        MPI_Start(request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    if (form == PERSISTENT) { /* the second time must give the same */
        MPI_Start(request);
        MPI_Wait(request, MPI_STATUS_IGNORE);
        MPI_Request_free(request);
    }
    CHECK(*request == MPI_REQUEST_NULL, "request left");
}

static int inbox[MAX_DEGREE * BLOCK];

static void clear(void)
{
    for (int i = 0; i < MAX_DEGREE * BLOCK; i++)
        inbox[i] = -1;
}

static void expect(const struct hood *h, int i, int n, int block, const char *what)
{
    for (int k = 0; k < BLOCK; k++) {
        int want = h->in[i] == MPI_PROC_NULL || k >= n ? -1 : value(h->in[i], block, k);
        CHECK(inbox[i * BLOCK + k] == want, "%s: element %d of block %d is %d, not %d", what, k, i,
              inbox[i * BLOCK + k], want);
    }
}

static void check_allgather(const struct hood *h, const struct hood *all, enum form form)
{
    int mine[BLOCK], counts[MAX_DEGREE], displs[MAX_DEGREE];
    MPI_Request request;
    for (int k = 0; k < BLOCK; k++)
        mine[k] = value(h->rank, 0, k);
    clear();
    if (form == BLOCKING)
        MPI_Neighbor_allgather(mine, BLOCK, MPI_INT, inbox, BLOCK, MPI_INT, h->comm);
    else if (form == NONBLOCKING)
        MPI_Ineighbor_allgather(mine, BLOCK, MPI_INT, inbox, BLOCK, MPI_INT, h->comm, &request);
    else
        MPI_Neighbor_allgather_init(mine, BLOCK, MPI_INT, inbox, BLOCK, MPI_INT, h->comm,
                                    MPI_INFO_NULL, &request);
    complete(form, &request);
    for (int i = 0; i < h->n_in; i++)
        expect(h, i, BLOCK, 0, "allgather");

    /* Blocks in falling order of their places. */
    for (int i = 0; i < h->n_in; i++) {
        counts[i] = h->in[i] == MPI_PROC_NULL ? 0 : length(h->in[i], 0);
        displs[i] = i * BLOCK;
    }
    clear();
    if (form == BLOCKING)
        MPI_Neighbor_allgatherv(mine, length(h->rank, 0), MPI_INT, inbox, counts, displs, MPI_INT,
                                h->comm);
    else if (form == NONBLOCKING)
        MPI_Ineighbor_allgatherv(mine, length(h->rank, 0), MPI_INT, inbox, counts, displs, MPI_INT,
                                 h->comm, &request);
    else
        MPI_Neighbor_allgatherv_init(mine, length(h->rank, 0), MPI_INT, inbox, counts, displs,
                                     MPI_INT, h->comm, MPI_INFO_NULL, &request);
    complete(form, &request);
    for (int i = 0; i < h->n_in; i++)
        expect(h, i, counts[i], 0, "allgatherv");
    (void)all;
}

static void check_alltoall(const struct hood *h, const struct hood *all, enum form form)
{
    int outbox[MAX_DEGREE * BLOCK], scounts[MAX_DEGREE], sdispls[MAX_DEGREE], rcounts[MAX_DEGREE],
        rdispls[MAX_DEGREE];
    MPI_Aint sbytes[MAX_DEGREE], rbytes[MAX_DEGREE];
    MPI_Datatype stypes[MAX_DEGREE], rtypes[MAX_DEGREE];
    MPI_Request request;
    for (int i = 0; i < h->n_out; i++) {
        for (int k = 0; k < BLOCK; k++)
            outbox[i * BLOCK + k] = value(h->rank, i, k);
        scounts[i] = length(h->rank, i);
        sdispls[i] = i * BLOCK;
        sbytes[i] = i * BLOCK * (MPI_Aint)sizeof(int);
        stypes[i] = MPI_INT;
    }
    for (int i = 0; i < h->n_in; i++) {
        rcounts[i] = h->in[i] == MPI_PROC_NULL ? 0 : length(h->in[i], block_of(h, all, i));
        rdispls[i] = i * BLOCK;
        rbytes[i] = i * BLOCK * (MPI_Aint)sizeof(int);
        rtypes[i] = MPI_INT;
    }
    clear();
    if (form == BLOCKING)
        MPI_Neighbor_alltoall(outbox, BLOCK, MPI_INT, inbox, BLOCK, MPI_INT, h->comm);
    else if (form == NONBLOCKING)
        MPI_Ineighbor_alltoall(outbox, BLOCK, MPI_INT, inbox, BLOCK, MPI_INT, h->comm, &request);
    else
        MPI_Neighbor_alltoall_init(outbox, BLOCK, MPI_INT, inbox, BLOCK, MPI_INT, h->comm,
                                   MPI_INFO_NULL, &request);
    complete(form, &request);
    for (int i = 0; i < h->n_in; i++)
        expect(h, i, BLOCK, block_of(h, all, i), "alltoall");
    clear();
    if (form == BLOCKING)
        MPI_Neighbor_alltoallv(outbox, scounts, sdispls, MPI_INT, inbox, rcounts, rdispls, MPI_INT,
                               h->comm);
    else if (form == NONBLOCKING)
        MPI_Ineighbor_alltoallv(outbox, scounts, sdispls, MPI_INT, inbox, rcounts, rdispls, MPI_INT,
                                h->comm, &request);
    else
        MPI_Neighbor_alltoallv_init(outbox, scounts, sdispls, MPI_INT, inbox, rcounts, rdispls,
                                    MPI_INT, h->comm, MPI_INFO_NULL, &request);
    complete(form, &request);
    for (int i = 0; i < h->n_in; i++)
        expect(h, i, rcounts[i], block_of(h, all, i), "alltoallv");
    clear();
    if (form == BLOCKING)
        MPI_Neighbor_alltoallw(outbox, scounts, sbytes, stypes, inbox, rcounts, rbytes, rtypes,
                               h->comm);
    else if (form == NONBLOCKING)
        MPI_Ineighbor_alltoallw(outbox, scounts, sbytes, stypes, inbox, rcounts, rbytes, rtypes,
                                h->comm, &request);
    else
        MPI_Neighbor_alltoallw_init(outbox, scounts, sbytes, stypes, inbox, rcounts, rbytes, rtypes,
                                    h->comm, MPI_INFO_NULL, &request);
    complete(form, &request);
    for (int i = 0; i < h->n_in; i++)
        expect(h, i, rcounts[i], block_of(h, all, i), "alltoallw");
}

static void check_hood(const struct hood *h)
{
    int n;
    struct hood *all = gather_hoods(h, &n);
    for (int form = 0; form < FORMS; form++) {
        check_allgather(h, all, (enum form)form);
        check_alltoall(h, all, (enum form)form);
    }
    free(all);
}

static void check_grid(int n, int n_dims, int mask)
{
    int dims[3] = {0}, periods[3];
    struct hood h = {.grid = true, .n_in = 2 * n_dims, .n_out = 2 * n_dims};
    MPI_Dims_create(n, n_dims, dims);
    for (int i = 0; i < n_dims; i++)
        periods[i] = mask >> i & 1;
    MPI_Cart_create(MPI_COMM_WORLD, n_dims, dims, periods, 1, &h.comm);
    if (h.comm == MPI_COMM_NULL)
        return;
    MPI_Comm_rank(h.comm, &h.rank);
    for (int i = 0; i < n_dims; i++)
        MPI_Cart_shift(h.comm, i, 1, &h.in[2 * i], &h.in[2 * i + 1]);
    memcpy(h.out, h.in, sizeof h.out);
    check_hood(&h);
    MPI_Comm_free(&h.comm);
}

/* A symmetric graph: what MPI_Graph_create needs for these collectives. */
static void check_graph(uint64_t *random)
{
    bool edge[64][64] = {{false}};
    int indx[64], edges[64 * MAX_DEGREE], n_edges = 0;
    struct hood h = {.grid = false};
    for (int i = 0; i < world_size; i++)
        for (int j = 0; j <= i; j++)
            edge[i][j] = edge[j][i] = check_below(random, 3) == 0;
    for (int i = 0; i < world_size; i++) {
        for (int j = 0; j < world_size; j++)
            if (edge[i][j])
                edges[n_edges++] = j;
        indx[i] = n_edges;
    }
    MPI_Graph_create(MPI_COMM_WORLD, world_size, indx, edges, 1, &h.comm);
    MPI_Comm_rank(h.comm, &h.rank);
    MPI_Graph_neighbors_count(h.comm, h.rank, &h.n_in);
    MPI_Graph_neighbors(h.comm, h.rank, MAX_DEGREE, h.in);
    h.n_out = h.n_in;
    memcpy(h.out, h.in, sizeof h.out);
    check_hood(&h);
    MPI_Comm_free(&h.comm);
}

static void check_dist_graph(uint64_t *random, bool adjacent)
{
    struct hood h = {.grid = false};
    int sources[2 * MAX_DEGREE], degrees[2 * MAX_DEGREE], destinations[2 * MAX_DEGREE], n = 0,
                                                                                        n_edges;
    int n_in[64] = {0}, n_out[64] = {0};
    n_edges = check_below(random, world_size * 4);
    for (int e = 0; e < n_edges; e++) {
        int from = check_below(random, world_size), to = check_below(random, world_size);
        int named_by = check_below(random, world_size);
        if (n_out[from] == MAX_DEGREE || n_in[to] == MAX_DEGREE)
            continue;
        if (from == world_rank)
            h.out[n_out[from]] = to;
        if (to == world_rank)
            h.in[n_in[to]] = from;
        n_out[from]++;
        n_in[to]++;
        if (named_by == world_rank && n < 2 * MAX_DEGREE) {
            sources[n] = from;
            degrees[n] = 1;
            destinations[n++] = to;
        }
    }
    if (adjacent)
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, n_in[world_rank], h.in, MPI_UNWEIGHTED,
                                       n_out[world_rank], h.out, MPI_UNWEIGHTED, MPI_INFO_NULL, 1,
                                       &h.comm);
    else
        MPI_Dist_graph_create(MPI_COMM_WORLD, n, sources, degrees, destinations, MPI_UNWEIGHTED,
                              MPI_INFO_NULL, 0, &h.comm);
    int weighted;
    MPI_Comm_rank(h.comm, &h.rank);
    MPI_Dist_graph_neighbors_count(h.comm, &h.n_in, &h.n_out, &weighted);
    MPI_Dist_graph_neighbors(h.comm, h.n_in, h.in, MPI_UNWEIGHTED, h.n_out, h.out, MPI_UNWEIGHTED);
    check_hood(&h);
    MPI_Comm_free(&h.comm);
}

int main(int argc, char **argv)
{
    uint64_t random = 20260102;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    for (int n = 1; n <= world_size; n++)
        for (int n_dims = 1; n_dims <= 3; n_dims++)
            for (int mask = 0; mask < 1 << n_dims; mask++)
                check_grid(n, n_dims, mask);
    for (int k = 0; k < 20; k++) {
        check_graph(&random);
        check_dist_graph(&random, true);
        check_dist_graph(&random, false);
    }
    MPI_Finalize();
    return 0;
}
