/* SPDX-License-Identifier: BSD-3-Clause */
/* Cartesian, graph and distributed graph topologies: what they answer, and that duplicates keep
 * them. */
#include "check.h"

#include <string.h>

#define MAX_DIMS 4

static int world_rank, world_size;

static void check_dims_create(void)
{
    static const struct {
        int n, n_dims, in[3], out[3];
    } cases[] = {
        {6, 2, {0, 0}, {3, 2}},
        {7, 2, {0, 0}, {7, 1}},
        {6, 3, {0, 3, 0}, {2, 3, 1}},
        {16, 2, {0, 0}, {4, 4}},
        {60, 3, {0, 0, 0}, {5, 4, 3}},
        {1, 3, {0, 0, 0}, {1, 1, 1}},
        {72, 3, {0, 0, 0}, {6, 4, 3}},
        {12, 2, {12, 1}, {12, 1}},
        {1000, 3, {0, 0, 0}, {10, 10, 10}},
        {7488, 3, {0, 0, 0}, {26, 18, 16}},
        {5040, 3, {0, 0, 0}, {21, 16, 15}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int dims[3];
        memcpy(dims, cases[i].in, sizeof dims);
        MPI_Dims_create(cases[i].n, cases[i].n_dims, dims);
        for (int k = 0; k < cases[i].n_dims; k++)
            CHECK(dims[k] == cases[i].out[k], "%d in %d dimensions: dims[%d] is %d", cases[i].n,
                  cases[i].n_dims, k, dims[k]);
    }
    for (int n = 1; n < 400; n++) {
        for (int n_dims = 1; n_dims <= MAX_DIMS; n_dims++) {
            int dims[MAX_DIMS] = {0}, product = 1;
            MPI_Dims_create(n, n_dims, dims);
            for (int k = 0; k < n_dims; k++) {
                CHECK(dims[k] >= 1 && (k == 0 || dims[k] <= dims[k - 1]), "%d: dims[%d] is %d", n,
                      k, dims[k]);
                product *= dims[k];
            }
            CHECK(product == n, "%d: %d", n, product);
        }
    }
    int dims[2] = {4, 0};
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(MPI_Dims_create(6, 2, dims) != MPI_SUCCESS, "4 does not divide 6");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

static int rank_at(int n_dims, const int *dims, const int *coords)
{
    int rank = 0;
    for (int i = 0; i < n_dims; i++)
        rank = rank * dims[i] + coords[i];
    return rank;
}

static void check_shifts(MPI_Comm cart, int n_dims, const int *dims, const int *periods,
                         const int *coords)
{
    for (int d = 0; d < n_dims; d++) {
        for (int disp = -2 * dims[d] - 1; disp <= 2 * dims[d] + 1; disp++) {
            int want[2], got[2];
            MPI_Cart_shift(cart, d, disp, &got[0], &got[1]);
            for (int way = 0; way < 2; way++) {
                int c[MAX_DIMS];
                memcpy(c, coords, sizeof c);
                c[d] += way ? disp : -disp;
                bool inside = c[d] >= 0 && c[d] < dims[d];
                c[d] = (c[d] % dims[d] + dims[d]) % dims[d];
                want[way] = inside || periods[d] ? rank_at(n_dims, dims, c) : MPI_PROC_NULL;
                CHECK(got[way] == want[way], "dimension %d, disp %d: %d, not %d", d, disp, got[way],
                      want[way]);
            }
        }
    }
}

static void check_sub(MPI_Comm cart, int n_dims, const int *dims, const int *periods,
                      const int *coords)
{
    for (int mask = 0; mask < 1 << n_dims; mask++) {
        int remain[MAX_DIMS], n = 0, sub_dims[MAX_DIMS], sub_periods[MAX_DIMS],
                              sub_coords[MAX_DIMS], at = 0, size = 1;
        MPI_Comm sub;
        for (int i = 0; i < n_dims; i++)
            remain[i] = mask >> i & 1;
        MPI_Cart_sub(cart, remain, &sub);
        int sub_n, sub_rank, sub_size;
        MPI_Cartdim_get(sub, &sub_n);
        MPI_Comm_rank(sub, &sub_rank);
        MPI_Comm_size(sub, &sub_size);
        MPI_Cart_get(sub, MAX_DIMS, sub_dims, sub_periods, sub_coords);
        for (int i = 0; i < n_dims; i++) {
            if (!remain[i])
                continue;
            CHECK(sub_dims[n] == dims[i] && sub_periods[n] == periods[i] &&
                      sub_coords[n] == coords[i],
                  "dimension %d", i);
            at = at * dims[i] + coords[i];
            size *= dims[i];
            n++;
        }
        CHECK(sub_n == n && sub_rank == at && sub_size == size, "mask %d", mask);
        MPI_Comm_free(&sub);
    }
}

static void check_cart(int n_dims, const int *dims, const int *periods, int reorder)
{
    MPI_Comm cart, copy;
    int n = 1, kind, rank, got_dims[MAX_DIMS], got_periods[MAX_DIMS], coords[MAX_DIMS] = {0};
    for (int i = 0; i < n_dims; i++)
        n *= dims[i];
    int map;
    MPI_Cart_map(MPI_COMM_WORLD, n_dims, dims, periods, &map);
    CHECK(map == MPI_UNDEFINED || (map >= 0 && map < n), "map %d", map);
    MPI_Cart_create(MPI_COMM_WORLD, n_dims, dims, periods, reorder, &cart);
    if (cart == MPI_COMM_NULL) {
        CHECK(world_size > n, "no place among %d", n);
        return;
    }
    MPI_Comm_dup(cart, &copy);
    MPI_Comm_free(&cart);
    cart = copy;
    MPI_Topo_test(cart, &kind);
    CHECK(kind == MPI_CART, "%d", kind);
    MPI_Comm_rank(cart, &rank);
    CHECK(reorder || rank == world_rank, "rank %d", rank);
    MPI_Cart_get(cart, n_dims, got_dims, got_periods, coords);
    for (int i = 0; i < n_dims; i++)
        CHECK(got_dims[i] == dims[i] && !got_periods[i] == !periods[i], "dimension %d", i);
    CHECK(rank_at(n_dims, dims, coords) == rank, "own coordinates");
    for (int r = 0; r < n; r++) {
        int c[MAX_DIMS], back;
        MPI_Cart_coords(cart, r, n_dims, c);
        MPI_Cart_rank(cart, c, &back);
        CHECK(back == r && rank_at(n_dims, dims, c) == r, "rank %d: %d", r, back);
        for (int i = 0; i < n_dims; i++) {
            if (!periods[i])
                continue;
            c[i] -= 3 * dims[i];
            MPI_Cart_rank(cart, c, &back);
            CHECK(back == r, "rank %d round dimension %d: %d", r, i, back);
        }
    }
    check_shifts(cart, n_dims, dims, periods, coords);
    check_sub(cart, n_dims, dims, periods, coords);
    MPI_Comm_free(&cart);
}

static void check_carts(void)
{
    for (int n = 1; n <= world_size; n++) {
        for (int n_dims = 0; n_dims <= 3; n_dims++) {
            int dims[MAX_DIMS] = {0};
            if (n_dims == 0 && n > 1)
                continue;
            MPI_Dims_create(n, n_dims, dims);
            for (int mask = 0; mask < 1 << n_dims; mask++) {
                int periods[MAX_DIMS];
                for (int i = 0; i < n_dims; i++)
                    periods[i] = mask >> i & 1;
                check_cart(n_dims, dims, periods, mask & 1);
            }
        }
    }
}

static void check_graph(int n, uint64_t *random)
{
    int indx[64], edges[64 * 8], n_edges = 0;
    for (int i = 0; i < n; i++) {
        for (int k = check_below(random, 8); k > 0; k--)
            edges[n_edges++] = check_below(random, n);
        indx[i] = n_edges;
    }
    MPI_Comm graph;
    MPI_Graph_create(MPI_COMM_WORLD, n, indx, edges, 0, &graph);
    int map;
    MPI_Graph_map(MPI_COMM_WORLD, n, indx, edges, &map);
    CHECK(map == MPI_UNDEFINED || (map >= 0 && map < n), "map %d", map);
    CHECK((graph != MPI_COMM_NULL) == (world_rank < n), "n %d", n);
    if (graph == MPI_COMM_NULL)
        return;
    int kind, got_n, got_edges;
    MPI_Topo_test(graph, &kind);
    CHECK(kind == MPI_GRAPH, "%d", kind);
    MPI_Graphdims_get(graph, &got_n, &got_edges);
    CHECK(got_n == n && got_edges == n_edges, "%d nodes, %d edges", got_n, got_edges);
    int all_indx[64], all_edges[64 * 8], neighbors[8];
    MPI_Graph_get(graph, 64, 64 * 8, all_indx, all_edges);
    CHECK(!memcmp(indx, all_indx, (size_t)n * sizeof(int)), "index");
    CHECK(!memcmp(edges, all_edges, (size_t)n_edges * sizeof(int)), "edges");
    for (int r = 0; r < n; r++) {
        int count, first = r > 0 ? indx[r - 1] : 0;
        MPI_Graph_neighbors_count(graph, r, &count);
        CHECK(count == indx[r] - first, "%d neighbors", count);
        MPI_Graph_neighbors(graph, r, 8, neighbors);
        CHECK(!memcmp(neighbors, edges + first, (size_t)count * sizeof(int)), "neighbors of %d", r);
    }
    MPI_Comm_free(&graph);
}

/* A random graph that all ranks know; each edge is named by a random rank. */
#define MAX_EDGES 200

struct edge {
    int from, to, weight, named_by;
};

static int compare_pairs(const void *a, const void *b)
{
    return memcmp(a, b, 2 * sizeof(int));
}

/* The neighbours with weights, sorted: what the graph says and what the library says. */
static void check_neighbors(const struct edge *edges, int n_edges, MPI_Comm graph, int weighted,
                            int rank)
{
    int want_in[MAX_EDGES][2], want_out[MAX_EDGES][2], got_in[MAX_EDGES][2], got_out[MAX_EDGES][2],
        n_in = 0, n_out = 0;
    int in[MAX_EDGES], out[MAX_EDGES], in_weights[MAX_EDGES] = {0}, out_weights[MAX_EDGES] = {0},
                                       got_n[3];
    memset(want_in, 0, sizeof want_in);
    memset(want_out, 0, sizeof want_out);
    for (int i = 0; i < n_edges; i++) {
        int weight = weighted ? edges[i].weight : 0;
        if (edges[i].to == rank)
            memcpy(want_in[n_in++], (int[]){edges[i].from, weight}, sizeof want_in[0]);
        if (edges[i].from == rank)
            memcpy(want_out[n_out++], (int[]){edges[i].to, weight}, sizeof want_out[0]);
    }
    MPI_Dist_graph_neighbors_count(graph, &got_n[0], &got_n[1], &got_n[2]);
    CHECK(got_n[0] == n_in && got_n[1] == n_out && !got_n[2] == !weighted,
          "%d in, %d out, weighted %d", got_n[0], got_n[1], got_n[2]);
    MPI_Dist_graph_neighbors(graph, n_in, in, weighted ? in_weights : MPI_UNWEIGHTED, n_out, out,
                             weighted ? out_weights : MPI_UNWEIGHTED);
    for (int i = 0; i < n_in; i++)
        memcpy(got_in[i], (int[]){in[i], in_weights[i]}, sizeof got_in[0]);
    for (int i = 0; i < n_out; i++)
        memcpy(got_out[i], (int[]){out[i], out_weights[i]}, sizeof got_out[0]);
    qsort(want_in, (size_t)n_in, sizeof want_in[0], compare_pairs);
    qsort(got_in, (size_t)n_in, sizeof got_in[0], compare_pairs);
    qsort(want_out, (size_t)n_out, sizeof want_out[0], compare_pairs);
    qsort(got_out, (size_t)n_out, sizeof got_out[0], compare_pairs);
    CHECK(n_in == 0 || !memcmp(want_in, got_in, (size_t)n_in * sizeof want_in[0]), "in-edges");
    CHECK(n_out == 0 || !memcmp(want_out, got_out, (size_t)n_out * sizeof want_out[0]),
          "out-edges");
}

static void check_dist_graph(uint64_t *random, int weighted, int reorder)
{
    struct edge edges[MAX_EDGES];
    int n_edges = check_below(random, MAX_EDGES);
    for (int i = 0; i < n_edges; i++)
        edges[i] = (struct edge){check_below(random, world_size), check_below(random, world_size),
                                 check_below(random, 100), check_below(random, world_size)};
    int sources[MAX_EDGES], degrees[MAX_EDGES], destinations[MAX_EDGES], weights[MAX_EDGES], n = 0;
    for (int i = 0; i < n_edges; i++) {
        if (edges[i].named_by != world_rank)
            continue;
        sources[n] = edges[i].from;
        degrees[n] = 1;
        destinations[n] = edges[i].to;
        weights[n++] = edges[i].weight;
    }
    MPI_Comm graph;
    int rank, kind;
    MPI_Dist_graph_create(MPI_COMM_WORLD, n, sources, degrees, destinations,
                          !weighted ? MPI_UNWEIGHTED
                          : n       ? weights
                                    : MPI_WEIGHTS_EMPTY,
                          MPI_INFO_NULL, reorder, &graph);
    MPI_Topo_test(graph, &kind);
    CHECK(kind == MPI_DIST_GRAPH, "%d", kind);
    MPI_Comm_rank(graph, &rank);
    check_neighbors(edges, n_edges, graph, weighted, rank);
    MPI_Comm_free(&graph);

    int in[MAX_EDGES], out[MAX_EDGES], in_weights[MAX_EDGES], out_weights[MAX_EDGES], n_in = 0,
                                                                                      n_out = 0;
    for (int i = 0; i < n_edges; i++) {
        if (edges[i].to == world_rank) {
            in_weights[n_in] = edges[i].weight;
            in[n_in++] = edges[i].from;
        }
        if (edges[i].from == world_rank) {
            out_weights[n_out] = edges[i].weight;
            out[n_out++] = edges[i].to;
        }
    }
    MPI_Comm copy;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, n_in, in,
                                   !weighted ? MPI_UNWEIGHTED
                                   : n_in    ? in_weights
                                             : MPI_WEIGHTS_EMPTY,
                                   n_out, out,
                                   !weighted ? MPI_UNWEIGHTED
                                   : n_out   ? out_weights
                                             : MPI_WEIGHTS_EMPTY,
                                   MPI_INFO_NULL, reorder, &graph);
    MPI_Request request;
    MPI_Comm_idup(graph, &copy, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&graph);
    MPI_Comm_rank(copy, &rank);
    check_neighbors(edges, n_edges, copy, weighted, rank);
    MPI_Comm_free(&copy);
}

static void check_none(void)
{
    int kind, n;
    MPI_Topo_test(MPI_COMM_WORLD, &kind);
    CHECK(kind == MPI_UNDEFINED, "%d", kind);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int class, err = MPI_Cartdim_get(MPI_COMM_WORLD, &n);
    MPI_Error_class(err, &class);
    CHECK(class == MPI_ERR_TOPOLOGY, "class %d", class);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    uint64_t random = 20260101;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    check_none();
    check_dims_create();
    check_carts();
    for (int n = 1; n <= world_size; n++)
        for (int k = 0; k < 10; k++)
            check_graph(n, &random);
    for (int k = 0; k < 40; k++)
        check_dist_graph(&random, k % 2, k / 2 % 2);
    MPI_Finalize();
    return 0;
}
