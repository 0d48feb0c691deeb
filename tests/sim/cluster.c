/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "traffic.h"

void sim_fail(const struct sim *s, const char *fmt, ...)
{
    va_list ap;

    fprintf(stderr, "FAILED seed %llu (%s) at %.6f s: ", (unsigned long long)s->seed, s->topology,
            (double)s->now_ns / 1e9);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\n");
    abort();
}

void sim_say(const struct sim *s, const char *fmt, ...)
{
    va_list ap;

    if (!s->verbose)
        return;
    printf("%12.6f ", (double)s->now_ns / 1e9);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
}

void cluster_schedule(struct sim *s, uint64_t at_ns, enum sim_event_kind kind, uint32_t a,
                      uint32_t b)
{
    if (s->n_events == SIM_EVENTS)
        sim_fail(s, "too many events planned");
    s->events[s->n_events++] = (struct sim_event){.at_ns = at_ns, .kind = kind, .a = a, .b = b};
}

static void attach_nic(struct sim_node *n, uint32_t network)
{
    n->nics[n->n_nics++] = (struct sim_nic){.network = network};
}

/* Which nodes are on which networks. */
static void draw_topology(struct sim *s)
{
    struct sim_node *n = s->nodes;

    uint32_t drawn = (uint32_t)sim_draw(s, 5);
    uint32_t size = s->fixed_topology ? 0 : (uint32_t)sim_draw(s, 3);

    switch (s->fixed_topology ? s->fixed_topology - 1 : drawn) {
    case 0:
        s->topology = "one network";
        s->n_networks = 1;
        s->n_nodes = 2 + size;
        for (uint32_t i = 0; i < s->n_nodes; i++)
            attach_nic(&n[i], 0);
        break;
    case 1:
        s->topology = "line with gateways";
        s->n_networks = 2 + size;
        s->n_nodes = s->n_networks + 1;
        for (uint32_t w = 0; w < s->n_networks; w++) {
            attach_nic(&n[w], w);
            attach_nic(&n[w + 1], w);
        }
        break;
    case 2:
        s->topology = "ring";
        s->n_networks = s->n_nodes = 3 + size;
        for (uint32_t w = 0; w < s->n_networks; w++) {
            attach_nic(&n[w], w);
            attach_nic(&n[(w + 1) % s->n_nodes], w);
        }
        break;
    case 3:
        s->topology = "two rails";
        s->n_networks = 2;
        s->n_nodes = 2 + size;
        for (uint32_t i = 0; i < s->n_nodes; i++) {
            attach_nic(&n[i], 0);
            attach_nic(&n[i], 1);
        }
        break;
    default:
        s->topology = "two gateways";
        s->n_networks = 2;
        s->n_nodes = 6;
        for (uint32_t i = 0; i < 6; i++) {
            if (i < 4)
                attach_nic(&n[i], 0);
            if (i >= 2)
                attach_nic(&n[i], 1);
        }
        break;
    }
}

static void draw_networks(struct sim *s)
{
    for (uint32_t w = 0; w < s->n_networks; w++) {
        struct sim_faults f = {
            .datagram = sim_draw(s, 2) == 0,
            .delay_min_ns = 2000 + sim_draw(s, 100000),
        };
        f.delay_max_ns = f.delay_min_ns + 1 + sim_draw(s, sim_draw(s, 2) ? 20000 : 2000000);
        if (s->calm)
            f = (struct sim_faults){.delay_min_ns = 10000, .delay_max_ns = 20000};
        if (f.datagram) {
            static const uint32_t levels[] = {0, 1000, 10000, 100000};
            f.drop = levels[sim_draw(s, 4)];
            f.duplicate = levels[sim_draw(s, 4)];
            f.reorder = levels[sim_draw(s, 4)];
            f.max_datagram = sim_draw(s, 2) ? 1472 : 0;
        }
        s->networks[w] = net_sim_network_new(sim_draw(s, UINT64_MAX), &f);
        sim_say(s,
                "network %u: %s, drop %u duplicate %u reorder %u per million, delay %llu..%llu ns, "
                "datagrams "
                "of %u",
                w, f.datagram ? "datagram" : "stream", f.drop, f.duplicate, f.reorder,
                (unsigned long long)f.delay_min_ns, (unsigned long long)f.delay_max_ns,
                f.max_datagram);
    }
}

static void start_node(struct sim *s, uint32_t i)
{
    struct sim_node *n = &s->nodes[i];
    struct hub_config hc = {
        .node_id = n->id,
        .epoch = n->epoch,
        .n_channels = n->n_nics,
        .blocks_per_channel = 256u << sim_draw(s, 2),
        .hops = n->hops,
    };

    atomic_store_explicit(&n->hops->entries[0].epoch, n->epoch, memory_order_relaxed);
    if (hub_new(&hc, &n->hub) < 0)
        sim_fail(s, "hub_new");
    for (uint32_t c = 0; c < n->n_nics; c++) {
        struct sim_nic *nic = &n->nics[c];
        struct channel_config cc = {
            .idx = c,
            .name = "sim",
            .driver = &net_sim,
            .net = {.context = s->networks[nic->network]},
            .relay_limit = 16u << sim_draw(s, 6),
            .probe_ns = sim_draw(s, 2) ? UINT64_MAX : 0,
        };
        if (channel_new(n->hub, &cc, &nic->ch) < 0)
            sim_fail(s, "channel_new");
        uint32_t address;
        size_t len = sizeof address;
        if (channel_address(nic->ch, &address, &len) < 0)
            sim_fail(s, "channel_address");
        nic->address = address;
        nic->stalled_ns = 0;
        memset(nic->link_up, 0, sizeof nic->link_up);
        if (nic->cut)
            net_sim_cut(s->networks[nic->network], nic->address, true);
    }
    n->alive = true;
}

static void stop_node(struct sim_node *n)
{
    for (uint32_t c = 0; c < n->n_nics; c++) {
        channel_free(n->nics[c].ch);
        n->nics[c].ch = NULL;
    }
    hub_free(n->hub);
    n->hub = NULL;
    n->alive = false;
}

void cluster_build(struct sim *s)
{
    draw_topology(s);
    draw_networks(s);
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        struct sim_node *n = &s->nodes[i];
        char name[16];
        snprintf(name, sizeof name, "node%u", i);
        n->id = hash_fnv1a(name, strlen(name));
        n->epoch = 1 + (uint32_t)sim_draw(s, 1000000);
        n->hops = calloc(1, sizeof *n->hops);
        if (!n->hops)
            sim_fail(s, "memory");
        n->hops->packet_bytes = SIM_PACKET;
        n->hops->n_channels = n->n_nics;
    }
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        for (uint32_t j = 0; j < s->n_nodes; j++)
            atomic_store_explicit(&s->nodes[i].hops->entries[cluster_slot(i, j)].node_id,
                                  s->nodes[j].id, memory_order_relaxed);
        atomic_store_explicit(&s->nodes[i].hops->n_slots, s->n_nodes, memory_order_release);
        start_node(s, i);
    }
    for (uint32_t i = 0; i < s->n_nodes; i++)
        cluster_update(s, i);
}

void cluster_free(struct sim *s)
{
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        if (s->nodes[i].alive)
            stop_node(&s->nodes[i]);
        free(s->nodes[i].hops);
    }
    for (uint32_t w = 0; w < s->n_networks; w++)
        net_sim_network_free(s->networks[w]);
}

void cluster_command(struct sim *s, struct channel *ch, const struct cmd *cmd)
{
    while (channel_command(ch, cmd) == -EAGAIN)
        channel_turn(ch, s->now_ns);
}

/* The NIC of node j on the same network as this one; NULL if they do not reach one another now. */
static struct sim_nic *adjacent(struct sim *s, const struct sim_nic *nic, uint32_t j)
{
    struct sim_node *n = &s->nodes[j];

    if (!n->alive || nic->cut)
        return NULL;
    for (uint32_t c = 0; c < n->n_nics; c++)
        if (n->nics[c].network == nic->network && !n->nics[c].cut && &n->nics[c] != nic)
            return &n->nics[c];
    return NULL;
}

static void update_links(struct sim *s, uint32_t i)
{
    struct sim_node *n = &s->nodes[i];

    for (uint32_t c = 0; c < n->n_nics; c++) {
        struct sim_nic *nic = &n->nics[c];
        for (uint32_t j = 0; j < s->n_nodes; j++) {
            if (j == i)
                continue;
            struct sim_nic *other = adjacent(s, nic, j);
            struct cmd cmd = {0};
            if (nic->link_up[j] && (!other || nic->link_address[j] != other->address)) {
                cmd.type = CMD_REMOVE_LINK;
                cmd.remove_link.slot = (uint16_t)cluster_slot(i, j);
                cluster_command(s, nic->ch, &cmd);
                nic->link_up[j] = false;
            }
            if (!other || nic->link_up[j])
                continue;
            cmd.type = CMD_ADD_LINK;
            cmd.add_link.slot = (uint16_t)cluster_slot(i, j);
            cmd.add_link.len = sizeof other->address;
            memcpy(cmd.add_link.address, &other->address, sizeof other->address);
            /* Of the pair and its network, as the mesh derives it. */
            uint32_t pair[3] = {i < j ? i : j, i < j ? j : i, nic->network};
            memcpy(cmd.add_link.secret, pair, sizeof pair);
            cluster_command(s, nic->ch, &cmd);
            nic->link_up[j] = true;
            nic->link_address[j] = other->address;
        }
    }
}

/* Distances to node t over what is alive. */
static void distances(struct sim *s, uint32_t t, uint32_t *ret_dist)
{
    for (uint32_t i = 0; i < s->n_nodes; i++)
        ret_dist[i] = i == t && s->nodes[t].alive ? 0 : UINT32_MAX;
    for (uint32_t round = 0; round < s->n_nodes; round++) {
        for (uint32_t i = 0; i < s->n_nodes; i++) {
            if (ret_dist[i] != round)
                continue;
            for (uint32_t c = 0; c < s->nodes[i].n_nics; c++)
                for (uint32_t j = 0; j < s->n_nodes; j++)
                    if (ret_dist[j] == UINT32_MAX && j != i && adjacent(s, &s->nodes[i].nics[c], j))
                        ret_dist[j] = round + 1;
        }
    }
}

void cluster_update(struct sim *s, uint32_t i)
{
    struct sim_node *n = &s->nodes[i];
    uint32_t dist[SIM_NODES];

    if (!n->alive)
        return;
    update_links(s, i);
    for (uint32_t t = 0; t < s->n_nodes; t++) {
        if (t == i)
            continue;
        struct hop_entry *e = &n->hops->entries[cluster_slot(i, t)];
        hop_word ways[HOP_MAX_WIDE] = {0};
        uint32_t n_ways = 0;
        distances(s, t, dist);
        for (uint32_t c = 0; c < n->n_nics && dist[i] != UINT32_MAX; c++)
            for (uint32_t j = 0; j < s->n_nodes && n_ways < HOP_MAX_WIDE; j++)
                if (j != i && dist[j] + 1 == dist[i] && adjacent(s, &n->nics[c], j))
                    ways[n_ways++] =
                        hop_pack((uint16_t)cluster_slot(i, j), (uint8_t)c, (uint8_t)dist[i], 0);
        for (uint32_t w = 0; w < n_ways; w++)
            ways[w] |= (uint64_t)(65535 / n_ways) << 32;
        atomic_store_explicit(&e->epoch, s->nodes[t].alive ? s->nodes[t].epoch : 0,
                              memory_order_relaxed);
        atomic_store_explicit(&e->quick, n_ways ? ways[sim_draw(s, n_ways)] : 0,
                              memory_order_relaxed);
        for (uint32_t w = 0; w < HOP_MAX_WIDE; w++)
            atomic_store_explicit(&e->wide[w], ways[w], memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&n->hops->generation, 1, memory_order_release);
}

/* Every node learns of a change at its own time. */
static void spread_news(struct sim *s)
{
    for (uint32_t i = 0; i < s->n_nodes; i++)
        cluster_schedule(s, s->now_ns + 1000 + sim_draw(s, sim_draw(s, 2) ? 1000000 : 400000000),
                         SIM_UPDATE, i, 0);
}

void cluster_plan_faults(struct sim *s, uint64_t duration_ns)
{
    uint32_t n = (uint32_t)sim_draw(s, 5);
    bool killed[SIM_NODES] = {false};

    for (uint32_t k = 0; k < n; k++) {
        uint64_t at = sim_draw(s, duration_ns);
        uint32_t i = (uint32_t)sim_draw(s, s->n_nodes);
        if (sim_draw(s, 3) == 0) {
            if (killed[i])
                continue;
            killed[i] = true;
            cluster_schedule(s, s->now_ns + at, SIM_KILL, i, 0);
            cluster_schedule(s, s->now_ns + at + 2000000 + sim_draw(s, 3000000000ull), SIM_START, i,
                             0);
        } else {
            uint32_t c = (uint32_t)sim_draw(s, s->nodes[i].n_nics);
            cluster_schedule(s, s->now_ns + at, SIM_CUT, i, c);
            /* Mostly short of the time after which nodes count as unreachable, sometimes beyond
             * it. */
            cluster_schedule(s,
                             s->now_ns + at + 1000000 +
                                 sim_draw(s, sim_draw(s, 8) ? 4000000000ull : 14000000000ull),
                             SIM_HEAL, i, c);
        }
    }
    n = (uint32_t)sim_draw(s, 6);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = (uint32_t)sim_draw(s, s->n_nodes);
        cluster_schedule(s, s->now_ns + sim_draw(s, duration_ns), SIM_STALL, i,
                         (uint32_t)sim_draw(s, s->nodes[i].n_nics));
    }
    if (sim_draw(s, 3) == 0)
        for (uint32_t k = 0; k < 5; k++)
            cluster_schedule(s, s->now_ns + sim_draw(s, duration_ns), SIM_RUBBISH,
                             (uint32_t)sim_draw(s, s->n_networks), 0);
}

/* Packets that no honest node sends; well sealed ones with fields that fit nothing among them. */
static void inject_rubbish(struct sim *s, uint32_t w)
{
    struct wire_header h[2];

    for (uint32_t k = 0; k < 20; k++) {
        struct sim_node *n = &s->nodes[sim_draw(s, s->n_nodes)];
        struct sim_nic *nic = &n->nics[sim_draw(s, n->n_nics)];
        if (nic->network != w || !n->alive)
            continue;
        for (size_t i = 0; i < sizeof h / 8; i++)
            ((uint64_t *)(void *)h)[i] = sim_draw(s, UINT64_MAX);
        uint32_t len = (uint32_t)sizeof h[0] + (uint32_t)sim_draw(s, sizeof h[0]);
        if (sim_draw(s, 3) != 0) {
            h[0].magic = WIRE_MAGIC;
            h[0].version = WIRE_VERSION;
            h[0].type = (uint8_t)(1 + sim_draw(s, 5));
            h[0].flow_class = (uint8_t)sim_draw(s, WIRE_CLASSES);
            h[0].reserved1 = 0;
            h[0].reserved2 = 0;
            h[0].len = len - (uint32_t)sizeof h[0];
            if (sim_draw(s, 2))
                h[0].dst_node = n->id;
            if (sim_draw(s, 2))
                h[0].src_node = s->nodes[sim_draw(s, s->n_nodes)].id;
            if (sim_draw(s, 2))
                h[0].dst_epoch = n->epoch;
            wire_seal(&h[0]);
        }
        net_sim_inject(s->networks[w], nic->address, h, len);
    }
}

static void run_event(struct sim *s, const struct sim_event *e)
{
    struct sim_node *n = &s->nodes[e->a];

    switch (e->kind) {
    case SIM_UPDATE:
        cluster_update(s, e->a);
        break;
    case SIM_CUT:
    case SIM_HEAL:
        sim_say(s, "%s node %u nic %u (network %u)", e->kind == SIM_CUT ? "cut" : "heal", e->a,
                e->b, n->nics[e->b].network);
        n->nics[e->b].cut = e->kind == SIM_CUT;
        net_sim_cut(s->networks[n->nics[e->b].network], n->nics[e->b].address, e->kind == SIM_CUT);
        spread_news(s);
        break;
    case SIM_KILL:
        if (!n->alive)
            break;
        sim_say(s, "kill node %u", e->a);
        traffic_node_died(s, e->a);
        stop_node(n);
        spread_news(s);
        break;
    case SIM_START:
        if (n->alive)
            break;
        n->epoch += 1 + (uint32_t)sim_draw(s, 100);
        sim_say(s, "start node %u, epoch %u", e->a, n->epoch);
        start_node(s, e->a);
        cluster_update(s, e->a);
        spread_news(s);
        traffic_node_started(s, e->a);
        break;
    case SIM_STALL:
        n->nics[e->b].stalled_ns = s->now_ns + sim_draw(s, 60000000);
        break;
    case SIM_RUBBISH:
        inject_rubbish(s, e->a);
        break;
    default:
        traffic_event(s, e);
        break;
    }
}

void cluster_run_events(struct sim *s)
{
    for (uint32_t i = 0; i < s->n_events;) {
        if (s->events[i].at_ns > s->now_ns) {
            i++;
            continue;
        }
        struct sim_event e = s->events[i];
        s->events[i] = s->events[--s->n_events];
        run_event(s, &e);
        i = 0;
    }
}

void cluster_check_quiet(struct sim *s)
{
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        struct sim_node *n = &s->nodes[i];
        for (uint32_t c = 0; n->alive && c < n->n_nics; c++) {
            char why[256];
            if (!channel_is_quiet(n->nics[c].ch, why, sizeof why))
                sim_fail(s, "node %u channel %u: %s", i, c, why);
        }
    }
}

void cluster_report(const struct sim *s)
{
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        for (uint32_t c = 0; s->nodes[i].alive && c < s->nodes[i].n_nics; c++) {
            fprintf(stderr, "node %u channel %u:", i, c);
            const struct count *n = channel_counters(s->nodes[i].nics[c].ch);
            for (int id = 0; id < COUNT_N; id++)
                if (count_get(n, (enum count_id)id))
                    fprintf(stderr, " %s %llu", count_name((enum count_id)id),
                            (unsigned long long)count_get(n, (enum count_id)id));
            fprintf(stderr, "\n");
        }
    }
}
