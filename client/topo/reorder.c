/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/topo/reorder.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* What is at hand while orders are tried. All arrays have n elements. */
struct search {
    const struct reorder_graph *g;
    int *rank_node; /* number of the node of each rank, nodes numbered as they appear */
    int *capacity;  /* ranks on each node */
    int n_nodes;
    int *node_at; /* the order under trial: node of each place */
    int *best;    /* the best so far */
    long long best_crossing;
};

long long reorder_crossing(const struct reorder_graph *g, const int *node_at)
{
    long long sum = 0;
    for (int i = 0; i < g->n; i++)
        for (int k = g->first[i]; k < g->first[i + 1]; k++)
            if (g->edges[k] >= 0 && node_at[i] != node_at[g->edges[k]])
                sum += g->weights ? g->weights[k] : 1;
    return sum;
}

static void judge(struct search *s)
{
    long long crossing = reorder_crossing(s->g, s->node_at);
    if (crossing < s->best_crossing) {
        s->best_crossing = crossing;
        memcpy(s->best, s->node_at, (size_t)s->g->n * sizeof(int));
    }
}

/* ---- growing regions ---- */

/* A heap of places by what they would save; entries go stale when the gain of their place grows. */
struct candidate {
    long long gain;
    int place;
};

struct heap {
    struct candidate *entries;
    size_t n;
};

static bool before(struct candidate a, struct candidate b)
{
    return a.gain > b.gain || (a.gain == b.gain && a.place < b.place);
}

static void heap_push(struct heap *h, struct candidate c)
{
    size_t at = h->n++;
    while (at > 0 && before(c, h->entries[(at - 1) / 2])) {
        h->entries[at] = h->entries[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    h->entries[at] = c;
}

static struct candidate heap_pop(struct heap *h)
{
    struct candidate top = h->entries[0], last = h->entries[--h->n];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= h->n)
            break;
        if (child + 1 < h->n && before(h->entries[child + 1], h->entries[child]))
            child++;
        if (!before(h->entries[child], last))
            break;
        h->entries[at] = h->entries[child];
        at = child;
    }
    h->entries[at] = last;
    return top;
}

/* Greedy graph growing (Karypis and Kumar 1998, section 3.2): each node in turn takes the place
 * that has most edges into what it holds already, from a first free place on. Follows edges in the
 * direction they are listed; O(E log E). */
static void try_growing(struct search *s)
{
    const struct reorder_graph *g = s->g;
    struct heap heap = {.entries = malloc(((size_t)g->first[g->n] + 1) * sizeof(struct candidate))};
    long long *gain = malloc((size_t)g->n * sizeof *gain);
    int next_free = 0;
    for (int i = 0; i < g->n; i++)
        s->node_at[i] = -1;
    for (int node = 0; heap.entries && gain && node < s->n_nodes; node++) {
        heap.n = 0;
        memset(gain, 0, (size_t)g->n * sizeof *gain);
        for (int taken = 0; taken < s->capacity[node];) {
            int place = -1;
            while (heap.n > 0 && place < 0) {
                struct candidate c = heap_pop(&heap);
                if (s->node_at[c.place] < 0 && c.gain == gain[c.place])
                    place = c.place;
            }
            if (place < 0) {
                while (s->node_at[next_free] >= 0)
                    next_free++;
                place = next_free;
            }
            s->node_at[place] = node;
            taken++;
            for (int k = g->first[place]; k < g->first[place + 1]; k++) {
                int other = g->edges[k];
                if (other < 0 || s->node_at[other] >= 0)
                    continue;
                gain[other] += g->weights ? g->weights[k] : 1;
                heap_push(&heap, (struct candidate){gain[other], other});
            }
        }
    }
    if (heap.entries && gain)
        judge(s);
    free(heap.entries);
    free(gain);
}

/* ---- blocks of a grid ---- */

/* Judges every shape of block with `left` more places in the dimensions from d on. There are few:
 * the ways to write the ranks of a node as a product. */
static void try_shapes(struct search *s, int n_dims, const int *dims, int *block, int d, int left)
{
    if (d < n_dims) {
        for (int extent = 1; extent <= dims[d] && extent <= left; extent++) {
            block[d] = extent;
            if (dims[d] % extent == 0 && left % extent == 0)
                try_shapes(s, n_dims, dims, block, d + 1, left / extent);
        }
        return;
    }
    if (left != 1)
        return;
    for (int place = 0; place < s->g->n; place++) {
        int node = 0, rest = place, scale = 1;
        for (int k = n_dims - 1; k >= 0; k--) {
            node += rest % dims[k] / block[k] * scale;
            scale *= dims[k] / block[k];
            rest /= dims[k];
        }
        s->node_at[place] = node;
    }
    judge(s);
}

/* Where all nodes have equally many ranks: equal blocks of the grid, a node each. */
static void try_grid(struct search *s, int n_dims, const int *dims)
{
    for (int node = 1; node < s->n_nodes; node++)
        if (s->capacity[node] != s->capacity[0])
            return;
    int *block = malloc(((size_t)n_dims + 1) * sizeof(int));
    if (block)
        try_shapes(s, n_dims, dims, block, 0, s->capacity[0]);
    free(block);
}

/* ---- the whole ---- */

static void number_nodes(struct search *s, const int *node_of)
{
    int *names = s->best; /* not in use yet */
    for (int i = 0; i < s->g->n; i++) {
        /* Neighbouring ranks mostly share a node. */
        int node = i > 0 && node_of[i] == node_of[i - 1] ? s->rank_node[i - 1] : 0;
        while (node < s->n_nodes && names[node] != node_of[i])
            node++;
        if (node == s->n_nodes) {
            names[s->n_nodes] = node_of[i];
            s->capacity[s->n_nodes++] = 0;
        }
        s->rank_node[i] = node;
        s->capacity[node]++;
    }
}

/* Ranks of each node, in their order, to its places. */
static void hand_out(const struct search *s, int *ret_members)
{
    int *next = s->node_at; /* not in use any more: by node, where to look for its next rank */
    memset(next, 0, (size_t)s->g->n * sizeof(int));
    for (int place = 0; place < s->g->n; place++) {
        int node = s->best[place], rank = next[node];
        while (s->rank_node[rank] != node)
            rank++;
        ret_members[place] = rank;
        next[node] = rank + 1;
    }
}

static bool reorder(const struct reorder_graph *g, const int *node_of, int n_dims, const int *dims,
                    int *ret_members)
{
    size_t n = (size_t)g->n;
    int *memory = malloc((4 * n + 1) * sizeof(int));
    if (!memory)
        return false;
    struct search s = {.g = g,
                       .rank_node = memory,
                       .capacity = memory + n,
                       .node_at = memory + 2 * n,
                       .best = memory + 3 * n};
    number_nodes(&s, node_of);
    long long as_it_is = reorder_crossing(g, s.rank_node);
    s.best_crossing = as_it_is;
    if (dims)
        try_grid(&s, n_dims, dims);
    try_growing(&s);
    bool better = s.best_crossing < as_it_is;
    if (better)
        hand_out(&s, ret_members);
    free(memory);
    return better;
}

bool reorder_graph(const struct reorder_graph *g, const int *node_of, int *ret_members)
{
    return reorder(g, node_of, 0, NULL, ret_members);
}

bool reorder_cart(const struct reorder_graph *g, const int *node_of, int n_dims, const int *dims,
                  int *ret_members)
{
    return reorder(g, node_of, n_dims, dims, ret_members);
}
