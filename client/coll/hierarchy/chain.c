/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/hierarchy/chain.h"

#include "client/coll/hierarchy/tree.h"

/* Short enough that a chain fills quickly, long against the time that two distant ranks take to
 * agree on a transfer. */
#define SEGMENT_BYTES (64 << 10)
/* Receives posted ahead, and sends under way, for each neighbour. */
#define AHEAD  2
#define WINDOW 4

/* A segment of a node's block, on its way from there or towards there. */
struct item {
    MPI_Count at, n;
    int id; /* of the receive that brings it, -1: none under way */
};

/* What comes from a neighbour, the nearest first, and what goes to it: both are numbers of
 * items. */
struct edge {
    int rank, node;
    int *in, *out, n_in, n_out;
    int *sent; /* [WINDOW] ids */
};

struct chain_plan {
    struct item *items; /* by distance of their nodes, the own node's first */
    int n_items;
    struct edge *edges;
    int n_edges, n_steps;
};

/* Distances from a node, and behind which edge (-1: none) the others lie. */
static void chain_measure(const struct node_tree *tree, const struct chain_plan *f, int my_node,
                          int *distance, int *behind)
{
    int n_nodes = tree->shape->n_nodes,
        up = f->n_edges - 1; /* the edge to the parent, if there is one */
    for (int i = 0; i < n_nodes; i++)
        distance[i] = behind[i] = -1;
    distance[my_node] = 0;
    for (int i = my_node; tree->parent[i] >= 0; i = tree->parent[i]) {
        distance[tree->parent[i]] = distance[i] + 1;
        behind[tree->parent[i]] = up;
    }
    for (int i = 0; i < f->n_edges; i++)
        behind[f->edges[i].node] = i;
    for (int i = 0; i < n_nodes; i++) {
        int node = tree->order[i], parent = tree->parent[node];
        if (distance[node] >= 0)
            continue;
        distance[node] = distance[parent] + 1;
        if (parent != my_node)
            behind[node] = behind[parent];
    }
}

/* By distance, and within each distance by number: so both ends of an edge list what passes it in
 * one order. */
static void chain_sort(const int *distance, int n_nodes, int *count, int *sorted)
{
    for (int i = 0; i <= n_nodes; i++)
        count[i] = 0;
    for (int i = 0; i < n_nodes; i++)
        count[distance[i] + 1]++;
    for (int i = 0; i < n_nodes; i++)
        count[i + 1] += count[i];
    for (int i = 0; i < n_nodes; i++)
        sorted[count[distance[i]]++] = i;
}

static bool find_edges(struct schedule *s, const struct node_tree *tree, int my_node,
                       struct chain_plan *f)
{
    const struct shape *c = tree->shape;
    int n_children, parent = tree->parent[my_node],
                    *children = tree_children(s, tree, my_node, &n_children);
    f->edges = schedule_temp(s, ((size_t)n_children + 1) * sizeof(struct edge));
    if (s->broken)
        return false;
    for (int i = 0; i < n_children; i++)
        f->edges[f->n_edges++] = (struct edge){.node = children[i]};
    if (parent >= 0)
        f->edges[f->n_edges++] = (struct edge){.node = parent};
    for (int i = 0; i < f->n_edges; i++)
        f->edges[i].rank = c->leaders[f->edges[i].node];
    return true;
}

/* A node without bytes has an item, too: it takes its step, so that what follows comes behind what
 * it needs. */
static MPI_Count n_segments(MPI_Count n, MPI_Count segment)
{
    return n > segment ? (n + segment - 1) / segment : 1;
}

static bool chain_plan(struct schedule *s, struct node_groups *groups,
                       const struct chain_blocks *blocks, const struct datatype *type,
                       struct chain_plan *ret_plan)
{
    struct chain_plan *f = ret_plan;
    struct node_tree tree;
    *f = (struct chain_plan){0};
    int n_nodes = groups->shape->n_nodes, my_node = groups->shape->node_of[s->view.rank];
    int *ints = schedule_temp(s, (4 * (size_t)n_nodes + 1) * sizeof(int));
    int *distance = ints, *behind = ints + n_nodes, *sorted = ints + 2 * n_nodes,
        *count = ints + 3 * n_nodes;
    MPI_Count segment = type->size < SEGMENT_BYTES ? SEGMENT_BYTES / type->size : 1, n_items = 0;
    if (!ints ||
        !tree_of(s, groups, groups->nodes[groups->first[groups->centre]], NODE_TREE_CHAINS,
                 &tree) ||
        !find_edges(s, &tree, my_node, f))
        return false;
    chain_measure(&tree, f, my_node, distance, behind);
    chain_sort(distance, n_nodes, count, sorted);
    for (int i = 0; i < n_nodes; i++)
        n_items += n_segments(blocks->n[i], segment);
    f->items = schedule_temp(s, (size_t)n_items * sizeof(struct item));
    if (!f->items)
        return false;
    for (int i = 0; i < f->n_edges; i++) {
        struct edge *e = &f->edges[i];
        e->in = schedule_temp(s, (2 * (size_t)n_items + WINDOW) * sizeof(int));
        if (!e->in)
            return false;
        e->out = e->in + n_items;
        e->sent = e->out + n_items;
        for (int k = 0; k < WINDOW; k++)
            e->sent[k] = -1;
    }
    for (int i = 0; i < n_nodes; i++) {
        int node = sorted[i];
        for (MPI_Count k = 0; k < n_segments(blocks->n[node], segment); k++) {
            MPI_Count left = blocks->n[node] - k * segment;
            f->items[f->n_items] =
                (struct item){blocks->at[node] + k * segment, left < segment ? left : segment, -1};
            for (int e = 0; e < f->n_edges; e++) {
                struct edge *edge = &f->edges[e];
                if (e == behind[node])
                    edge->in[edge->n_in++] = f->n_items;
                else
                    edge->out[edge->n_out++] = f->n_items;
            }
            f->n_items++;
        }
    }
    for (int i = 0; i < f->n_edges; i++) {
        f->n_steps = f->edges[i].n_in > f->n_steps ? f->edges[i].n_in : f->n_steps;
        f->n_steps = f->edges[i].n_out > f->n_steps ? f->edges[i].n_out : f->n_steps;
    }
    return !s->broken;
}

/* What is wanted comes before it is passed on: an item is one place behind its place on the edge
 * that brings it, or more, as the own node's are before it. */
void chain_allgather(struct schedule *s, struct node_groups *groups, unsigned char *packed,
                     const struct chain_blocks *blocks)
{
    struct chain_plan f;
    if (!chain_plan(s, groups, blocks, datatype_predefined(MPI_BYTE), &f))
        return;
    for (int step = -AHEAD; step < f.n_steps; step++) {
        for (int i = 0; i < f.n_edges; i++) {
            struct edge *e = &f.edges[i];
            struct item *in = step + AHEAD < e->n_in ? &f.items[e->in[step + AHEAD]] : NULL;
            if (in && in->n > 0)
                in->id = schedule_irecv(s, buffer_of_bytes(packed + in->at, in->n), e->rank);
        }
        for (int i = 0; step >= 0 && i < f.n_edges; i++) {
            struct edge *e = &f.edges[i];
            struct item *out = step < e->n_out ? &f.items[e->out[step]] : NULL;
            if (!out || out->n == 0)
                continue;
            schedule_wait_one(s, out->id);
            out->id = -1;
            schedule_wait_one(s, e->sent[step % WINDOW]);
            e->sent[step % WINDOW] =
                schedule_isend(s, buffer_of_bytes(packed + out->at, out->n), e->rank);
        }
    }
    schedule_wait(s);
}

/* The same steps from the last one to the first, what was sent received and what was received sent:
 * what an item takes with it has come in steps before. */
void chain_reduce_scatter(struct schedule *s, struct node_groups *groups, void *acc,
                          const struct chain_blocks *blocks, struct datatype *type, struct op *op)
{
    struct chain_plan f;
    MPI_Count longest = 0;
    if (!chain_plan(s, groups, blocks, type, &f))
        return;
    for (int i = 0; i < f.n_items; i++)
        longest = f.items[i].n > longest ? f.items[i].n : longest;
    int n_slots = AHEAD + 1;
    void **room = schedule_temp(s, (size_t)(f.n_edges * n_slots) * sizeof(void *));
    int *ids = schedule_temp(s, (size_t)(f.n_edges * n_slots) * sizeof(int));
    for (int i = 0; !s->broken && i < f.n_edges * n_slots; i++) {
        room[i] = schedule_temp_typed(s, longest, type);
        ids[i] = -1;
    }
    if (s->broken)
        return;
    for (int step = f.n_steps - 1 + AHEAD; step >= 0; step--) {
        for (int i = 0; i < f.n_edges; i++) {
            struct edge *e = &f.edges[i];
            int from = step - AHEAD, slot = i * n_slots + (from + n_slots) % n_slots;
            const struct item *in = from >= 0 && from < e->n_out ? &f.items[e->out[from]] : NULL;
            if (in && in->n > 0)
                ids[slot] = schedule_irecv(s, buffer_of(room[slot], in->n, type), e->rank);
        }
        for (int i = 0; i < f.n_edges; i++) {
            struct edge *e = &f.edges[i];
            const struct item *out = step < e->n_in ? &f.items[e->in[step]] : NULL;
            if (!out || out->n == 0)
                continue;
            schedule_wait_one(s, e->sent[step % WINDOW]);
            e->sent[step % WINDOW] = schedule_isend(
                s, buffer_of(datatype_at(type, acc, out->at), out->n, type), e->rank);
        }
        for (int i = 0; i < f.n_edges; i++) {
            struct edge *e = &f.edges[i];
            const struct item *in = step < e->n_out ? &f.items[e->out[step]] : NULL;
            int slot = i * n_slots + step % n_slots;
            if (!in || in->n == 0)
                continue;
            schedule_wait_one(s, ids[slot]);
            schedule_reduce(s, room[slot], buffer_of(datatype_at(type, acc, in->at), in->n, type),
                            op);
        }
    }
    schedule_wait(s);
}
