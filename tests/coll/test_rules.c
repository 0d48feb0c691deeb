/* SPDX-License-Identifier: BSD-3-Clause */
/* The choice of algorithms: what the library's rules give at and behind their borders, and that
 * nothing is chosen that the ranks of a call cannot do. */
#include "client/coll/choice/name.h"
#include "client/coll/choice/rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define KIB     1024
#define MIB     (1024 * 1024)
#define SHARED  (1 * MIB) /* largest publication */
#define NOTHING (-1)

static struct rules_facts on_node(int n_ranks, MPI_Count n_bytes)
{
    return (struct rules_facts){.n_ranks = n_ranks,
                                .shape = RULES_ONE_NODE,
                                .shared_bytes = SHARED,
                                .n_bytes = n_bytes,
                                .regular = true};
}

static struct rules_facts by_messages(int n_ranks, MPI_Count n_bytes)
{
    struct rules_facts facts = on_node(n_ranks, n_bytes);
    facts.shared_bytes = NOTHING;
    return facts;
}

static struct rules_facts on_nodes(int n_ranks, MPI_Count n_bytes)
{
    struct rules_facts facts = by_messages(n_ranks, n_bytes);
    facts.shape = RULES_SEVERAL_NODES;
    facts.has_nodes = n_ranks > 2;
    return facts;
}

static struct rules_facts on_networks(int n_ranks, MPI_Count n_bytes)
{
    struct rules_facts facts = on_nodes(n_ranks, n_bytes);
    facts.shape = RULES_SEVERAL_NETWORKS;
    facts.has_networks = n_ranks > 2;
    return facts;
}

static void expect(enum coll_family family, struct rules_facts facts, enum algorithm_name wanted)
{
    int name = rules_first(rules_of(family), &facts);
    if (name != (int)wanted)
        fail_msg("%s of %d ranks, %lld bytes: %s instead of %s", name_of_family(family),
                 facts.n_ranks, (long long)facts.n_bytes,
                 name < 0 ? "nothing" : algorithm_table[name].name, algorithm_table[wanted].name);
}

/* Up to a border one algorithm, behind it another one. */
static void expect_border(enum coll_family family, struct rules_facts facts,
                          enum algorithm_name before, enum algorithm_name behind)
{
    expect(family, facts, before);
    facts.n_bytes++;
    expect(family, facts, behind);
}

static void test_borders_on_a_node(void **state)
{
    (void)state;
    expect(COLL_BARRIER, on_node(2, 0), BARRIER_SHARED);
    expect_border(COLL_BCAST, on_node(2, 48 * KIB), BCAST_SHARED, BCAST_BINOMIAL);
    expect_border(COLL_BCAST, on_node(3, 2 * MIB), BCAST_SHARED, BCAST_PIPELINE);
    expect_border(COLL_BCAST, on_node(9, 2 * MIB), BCAST_SHARED, BCAST_SCATTER_ALLGATHER);
    expect_border(COLL_GATHER, on_node(4, 32 * KIB), GATHER_SHARED, GATHER_LINEAR);
    expect_border(COLL_SCATTER, on_node(4, 32 * KIB), SCATTER_SHARED, SCATTER_LINEAR);
    expect_border(COLL_ALLGATHER, on_node(4, 512 * KIB), ALLGATHER_SHARED, ALLGATHER_RING);
    expect_border(COLL_ALLTOALL, on_node(2, 8 * KIB), ALLTOALL_SHARED, ALLTOALL_LINEAR);
    expect_border(COLL_ALLTOALL, on_node(3, 32 * KIB), ALLTOALL_SHARED, ALLTOALL_LINEAR);
    expect_border(COLL_REDUCE, on_node(4, 128 * KIB), REDUCE_SHARED, REDUCE_RABENSEIFNER);
    expect_border(COLL_ALLREDUCE, on_node(4, 16 * KIB), ALLREDUCE_SHARED, ALLREDUCE_RABENSEIFNER);
    expect_border(COLL_REDUCE_SCATTER, on_node(2, 32 * KIB), REDUCE_SCATTER_SHARED,
                  REDUCE_SCATTER_HALVING);
    expect_border(COLL_REDUCE_SCATTER, on_node(5, 128 * KIB), REDUCE_SCATTER_SHARED,
                  REDUCE_SCATTER_HALVING);
    expect_border(COLL_REDUCE_SCATTER, on_node(6, 512 * KIB), REDUCE_SCATTER_SHARED,
                  REDUCE_SCATTER_PAIRWISE);
    expect_border(COLL_SCAN, on_node(4, 512 * KIB), SCAN_SHARED, SCAN_DOUBLING);
}

/* A publication holds a block for each rank in scatter and alltoall, and one for all in the others;
 * a broadcast is cut into segments. */
static void test_largest_publication(void **state)
{
    (void)state;
    struct rules_facts facts = on_node(8, 8 * KIB);
    facts.shared_bytes = 64 * KIB;
    expect_border(COLL_ALLTOALL, facts, ALLTOALL_SHARED, ALLTOALL_LINEAR);
    expect_border(COLL_SCATTER, facts, SCATTER_SHARED, SCATTER_LINEAR);
    facts.n_ranks = 64;
    facts.n_bytes = KIB;
    expect_border(COLL_ALLTOALL, facts, ALLTOALL_SHARED, ALLTOALL_LINEAR);
    expect_border(COLL_SCATTER, facts, SCATTER_SHARED, SCATTER_LINEAR);
    facts.n_bytes = 64 * KIB;
    expect_border(COLL_ALLGATHER, facts, ALLGATHER_SHARED, ALLGATHER_RING);
    expect_border(COLL_REDUCE, facts, REDUCE_SHARED, REDUCE_RABENSEIFNER);
    expect_border(COLL_SCAN, facts, SCAN_SHARED, SCAN_DOUBLING);
    facts.n_bytes = MIB;
    expect(COLL_BCAST, facts, BCAST_SHARED);
}

static void test_borders_of_messages(void **state)
{
    (void)state;
    expect(COLL_BARRIER, by_messages(4, 0), BARRIER_DISSEMINATION);
    expect(COLL_BCAST, by_messages(2, 64 * MIB), BCAST_BINOMIAL);
    expect_border(COLL_BCAST, by_messages(5, 32 * KIB), BCAST_BINOMIAL, BCAST_PIPELINE);
    expect_border(COLL_BCAST, by_messages(4, 128 * KIB), BCAST_BINOMIAL, BCAST_PIPELINE);
    expect_border(COLL_BCAST, by_messages(9, 32 * KIB), BCAST_BINOMIAL, BCAST_SCATTER_ALLGATHER);
    expect_border(COLL_GATHER, by_messages(4, KIB), GATHER_BINOMIAL, GATHER_LINEAR);
    expect(COLL_GATHER, by_messages(3, 1), GATHER_LINEAR);
    expect_border(COLL_SCATTER, by_messages(4, KIB), SCATTER_BINOMIAL, SCATTER_LINEAR);
    expect_border(COLL_ALLGATHER, by_messages(4, 64 * KIB), ALLGATHER_RECURSIVE_DOUBLING,
                  ALLGATHER_RING);
    expect_border(COLL_ALLGATHER, by_messages(5, 32 * KIB), ALLGATHER_BRUCK, ALLGATHER_RING);
    expect_border(COLL_ALLTOALL, by_messages(8, 256), ALLTOALL_BRUCK, ALLTOALL_LINEAR);
    expect(COLL_ALLTOALL, by_messages(7, 256), ALLTOALL_LINEAR);
    expect_border(COLL_ALLTOALL, by_messages(16, 128 * KIB), ALLTOALL_LINEAR, ALLTOALL_PAIRWISE);
    expect_border(COLL_ALLTOALL, by_messages(17, 32 * KIB), ALLTOALL_LINEAR, ALLTOALL_PAIRWISE);
    expect_border(COLL_REDUCE, by_messages(3, 16 * KIB), REDUCE_BINOMIAL, REDUCE_RABENSEIFNER);
    expect(COLL_REDUCE, by_messages(2, MIB), REDUCE_BINOMIAL);
    expect_border(COLL_ALLREDUCE, by_messages(3, 8 * KIB), ALLREDUCE_RECURSIVE_DOUBLING,
                  ALLREDUCE_RABENSEIFNER);
    expect_border(COLL_ALLREDUCE, by_messages(2, 8 * KIB), ALLREDUCE_RECURSIVE_DOUBLING,
                  ALLREDUCE_RING);
    expect_border(COLL_ALLREDUCE, by_messages(5, 4 * MIB), ALLREDUCE_RABENSEIFNER, ALLREDUCE_RING);
    expect_border(COLL_REDUCE_SCATTER, by_messages(2, 256 * KIB), REDUCE_SCATTER_HALVING,
                  REDUCE_SCATTER_PAIRWISE);
    expect(COLL_SCAN, by_messages(2, MIB), SCAN_DOUBLING);
}

static void test_several_nodes(void **state)
{
    (void)state;
    expect(COLL_BARRIER, on_nodes(4, 0), BARRIER_NODES);
    expect(COLL_BCAST, on_nodes(4, MIB), BCAST_NODES);
    expect(COLL_REDUCE, on_nodes(4, 8), REDUCE_NODES);
    expect(COLL_ALLREDUCE, on_nodes(4, MIB), ALLREDUCE_NODES);
    expect(COLL_GATHER, on_nodes(4, 8), GATHER_BINOMIAL);
    expect_border(COLL_ALLTOALL, on_nodes(4, 32 * KIB), ALLTOALL_LINEAR, ALLTOALL_PAIRWISE);
    expect(COLL_BARRIER, on_nodes(2, 0), BARRIER_DISSEMINATION);
}

static void test_several_networks(void **state)
{
    (void)state;
    expect(COLL_BARRIER, on_networks(3, 0), BARRIER_NETWORKS);
    expect(COLL_BCAST, on_networks(3, 64 * MIB), BCAST_NETWORKS);
    expect_border(COLL_GATHER, on_networks(3, 16 * KIB), GATHER_NETWORKS, GATHER_LINEAR);
    expect_border(COLL_SCATTER, on_networks(3, 16 * KIB), SCATTER_NETWORKS, SCATTER_LINEAR);
    expect(COLL_ALLGATHER, on_networks(3, 8), ALLGATHER_NETWORKS);
    expect(COLL_ALLTOALL, on_networks(8, 8), ALLTOALL_LINEAR); /* not Bruck's rounds */
    expect(COLL_REDUCE, on_networks(3, MIB), REDUCE_NETWORKS);
    expect(COLL_ALLREDUCE, on_networks(3, MIB), ALLREDUCE_NETWORKS);
    expect(COLL_REDUCE_SCATTER, on_networks(3, MIB), REDUCE_SCATTER_NETWORKS);
    expect(COLL_SCAN, on_networks(3, MIB), SCAN_NETWORKS);
    expect(COLL_BCAST, on_networks(2, 8), BCAST_BINOMIAL);
}

static void test_irregular(void **state)
{
    (void)state;
    struct rules_facts facts = by_messages(8, 1);
    facts.regular = false;
    expect(COLL_GATHER, facts, GATHER_LINEAR);
    expect(COLL_SCATTER, facts, SCATTER_LINEAR);
    expect(COLL_ALLGATHER, facts, ALLGATHER_BRUCK);
    expect(COLL_ALLTOALL, facts, ALLTOALL_LINEAR);
    expect(COLL_REDUCE_SCATTER, facts, REDUCE_SCATTER_REDUCE_SCATTER);
    facts.n_bytes = 8 * MIB;
    expect(COLL_ALLREDUCE, facts, ALLREDUCE_RABENSEIFNER);
}

/* Whatever the facts: something of the family is chosen, and what is chosen can be done. */
static void check_facts(struct rules_facts facts)
{
    for (int family = 0; family < COLL_FAMILIES; family++) {
        int name = rules_first(rules_of((enum coll_family)family), &facts);
        assert_true(name >= 0 && name < ALGORITHMS);
        const struct algorithm *a = &algorithm_table[name];
        assert_int_equal(a->family, family);
        if (a->needs & NEEDS_SHARED) {
            assert_true(facts.n_ranks > 1 && facts.shared_bytes >= 0);
            bool each = family == COLL_SCATTER || family == COLL_ALLTOALL;
            if (family != COLL_BCAST)
                assert_true(facts.n_bytes * (each ? facts.n_ranks : 1) <= facts.shared_bytes);
        }
        if (a->needs & NEEDS_REGULAR)
            assert_true(facts.regular);
        if (a->needs & NEEDS_POF2)
            assert_int_equal(__builtin_popcount((unsigned)facts.n_ranks), 1);
        if (a->needs & NEEDS_NODES)
            assert_true(facts.has_nodes);
        if (a->needs & NEEDS_NETWORKS)
            assert_true(facts.has_networks);
    }
}

static void test_all_facts(void **state)
{
    (void)state;
    static const MPI_Count shared[] = {NOTHING, 0, 1000, 64 * KIB, SHARED};
    static const int ranks[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 64, 100, 1000};
    for (size_t r = 0; r < sizeof ranks / sizeof ranks[0]; r++)
        for (size_t m = 0; m < sizeof shared / sizeof shared[0]; m++)
            for (MPI_Count n = 0; n <= 64 * MIB; n = n ? 2 * n : 1)
                for (int bits = 0; bits < 2 * 2 * 2 * 3; bits++)
                    for (int off = -1; off <= 1; off++) {
                        struct rules_facts facts = {
                            .n_ranks = ranks[r],
                            .shape = (enum rules_shape)(RULES_ONE_NODE + bits / 8),
                            .has_nodes = bits & 1,
                            .has_networks = bits >> 1 & 1,
                            .regular = bits >> 2 & 1,
                            .shared_bytes = shared[m],
                            .n_bytes = n + off < 0 ? 0 : n + off};
                        check_facts(facts);
                    }
}

/* What short calls take without reading the rules is what the rules say. */
static void test_quick(void **state)
{
    (void)state;
    for (int family = 0; family < COLL_FAMILIES; family++)
        for (int n_ranks = 2; n_ranks <= 70; n_ranks++)
            for (MPI_Count shared = KIB; shared <= 4 * MIB; shared *= 4) {
                enum algorithm_name name;
                struct rules rules = rules_of((enum coll_family)family);
                struct rules_facts facts = on_node(n_ranks, 0);
                facts.shared_bytes = shared;
                MPI_Count most = rules_quick(rules, n_ranks, shared, &name);
                assert_true(most >= 0 && (algorithm_table[name].needs & NEEDS_SHARED));
                facts.n_bytes = most < 64 * MIB ? most : 64 * MIB;
                expect((enum coll_family)family, facts, name);
                facts.n_bytes = most + 1;
                if (family != COLL_BARRIER) /* which has no bytes */
                    assert_int_not_equal(rules_first(rules, &facts), name);
            }
    enum algorithm_name name;
    assert_int_equal(rules_quick(rules_of(COLL_BCAST), 1, SHARED, &name), -1);
}

static void test_names(void **state)
{
    (void)state;
    char list[256];
    assert_int_equal(name_find_family("bcast"), COLL_BCAST);
    assert_int_equal(name_find_family("REDUCE_SCATTER"), COLL_REDUCE_SCATTER);
    assert_int_equal(name_find_family("reduce_scatte"), -1);
    assert_int_equal(name_find(COLL_BCAST, "pipeline"), BCAST_PIPELINE);
    assert_int_equal(name_find(COLL_SCAN, "pipeline"), -1);
    for (int i = 0; i < ALGORITHMS; i++) {
        assert_int_equal(name_find(algorithm_table[i].family, algorithm_table[i].name), i);
        assert_non_null(algorithm_table[i].barrier); /* any of the union */
    }
    name_list(COLL_SCAN, list, sizeof list);
    assert_string_equal(list, "doubling, nodes, networks, shared");
    name_list_families(list, 12);
    assert_string_equal(list, "BARRIER, BC");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_borders_on_a_node),
                                       cmocka_unit_test(test_largest_publication),
                                       cmocka_unit_test(test_borders_of_messages),
                                       cmocka_unit_test(test_several_nodes),
                                       cmocka_unit_test(test_several_networks),
                                       cmocka_unit_test(test_irregular),
                                       cmocka_unit_test(test_all_facts),
                                       cmocka_unit_test(test_quick),
                                       cmocka_unit_test(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
