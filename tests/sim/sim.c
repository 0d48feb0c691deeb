/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs simulated clusters, one per seed: random topology, networks, jobs, traffic and faults, until
 * everything has arrived and everything is quiet again. See cluster.h and traffic.h.
 *
 *   sim [--seeds N] [--first N] [--verbose]
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "tests/sim/cluster.h"
#include "tests/sim/seeds.h"
#include "tests/sim/traffic.h"

/* Longest time by the simulation's clock: the faults and then every back-off there is. */
#define END_NS (120 * CLOCK_NS_PER_S)

/* What channels have to tell their control threads. */
static void take_events(struct sim *s)
{
    struct cmd_event e;

    for (uint32_t i = 0; i < s->n_nodes; i++)
        for (uint32_t c = 0; s->nodes[i].alive && c < s->nodes[i].n_nics; c++)
            while (channel_next_event(s->nodes[i].nics[c].ch, &e))
                traffic_on_event(s, i, &e);
}

static uint64_t next_ns(const struct sim *s)
{
    uint64_t due = traffic_next_ns(s);

    for (uint32_t i = 0; i < s->n_events; i++)
        if (s->events[i].at_ns < due)
            due = s->events[i].at_ns;
    for (uint32_t w = 0; w < s->n_networks; w++)
        if (net_sim_next_ns(s->networks[w]) < due)
            due = net_sim_next_ns(s->networks[w]);
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        for (uint32_t c = 0; s->nodes[i].alive && c < s->nodes[i].n_nics; c++) {
            const struct sim_nic *nic = &s->nodes[i].nics[c];
            uint64_t at = channel_next_ns(nic->ch);
            if (at < nic->stalled_ns)
                at = nic->stalled_ns;
            if (at < due)
                due = at;
        }
    }
    return due;
}

/* A little of everything. Returns whether anything was done. */
static bool step(struct sim *s)
{
    bool any = false;

    cluster_run_events(s);
    for (uint32_t w = 0; w < s->n_networks; w++)
        any |= net_sim_run(s->networks[w], s->now_ns) > 0;
    for (uint32_t k = 0; k < 2 * s->n_nodes; k++) {
        struct sim_node *n = &s->nodes[sim_draw(s, s->n_nodes)];
        struct sim_nic *nic = &n->nics[sim_draw(s, n->n_nics)];
        if (!n->alive || nic->stalled_ns > s->now_ns)
            continue;
        any |= channel_turn(nic->ch, s->now_ns) > 0;
        s->n_turns++;
    }
    for (uint32_t k = 0; k < 8; k++)
        any |= traffic_step(s);
    take_events(s);
    s->now_ns += sim_draw(s, 4000);
    return any;
}

/* Runs until the condition holds. */
static void run_until(struct sim *s, bool (*done)(const struct sim *), const char *what)
{
    uint32_t idle = 0;

    while (!done(s)) {
        if (step(s)) {
            idle = 0;
        } else if (++idle > 24) {
            uint64_t due = next_ns(s);
            /* A turn now and then all the same. */
            uint64_t most = s->now_ns + 100 * CLOCK_NS_PER_MS;
            if (due > most)
                due = most;
            if (due > s->now_ns)
                s->now_ns = due;
            idle = 20;
        }
        if (s->now_ns > END_NS) {
            traffic_report(s);
            sim_fail(s, "%s after %llu s", what, END_NS / CLOCK_NS_PER_S);
        }
    }
}

static bool events_over(const struct sim *s)
{
    return s->n_events == 0;
}

static bool all_done(const struct sim *s)
{
    return traffic_done(s) && events_over(s);
}

static bool all_quiet(const struct sim *s)
{
    if (s->n_events > 0)
        return false;
    for (uint32_t w = 0; w < s->n_networks; w++)
        if (net_sim_next_ns(s->networks[w]) != UINT64_MAX)
            return false;
    for (uint32_t i = 0; i < s->n_nodes; i++)
        for (uint32_t c = 0; s->nodes[i].alive && c < s->nodes[i].n_nics; c++)
            if (count_get(channel_counters(s->nodes[i].nics[c].ch), COUNT_FLOWS_ACTIVE) > 0)
                return false;
    return true;
}

static void run_seed(const struct seeds *seeds, uint64_t seed)
{
    struct sim *s = calloc(1, sizeof *s);

    if (!s)
        abort();
    s->seed = seed;
    s->verbose = seeds->verbose;
    s->rand.state = seed * 0x9e3779b97f4a7c15ull;
    s->now_ns = CLOCK_NS_PER_S;
    cluster_build(s);
    sim_say(s, "seed %llu: %s, %u nodes", (unsigned long long)seed, s->topology, s->n_nodes);
    /* Faults and traffic meet in a short or in a long time. */
    uint64_t duration_ns = CLOCK_NS_PER_MS << sim_draw(s, 11);
    cluster_plan_faults(s, duration_ns);
    traffic_build(s, duration_ns);
    run_until(s, all_done, "messages are missing");
    sim_say(s, "all messages arrived");
    traffic_finish(s);
    run_until(s, traffic_gone, "a channel did not let go of a job");
    run_until(s, all_quiet, "the network is not quiet");
    /* A few more turns for blocks on their way home. */
    for (uint32_t k = 0; k < 200; k++) {
        step(s);
        s->now_ns += CLOCK_NS_PER_MS;
    }
    run_until(s, all_quiet, "the network is not quiet");
    for (uint32_t k = 0; k < 100; k++)
        step(s);
    cluster_check_quiet(s);
    if (s->verbose)
        traffic_report(s);
    sim_say(s, "done after %llu turns", (unsigned long long)s->n_turns);
    traffic_free(s);
    cluster_free(s);
    free(s);
}

int main(int argc, char **argv)
{
    struct seeds seeds = {.program = "sim", .first = 1, .n = 20};

    if (!seeds_parse(&seeds, argc, argv))
        return 2;
    log_set_level(LOG_ERROR);
    seeds_run(&seeds, run_seed);
    printf("%llu seeds from %llu: every message arrived once and whole\n",
           (unsigned long long)seeds.n, (unsigned long long)seeds.first);
    return 0;
}
