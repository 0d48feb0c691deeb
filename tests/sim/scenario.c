/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Set pieces on the simulated cluster: what must hold in one named situation, where sim.c draws
 * situations at random.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "proto/segment.h"
#include "tests/sim/sim_job.h"
#include "tests/sim/traffic.h"

#define RANKS 4u
/* So many messages fit into what is held for a rank and what is set aside. */
#define N_HEEDLESS 120u
#define JOB        4711u

/* Two ranks on the first node (0 and 1) and two on the last (2 and 3), each using channel 0 of its
 * node. */
struct world {
    struct sim s;
    struct sim_job job;
    struct sim_rings rings[RANKS];
    struct cmd_event events[64];
    uint32_t n_events;
};

/* The random traffic is not part of these. */
void traffic_event(struct sim *s, const struct sim_event *e)
{
    (void)s;
    (void)e;
}
void traffic_node_died(struct sim *s, uint32_t node)
{
    (void)s;
    (void)node;
}
void traffic_node_started(struct sim *s, uint32_t node)
{
    (void)s;
    (void)node;
}

/* Everyone has a turn; 5 us pass. */
static void step(struct world *w)
{
    struct sim *s = &w->s;
    struct cmd_event e;

    cluster_run_events(s);
    for (uint32_t n = 0; n < s->n_networks; n++)
        net_sim_run(s->networks[n], s->now_ns);
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        for (uint32_t c = 0; s->nodes[i].alive && c < s->nodes[i].n_nics; c++) {
            channel_turn(s->nodes[i].nics[c].ch, s->now_ns);
            while (channel_next_event(s->nodes[i].nics[c].ch, &e))
                if (e.type != EVENT_RTT && w->n_events < 64)
                    w->events[w->n_events++] = e;
        }
    }
    s->now_ns += 5000;
}

static struct world *world_new(uint32_t topology)
{
    struct world *w = calloc(1, sizeof *w);
    const struct segment_shape shape = {.board_records = 64,
                                        .n_vcis = 1,
                                        .local = {4, 4096},
                                        .up = {64, 65536},
                                        .down = {64, 65536}};

    assert_non_null(w);
    w->s.seed = 1;
    w->s.rand.state = 12345;
    w->s.fixed_topology = topology;
    w->s.calm = true;
    w->s.now_ns = CLOCK_NS_PER_S;
    cluster_build(&w->s);
    w->job = (struct sim_job){.id = JOB, .n_world = RANKS, .backlog_bytes = 500000};
    for (uint32_t r = 0; r < RANKS; r++) {
        struct sim_place *place = &w->job.places[r];
        place->node = r < 2 ? 0 : w->s.n_nodes - 1;
        place->local = w->job.parts[place->node].n_local++;
    }
    sim_job_number_nodes(&w->s, &w->job);
    for (uint32_t k = 0; k < w->job.n_nodes; k++) {
        sim_job_part_make(&w->s, &w->job, w->job.nodes[k], &shape);
        sim_job_attach(&w->s, &w->job, w->job.nodes[k]);
    }
    for (uint32_t r = 0; r < RANKS; r++)
        sim_job_rings_open(&w->s, &w->job, r, &w->rings[r]);
    /* Until data has passed every link: a channel uses none before. */
    for (uint64_t start = w->s.now_ns; w->s.now_ns - start < 100 * CLOCK_NS_PER_MS;)
        step(w);
    w->n_events = 0;
    return w;
}

static struct sim_part *part_of(struct world *w, uint32_t rank)
{
    return &w->job.parts[w->job.places[rank].node];
}

static void world_free(struct world *w)
{
    cluster_free(&w->s);
    for (uint32_t r = 0; r < RANKS; r++)
        sim_job_rings_close(&w->rings[r]);
    for (uint32_t k = 0; k < w->job.n_nodes; k++)
        sim_job_part_free(&w->job.parts[w->job.nodes[k]]);
    free(w);
}

static bool happened(const struct world *w, enum event_type type)
{
    for (uint32_t i = 0; i < w->n_events; i++)
        if (w->events[i].type == (uint32_t)type)
            return true;
    return false;
}

static bool put(struct world *w, uint32_t from, uint32_t to, uint32_t len, uint32_t tag)
{
    void *payload;
    struct ring_slot *slot = ring_claim(&w->rings[from].up[0], len, &payload);

    if (!slot)
        return false;
    memset(payload, (int)tag, len);
    slot->kind = MSG_EAGER;
    slot->peer = to;
    slot->tag = (int32_t)tag;
    ring_publish(&w->rings[from].up[0]);
    return true;
}

/* Tag of the next message of this rank, -1 if there is none. */
static int32_t get(struct world *w, uint32_t rank)
{
    struct ring_slot *slot = ring_peek(&w->rings[rank].down[0]);

    if (!slot)
        return -1;
    int32_t tag = slot->tag;
    const uint8_t *p = ring_payload(&w->rings[rank].down[0], slot, slot->len, slot->data_line);
    if (slot->len > 0)
        assert_int_equal(p[slot->len - 1], (uint8_t)tag);
    ring_advance(&w->rings[rank].down[0], slot->len);
    return tag;
}

/* Rank 0 floods rank 2, which reads nothing for five seconds. Ranks 1 and 3 must not notice, and
 * afterwards rank 2 gets all. */
static void test_rank_that_does_not_drain(void **state)
{
    struct world *w = world_new(1);
    uint32_t n_flood = 0, n_pings = 0, n_read = 0;
    bool waiting = false;
    uint64_t sent_ns = 0, worst_ns = 0, start = w->s.now_ns;

    (void)state;
    while (w->s.now_ns - start < 5 * CLOCK_NS_PER_S) {
        if (n_flood < 2000)
            n_flood += put(w, 0, 2, 4000, n_flood & 0xff);
        if (!waiting && put(w, 1, 3, 8, n_pings)) {
            waiting = true;
            sent_ns = w->s.now_ns;
        }
        step(w);
        int32_t tag = get(w, 3);
        if (tag >= 0) {
            assert_int_equal(tag, (int32_t)n_pings);
            n_pings++;
            waiting = false;
            if (w->s.now_ns - sent_ns > worst_ns)
                worst_ns = w->s.now_ns - sent_ns;
        }
    }
    assert_false(happened(w, EVENT_BACKLOG_OVERFLOW));
    assert_true(n_flood < 2000);
    assert_true(worst_ns < 5 * CLOCK_NS_PER_MS);
    assert_true(n_pings > 10000);
    start = w->s.now_ns;
    while (n_read < 2000) {
        assert_true(w->s.now_ns - start < 5 * CLOCK_NS_PER_S);
        if (n_flood < 2000)
            n_flood += put(w, 0, 2, 4000, n_flood & 0xff);
        step(w);
        for (int32_t tag; (tag = get(w, 2)) >= 0; n_read++)
            ;
    }
    world_free(w);
}

static bool is_closed(struct world *w, uint32_t from, uint32_t to)
{
    const struct sim_part *p = part_of(w, from);

    return atomic_load(&segment_closed_at(p->segment, &p->layout, 0)[to]) != 0;
}

/* Rank 0 floods rank 2, which reads nothing, and talks to rank 3 by the same ring. Rank 3 gets all
 * of it at once. `heeds`: rank 0 keeps what is for rank 2 while it is closed. When rank 2 reads
 * again, it is open and gets all. */
static void flood_and_talk(bool heeds)
{
    struct world *w = world_new(1);
    uint32_t n_flood = 0, n_pings = 0, n_read = 0;
    bool waiting = false, closed = false;
    uint64_t sent_ns = 0, worst_ns = 0, start = w->s.now_ns;

    while (w->s.now_ns - start < 5 * CLOCK_NS_PER_S) {
        if (!waiting && put(w, 0, 3, 8, n_pings & 0xff)) {
            waiting = true;
            sent_ns = w->s.now_ns;
        }
        closed |= is_closed(w, 0, 2);
        if (n_flood < (heeds ? 2000u : N_HEEDLESS) && !(heeds && is_closed(w, 0, 2)))
            n_flood += put(w, 0, 2, 4000, n_flood & 0xff);
        step(w);
        if (get(w, 3) >= 0) {
            n_pings++;
            waiting = false;
            if (w->s.now_ns - sent_ns > worst_ns)
                worst_ns = w->s.now_ns - sent_ns;
        }
    }
    assert_true(closed);
    assert_true(heeds ? n_flood < 2000 : n_flood == N_HEEDLESS);
    assert_true(worst_ns < 5 * CLOCK_NS_PER_MS);
    assert_true(n_pings > 10000);
    start = w->s.now_ns;
    while (n_read < n_flood || is_closed(w, 0, 2)) {
        assert_true(w->s.now_ns - start < 5 * CLOCK_NS_PER_S);
        step(w);
        for (int32_t tag; (tag = get(w, 2)) >= 0; n_read++)
            ;
    }
    world_free(w);
}

static void test_rank_that_floods_one_and_talks_to_another(void **state)
{
    (void)state;
    flood_and_talk(true);
}

/* The same where the rank is late to see that its destination is closed: what it puts into its ring
 * is set aside, too. */
static void test_rank_that_floods_what_is_closed(void **state)
{
    (void)state;
    flood_and_talk(false);
}

/* The job ends while messages for a rank that does not drain are set aside: their blocks come
 * home. */
static void test_what_is_set_aside_ends_with_its_job(void **state)
{
    struct world *w = world_new(1);
    uint64_t start = w->s.now_ns;
    struct cmd cmd = {.type = CMD_DETACH_JOB, .job = part_of(w, 0)->views[0]};

    (void)state;
    while (!is_closed(w, 0, 2)) {
        assert_true(w->s.now_ns - start < 5 * CLOCK_NS_PER_S);
        put(w, 0, 2, 4000, 1);
        step(w);
    }
    cluster_command(&w->s, w->s.nodes[0].nics[0].ch, &cmd);
    while (!happened(w, EVENT_JOB_DETACHED)) {
        assert_true(w->s.now_ns - start < 10 * CLOCK_NS_PER_S);
        step(w);
    }
    assert_false(is_closed(w, 0, 2));
    world_free(w);
}

/* The only wire is cut for longer than nodes may be unreachable. The packets are given up;
 * afterwards the flow goes on. */
static void test_unreachable_and_back(void **state)
{
    struct world *w = world_new(1);
    uint64_t start = w->s.now_ns;
    uint32_t n_sent = 0;
    int32_t tag = -1;

    (void)state;
    while (get(w, 2) < 0) {
        if (n_sent == 0)
            n_sent += put(w, 0, 2, 100, 7);
        step(w);
    }
    cluster_schedule(&w->s, w->s.now_ns, SIM_CUT, 1, 0);
    cluster_schedule(&w->s, w->s.now_ns + 12 * CLOCK_NS_PER_S, SIM_HEAL, 1, 0);
    for (uint32_t i = 0; i < 20; i++)
        put(w, 0, 2, 100, 8);
    while (w->s.now_ns - start < 14 * CLOCK_NS_PER_S) {
        step(w);
        w->s.now_ns += 95000;
    }
    assert_true(happened(w, EVENT_UNREACHABLE));
    put(w, 0, 2, 100, 9);
    put(w, 3, 1, 100, 10);
    start = w->s.now_ns;
    while (tag != 9) {
        assert_true(w->s.now_ns - start < CLOCK_NS_PER_S);
        step(w);
        tag = get(w, 2);
    }
    while (get(w, 1) != 10) {
        assert_true(w->s.now_ns - start < CLOCK_NS_PER_S);
        step(w);
    }
    world_free(w);
}

/* Two gateways: the one in use dies in the middle of a stream, which must go on over the other
 * within a fraction of a second after the news. */
static void test_gateway_dies(void **state)
{
    struct world *w = world_new(5);
    uint32_t n_sent = 0, n_read = 0;
    uint64_t start = w->s.now_ns, last_ns = start, gap_ns = 0;

    (void)state;
    while (n_read < 3000) {
        assert_true(w->s.now_ns - start < 20 * CLOCK_NS_PER_S);
        if (n_sent < 3000)
            n_sent += put(w, 0, 2, 4000, n_sent & 0xff);
        if (n_read >= 1000 && w->s.nodes[2].alive)
            cluster_schedule(&w->s, w->s.now_ns, SIM_KILL, 2, 0);
        step(w);
        for (int32_t tag; (tag = get(w, 2)) >= 0; n_read++) {
            if (w->s.now_ns - last_ns > gap_ns)
                gap_ns = w->s.now_ns - last_ns;
            last_ns = w->s.now_ns;
        }
    }
    assert_false(w->s.nodes[2].alive);
    /* News takes up to 0.4 s here. */
    assert_true(gap_ns < 600 * CLOCK_NS_PER_MS);
    world_free(w);
}

static uint64_t counted(const struct world *w, uint32_t node, enum count_id id)
{
    const struct sim_node *n = &w->s.nodes[node];
    uint64_t sum = 0;

    for (uint32_t c = 0; c < n->n_nics; c++)
        sum += count_get(channel_counters(n->nics[c].ch), id);
    return sum;
}

/* The forwarding tables of two nodes point at each other, as they may for a moment. A packet
 * between them ends by the limit of hops; once the tables are right the message arrives. */
static void test_tables_that_point_at_each_other(void **state)
{
    struct world *w = world_new(2);
    struct sim *s = &w->s;
    struct hop_entry *e = &s->nodes[1].hops->entries[cluster_slot(1, 2)];
    hop_word back = hop_pack((uint16_t)cluster_slot(1, 0), 0, 2, 65535);
    uint64_t start = s->now_ns;
    int32_t tag = -1;

    (void)state;
    atomic_store(&e->quick, back);
    atomic_store(&e->wide[0], back);
    atomic_fetch_add(&s->nodes[1].hops->generation, 1);
    assert_true(put(w, 0, 2, 100, 5));
    while (counted(w, 0, COUNT_DROP_HOPS) + counted(w, 1, COUNT_DROP_HOPS) < 3) {
        assert_true(s->now_ns - start < CLOCK_NS_PER_S);
        step(w);
    }
    assert_int_equal(get(w, 2), -1);
    uint64_t sent = 1 + counted(w, 0, COUNT_RESENT);
    uint64_t passed_on = counted(w, 0, COUNT_FORWARDED) + counted(w, 1, COUNT_FORWARDED);
    assert_true(passed_on <= sent * (WIRE_MAX_HOPS - 1));
    cluster_update(s, 1);
    for (start = s->now_ns; tag != 5; tag = get(w, 2)) {
        assert_true(s->now_ns - start < 2 * CLOCK_NS_PER_S);
        step(w);
    }
    world_free(w);
}

/* A rank writes rubbish into its ring: control is told, the others go on. */
static void test_poisoned_ring(void **state)
{
    struct world *w = world_new(2);
    uint64_t start = w->s.now_ns;
    uint32_t n_read = 0;

    (void)state;
    assert_true(put(w, 0, 2, 8, 1));
    w->rings[0].up[0].slots[0].len = 1000000;
    while (n_read < 100) {
        assert_true(w->s.now_ns - start < 5 * CLOCK_NS_PER_S);
        put(w, 1, 3, 8, 5);
        step(w);
        while (get(w, 3) == 5)
            n_read++;
    }
    assert_true(happened(w, EVENT_POISONED));
    assert_int_equal(get(w, 2), -1);
    world_free(w);
}

/* Ranks of one node that talk through the channel. */
static void test_local_delivery(void **state)
{
    struct world *w = world_new(1);
    uint32_t n_sent = 0, n_read = 0;

    (void)state;
    for (uint32_t k = 0; n_read < 1000; k++) {
        assert_true(k < 100000);
        if (n_sent < 1000)
            n_sent += put(w, 0, 1, n_sent * 4, n_sent & 0xff);
        step(w);
        if (k % 7 == 0 || n_sent == 1000)
            for (int32_t tag; (tag = get(w, 1)) >= 0; n_read++)
                assert_int_equal(tag, n_read & 0xff);
    }
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rank_that_does_not_drain),
        cmocka_unit_test(test_rank_that_floods_one_and_talks_to_another),
        cmocka_unit_test(test_rank_that_floods_what_is_closed),
        cmocka_unit_test(test_what_is_set_aside_ends_with_its_job),
        cmocka_unit_test(test_unreachable_and_back),
        cmocka_unit_test(test_gateway_dies),
        cmocka_unit_test(test_tables_that_point_at_each_other),
        cmocka_unit_test(test_poisoned_ring),
        cmocka_unit_test(test_local_delivery),
    };

    log_set_level(LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
