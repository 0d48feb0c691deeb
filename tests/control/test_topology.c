/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node believes of link states: newest wins, names are unique, rubbish is refused; and the
 * graph made of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/routing/death.h"
#include "daemon/routing/epoch.h"
#include "daemon/routing/graph.h"
#include "daemon/routing/node_name.h"
#include "daemon/routing/topology.h"

static Motet__LinkState *make(const char *name, uint32_t epoch, uint64_t sequence)
{
    Motet__LinkState *s = malloc(sizeof *s);

    motet__link_state__init(s);
    s->node = strdup(name);
    s->node_id = node_name_id(name);
    s->epoch = epoch;
    s->sequence = sequence;
    s->n_cores = 1;
    s->draining = false;
    return s;
}

static void add_link(Motet__LinkState *s, const char *to, const char *network, uint32_t rtt_us)
{
    Motet__Adjacency *a = malloc(sizeof *a);

    motet__adjacency__init(a);
    a->node_id = node_name_id(to);
    a->network = strdup(network);
    a->rtt_us = rtt_us;
    a->mbytes_per_s = 100;
    s->links = realloc(s->links, (s->n_links + 1) * sizeof *s->links);
    s->links[s->n_links++] = a;
}

static void test_newest_wins(void **state)
{
    struct topology *t = topology_new(node_name_id("me"), 10, 100);
    struct topology_change change;

    (void)state;
    assert_int_equal(topology_apply(t, make("a", 5, 1), &change), 0);
    assert_false(change.restarted);
    assert_int_equal(topology_apply(t, make("a", 5, 1), &change), TOPOLOGY_E_KNOWN);
    /* Nothing but its number is new: routes stay. */
    assert_int_equal(topology_apply(t, make("a", 5, 3), &change), 0);
    assert_false(change.graph);
    assert_int_equal(topology_apply(t, make("a", 5, 2), &change), TOPOLOGY_E_OLDER);
    assert_int_equal(topology_apply(t, make("a", 6, 1), &change), 0);
    assert_true(change.restarted && change.graph);
    Motet__LinkState *drains = make("a", 6, 2);
    drains->draining = true;
    assert_int_equal(topology_apply(t, drains, &change), 0);
    assert_true(change.graph && !change.restarted);
    /* A link more, and one less, behind those that were there. */
    Motet__LinkState *more = make("a", 6, 3), *less = make("a", 6, 4);
    more->draining = less->draining = true;
    add_link(more, "b", "left", 30);
    assert_int_equal(topology_apply(t, more, &change), 0);
    assert_true(change.graph);
    assert_int_equal(topology_apply(t, less, &change), 0);
    assert_true(change.graph);
    assert_int_equal(topology_apply(t, make("a", 5, 9), &change), TOPOLOGY_E_OLDER);
    /* Epochs wrap. */
    assert_int_equal(topology_apply(t, make("b", 0xfffffff0u, 1), &change), 0);
    assert_int_equal(topology_apply(t, make("b", 3, 1), &change), 0);
    assert_int_equal(topology_count(t), 2);
    topology_free(t);
}

/* Of two incarnations one is the later one, however far apart they are, and there always is a next
 * one. */
static void test_epochs(void **state)
{
    static const uint32_t some[] = {1,         2, 3, EPOCH_HALF - 1, EPOCH_HALF, EPOCH_HALF + 1,
                                    UINT32_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        assert_false(epoch_newer(some[i], some[i]));
        assert_true(epoch_newer(epoch_after(some[i]), some[i]));
        assert_int_not_equal(epoch_after(some[i]), 0);
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(epoch_newer(some[i], some[k]), epoch_newer(some[k], some[i]));
    }
}

static void test_ourselves(void **state)
{
    struct topology *t = topology_new(node_name_id("me"), 10, 100);
    struct topology_change change;

    (void)state;
    assert_int_equal(topology_set_own(t, make("me", 10, 1), &change), 0);
    assert_int_equal(topology_apply(t, make("me", 10, 1), &change), TOPOLOGY_E_KNOWN);
    assert_int_equal(topology_apply(t, make("me", 9, 7), &change), TOPOLOGY_E_OLDER);
    assert_int_equal(topology_apply(t, make("me", 11, 7), &change), TOPOLOGY_E_OURSELVES);
    assert_int_equal(change.epoch, 11);
    /* The same number, by a clock that was set back to the very same moment. */
    assert_int_equal(topology_apply(t, make("me", 10, 7), &change), TOPOLOGY_E_OURSELVES);
    assert_int_equal(change.epoch, 10);
    assert_int_equal(topology_find(t, node_name_id("me"))->state->epoch, 10);
    topology_free(t);
}

static void test_rubbish(void **state)
{
    struct topology *t = topology_new(node_name_id("me"), 10, 2);
    struct topology_change change;
    Motet__LinkState *s;

    (void)state;
    s = make("a", 5, 1);
    s->node_id++;
    assert_true(topology_apply(t, s, &change) < 0);
    assert_true(topology_apply(t, make("a b", 5, 1), &change) < 0);
    assert_true(topology_apply(t, make("a", 0, 1), &change) < 0);
    s = make("a", 5, 1);
    add_link(s, "a", "x", 1);
    assert_true(topology_apply(t, s, &change) < 0);
    s = make("a", 5, 1);
    add_link(s, "b", "", 1);
    assert_true(topology_apply(t, s, &change) < 0);
    assert_int_equal(topology_apply(t, make("a", 5, 1), &change), 0);
    assert_int_equal(topology_apply(t, make("b", 5, 1), &change), 0);
    assert_int_equal(topology_apply(t, make("c", 5, 1), &change), TOPOLOGY_E_FULL);
    topology_free(t);
}

/* A link counts when both ends name it, with the slower figures. */
static void test_graph(void **state)
{
    struct topology *t = topology_new(node_name_id("me"), 10, 100);
    Motet__LinkState *a = make("a", 1, 1), *b = make("b", 1, 1), *c = make("c", 1, 1);
    struct graph g;
    struct topology_change change;

    (void)state;
    add_link(a, "b", "left", 30);
    add_link(b, "a", "left", 70);
    add_link(b, "c", "right", 30);
    add_link(a, "nobody", "left", 30);
    add_link(a, "b", "right", 30);
    assert_int_equal(topology_apply(t, a, &change), 0);
    assert_int_equal(topology_apply(t, b, &change), 0);
    assert_int_equal(topology_apply(t, c, &change), 0);
    assert_int_equal(graph_init(&g, t), 0);
    uint32_t ia = topology_find(t, node_name_id("a"))->index,
             ib = topology_find(t, node_name_id("b"))->index;
    assert_int_equal(g.nodes[ia].n_edges, 1);
    assert_int_equal(g.nodes[ib].n_edges, 1);
    assert_int_equal(g.nodes[ia].edges[0].to, ib);
    assert_int_equal(g.nodes[ia].edges[0].rtt_us, 70);
    assert_string_equal(graph_network(&g, g.nodes[ia].edges[0].network), "left");
    assert_int_equal(g.nodes[topology_find(t, node_name_id("c"))->index].n_edges, 0);
    graph_deinit(&g);
    topology_free(t);
}

/* Over a link of which either end says that no data passes there is no way. */
static void test_faulty_link(void **state)
{
    (void)state;
    for (int which = 0; which < 3; which++) {
        struct topology *t = topology_new(node_name_id("me"), 10, 100);
        Motet__LinkState *a = make("a", 1, 1), *b = make("b", 1, 1);
        struct topology_change change;
        struct graph g;
        add_link(a, "b", "left", 30);
        add_link(b, "a", "left", 30);
        if (which > 0) {
            Motet__Adjacency *faulty = which == 1 ? a->links[0] : b->links[0];
            faulty->has_fault = true;
            faulty->fault = 1;
        }
        assert_int_equal(topology_apply(t, a, &change), 0);
        assert_int_equal(topology_apply(t, b, &change), 0);
        assert_int_equal(graph_init(&g, t), 0);
        for (uint32_t i = 0; i < g.n_nodes; i++)
            assert_int_equal(g.nodes[i].n_edges, which == 0 ? 1 : 0);
        graph_deinit(&g);
        topology_free(t);
    }
}

static void on_death(void *ctx, struct topology_node *gone, uint64_t now_ns)
{
    (void)now_ns;
    *(uint32_t *)ctx ^= gone->node_id;
}

/* The ids of all that are told to be dead, one over the other. */
static uint32_t told(const struct topology *t)
{
    uint32_t ids = 0;

    death_each(t, on_death, &ids, 1);
    return ids;
}

/* Who says that a daemon has ended means one incarnation of it, and says so for a while. */
static void test_death_told(void **state)
{
    struct topology *t = topology_new(node_name_id("me"), 10, 100);
    struct deaths gone = {0};
    Motet__LinkState *witness = make("b", 1, 1);
    uint32_t a = node_name_id("a");
    struct topology_change change;

    (void)state;
    assert_int_equal(topology_apply(t, make("a", 5, 1), &change), 0);
    assert_true(death_note(&gone, a, 5, CLOCK_NS_PER_S));
    assert_false(death_note(&gone, a, 5, 2 * CLOCK_NS_PER_S));
    assert_int_equal(death_describe(&gone, witness), 0);
    assert_int_equal(told(t), 0);
    assert_int_equal(topology_apply(t, witness, &change), 0);
    assert_int_equal(told(t), a);
    assert_int_equal(topology_apply(t, make("a", 6, 1), &change), 0);
    assert_int_equal(told(t), 0);
    assert_false(death_expire(&gone, CLOCK_NS_PER_S, 2 * CLOCK_NS_PER_S));
    assert_true(death_expire(&gone, CLOCK_NS_PER_S, 3 * CLOCK_NS_PER_S));
    assert_int_equal(gone.n, 0);
    /* More deaths than there is room for: the latest are kept. */
    for (uint32_t i = 1; i <= TOPOLOGY_MAX_DEATHS + 3; i++)
        assert_true(death_note(&gone, i, 1, i));
    assert_int_equal(gone.n, TOPOLOGY_MAX_DEATHS);
    assert_int_equal(gone.notes[TOPOLOGY_MAX_DEATHS - 1].node_id, TOPOLOGY_MAX_DEATHS + 3);
    topology_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_newest_wins), cmocka_unit_test(test_epochs),
        cmocka_unit_test(test_ourselves),   cmocka_unit_test(test_rubbish),
        cmocka_unit_test(test_graph),       cmocka_unit_test(test_faulty_link),
        cmocka_unit_test(test_death_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
