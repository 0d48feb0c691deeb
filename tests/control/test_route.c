/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes: gateways, shares, parallel rails, and on random clusters that every choice of ways
 * arrives without a loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rand.h"
#include "daemon/routing/route.h"

#define MAX_NODES 24
#define MAX_EDGES 64

struct picture {
    uint32_t n;
    struct route_node nodes[MAX_NODES];
    struct route_edge edges[MAX_NODES][MAX_EDGES];
};

static void picture_init(struct picture *p, uint32_t n)
{
    memset(p, 0, sizeof *p);
    p->n = n;
    for (uint32_t i = 0; i < n; i++) {
        p->nodes[i].edges = p->edges[i];
        p->nodes[i].hash = i * 2654435761u;
        p->nodes[i].relays = true;
    }
}

static void join(struct picture *p, uint32_t a, uint32_t b, uint32_t network, uint32_t rtt_us,
                 uint32_t mbytes)
{
    if (p->nodes[a].n_edges == MAX_EDGES || p->nodes[b].n_edges == MAX_EDGES)
        return;
    p->edges[a][p->nodes[a].n_edges++] = (struct route_edge){b, network, rtt_us, mbytes};
    p->edges[b][p->nodes[b].n_edges++] = (struct route_edge){a, network, rtt_us, mbytes};
}

/* a -0- g -1- b */
static void test_gateway(void **state)
{
    struct picture p;
    struct route r[MAX_NODES];

    (void)state;
    picture_init(&p, 3);
    join(&p, 0, 1, 0, 50, 1000);
    join(&p, 1, 2, 1, 50, 100);
    assert_int_equal(route_compute(p.nodes, p.n, 0, r), 0);
    assert_false(r[0].reachable);
    assert_true(r[2].reachable);
    assert_int_equal(r[2].quick.next, 1);
    assert_int_equal(r[2].quick.n_hops, 2);
    assert_int_equal(r[2].n_wide, 1);
    assert_int_equal(r[2].wide[0].share, 65535);
    /* A gateway that drains is the way where there is no other, */
    p.nodes[1].relays = false;
    assert_int_equal(route_compute(p.nodes, p.n, 0, r), 0);
    assert_true(r[1].reachable);
    assert_true(r[2].reachable);
    assert_int_equal(r[2].quick.next, 1);
    assert_int_equal(r[2].wide[0].next, 1);
}

/* and carries nothing where there is, be it far longer and slower. */
static void test_round_a_gateway_that_drains(void **state)
{
    struct picture p;
    struct route r[MAX_NODES];

    (void)state;
    picture_init(&p, 5);
    join(&p, 0, 1, 0, 50, 1000);
    join(&p, 1, 4, 1, 50, 1000);
    join(&p, 0, 2, 2, 90000, 1);
    join(&p, 2, 3, 3, 90000, 1);
    join(&p, 3, 4, 4, 90000, 1);
    p.nodes[1].relays = false;
    assert_int_equal(route_compute(p.nodes, p.n, 0, r), 0);
    assert_int_equal(r[4].quick.next, 2);
    assert_int_equal(r[4].n_wide, 1);
    assert_int_equal(r[4].wide[0].next, 2);
    assert_int_equal(r[1].quick.next, 1);
}

/* Two gateways between 0 and 3 share large traffic half and half; a slow third one gets little, a
 * hopeless one nothing. */
static void test_two_gateways(void **state)
{
    struct picture p;
    struct route r[MAX_NODES];

    (void)state;
    picture_init(&p, 4);
    for (uint32_t g = 1; g <= 2; g++) {
        join(&p, 0, g, 0, 50, 1000);
        join(&p, g, 3, 1, 50, 1000);
    }
    join(&p, 1, 2, 0, 50, 1000);
    join(&p, 1, 2, 1, 50, 1000);
    assert_int_equal(route_compute(p.nodes, p.n, 0, r), 0);
    assert_int_equal(r[3].n_wide, 2);
    assert_int_equal(r[3].wide[0].share + r[3].wide[1].share, 65535);
    assert_true(abs((int)r[3].wide[0].share - 32768) < 3);
    assert_true(r[3].wide[0].next != r[3].wide[1].next);
    /* Neighbours are reached directly, not through one another. */
    assert_int_equal(r[1].n_wide, 1);
    assert_int_equal(r[1].wide[0].next, 1);
}

static void test_rails(void **state)
{
    struct picture p;
    struct route r[MAX_NODES];

    (void)state;
    picture_init(&p, 2);
    join(&p, 0, 1, 0, 50, 3000);
    join(&p, 0, 1, 1, 20, 1000);
    join(&p, 0, 1, 2, 50, 10);
    assert_int_equal(route_compute(p.nodes, p.n, 0, r), 0);
    assert_int_equal(r[1].n_wide, 2);
    assert_int_equal(r[1].wide[0].network, 0);
    assert_true(r[1].wide[0].share > 2 * r[1].wide[1].share);
    assert_int_equal(r[1].wide[0].share + r[1].wide[1].share, 65535);
}

/* Nodes of one network without a link between them: a third one of it is the way, gateway or
 * not. */
static void test_partial_mesh(void **state)
{
    struct picture p;
    struct route r[MAX_NODES];

    (void)state;
    picture_init(&p, 3);
    join(&p, 0, 1, 0, 50, 1000);
    join(&p, 1, 2, 0, 50, 1000);
    assert_int_equal(route_compute(p.nodes, p.n, 0, r), 0);
    assert_true(r[2].reachable);
    assert_int_equal(r[2].quick.next, 1);
    assert_int_equal(r[2].n_wide, 1);
}

/* Follows ways at random. True if it arrives within n hops. */
static bool arrives(const struct picture *p, struct route all[MAX_NODES][MAX_NODES], uint32_t from,
                    uint32_t to, bool wide, struct rand *rand)
{
    for (uint32_t hops = 0; hops <= p->n; hops++) {
        if (from == to)
            return true;
        const struct route *r = &all[from][to];
        if (!r->reachable)
            return false;
        from = wide ? r->wide[rand_below(rand, r->n_wide)].next : r->quick.next;
    }
    return false;
}

static void test_random(void **state)
{
    static struct picture p;
    static struct route all[MAX_NODES][MAX_NODES];

    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct rand rand = {seed};
        uint32_t n = 2 + (uint32_t)rand_below(&rand, MAX_NODES - 2),
                 n_networks = 1 + (uint32_t)rand_below(&rand, 5);
        uint32_t on[MAX_NODES];
        picture_init(&p, n);
        for (uint32_t i = 0; i < n; i++)
            on[i] =
                (uint32_t)rand_next(&rand) & (uint32_t)rand_next(&rand) & ((1u << n_networks) - 1);
        for (uint32_t a = 0; a < n; a++)
            for (uint32_t b = a + 1; b < n; b++)
                for (uint32_t w = 0; w < n_networks; w++)
                    if (on[a] & on[b] & (1u << w))
                        join(&p, a, b, w, 10 + (uint32_t)rand_below(&rand, 200),
                             1 + (uint32_t)rand_below(&rand, 10000));
        for (uint32_t i = 0; i < n; i++)
            assert_int_equal(route_compute(p.nodes, n, i, all[i]), 0);
        for (uint32_t a = 0; a < n; a++) {
            for (uint32_t b = 0; b < n; b++) {
                assert_int_equal(all[a][b].reachable, all[b][a].reachable);
                if (a == b || !all[a][b].reachable)
                    continue;
                uint32_t sum = 0;
                for (uint32_t i = 0; i < all[a][b].n_wide; i++)
                    sum += all[a][b].wide[i].share;
                assert_int_equal(sum, 65535);
                for (int round = 0; round < 4; round++)
                    if (!arrives(&p, all, a, b, false, &rand) ||
                        !arrives(&p, all, a, b, true, &rand))
                        fail_msg("seed %llu: packets from %u to %u go round in circles",
                                 (unsigned long long)seed, a, b);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gateway),      cmocka_unit_test(test_round_a_gateway_that_drains),
        cmocka_unit_test(test_two_gateways), cmocka_unit_test(test_rails),
        cmocka_unit_test(test_partial_mesh), cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
