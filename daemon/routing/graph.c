/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/routing/graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "daemon/routing/topology.h"

/* One end's word about a link, under a key that is the same for both ends. */
struct half {
    uint32_t low, high, network;
    uint32_t from;
    uint32_t rtt_us, mbytes_per_s;
};

static int half_compare(const void *pa, const void *pb)
{
    const struct half *a = pa, *b = pb;

    if (a->high != b->high)
        return a->high < b->high ? -1 : 1;
    if (a->network != b->network)
        return a->network < b->network ? -1 : 1;
    return a->from < b->from ? -1 : a->from > b->from;
}

/* Number of a network; UINT32_MAX: no memory. There are few of them, but every link names one:
 * hashes tell them apart first. */
static uint32_t graph_intern(struct graph *g, const char *name)
{
    uint32_t hash = hash_fnv1a(name, strlen(name));

    for (uint32_t i = 0; i < g->n_networks; i++)
        if (g->network_hashes[i] == hash && strcmp(g->networks[i], name) == 0)
            return i;
    uint32_t *hashes = realloc(g->network_hashes, (g->n_networks + 1) * sizeof *hashes);
    if (!hashes)
        return UINT32_MAX;
    g->network_hashes = hashes;
    hashes[g->n_networks] = hash;
    char **grown = realloc(g->networks, (g->n_networks + 1) * sizeof *grown);
    if (!grown)
        return UINT32_MAX;
    g->networks = grown;
    g->networks[g->n_networks] = strdup(name);
    return g->networks[g->n_networks] ? g->n_networks++ : UINT32_MAX;
}

static int collect(struct graph *g, const struct topology *t, struct half *halves, size_t *ret_n)
{
    const char *name = "";
    uint32_t network = UINT32_MAX;
    size_t n = 0;

    for (const struct topology_node *node = topology_first(t); node; node = node->hh.next) {
        for (size_t i = 0; i < node->state->n_links; i++) {
            const Motet__Adjacency *a = node->state->links[i];
            const struct topology_node *to = topology_find(t, a->node_id);
            if (!to || a->has_fault)
                continue;
            struct half *h = &halves[n++];
            h->from = node->index;
            h->low = node->index < to->index ? node->index : to->index;
            h->high = node->index < to->index ? to->index : node->index;
            if (strcmp(name, a->network) != 0) {
                name = a->network;
                network = graph_intern(g, name);
            }
            h->network = network;
            h->rtt_us = a->rtt_us;
            h->mbytes_per_s = a->mbytes_per_s;
            if (h->network == UINT32_MAX)
                return -ENOMEM;
        }
    }
    *ret_n = n;
    return 0;
}

/* Sorts by both ends: into a bucket for each lower end, which is short. 0 or -ENOMEM. */
static int graph_sort(const struct graph *g, const struct half *halves, size_t n,
                      struct half *ret_sorted)
{
    size_t *ends = calloc((size_t)g->n_nodes + 1, sizeof *ends);

    if (!ends)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        ends[halves[i].low + 1]++;
    for (uint32_t v = 0; v < g->n_nodes; v++)
        ends[v + 1] += ends[v];
    for (size_t i = 0; i < n; i++)
        ret_sorted[ends[halves[i].low]++] = halves[i];
    for (size_t v = 0, begin = 0; v < g->n_nodes; begin = ends[v++])
        qsort(ret_sorted + begin, ends[v] - begin, sizeof *ret_sorted, half_compare);
    free(ends);
    return 0;
}

/* Calls that pair up: the n-th and the next are the two ends of one link. */
static bool is_pair(const struct half *h, size_t i, size_t n)
{
    return i + 1 < n && h[i].low == h[i + 1].low && h[i].high == h[i + 1].high &&
           h[i].network == h[i + 1].network && h[i].from != h[i + 1].from;
}

/* Returns the number of edges. */
static size_t build_edges(struct graph *g, struct half *h, size_t n)
{
    struct route_edge *next = g->edges;

    for (size_t i = 0; i < n; i++) {
        if (!is_pair(h, i, n))
            continue;
        g->nodes[h[i].low].n_edges++;
        g->nodes[h[i].high].n_edges++;
        i++;
    }
    for (uint32_t v = 0; v < g->n_nodes; v++) {
        g->nodes[v].edges = next;
        next += g->nodes[v].n_edges;
        g->nodes[v].n_edges = 0;
    }
    for (size_t i = 0; i < n; i++) {
        if (!is_pair(h, i, n))
            continue;
        struct route_edge e = {.network = h[i].network};
        e.rtt_us = h[i].rtt_us > h[i + 1].rtt_us ? h[i].rtt_us : h[i + 1].rtt_us;
        e.mbytes_per_s =
            h[i].mbytes_per_s < h[i + 1].mbytes_per_s ? h[i].mbytes_per_s : h[i + 1].mbytes_per_s;
        struct route_node *low = &g->nodes[h[i].low], *high = &g->nodes[h[i].high];
        e.to = h[i].high;
        g->edges[(low->edges - g->edges) + low->n_edges++] = e;
        e.to = h[i].low;
        g->edges[(high->edges - g->edges) + high->n_edges++] = e;
        i++;
    }
    return (size_t)(next - g->edges);
}

/* Of a network on which nobody has measured one. */
#define RTT_UNKNOWN_US 100u

/* Gives every link of a network the network's least round trip. Its nodes hang on one switch, so
 * what differs is noise of busy nodes; taken at its word it would send packets over a third node of
 * the same network, through the same cables twice. */
static int even_out(struct graph *g, size_t n_edges)
{
    uint32_t *least = malloc((g->n_networks + 1) * sizeof *least);

    if (!least)
        return -ENOMEM;
    for (uint32_t i = 0; i < g->n_networks; i++)
        least[i] = UINT32_MAX;
    for (size_t i = 0; i < n_edges; i++)
        if (g->edges[i].rtt_us != 0 && g->edges[i].rtt_us < least[g->edges[i].network])
            least[g->edges[i].network] = g->edges[i].rtt_us;
    for (uint32_t i = 0; i < g->n_networks; i++)
        if (least[i] == UINT32_MAX)
            least[i] = RTT_UNKNOWN_US;
    for (size_t i = 0; i < n_edges; i++)
        g->edges[i].rtt_us = least[g->edges[i].network];
    g->network_rtts_us = least;
    return 0;
}

bool graph_same_costs(const struct graph *a, const struct graph *b)
{
    if (a->n_networks != b->n_networks)
        return false;
    for (uint32_t i = 0; i < a->n_networks; i++) {
        uint32_t x = a->network_rtts_us[i], y = b->network_rtts_us[i];
        if ((x > y ? x - y : y - x) > (x < y ? x : y) / 4 ||
            strcmp(a->networks[i], b->networks[i]) != 0)
            return false;
    }
    return true;
}

int graph_init(struct graph *g, const struct topology *t)
{
    size_t n_halves = 0;

    memset(g, 0, sizeof *g);
    for (const struct topology_node *node = topology_first(t); node; node = node->hh.next) {
        n_halves += node->state->n_links;
        if (node->index >= g->n_nodes)
            g->n_nodes = node->index + 1;
    }
    struct half *halves = calloc(n_halves + 1, sizeof *halves),
                *sorted = calloc(n_halves + 1, sizeof *sorted);
    g->nodes = calloc(g->n_nodes + 1, sizeof *g->nodes);
    g->by_index = calloc(g->n_nodes + 1, sizeof *g->by_index);
    g->edges = calloc(n_halves + 1, sizeof *g->edges);
    int rc = halves && sorted && g->nodes && g->by_index && g->edges ? 0 : -ENOMEM;
    for (const struct topology_node *node = topology_first(t); rc == 0 && node;
         node = node->hh.next) {
        g->by_index[node->index] = node;
        g->nodes[node->index].hash = node->node_id;
        g->nodes[node->index].relays = !node->state->draining;
    }
    if (rc == 0)
        rc = collect(g, t, halves, &n_halves);
    if (rc == 0)
        rc = graph_sort(g, halves, n_halves, sorted);
    if (rc == 0)
        rc = even_out(g, build_edges(g, sorted, n_halves));
    free(halves);
    free(sorted);
    if (rc < 0)
        graph_deinit(g);
    return rc;
}

void graph_deinit(struct graph *g)
{
    for (uint32_t i = 0; i < g->n_networks; i++)
        free(g->networks[i]);
    free(g->networks);
    free(g->network_hashes);
    free(g->network_rtts_us);
    free(g->nodes);
    free(g->by_index);
    free(g->edges);
    memset(g, 0, sizeof *g);
}

const char *graph_network(const struct graph *g, uint32_t network)
{
    return network < g->n_networks ? g->networks[network] : "?";
}

const struct topology_node *graph_node(const struct graph *g, uint32_t index)
{
    return index < g->n_nodes ? g->by_index[index] : NULL;
}

/* Marks what `from` reaches without passing `without`. `todo` has room for all nodes. */
static void graph_mark(const struct graph *g, uint32_t from, uint32_t without, bool *marks,
                       uint32_t *todo)
{
    uint32_t n = 0;

    marks[from] = true;
    todo[n++] = from;
    while (n > 0) {
        const struct route_node *at = &g->nodes[todo[--n]];
        for (uint32_t i = 0; i < at->n_edges; i++) {
            uint32_t to = at->edges[i].to;
            if (to == without || marks[to])
                continue;
            marks[to] = true;
            todo[n++] = to;
        }
    }
}

bool graph_is_needed(const struct graph *g, uint32_t index)
{
    bool *through = calloc(g->n_nodes + 1, sizeof *through),
         *round = calloc(g->n_nodes + 1, sizeof *round), needed = false;
    uint32_t *todo = calloc(g->n_nodes + 1, sizeof *todo), first = UINT32_MAX;

    if (through && round && todo && index < g->n_nodes) {
        graph_mark(g, index, UINT32_MAX, through, todo);
        for (uint32_t v = 0; v < g->n_nodes; v++) {
            if (v == index || !through[v] || !g->by_index[v] || !g->by_index[v]->state->busy)
                continue;
            if (first == UINT32_MAX)
                graph_mark(g, first = v, index, round, todo);
            needed |= !round[v];
        }
    }
    free(through);
    free(round);
    free(todo);
    return needed;
}
