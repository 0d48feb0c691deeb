/* SPDX-License-Identifier: BSD-3-Clause */
/* Placement of ranks on nodes, and how far apart the networks under them are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/jobs/networks.h"
#include "daemon/jobs/placement.h"

static const struct placement_node nodes[] = {
    {.name = "me", .node_id = 1}, {.name = "a", .node_id = 2}, {.name = "b", .node_id = 3}};

static int place(uint32_t n_ranks, uint32_t per_node, const char **hosts, size_t n_hosts,
                 struct placement *r, char *error)
{
    Motet__Submit submit = MOTET__SUBMIT__INIT;
    Motet__App app = MOTET__APP__INIT;
    Motet__App *apps[] = {&app};

    app.n_ranks = n_ranks;
    submit.n_apps = 1;
    submit.apps = apps;
    submit.has_ranks_per_node = per_node > 0;
    submit.ranks_per_node = per_node;
    submit.n_hosts = n_hosts;
    submit.hosts = (char **)hosts;
    return placement_make(&submit, nodes, 3, r, error, 512);
}

static void expect(const struct placement *r, size_t at, const char *node, const uint32_t *ranks,
                   size_t n)
{
    assert_true(at < r->n_placements);
    assert_string_equal(r->placements[at]->node, node);
    assert_int_equal(r->placements[at]->n_ranks, n);
    assert_memory_equal(r->placements[at]->ranks, ranks, n * sizeof *ranks);
}

static void test_default(void **state)
{
    struct placement r;
    char error[512];

    (void)state;
    assert_int_equal(place(3, 0, NULL, 0, &r, error), 0);
    assert_int_equal(r.n_placements, 1);
    expect(&r, 0, "me", (uint32_t[]){0, 1, 2}, 3);
    placement_free(&r);
}

static void test_per_node(void **state)
{
    struct placement r;
    char error[512];

    (void)state;
    assert_int_equal(place(7, 2, NULL, 0, &r, error), 0);
    assert_int_equal(r.n_placements, 3);
    expect(&r, 0, "me", (uint32_t[]){0, 1, 6}, 3);
    expect(&r, 1, "a", (uint32_t[]){2, 3}, 2);
    expect(&r, 2, "b", (uint32_t[]){4, 5}, 2);
    placement_free(&r);
}

static void test_hosts(void **state)
{
    struct placement r;
    char error[512];

    (void)state;
    assert_int_equal(place(5, 0, (const char *[]){"b:2", "localhost:1", "b:2"}, 3, &r, error), 0);
    assert_int_equal(r.n_placements, 2);
    expect(&r, 0, "b", (uint32_t[]){0, 1, 3, 4}, 4);
    expect(&r, 1, "me", (uint32_t[]){2}, 1);
    placement_free(&r);
}

static void expect_error(uint32_t n_ranks, const char **hosts, size_t n_hosts, const char *part)
{
    struct placement r = {0};
    char error[512] = "";

    assert_true(place(n_ranks, 0, hosts, n_hosts, &r, error) < 0);
    if (!strstr(error, part))
        fail_msg("error is '%s'", error);
    assert_int_equal(r.n_placements, 0);
}

static void test_errors(void **state)
{
    (void)state;
    expect_error(0, NULL, 0, "1 to");
    expect_error(300, NULL, 0, "at most 256");
    expect_error(2, (const char *[]){"x:2"}, 1, "reachable: me, a, b");
    expect_error(2, (const char *[]){"a"}, 1, "name:count");
    expect_error(2, (const char *[]){"a:1x"}, 1, "name:count");
    expect_error(2, (const char *[]){"a:1"}, 1, "for 1 of the 2");
    expect_error(2, (const char *[]){"a:3"}, 1, "more than the 2");
    expect_error(2, (const char *[]){"a:99999999999"}, 1, "name:count");
}

static Motet__Endpoint north = {.network = (char *)"north"}, east = {.network = (char *)"east"},
                       south = {.network = (char *)"south"}, west = {.network = (char *)"west"},
                       far = {.network = (char *)"far"};

/* A job on the outer two of a row of networks: what lies between counts, though no rank is
 * there. */
static void test_distances(void **state)
{
    Motet__Endpoint *on_north[] = {&north}, *gate1[] = {&north, &east}, *gate2[] = {&south, &east},
                    *on_south[] = {&south}, *gate3[] = {&west, &north}, *on_far[] = {&far};
    const struct placement_node all[] = {
        {.endpoints = on_north, .n_endpoints = 1}, {.endpoints = gate1, .n_endpoints = 2},
        {.endpoints = gate2, .n_endpoints = 2},    {.endpoints = on_south, .n_endpoints = 1},
        {.endpoints = gate3, .n_endpoints = 2},    {.endpoints = on_far, .n_endpoints = 1}};
    const char *names[] = {"south", "far", "north", "west"};
    const uint8_t wanted[16] = {0,      255, 2, 3, /**/ 255, 0,   255, 255,
                                /**/ 2, 255, 0, 1, /**/ 3,   255, 1,   0};
    uint8_t distances[16];

    (void)state;
    assert_int_equal(networks_distances(names, 4, all, 6, distances), 0);
    assert_memory_equal(distances, wanted, 16);
}

static void test_list(void **state)
{
    char *a_on[] = {(char *)"north", (char *)"east"}, *b_on[] = {(char *)"east", (char *)"south"};
    Motet__Placement a = MOTET__PLACEMENT__INIT, b = MOTET__PLACEMENT__INIT;
    Motet__Placement *placements[] = {&a, &b};
    const char *names[4];

    (void)state;
    a.networks = a_on;
    b.networks = b_on;
    a.n_networks = b.n_networks = 2;
    assert_int_equal(networks_list(placements, 2, names, 4), 3);
    assert_string_equal(names[0], "north");
    assert_string_equal(names[1], "east");
    assert_string_equal(names[2], "south");
    assert_true(networks_list(placements, 2, names, 2) < 0);
    assert_int_equal(networks_list(placements, 0, names, 4), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default),   cmocka_unit_test(test_per_node),
        cmocka_unit_test(test_hosts),     cmocka_unit_test(test_errors),
        cmocka_unit_test(test_distances), cmocka_unit_test(test_list)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
