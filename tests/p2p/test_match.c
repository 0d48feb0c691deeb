/* SPDX-License-Identifier: BSD-3-Clause */
/* The match tables alone: of all receives and messages that fit, the oldest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/p2p/credit.h"
#include "client/p2p/match.h"

#define MANY 3000

static struct match match;

static int set_up(void **state)
{
    (void)state;
    memset(&match, 0, sizeof match);
    return match_init(&match);
}

static int tear_down(void **state)
{
    (void)state;
    match_deinit(&match);
    return 0;
}

static void post(struct match_node *node, uint32_t context, int source, int tag)
{
    *node = (struct match_node){.context = context, .source = source, .tag = tag};
    match_post(&match, node);
}

static struct unexpected *add(uint32_t context, int source, int tag)
{
    struct unexpected *u = calloc(1, sizeof *u);

    u->match = (struct match_node){.context = context, .source = source, .tag = tag};
    match_add_unexpected(&match, u);
    return u;
}

/* The oldest that fits is taken off. */
static struct unexpected *take(uint32_t context, int source, int tag)
{
    struct unexpected *u = match_find_unexpected(&match, context, source, tag);

    if (u)
        match_remove_unexpected(&match, u);
    return u;
}

/* Which of the four ways of asking for (0, 5, 7) */
static void post_kind(struct match_node *node, int kind)
{
    post(node, 0, kind & 1 ? MPI_ANY_SOURCE : 5, kind & 2 ? MPI_ANY_TAG : 7);
}

/* Whatever the order in which exact and wildcard receives are posted, the oldest wins. */
static void test_oldest_of_four_kinds(void **state)
{
    (void)state;
    for (int order = 0; order < 256; order++) {
        struct match_node nodes[4];
        for (int i = 0; i < 4; i++)
            post_kind(&nodes[i], order >> 2 * i & 3);
        for (int i = 0; i < 4; i++) {
            assert_ptr_equal(match_arrived(&match, 0, 5, 7), &nodes[i]);
            assert_false(nodes[i].posted);
        }
        assert_null(match_arrived(&match, 0, 5, 7));
    }
}

/* A receive takes only what it asks for, in its context. */
static void test_what_does_not_fit(void **state)
{
    struct match_node exact, source, tag, both;

    (void)state;
    post(&exact, 4, 1, 2);
    post(&source, 4, MPI_ANY_SOURCE, 3);
    post(&tag, 4, 6, MPI_ANY_TAG);
    assert_null(match_arrived(&match, 5, 1, 2));
    assert_null(match_arrived(&match, 4, 2, 2));
    assert_null(match_arrived(&match, 4, 1, 4));
    assert_null(match_arrived(&match, 5, 1, 3));
    assert_null(match_arrived(&match, 5, 6, 3));
    post(&both, 4, MPI_ANY_SOURCE, MPI_ANY_TAG);
    assert_null(match_arrived(&match, 5, 9, 9));
    assert_ptr_equal(match_arrived(&match, 4, 9, 9), &both);
    assert_ptr_equal(match_arrived(&match, 4, 6, 9), &tag);
    assert_ptr_equal(match_arrived(&match, 4, 9, 3), &source);
    assert_ptr_equal(match_arrived(&match, 4, 1, 2), &exact);
    assert_int_equal(match.posted.n, 0);
    assert_int_equal(match.n_any_source + match.n_any_tag + match.n_any_both, 0);
}

/* One key for all: the order stays through every growth of the table. */
static void test_many_of_one_key(void **state)
{
    static struct match_node nodes[MANY];

    (void)state;
    for (int i = 0; i < MANY; i++)
        post(&nodes[i], 8, 3, 1);
    assert_true(match.posted.mask + 1 > 256);
    for (int i = 0; i < MANY; i++)
        assert_ptr_equal(match_arrived(&match, 8, 3, 1), &nodes[i]);
}

static void test_many_keys(void **state)
{
    static struct match_node nodes[MANY];

    (void)state;
    for (int i = 0; i < MANY; i++)
        post(&nodes[i], (uint32_t)(i % 7) * 4, i % 11, i / 77);
    for (int i = MANY - 1; i >= 0; i--)
        assert_ptr_equal(match_arrived(&match, (uint32_t)(i % 7) * 4, i % 11, i / 77), &nodes[i]);
    assert_int_equal(match.posted.n, 0);
}

/* A receive that was taken back is not found, and those around it are. */
static void test_unpost(void **state)
{
    struct match_node nodes[8];

    (void)state;
    for (int i = 0; i < 8; i++)
        post_kind(&nodes[i], i % 4);
    for (int i = 0; i < 8; i += 2)
        match_unpost(&match, &nodes[i]);
    for (int i = 1; i < 8; i += 2)
        assert_ptr_equal(match_arrived(&match, 0, 5, 7), &nodes[i]);
    assert_null(match_arrived(&match, 0, 5, 7));
    assert_int_equal(match.n_any_source + match.n_any_tag + match.n_any_both, 0);
}

/* The four ways of asking find the oldest of what has come. */
static void test_unexpected(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        int source = kind & 1 ? MPI_ANY_SOURCE : 5, tag = kind & 2 ? MPI_ANY_TAG : 7;
        struct unexpected *expected[3];
        /* Another context of the same class of contexts; other sources and tags. */
        struct unexpected *other = add(64, 5, 7), *there = add(0, 6, 8);
        for (int i = 0; i < 3; i++)
            expected[i] = add(0, 5, 7);
        if (kind == 3)
            assert_ptr_equal(take(0, source, tag), there);
        for (int i = 0; i < 3; i++) {
            assert_ptr_equal(match_find_unexpected(&match, 0, source, tag), expected[i]);
            assert_ptr_equal(take(0, source, tag), expected[i]);
            free(expected[i]);
        }
        assert_null(take(0, source, tag));
        assert_ptr_equal(take(64, MPI_ANY_SOURCE, MPI_ANY_TAG), other);
        if (kind != 3)
            assert_ptr_equal(take(0, 6, 8), there);
        free(other);
        free(there);
        assert_int_equal(match.n_unexpected, 0);
    }
}

static void test_many_unexpected(void **state)
{
    static struct unexpected *all[MANY];

    (void)state;
    for (int i = 0; i < MANY; i++)
        all[i] = add(12, 2, i % 2);
    for (int i = 0; i < MANY; i += 2) { /* exact ones out of the middle, then what is left */
        assert_ptr_equal(take(12, 2, 0), all[i]);
        free(all[i]);
    }
    for (int i = 1; i < MANY; i += 2) {
        assert_ptr_equal(take(12, MPI_ANY_SOURCE, MPI_ANY_TAG), all[i]);
        free(all[i]);
    }
    assert_int_equal(match.n_unexpected, 0);
}

/* Wildcards do not leave their context, even where contexts share a class. */
static void test_unexpected_context(void **state)
{
    (void)state;
    struct unexpected *u = add(20, 1, 1);
    assert_null(take(20 + MATCH_CONTEXT_CLASSES, MPI_ANY_SOURCE, MPI_ANY_TAG));
    assert_null(take(20 + MATCH_CONTEXT_CLASSES, 1, 1));
    assert_null(take(20, 2, MPI_ANY_TAG));
    assert_null(take(20, MPI_ANY_SOURCE, 2));
    assert_ptr_equal(take(20, 1, MPI_ANY_TAG), u);
    free(u);
}

/* The allowance of a pair: to the last byte, and never more than was taken comes back. */
static void test_credit(void **state)
{
    struct credit c = {0};

    (void)state;
    assert_true(credit_allows(&c, CREDIT_BYTES - CREDIT_OVERHEAD));
    assert_false(credit_allows(&c, CREDIT_BYTES - CREDIT_OVERHEAD + 1));
    credit_take(&c, 1000);
    assert_int_equal(c.used, 1000 + CREDIT_OVERHEAD);
    assert_true(credit_allows(&c, CREDIT_BYTES - 1000 - 2 * CREDIT_OVERHEAD));
    assert_false(credit_allows(&c, CREDIT_BYTES - 1000 - 2 * CREDIT_OVERHEAD + 1));
    credit_returned(&c, 64);
    assert_int_equal(c.used, 1000);
    credit_returned(&c, UINT64_MAX);
    assert_int_equal(c.used, 0);

    assert_false(credit_owe(&c, CREDIT_BATCH - CREDIT_OVERHEAD - 1));
    assert_true(credit_owe(&c, 0));
    assert_int_equal(credit_settle(&c), CREDIT_BATCH + CREDIT_OVERHEAD - 1);
    assert_int_equal(credit_settle(&c), 0);
}

/* The most that there were, from when somebody began to watch; also over the growth of the table.
 */
static void test_watch(void **state)
{
    static struct match_node nodes[MANY];
    (void)state;
    for (int i = 0; i < 3; i++)
        post(&nodes[i], 0, 1, i);
    match_table_watch(&match.posted, true);
    assert_int_equal(match.posted.high, 3);
    match_unpost(&match, &nodes[0]);
    post(&nodes[0], 0, 1, 0);
    assert_int_equal(match.posted.high, 3);
    for (int i = 3; i < MANY; i++) {
        post(&nodes[i], 4, 1, i);
        assert_int_equal(match.posted.high, i + 1);
    }
    assert_int_equal(match_table_count(&match.posted, 0), 3);
    assert_int_equal(match_table_count(&match.posted, 4), MANY - 3);
    assert_true(match.posted.mask >= MANY / 2 - 1);
    for (int i = 0; i < MANY; i++)
        match_unpost(&match, &nodes[i]);
    assert_int_equal(match.posted.high, MANY);
    match_table_watch(&match.posted, false);
    post(&nodes[0], 0, 1, 0);
    assert_int_equal(match.posted.high, 0);
    match_unpost(&match, &nodes[0]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_oldest_of_four_kinds),
        TEST(test_what_does_not_fit),
        TEST(test_many_of_one_key),
        TEST(test_many_keys),
        TEST(test_unpost),
        TEST(test_unexpected),
        TEST(test_many_unexpected),
        TEST(test_unexpected_context),
        TEST(test_watch),
        TEST(test_credit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
