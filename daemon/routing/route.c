/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/routing/route.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* What passing a packet on costs in a gateway: two queues and a thread that may have to be
 * woken. */
#define QUICK_HOP_NS 30000ull
#define WIDE_HOP_NS  60000ull
/* The piece whose transfer time the wide metric weighs. */
#define WIDE_PIECE_BYTES (256ull << 10)
/* What passing on costs in a node that is about to end: more than any way round it. */
#define LAST_RESORT_NS 10000000000ull
/* An alternative below this part of the best way's bandwidth would only be waited for: 1/10. */
#define MIN_SHARE_DIVISOR 10u
/* Quick ways within a quarter of the best are equal; pairs of nodes are spread over them. */
#define EQUAL_NUM 5u
#define EQUAL_DEN 4u
#define FAR       UINT64_MAX

enum metric { QUICK, WIDE };

struct tree {
    uint64_t *cost; /* per node, FAR: unreachable */
    uint32_t *hops;
    uint32_t *narrow; /* bandwidth of the narrowest link of the way, MB/s */
    uint32_t *first;  /* index of the root's edge that the way begins with */
};

struct heap_item {
    uint64_t cost;
    uint32_t node;
};

struct heap {
    struct heap_item *items;
    size_t n, size;
    bool failed;
};

static void heap_push(struct heap *h, uint64_t cost, uint32_t node)
{
    if (h->n == h->size) {
        size_t size = h->size ? h->size * 2 : 256;
        struct heap_item *grown = realloc(h->items, size * sizeof *grown);
        if (!grown) {
            h->failed = true;
            return;
        }
        h->items = grown;
        h->size = size;
    }
    size_t at = h->n++;
    while (at > 0 && h->items[(at - 1) / 2].cost > cost) {
        h->items[at] = h->items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    h->items[at] = (struct heap_item){cost, node};
}

static struct heap_item heap_pop(struct heap *h)
{
    struct heap_item top = h->items[0], last = h->items[--h->n];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= h->n)
            break;
        if (child + 1 < h->n && h->items[child + 1].cost < h->items[child].cost)
            child++;
        if (h->items[child].cost >= last.cost)
            break;
        h->items[at] = h->items[child];
        at = child;
    }
    h->items[at] = last;
    return top;
}

static uint64_t edge_cost(const struct route_edge *e, enum metric metric)
{
    uint64_t half_ns = (uint64_t)e->rtt_us * 500;

    if (metric == QUICK)
        return half_ns + QUICK_HOP_NS;
    return half_ns + WIDE_HOP_NS +
           WIDE_PIECE_BYTES * 1000 / (e->mbytes_per_s ? e->mbytes_per_s : 1);
}

/* Distances from `root` to all. Links are taken to cost the same in both directions. */
static int shortest(const struct route_node *nodes, uint32_t n, uint32_t root, enum metric metric,
                    struct tree *tree)
{
    struct heap heap = {0};

    for (uint32_t i = 0; i < n; i++) {
        tree->cost[i] = FAR;
        tree->hops[i] = 0;
        tree->narrow[i] = 0;
        tree->first[i] = 0;
    }
    tree->cost[root] = 0;
    tree->narrow[root] = UINT32_MAX;
    heap_push(&heap, 0, root);
    while (heap.n > 0) {
        struct heap_item item = heap_pop(&heap);
        uint32_t at = item.node;
        if (item.cost > tree->cost[at])
            continue;
        uint64_t passing_ns = at != root && !nodes[at].relays ? LAST_RESORT_NS : 0;
        for (uint32_t i = 0; i < nodes[at].n_edges; i++) {
            const struct route_edge *e = &nodes[at].edges[i];
            uint64_t cost = item.cost + edge_cost(e, metric) + passing_ns;
            if (cost >= tree->cost[e->to])
                continue;
            tree->cost[e->to] = cost;
            tree->hops[e->to] = tree->hops[at] + 1;
            tree->first[e->to] = at == root ? i : tree->first[at];
            tree->narrow[e->to] =
                tree->narrow[at] < e->mbytes_per_s ? tree->narrow[at] : e->mbytes_per_s;
            heap_push(&heap, cost, e->to);
        }
    }
    free(heap.items);
    return heap.failed ? -ENOMEM : 0;
}

static int tree_alloc(struct tree *t, uint32_t n)
{
    t->cost = malloc(n * sizeof *t->cost);
    t->hops = malloc(n * sizeof *t->hops);
    t->narrow = malloc(n * sizeof *t->narrow);
    t->first = malloc(n * sizeof *t->first);
    return t->cost && t->hops && t->narrow && t->first ? 0 : -ENOMEM;
}

static void tree_free(struct tree *t)
{
    free(t->cost);
    free(t->hops);
    free(t->narrow);
    free(t->first);
}

static bool is_gateway(const struct route_node *n)
{
    for (uint32_t i = 1; i < n->n_edges; i++)
        if (n->edges[i].network != n->edges[0].network)
            return true;
    return false;
}

/* A possible first step: the edge, and its distances to everywhere. */
struct step {
    const struct route_edge *edge;
    const struct tree *tree; /* from edge->to; NULL: only the neighbour itself */
};

/* Adds a wide way in order of cost; drops the dearest when there are too many. */
static void add_wide(struct route *r, const struct route_way *way)
{
    uint32_t at = r->n_wide;

    while (at > 0 && r->wide[at - 1].cost_ns > way->cost_ns)
        at--;
    if (at >= ROUTE_MAX_WIDE)
        return;
    uint32_t last = r->n_wide < ROUTE_MAX_WIDE ? r->n_wide++ : ROUTE_MAX_WIDE - 1;
    for (uint32_t i = last; i > at; i--)
        r->wide[i] = r->wide[i - 1];
    r->wide[at] = *way;
}

/* Turns bandwidths (in `share`) into shares of 65535, without ways that are too thin to help. */
static void share_out(struct route *r)
{
    uint64_t sum = 0;
    uint32_t widest = 0, kept = 0, given = 0;

    for (uint32_t i = 0; i < r->n_wide; i++)
        widest = r->wide[i].share > widest ? r->wide[i].share : widest;
    for (uint32_t i = 0; i < r->n_wide; i++)
        if (r->wide[i].share >= widest / MIN_SHARE_DIVISOR)
            r->wide[kept++] = r->wide[i];
    r->n_wide = kept;
    for (uint32_t i = 0; i < kept; i++)
        sum += r->wide[i].share;
    for (uint32_t i = 0; i < kept; i++) {
        uint32_t share = sum ? (uint32_t)((uint64_t)r->wide[i].share * 65535 / sum) : 65535 / kept;
        r->wide[i].share = share;
        given += share;
    }
    if (kept > 0)
        r->wide[0].share += 65535 - given;
}

/* One destination: the ways through every step. own: our distances in both metrics. */
static void choose(uint32_t self_hash, uint32_t dst, uint32_t dst_hash, const struct step *steps,
                   uint32_t n_steps, const struct tree *quick_trees, const struct tree *own_quick,
                   const struct tree *own_wide, struct route *r)
{
    uint64_t best_weight = 0;

    for (uint32_t i = 0; i < n_steps; i++) {
        const struct route_edge *e = steps[i].edge;
        bool direct = e->to == dst;
        if (!direct && !steps[i].tree)
            continue;
        /* Wide. */
        uint64_t rest = direct ? 0 : steps[i].tree->cost[dst];
        if (rest < own_wide->cost[dst]) {
            uint32_t narrow = direct ? e->mbytes_per_s : steps[i].tree->narrow[dst];
            struct route_way way = {.next = e->to,
                                    .network = e->network,
                                    .n_hops = 1 + (direct ? 0 : steps[i].tree->hops[dst]),
                                    .share = narrow < e->mbytes_per_s ? narrow : e->mbytes_per_s,
                                    .cost_ns = edge_cost(e, WIDE) + rest};
            add_wide(r, &way);
        }
        /* Quick: of all that are nearer and about as good as the best, the one this pair of nodes
         * draws. */
        const struct tree *qt = direct ? NULL : &quick_trees[i];
        rest = direct ? 0 : qt->cost[dst];
        uint64_t cost = rest == FAR ? FAR : edge_cost(e, QUICK) + rest;
        if (rest >= own_quick->cost[dst] || cost == FAR ||
            cost / EQUAL_NUM > own_quick->cost[dst] / EQUAL_DEN)
            continue;
        uint64_t weight = hash_mix64(((uint64_t)(self_hash ^ dst_hash) << 32) ^
                                     ((uint64_t)e->to << 8) ^ e->network) |
                          1;
        if (weight <= best_weight)
            continue;
        best_weight = weight;
        r->quick = (struct route_way){.next = e->to,
                                      .network = e->network,
                                      .n_hops = 1 + (direct ? 0 : qt->hops[dst]),
                                      .share = 65535,
                                      .cost_ns = cost};
        r->reachable = true;
    }
    /* Neighbours that are no gateways were not asked; where two nodes of one network have no link,
     * one of them may be the way. */
    const struct route_edge *first = steps[own_quick->first[dst]].edge;
    if (!r->reachable)
        r->quick = (struct route_way){.next = first->to,
                                      .network = first->network,
                                      .n_hops = own_quick->hops[dst],
                                      .share = 65535,
                                      .cost_ns = own_quick->cost[dst]};
    r->reachable = true;
    first = steps[own_wide->first[dst]].edge;
    if (r->n_wide == 0)
        r->wide[r->n_wide++] = (struct route_way){.next = first->to,
                                                  .network = first->network,
                                                  .n_hops = own_wide->hops[dst],
                                                  .share = own_wide->narrow[dst],
                                                  .cost_ns = own_wide->cost[dst]};
    share_out(r);
}

int route_compute(const struct route_node *nodes, uint32_t n_nodes, uint32_t self,
                  struct route *ret_routes)
{
    const struct route_node *me = &nodes[self];
    struct tree own_quick = {0}, own_wide = {0};
    struct step *steps = calloc(me->n_edges + 1, sizeof *steps);
    struct tree *quick = calloc(me->n_edges + 1, sizeof *quick);
    struct tree *wide = calloc(me->n_edges + 1, sizeof *wide);
    int rc = steps && quick && wide ? 0 : -ENOMEM;

    memset(ret_routes, 0, n_nodes * sizeof *ret_routes);
    if (rc == 0)
        rc =
            tree_alloc(&own_quick, n_nodes) < 0 || tree_alloc(&own_wide, n_nodes) < 0 ? -ENOMEM : 0;
    if (rc == 0)
        rc = shortest(nodes, n_nodes, self, QUICK, &own_quick);
    if (rc == 0)
        rc = shortest(nodes, n_nodes, self, WIDE, &own_wide);
    for (uint32_t i = 0; rc == 0 && i < me->n_edges; i++) {
        const struct route_node *n = &nodes[me->edges[i].to];
        steps[i].edge = &me->edges[i];
        if (!n->relays || !is_gateway(n))
            continue;
        rc = tree_alloc(&quick[i], n_nodes) < 0 || tree_alloc(&wide[i], n_nodes) < 0 ? -ENOMEM : 0;
        if (rc == 0)
            rc = shortest(nodes, n_nodes, me->edges[i].to, QUICK, &quick[i]);
        if (rc == 0)
            rc = shortest(nodes, n_nodes, me->edges[i].to, WIDE, &wide[i]);
        steps[i].tree = &wide[i];
    }
    for (uint32_t dst = 0; rc == 0 && dst < n_nodes; dst++)
        if (dst != self && own_quick.cost[dst] != FAR)
            choose(me->hash, dst, nodes[dst].hash, steps, me->n_edges, quick, &own_quick, &own_wide,
                   &ret_routes[dst]);
    for (uint32_t i = 0; quick && wide && i < me->n_edges; i++) {
        tree_free(&quick[i]);
        tree_free(&wide[i]);
    }
    tree_free(&own_quick);
    tree_free(&own_wide);
    free(steps);
    free(quick);
    free(wide);
    return rc;
}
