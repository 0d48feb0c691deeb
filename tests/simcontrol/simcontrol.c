/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control plane under a seed: a cluster, jobs, troubles, then quiet, and the truth. See
 * world.h.
 *
 *     simcontrol --seeds 300 --first 1
 *     simcontrol --seeds 1 --first 7 --nodes 240
 *     simcontrol --seeds 1 --first 42 --verbose
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "daemon/cluster/cluster.h"
#include "daemon/routing/node_name.h"
#include "tests/sim/seeds.h"
#include "tests/simcontrol/world.h"

#define SMALL_NODES 20u
/* More nodes than this start together, on networks without jitter. */
#define LARGE_NODES 50u
/* In one seed of so many a network breaks in two when its nodes know of one another. */
#define SPLIT_SEEDS    4u
#define SPLIT_AFTER_NS (4 * CLOCK_NS_PER_S)
/* Everything is over within this time. It is less than the 60 s after which a job that was prepared
 * and never started is forgotten: nothing may have to wait for that. */
#define QUIET_NS (50 * CLOCK_NS_PER_S)

/* ---- topologies ---- */

static void join(struct world *w, uint32_t host, uint32_t network)
{
    struct host *h = &w->hosts[host];
    struct network *n = &w->networks[network];

    if (h->n_channels == 4 || wire_channel(h, network) >= 0)
        return;
    h->networks[h->n_channels++] = network;
    n->members[n->n_members++] = host;
}

/* Networks of some nodes each; network i is joined to an earlier one by one gateway or two. */
static void build(struct world *w, uint32_t n_hosts)
{
    static const char *const shapes[] = {"line", "star", "tree", "mesh"};
    uint32_t shape = (uint32_t)world_draw(w, 4);
    bool large = n_hosts > LARGE_NODES;
    uint32_t per_network = 1 + (uint32_t)world_draw(w, large ? 5 : n_hosts);

    if (large && per_network < 3)
        per_network = 3;
    w->shape = shapes[shape];
    w->n_hosts = n_hosts;
    w->n_networks = (n_hosts + per_network - 1) / per_network;
    w->networks = calloc(w->n_networks, sizeof *w->networks);
    if (!w->networks)
        abort();
    for (uint32_t i = 0; i < n_hosts; i++) {
        struct host *h = &w->hosts[i];
        h->idx = i;
        h->powered = true;
        snprintf(h->name, sizeof h->name, "n%u", i);
        h->probes = calloc(MAX_NODES, sizeof *h->probes);
        if (!h->probes)
            abort();
        list_init(&h->processes);
        list_init(&h->parts);
        join(w, i, i / per_network);
    }
    for (uint32_t n = 0; n < w->n_networks; n++) {
        uint32_t to = shape == 0 ? n - 1 : shape == 1 ? 0 : (uint32_t)world_draw(w, n ? n : 1);
        w->networks[n].delay_ns = 20000 + world_draw(w, CLOCK_NS_PER_MS);
        w->networks[n].jitter_ns =
            !large && world_draw(w, 2) ? world_draw(w, 5 * CLOCK_NS_PER_MS) : 0;
        for (uint32_t g = 0; n > 0 && g < 1 + world_draw(w, 2); g++) {
            const struct network *other = &w->networks[to];
            join(w, other->members[world_draw(w, other->n_members)], n);
        }
        if (n > 1 && shape == 3) {
            const struct network *other = &w->networks[world_draw(w, n)];
            join(w, other->members[world_draw(w, other->n_members)], n);
        }
    }
}

/* ---- troubles ---- */

static struct host *any_host(struct world *w)
{
    return &w->hosts[world_draw(w, w->n_hosts)];
}

static uint64_t some_time(struct world *w)
{
    return world_draw(w, 2) ? world_draw(w, CLOCK_NS_PER_S) : world_draw(w, 15 * CLOCK_NS_PER_S);
}

static void on_start(struct world *w, void *object, uint64_t value)
{
    struct host *host = object;

    (void)value;
    if (host->powered && !host->daemon)
        daemon_start(w, host);
}

static void on_power(struct world *w, void *object, uint64_t value)
{
    struct host *host = object;

    (void)value;
    if (!host->powered)
        wire_power_back(w, host);
    on_start(w, host, 0);
}

static void on_heal(struct world *w, void *object, uint64_t network)
{
    struct host *host = object;

    for (uint32_t i = 0; i < w->n_hosts; i++)
        wire_heal(w, host->idx, i, (uint32_t)network);
}

static void on_plug(struct world *w, void *object, uint64_t channel)
{
    wire_unplug(w, object, (uint32_t)channel, false);
}

/* Some that are dead stay dead. */
static void come_back(struct world *w, struct host *host, event_fn *fn)
{
    if (world_chance(w, 80))
        world_after(w, some_time(w), NULL, fn, host, 0);
}

/* A firewall lets control connections through, and not the packets; one way or both. */
static void lose_data(struct world *w, struct host *host, uint32_t network)
{
    const struct network *n = &w->networks[network];
    uint32_t other = n->members[world_draw(w, n->n_members)];
    uint64_t ways = 1 + world_draw(w, 3), after_ns = some_time(w);

    if (other == host->idx)
        return;
    world_say(w, "data is lost on net%u between %s and n%u (%llu)", network, host->name, other,
              (unsigned long long)ways);
    if (ways & 1) {
        wire_data_cut(w, host->idx, other, network);
        world_after(w, after_ns, NULL, on_heal, host, network);
    }
    if (ways & 2) {
        wire_data_cut(w, other, host->idx, network);
        world_after(w, after_ns, NULL, on_heal, &w->hosts[other], network);
    }
}

/* One thing goes wrong, at this host or at any (NULL). */
static void on_trouble(struct world *w, void *object, uint64_t value)
{
    struct host *host = object ? object : any_host(w);
    uint32_t channel = (uint32_t)world_draw(w, host->n_channels);
    const struct network *n = &w->networks[host->networks[channel]];
    uint64_t kind = world_draw(w, 8);

    (void)value;
    if (kind == 0) {
        uint32_t other = n->members[world_draw(w, n->n_members)];
        world_say(w, "net%u is cut between %s and n%u", host->networks[channel], host->name, other);
        wire_cut(w, host->idx, other, host->networks[channel]);
        world_after(w, some_time(w), NULL, on_heal, host, host->networks[channel]);
    } else if (kind == 1) {
        world_say(w, "%s is unplugged from net%u", host->name, host->networks[channel]);
        wire_unplug(w, host, channel, true);
        world_after(w, some_time(w), NULL, on_plug, host, channel);
    } else if (host->daemon && kind == 2) {
        daemon_kill(w, host);
        come_back(w, host, on_start);
    } else if (host->daemon && kind == 3) {
        world_say(w, "%s loses its power", host->name);
        wire_power_lost(w, host);
        daemon_kill(w, host);
        come_back(w, host, on_power);
    } else if (host->daemon && kind == 4) {
        host->stalled_ns = w->now_ns + world_draw(w, 4 * CLOCK_NS_PER_S);
        world_say(w, "%s stalls", host->name);
    } else if (host->daemon && kind == 5 && world_chance(w, 30)) {
        daemon_drain(w, host);
        world_after(w, 25 * CLOCK_NS_PER_S, NULL, on_start, host, 0);
    } else if (host->daemon && kind == 6) {
        ranks_spawner_dies(w, host);
    } else if (kind == 7) {
        lose_data(w, host, host->networks[channel]);
    }
}

static bool know_each_other(const struct world *w, uint32_t a, uint32_t b)
{
    const struct daemon *da = w->hosts[a].daemon, *db = w->hosts[b].daemon;

    return da && db &&
           mesh_find(cluster_mesh(daemon_cluster(da)), node_name_id(w->hosts[b].name), NULL) &&
           mesh_find(cluster_mesh(daemon_cluster(db)), node_name_id(w->hosts[a].name), NULL);
}

/* A switch is broken in two, and one node of the one half hears one of the other. */
static void on_split(struct world *w, void *object, uint64_t network)
{
    const struct network *n = &w->networks[network];
    uint32_t half = n->n_members / 2;

    (void)object;
    /* Who starts later in the half without seeds would have to be told by somebody who it can hear.
     */
    if (half == 0 || !know_each_other(w, n->members[half - 1], n->members[n->n_members - 1]))
        return;
    world_say(w, "net%u is split", (uint32_t)network);
    for (uint32_t a = 0; a < half; a++)
        for (uint32_t b = half; b < n->n_members; b++)
            if (a != half - 1 || b != n->n_members - 1)
                wire_cut(w, n->members[a], n->members[b], (uint32_t)network);
}

static bool is_split(const struct world *w)
{
    return w->seed % SPLIT_SEEDS == 0;
}

/* News from one half when everybody has long settled. */
static void restart_late(struct world *w)
{
    struct host *host = &w->hosts[w->networks[0].members[0]];

    if (!host->daemon)
        return;
    daemon_kill(w, host);
    daemon_start(w, host);
    world_run(w, w->now_ns + QUIET_NS);
}

static void on_submit(struct world *w, void *object, uint64_t value)
{
    struct host *host = any_host(w);

    (void)object, (void)value;
    if (!host->daemon || host->stalled_ns > w->now_ns)
        return;
    mpiexec_submit(w, host);
    /* What goes wrong does so where jobs are. */
    if (!w->calm && w->n_hosts <= LARGE_NODES && world_chance(w, 40))
        world_after(w, world_draw(w, world_chance(w, 30) ? 50 * CLOCK_NS_PER_MS : CLOCK_NS_PER_S),
                    NULL, on_trouble, world_chance(w, 50) ? host : any_host(w), 0);
}

static void on_probe(struct world *w, void *object, uint64_t value)
{
    struct host *from = any_host(w), *to = any_host(w);

    (void)object, (void)value;
    for (uint64_t n = 1 + world_draw(w, 5); from->daemon && n > 0; n--)
        truth_probe(w, from, to);
}

static void on_bounds(struct world *w, void *object, uint64_t value)
{
    (void)object, (void)value;
    truth_check_bounds(w);
    if (!w->calm)
        world_after(w, CLOCK_NS_PER_S, NULL, on_bounds, NULL, 0);
}

/* ---- a seed ---- */

static void plan(struct world *w, uint64_t from_ns, uint64_t until_ns)
{
    uint64_t span_ns = until_ns - from_ns;
    uint64_t n_troubles = world_draw(w, 4) == 0
                              ? 0
                              : world_draw(w, 3 + (w->n_hosts > LARGE_NODES ? 10 : w->n_hosts / 2));
    uint64_t n_jobs = world_draw(w, 4 + w->n_hosts), n_probes = 5 * w->n_hosts;

    for (uint64_t i = 0; i < n_troubles; i++)
        world_at(w, from_ns + world_draw(w, span_ns), NULL, on_trouble, NULL, 0);
    for (uint64_t i = 0; i < n_jobs; i++)
        world_at(w, from_ns + world_draw(w, span_ns), NULL, on_submit, NULL, 0);
    for (uint64_t i = 0; i < n_probes; i++)
        world_at(w, from_ns + world_draw(w, span_ns), NULL, on_probe, NULL, 0);
    world_at(w, from_ns, NULL, on_bounds, NULL, 0);
}

/* The end of all troubles, mostly; some clusters stay broken. */
static void calm_down(struct world *w)
{
    w->calm = true;
    world_say(w, "calm");
    if (world_chance(w, 70) && !is_split(w))
        wire_heal_all(w);
    for (uint32_t i = 0; i < w->n_hosts; i++) {
        struct host *host = &w->hosts[i];
        if (world_chance(w, 90))
            on_power(w, host, 0);
    }
}

static struct world *world_new(uint64_t seed, bool verbose)
{
    struct world *w = calloc(1, sizeof *w);

    if (!w)
        abort();
    w->seed = seed;
    w->verbose = verbose;
    w->rand.state = seed * 0x9e3779b97f4a7c15ull;
    w->now_ns = 1000 * CLOCK_NS_PER_S;
    w->key.len = AUTH_KEY_MIN;
    list_init(&w->connections);
    list_init(&w->cuts);
    list_init(&w->jobs);
    return w;
}

static void run_seed(const struct seeds *seeds, uint64_t seed)
{
    struct world *w = world_new(seed, seeds->verbose);

    build(w, seeds->n_nodes ? seeds->n_nodes : 2 + (uint32_t)world_draw(w, SMALL_NODES - 1));
    world_say(w, "seed %llu: %s of %u networks, %u nodes", (unsigned long long)seed, w->shape,
              w->n_networks, w->n_hosts);
    uint64_t spread_ns = w->n_hosts > LARGE_NODES ? CLOCK_NS_PER_MS : 2 * CLOCK_NS_PER_S;
    for (uint32_t i = 0; i < w->n_hosts; i++)
        world_after(w, world_draw(w, spread_ns), NULL, on_start, &w->hosts[i], 0);
    if (is_split(w))
        world_after(w, SPLIT_AFTER_NS, NULL, on_split, NULL, 0);
    uint64_t from_ns = w->now_ns + (world_draw(w, 2) ? 0 : 5 * CLOCK_NS_PER_S);
    uint64_t until_ns = from_ns + (5 + world_draw(w, 30)) * CLOCK_NS_PER_S;
    plan(w, from_ns, until_ns);
    world_run(w, until_ns);
    calm_down(w);
    world_run(w, w->now_ns + QUIET_NS);
    if (is_split(w))
        restart_late(w);
    truth_check_bounds(w);
    truth_check_quiet(w);
    mpiexec_deinit(w);
    world_say(
        w, "%u jobs: %u good, %u failed, %u refused, %u whose daemon or mpiexec died; %llu events",
        w->n_submitted, w->n_good, w->n_failed, w->n_refused, w->n_orphaned,
        (unsigned long long)w->n_events_run);
    w->verbose = false;
    for (uint32_t i = 0; i < w->n_hosts; i++) {
        if (w->hosts[i].daemon)
            daemon_kill(w, &w->hosts[i]);
        ranks_deinit(&w->hosts[i]);
    }
    wire_deinit(w);
    world_deinit(w);
    free(w);
}

int main(int argc, char **argv)
{
    struct seeds seeds = {.program = "simcontrol", .max_nodes = MAX_NODES, .first = 1, .n = 20};

    if (!seeds_parse(&seeds, argc, argv))
        return 2;
    log_init("simcontrol");
    log_set_stderr(seeds.verbose);
    log_set_level(seeds.verbose ? LOG_INFO : LOG_ERROR);
    seeds_run(&seeds, run_seed);
    printf("%llu seeds from %llu: every job ended once, every daemon knew the truth\n",
           (unsigned long long)seeds.n, (unsigned long long)seeds.first);
    return 0;
}
