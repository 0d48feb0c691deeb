/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The start of a job over its tree of nodes: the tree itself, and whole clusters under a seed.
 * There the home is the real one (home.c), the nodes are what job.c does with start.c, mail takes
 * any time and overtakes other mail between other pairs, nodes die and refuse at any moment. In the
 * end every living node has started its ranks once or forgotten the job, and the home has said why.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rand.h"
#include "daemon/jobs/manager.h"

#define MAX_NODES 300u
#define MAX_MAIL  20000u
/* A death is noticed within this time. */
#define NOTICE_NS (300 * CLOCK_NS_PER_MS)

enum part { PART_NONE, PART_READY, PART_RUNNING, PART_OVER };

struct sim_node {
    struct start start;
    enum part part;
    bool dead, refuses;
    uint64_t dies_ns; /* UINT64_MAX: never */
    bool noticed;
    unsigned n_started, n_sent;
    uint32_t depth; /* steps that Launch took */
    struct start_over over;
    uint64_t last_ns[2]; /* mail to the home, and from it, keeps its order */
};

struct letter {
    uint64_t when_ns, order;
    uint32_t src, dst; /* node ids; 1 + index of the node; the home is node 1 */
    uint16_t type;
    uint32_t depth;
    bool ok;
    int signal;
};

struct sim {
    struct rand rand;
    struct manager *manager;
    uint32_t n_nodes;                     /* those that take ranks; the home among them or not */
    struct sim_node nodes[MAX_NODES + 2]; /* by id */
    struct letter mail[MAX_MAIL];
    uint32_t n_mail;
    uint64_t now_ns, order, job;
    unsigned home_launches;
    uint32_t deepest;
    Motet__Placement placements[MAX_NODES];
    Motet__Placement *pointers[MAX_NODES];
    char names[MAX_NODES + 2][8];
    bool over, started;
    char message[512], refusal[512];
};

static void post(struct sim *s, uint32_t src, uint32_t dst, uint16_t type, uint32_t depth, bool ok,
                 int signal)
{
    assert_true(s->n_mail < MAX_MAIL);
    struct letter l = {.src = src,
                       .dst = dst,
                       .type = type,
                       .depth = depth,
                       .ok = ok,
                       .signal = signal,
                       .order = s->order++};

    l.when_ns = s->now_ns + CLOCK_NS_PER_MS + rand_below(&s->rand, 20 * CLOCK_NS_PER_MS);
    /* Mail of a pair keeps its order. Only pairs with the home have more than one letter of which
     * the order matters. */
    if (src == 1 || dst == 1) {
        uint64_t *last = &s->nodes[src == 1 ? dst : src].last_ns[src == 1];
        if (l.when_ns < *last)
            l.when_ns = *last;
        *last = l.when_ns;
    }
    s->mail[s->n_mail++] = l;
}

static void to_node(void *ctx, uint32_t node_id, uint16_t type, const ProtobufCMessage *msg)
{
    struct sim *s = ctx;

    s->home_launches += type == MOTET__FRAME_TYPE__LAUNCH;
    post(s, 1, node_id, type, 1, true,
         type == MOTET__FRAME_TYPE__KILL ? ((const Motet__Kill *)msg)->signal : 0);
}

static int to_client(void *ctx, void *client, uint16_t type, const ProtobufCMessage *msg)
{
    struct sim *s = ctx;

    (void)client;
    if (type == MOTET__FRAME_TYPE__SUBMITTED && !((const Motet__Submitted *)msg)->ok)
        snprintf(s->refusal, sizeof s->refusal, "%s", ((const Motet__Submitted *)msg)->error);
    s->started |= type == MOTET__FRAME_TYPE__SUBMITTED && ((const Motet__Submitted *)msg)->ok;
    if (type == MOTET__FRAME_TYPE__JOB_END && ((const Motet__JobEnd *)msg)->message)
        snprintf(s->message, sizeof s->message, "%s", ((const Motet__JobEnd *)msg)->message);
    return 0;
}

static size_t client_queued(void *ctx, void *client)
{
    (void)ctx, (void)client;
    return 0;
}

static void client_done(void *ctx, void *client)
{
    (void)client;
    ((struct sim *)ctx)->over = true;
}

static bool reachable(void *ctx, uint32_t node_id)
{
    struct sim *s = ctx;

    return !s->nodes[node_id].dead;
}

static size_t nodes(void *ctx, struct placement_node *ret_nodes, size_t max)
{
    struct sim *s = ctx;

    assert_true(max >= s->n_nodes);
    for (uint32_t i = 0; i < s->n_nodes; i++)
        ret_nodes[i] = (struct placement_node){.name = s->names[i + 1], .node_id = i + 1};
    return s->n_nodes;
}

static const struct manager_ops ops = {.to_node = to_node,
                                       .to_client = to_client,
                                       .client_queued = client_queued,
                                       .client_done = client_done,
                                       .reachable = reachable,
                                       .nodes = nodes};

/* One rank a node. */
static uint32_t rank_of(uint32_t id)
{
    return id - 1;
}

static void send_exit(struct sim *s, uint32_t id, int status)
{
    post(s, id, 1, MOTET__FRAME_TYPE__STDIO, 0, true, 0);
    post(s, id, 1, MOTET__FRAME_TYPE__RANK_EXIT, 0, true, status);
}

static void answer(struct sim *s, uint32_t id, enum start_next next)
{
    if (next == START_READY || next == START_FAILED)
        post(s, id, s->nodes[id].start.parent, MOTET__FRAME_TYPE__LAUNCHED, 0, next == START_READY,
             0);
}

/* What job.c does with an order, without the job. */
static void node_on_mail(struct sim *s, uint32_t id, const struct letter *l)
{
    struct sim_node *n = &s->nodes[id];

    switch (l->type) {
    case MOTET__FRAME_TYPE__LAUNCH:
        assert_int_equal(start_init(&n->start, id, 1, s->pointers, s->n_nodes), 0);
        assert_int_equal(n->start.parent, l->src);
        assert_int_equal(n->part, PART_NONE);
        if (start_over_has(&n->over, s->job)) {
            n->part = PART_OVER;
            return;
        }
        n->depth = l->depth;
        s->deepest = l->depth > s->deepest ? l->depth : s->deepest;
        for (uint32_t i = 0; i < n->start.n_children; i++)
            post(s, id, n->start.children[i], l->type, l->depth + 1, true, 0);
        n->part = n->refuses ? PART_OVER : PART_READY;
        if (n->refuses)
            post(s, id, n->start.parent, MOTET__FRAME_TYPE__LAUNCHED, 0, false, 0);
        else
            answer(s, id, start_on_own_ready(&n->start));
        return;
    case MOTET__FRAME_TYPE__LAUNCHED:
        if (n->part == PART_READY)
            answer(s, id, start_on_answer(&n->start, l->src, l->ok));
        return;
    case MOTET__FRAME_TYPE__START:
        if (n->part != PART_READY)
            return;
        assert_int_equal(n->start.parent, l->src);
        for (uint32_t i = 0; i < n->start.n_children; i++)
            post(s, id, n->start.children[i], l->type, 0, true, 0);
        n->part = PART_RUNNING;
        n->n_started++;
        return;
    case MOTET__FRAME_TYPE__KILL:
        /* Before Start as after it: the ranks are over. */
        if (n->part == PART_READY || n->part == PART_RUNNING) {
            if (n->part == PART_READY)
                n->part = PART_RUNNING;
            send_exit(s, id, l->signal);
        }
        return;
    case MOTET__FRAME_TYPE__JOB_END:
        if (n->part == PART_NONE)
            start_over_note(&n->over, s->job);
        else
            n->part = PART_OVER;
        return;
    default:
        return;
    }
}

static void home_on_mail(struct sim *s, const struct letter *l)
{
    if (l->type == MOTET__FRAME_TYPE__LAUNCHED) {
        Motet__Launched msg = MOTET__LAUNCHED__INIT;
        msg.job = s->job;
        msg.ok = l->ok;
        msg.error = l->ok ? NULL : (char *)"no room";
        manager_on_launched(s->manager, l->src, &msg, s->now_ns);
    } else if (l->type == MOTET__FRAME_TYPE__STDIO) {
        Motet__Stdio msg = MOTET__STDIO__INIT;
        msg.job = s->job;
        msg.rank = rank_of(l->src);
        for (msg.stream = 1; msg.stream <= 2; msg.stream++)
            manager_on_stdio(s->manager, l->src, &msg, s->now_ns);
    } else if (l->type == MOTET__FRAME_TYPE__RANK_EXIT) {
        Motet__RankExit msg = MOTET__RANK_EXIT__INIT;
        msg.job = s->job;
        msg.rank = rank_of(l->src);
        msg.node = s->names[l->src];
        msg.status = l->signal;
        msg.finalized = true;
        manager_on_rank_exit(s->manager, l->src, &msg, s->now_ns);
    }
}

static void deliver(struct sim *s, const struct letter *l)
{
    if (s->nodes[l->dst].dead || (s->nodes[l->src].dead && rand_below(&s->rand, 2)))
        return;
    if (l->dst == 1 &&
        (l->type == MOTET__FRAME_TYPE__LAUNCHED || l->type == MOTET__FRAME_TYPE__STDIO ||
         l->type == MOTET__FRAME_TYPE__RANK_EXIT))
        home_on_mail(s, l);
    node_on_mail(s, l->dst, l);
}

static void die(struct sim *s, uint64_t now_ns)
{
    for (uint32_t id = 2; id <= s->n_nodes; id++) {
        struct sim_node *n = &s->nodes[id];
        n->dead |= n->dies_ns <= now_ns;
        if (n->dead && !n->noticed && n->dies_ns + NOTICE_NS <= now_ns) {
            n->noticed = true;
            manager_on_node_lost(s->manager, id, "has lost its daemon", now_ns);
        }
    }
}

/* The next thing in time. False: nothing is left to happen. */
static bool step(struct sim *s)
{
    uint64_t next_ns = manager_deadline(s->manager);
    uint32_t at = UINT32_MAX;

    for (uint32_t i = 0; i < s->n_mail; i++) {
        const struct letter *l = &s->mail[i];
        if (l->when_ns < next_ns ||
            (l->when_ns == next_ns && (at == UINT32_MAX || l->order < s->mail[at].order))) {
            next_ns = l->when_ns;
            at = i;
        }
    }
    for (uint32_t id = 2; id <= s->n_nodes; id++) {
        const struct sim_node *n = &s->nodes[id];
        uint64_t when_ns = n->noticed || n->dies_ns == UINT64_MAX ? UINT64_MAX
                           : n->dead                              ? n->dies_ns + NOTICE_NS
                                                                  : n->dies_ns;
        if (when_ns < next_ns) {
            next_ns = when_ns;
            at = UINT32_MAX;
        }
    }
    if (next_ns == UINT64_MAX)
        return false;
    s->now_ns = next_ns;
    if (at != UINT32_MAX) {
        struct letter l = s->mail[at];
        s->mail[at] = s->mail[--s->n_mail];
        deliver(s, &l);
    }
    die(s, s->now_ns);
    manager_run(s->manager, s->now_ns);
    return true;
}

static void sim_init(struct sim *s, uint64_t seed, uint32_t n_nodes)
{
    Motet__Submit msg = MOTET__SUBMIT__INIT;
    Motet__App app = MOTET__APP__INIT;
    Motet__App *apps[] = {&app};
    char *argv[] = {(char *)"prog"};
    uint8_t key[16] = {1};

    memset(s, 0, sizeof *s);
    s->rand.state = seed;
    s->now_ns = CLOCK_NS_PER_S;
    s->n_nodes = n_nodes;
    for (uint32_t id = 1; id <= n_nodes; id++) {
        snprintf(s->names[id], sizeof s->names[id], "n%03u", id);
        motet__placement__init(&s->placements[id - 1]);
        s->placements[id - 1].has_node_id = true;
        s->placements[id - 1].node_id = id;
        s->pointers[id - 1] = &s->placements[id - 1];
        s->nodes[id].dies_ns = UINT64_MAX;
    }
    s->manager = manager_new(s->names[1], 1, 7, &ops, s);
    app.n_ranks = n_nodes;
    app.n_argv = 1;
    app.argv = argv;
    msg.n_apps = 1;
    msg.apps = apps;
    msg.has_ranks_per_node = true;
    msg.ranks_per_node = 1;
    msg.wdir = (char *)"/";
    struct manager_job *h = manager_submit(s->manager, s, 1, 1, &msg, key, s->now_ns);
    assert_non_null(h);
    s->job = h->id;
}

static uint32_t log2_above(uint32_t n)
{
    uint32_t log = 0;

    while (1u << log < n)
        log++;
    return log;
}

/* Everybody is reached once, in log2(n) steps, and nobody speaks to more than log2(n) others. */
static void test_tree(void **state)
{
    static struct sim s;

    (void)state;
    for (uint32_t n = 1; n <= MAX_NODES; n += n < 40 ? 1 : 37) {
        sim_init(&s, n, n);
        while (step(&s) && !s.started)
            ;
        while (s.n_mail > 0 && step(&s))
            ;
        assert_true(s.started);
        for (uint32_t id = 1; id <= n; id++)
            assert_int_equal(s.nodes[id].n_started, 1);
        assert_true(s.deepest <= log2_above(n + 1));
        assert_true(s.home_launches <= log2_above(n + 1));
        manager_free(s.manager);
    }
}

static void test_strangers(void **state)
{
    static struct sim s;
    struct start start;

    (void)state;
    sim_init(&s, 1, 7);
    assert_true(start_init(&start, 99, 1, s.pointers, 7) < 0);
    assert_int_equal(start_init(&start, 6, 1, s.pointers, 7), 0);
    assert_int_equal(start.parent, 4);
    assert_int_equal(start.n_children, 1);
    assert_int_equal(start_on_answer(&start, 5, true), START_IGNORE);
    assert_int_equal(start_on_answer(&start, 7, true), START_WAITS);
    assert_int_equal(start_on_answer(&start, 7, true), START_IGNORE);
    assert_int_equal(start_on_own_ready(&start), START_READY);
    assert_int_equal(start_on_own_ready(&start), START_WAITS);
    manager_free(s.manager);
}

/* One seed: how it ends, whatever dies. */
static void run_seed(struct sim *s, uint64_t seed)
{
    struct rand choose = {0};
    uint32_t n_deaths = 0, n_refusals = 0;

    choose.state = seed * 77 + 1;
    sim_init(s, seed, 2 + (uint32_t)rand_below(&choose, seed % 5 == 0 ? 150 : 20));
    for (uint32_t id = 2; id <= s->n_nodes; id++) {
        if (rand_below(&choose, s->n_nodes) == 0) {
            s->nodes[id].dies_ns = s->now_ns + rand_below(&choose, 150 * CLOCK_NS_PER_MS);
            n_deaths++;
        } else if (rand_below(&choose, 4 * s->n_nodes) == 0) {
            s->nodes[id].refuses = true;
            n_refusals++;
        }
    }
    uint64_t start_ns = s->now_ns;
    while (step(s))
        if (!s->started && n_deaths + n_refusals == 0 && s->now_ns - start_ns > CLOCK_NS_PER_S)
            fail_msg("seed %llu: not started", (unsigned long long)seed);
    if (n_deaths + n_refusals == 0) {
        assert_true(s->started);
    } else {
        if (!s->over || s->now_ns - start_ns > 5 * CLOCK_NS_PER_S)
            fail_msg("seed %llu: %s after %llu ms", (unsigned long long)seed,
                     s->over ? "over" : "not over",
                     (unsigned long long)((s->now_ns - start_ns) / CLOCK_NS_PER_MS));
        if (!strstr(s->message, "has lost its daemon") &&
            !strstr(s->refusal, "has lost its daemon") && strcmp(s->refusal, "no room") != 0)
            fail_msg("seed %llu: '%s' '%s'", (unsigned long long)seed, s->message, s->refusal);
    }
    for (uint32_t id = 1; id <= s->n_nodes; id++) {
        const struct sim_node *n = &s->nodes[id];
        bool good =
            n->dead || (s->over ? n->part == PART_OVER || n->part == PART_NONE : n->n_started == 1);
        if (!good || n->n_started > 1)
            fail_msg("seed %llu: node %u is in state %d, started %u times",
                     (unsigned long long)seed, id, (int)n->part, n->n_started);
    }
    manager_free(s->manager);
}

static void test_deaths(void **state)
{
    static struct sim s;

    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++)
        run_seed(&s, seed);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tree),
                                       cmocka_unit_test(test_strangers),
                                       cmocka_unit_test(test_deaths)};

    log_set_level(LOG_ERROR);
    if (argc > 1) {
        static struct sim s;
        run_seed(&s, strtoull(argv[1], NULL, 10));
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
