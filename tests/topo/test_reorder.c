/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of ranks: always a permutation, never worse than the order as it is, and blocks where
 * blocks are possible. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rand.h"
#include "client/topo/reorder.h"

#define MAX_PLACES 600
#define MAX_EDGES  20000

static int first[MAX_PLACES + 1], edges[MAX_EDGES], weights[MAX_EDGES], node_of[MAX_PLACES],
    members[MAX_PLACES];
static int node_at[MAX_PLACES];

static void make_grid(int n_dims, const int *dims, int periodic)
{
    int n = 1, k = 0;
    for (int d = 0; d < n_dims; d++)
        n *= dims[d];
    for (int place = 0; place < n; place++) {
        first[place] = k;
        int stride = n;
        for (int d = 0; d < n_dims; d++) {
            stride /= dims[d];
            int at = place / stride % dims[d];
            for (int way = -1; way <= 1; way += 2) {
                int to = (at + way + dims[d]) % dims[d];
                edges[k++] = periodic || (at + way >= 0 && at + way < dims[d])
                                 ? place + (to - at) * stride
                                 : -3;
            }
        }
    }
    first[n] = k;
}

/* Crossing weight of the order that was found; fails unless it is a permutation and better. */
static long long check_order(const struct reorder_graph *g)
{
    char used[MAX_PLACES] = {0};
    for (int i = 0; i < g->n; i++) {
        assert_in_range(members[i], 0, g->n - 1);
        assert_false(used[members[i]]);
        used[members[i]] = 1;
        node_at[i] = node_of[members[i]];
    }
    long long crossing = reorder_crossing(g, node_at);
    assert_true(crossing < reorder_crossing(g, node_of));
    return crossing;
}

static void blocks_of_a_square(void **state)
{
    (void)state;
    int dims[] = {8, 8};
    make_grid(2, dims, 0);
    struct reorder_graph g = {64, first, edges, NULL};
    for (int i = 0; i < 64; i++)
        node_of[i] = i / 16; /* two rows each: 8 * 3 edges cross, both ways */
    assert_int_equal(reorder_crossing(&g, node_of), 48);
    assert_true(reorder_cart(&g, node_of, 2, dims, members));
    assert_int_equal(check_order(&g), 32); /* 4 x 4 blocks */
    for (int i = 0; i < 64; i++)
        node_of[i] = i % 4; /* dealt out in turn */
    assert_true(reorder_cart(&g, node_of, 2, dims, members));
    assert_int_equal(check_order(&g), 32);
}

static void rows_stay_where_they_are(void **state)
{
    (void)state;
    int dims[] = {4, 16};
    make_grid(2, dims, 0);
    struct reorder_graph g = {64, first, edges, NULL};
    for (int i = 0; i < 64; i++)
        node_of[i] = i / 32; /* two rows: 32 edges; 4 x 8 blocks: 8 edges */
    assert_true(reorder_cart(&g, node_of, 2, dims, members));
    assert_int_equal(check_order(&g), 8);
    int line[] = {64};
    make_grid(1, line, 0);
    assert_false(reorder_cart(&g, node_of, 1, line, members));
}

static void one_node_is_left_alone(void **state)
{
    (void)state;
    int dims[] = {4, 4};
    make_grid(2, dims, 1);
    struct reorder_graph g = {16, first, edges, NULL};
    for (int i = 0; i < 16; i++)
        node_of[i] = 7;
    assert_false(reorder_cart(&g, node_of, 2, dims, members));
}

static void unequal_nodes(void **state)
{
    (void)state;
    int dims[] = {3, 4, 5};
    make_grid(3, dims, 1);
    struct reorder_graph g = {60, first, edges, NULL};
    for (int i = 0; i < 60; i++)
        node_of[i] = i % 7 < 3 ? 100 : i % 7; /* names of nodes have gaps */
    assert_true(reorder_cart(&g, node_of, 3, dims, members));
    check_order(&g);
}

static void random_graphs(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct rand r = {seed};
        int n = 1 + (int)rand_below(&r, MAX_PLACES), k = 0, n_nodes = 1 + (int)rand_below(&r, 20);
        for (int i = 0; i < n; i++) {
            first[i] = k;
            node_of[i] = (int)rand_below(&r, (uint64_t)n_nodes);
            for (int d = (int)rand_below(&r, 20); d > 0; d--) {
                weights[k] = (int)rand_below(&r, 50);
                edges[k++] = (int)rand_below(&r, (uint64_t)n);
            }
        }
        first[n] = k;
        struct reorder_graph g = {n, first, edges, seed % 2 ? weights : NULL};
        if (reorder_graph(&g, node_of, members))
            check_order(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_a_square),     cmocka_unit_test(rows_stay_where_they_are),
        cmocka_unit_test(one_node_is_left_alone), cmocka_unit_test(unequal_nodes),
        cmocka_unit_test(random_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
