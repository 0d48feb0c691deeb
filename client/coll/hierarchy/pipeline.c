/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long payloads over the tree of networks: a pipeline in which every node sends the payload once,
 * or nearly so.
 *
 * The leaders of a group form a chain from its entry to the node that speaks with the next group,
 * and the chains hang together along the tree. The payload travels in segments, so that all links
 * of all chains carry data at the same time: (nodes + n/m)(alpha + m beta) for segments of m bytes,
 * where a binomial tree makes some node send log2 p payloads one after the other. The idea is that
 * of bcast_pipeline.c.
 */
#include "client/coll/hierarchy/pipeline.h"

#define LEAST_BYTES (24 << 10)
/* At least a packet; up to what hides a rendezvous behind its transfer; in between so many that
 * filling the chains costs little. */
#define SHORT_SEGMENT (16 << 10)
#define LONG_SEGMENT  (128 << 10)
#define MANY_SEGMENTS 64
/* Chains of so few nodes are never much slower than trees. */
#define SHORT_CHAIN 8

struct pipeline {
    int parent, n_children; /* ranks; -1: the top */
    int *children;
    MPI_Count segment; /* elements */
    int lag; /* segments between going up and coming down, as a segment needs about so many steps to
                the top and back */
};

bool pipeline_suits(const struct levels *l, MPI_Count count, const struct datatype *type)
{
    MPI_Count n_bytes = count * type->size;
    return l->n_groups > 1 && n_bytes >= LEAST_BYTES && type->size <= SHORT_SEGMENT &&
           (l->shape->n_nodes <= SHORT_CHAIN || n_bytes / LONG_SEGMENT >= l->shape->n_nodes);
}

/* The last node in the chain of a group: preferably the one that must speak with another group. */
static int last_node(const struct place *p, int group)
{
    const struct levels *l = p->levels;
    int entry = place_entry_node(p, group), last = l->nodes[l->first[group + 1] - 1];
    if (last == entry)
        last = l->nodes[l->first[group]];
    for (int g = 0; g < l->n_groups; g++)
        if (p->tree->parent[g] == group && p->tree->edge[g].from != entry &&
            levels_gateways(l, last, p->tree->edge[g].to) > p->tree->edge[g].gateways)
            return p->tree->edge[g].from;
    return last;
}

/* Node of the parent's group that speaks with a group: the last of the chain, which has nobody else
 * to send to, if it is near enough. */
static int node_above(const struct place *p, int group)
{
    int last = last_node(p, p->tree->parent[group]);
    return levels_gateways(p->levels, last, p->tree->edge[group].to) ==
                   p->tree->edge[group].gateways
               ? last
               : place_node_above(p, group);
}

/* Neighbours in the chain of the own group. */
static void find_neighbours(const struct place *p, int *ret_before, int *ret_behind)
{
    const struct levels *l = p->levels;
    int entry = place_entry_node(p, p->my_group), last = last_node(p, p->my_group), before = -1,
        found = -1, behind = -1;
    for (int i = l->first[p->my_group] - 1; i <= l->first[p->my_group + 1]; i++) {
        int node = i < l->first[p->my_group]        ? entry
                   : i == l->first[p->my_group + 1] ? last
                                                    : l->nodes[i];
        bool at_an_end = i < l->first[p->my_group] || i == l->first[p->my_group + 1];
        if (!at_an_end && (node == entry || node == last))
            continue;
        if (i == l->first[p->my_group + 1] && last == entry)
            continue; /* alone */
        if (found >= 0 && behind < 0)
            behind = node;
        if (node == p->my_node)
            found = node;
        if (found < 0)
            before = node;
    }
    *ret_before = before;
    *ret_behind = behind;
}

/* Of a leader. False: no memory. */
static bool link_up(struct schedule *s, const struct place *p, MPI_Count count,
                    const struct datatype *type, struct pipeline *ret_pipeline)
{
    const struct levels *l = p->levels;
    int before, behind, *children = schedule_temp(s, ((size_t)l->n_groups + 1) * sizeof(int));
    if (!children)
        return false;
    *ret_pipeline = (struct pipeline){
        .parent = -1, .children = children, .lag = l->shape->n_nodes > 3 ? l->shape->n_nodes : 3};
    find_neighbours(p, &before, &behind);
    if (before >= 0)
        ret_pipeline->parent = place_leader_of(p, before);
    else if (p->tree->parent[p->my_group] >= 0)
        ret_pipeline->parent = place_leader_of(p, node_above(p, p->my_group));
    for (int g = 0; g < l->n_groups; g++)
        if (p->tree->parent[g] == p->my_group && node_above(p, g) == p->my_node)
            children[ret_pipeline->n_children++] = place_below(p, g); /* a border first */
    if (behind >= 0)
        children[ret_pipeline->n_children++] = place_leader_of(p, behind);
    MPI_Count bytes = count * type->size / MANY_SEGMENTS;
    ret_pipeline->segment = (bytes < SHORT_SEGMENT  ? SHORT_SEGMENT
                             : bytes < LONG_SEGMENT ? bytes
                                                    : LONG_SEGMENT) /
                            type->size;
    return true;
}

/* ---- segments ---- */

/* Sends to each child under way at a time. */
#define WINDOW 4

/* A payload on its way. Arrays of ids, as schedule_wait_one wants them. */
struct stream {
    void *buf;
    MPI_Count count;
    struct datatype *type;
    int received[2]; /* from the parent, by the parity of the segment */
    int *sent_down;  /* [n_children][WINDOW] to the children */
    int *sent_up;    /* [segments] to the parent */
    int *taken;      /* [n_children][2] from the children, by the parity of the segment */
    void **room;     /* [n_children][2] where they go */
};

static MPI_Count length_of(const struct pipeline *c, const struct stream *f, MPI_Count k)
{
    MPI_Count left = f->count - k * c->segment;
    return left < 0 ? 0 : left < c->segment ? left : c->segment;
}

static void *start_of(const struct pipeline *c, const struct stream *f, MPI_Count k)
{
    return datatype_at(f->type, f->buf, k * c->segment);
}

static int *no_ids(struct schedule *s, MPI_Count n)
{
    int *ids = schedule_temp(s, (size_t)n * sizeof(int));
    for (MPI_Count i = 0; ids && i < n; i++)
        ids[i] = -1;
    return ids;
}

static bool open_down(struct schedule *s, const struct pipeline *c, struct stream *f)
{
    f->received[0] = f->received[1] = -1;
    f->sent_down = no_ids(s, (MPI_Count)c->n_children * WINDOW);
    return !s->broken;
}

static void post_from_parent(struct schedule *s, const struct pipeline *c, struct stream *f,
                             MPI_Count k)
{
    MPI_Count n = length_of(c, f, k);
    if (n > 0 && c->parent >= 0)
        f->received[k % 2] = schedule_irecv(s, buffer_of(start_of(c, f, k), n, f->type), c->parent);
}

/* A segment that has come from the parent leaves for the children. */
static void pass_to_children(struct schedule *s, const struct pipeline *c, struct stream *f,
                             MPI_Count k)
{
    schedule_wait_one(s, f->received[k % 2]);
    for (int i = 0; i < c->n_children; i++) {
        int *sent = &f->sent_down[(MPI_Count)i * WINDOW + k % WINDOW];
        schedule_wait_one(s, *sent);
        *sent = schedule_isend(s, buffer_of(start_of(c, f, k), length_of(c, f, k), f->type),
                               c->children[i]);
    }
}

static void post_from_children(struct schedule *s, const struct pipeline *c, struct stream *f,
                               MPI_Count k)
{
    MPI_Count n = length_of(c, f, k);
    for (int i = 0; n > 0 && i < c->n_children; i++)
        f->taken[2 * i + k % 2] =
            schedule_irecv(s, buffer_of(f->room[2 * i + k % 2], n, f->type), c->children[i]);
}

static bool open_up(struct schedule *s, const struct pipeline *c, struct stream *f)
{
    MPI_Count n = 2 * (MPI_Count)c->n_children;
    f->taken = no_ids(s, n);
    f->sent_up = no_ids(s, (f->count + c->segment - 1) / c->segment);
    f->room = schedule_temp(s, (size_t)n * sizeof(void *));
    for (MPI_Count i = 0; !s->broken && i < n; i++)
        f->room[i] = schedule_temp_typed(s, c->segment < f->count ? c->segment : f->count, f->type);
    if (s->broken)
        return false;
    post_from_children(s, c, f, 0);
    post_from_children(s, c, f, 1);
    return true;
}

/* The children's operands for a segment join the own one, and the result leaves for the parent. */
static void combine_and_pass_up(struct schedule *s, const struct pipeline *c, struct stream *f,
                                MPI_Count k, struct op *op)
{
    MPI_Count n = length_of(c, f, k);
    for (int i = 0; i < c->n_children; i++) {
        schedule_wait_one(s, f->taken[2 * i + k % 2]);
        schedule_reduce(s, f->room[2 * i + k % 2], buffer_of(start_of(c, f, k), n, f->type), op);
    }
    post_from_children(s, c, f, k + 2);
    if (c->parent >= 0)
        f->sent_up[k] = schedule_isend(s, buffer_of(start_of(c, f, k), n, f->type), c->parent);
}

/* ---- collectives ---- */

void pipeline_bcast(struct schedule *s, const struct place *p, struct buffer buf)
{
    struct pipeline c;
    struct stream f = {.buf = buf.base, .count = buf.count, .type = buf.type};
    if (place_leads(p) && link_up(s, p, buf.count, buf.type, &c) && open_down(s, &c, &f)) {
        post_from_parent(s, &c, &f, 0);
        post_from_parent(s, &c, &f, 1);
        for (MPI_Count k = 0; k * c.segment < buf.count; k++) {
            pass_to_children(s, &c, &f, k);
            post_from_parent(s, &c, &f, k + 2);
        }
        schedule_wait(s);
    }
    schedule_enter(s, p->node);
    coll_bcast(s, buf, p->node_leader);
    schedule_leave(s, p->whole);
}

void pipeline_reduce(struct schedule *s, const struct place *p, const void *send,
                     struct buffer recv, struct op *op)
{
    struct pipeline c;
    bool is_root = p->whole.rank == p->root;
    struct stream f = {.buf = is_root || !place_leads(p)
                                  ? recv.base
                                  : schedule_temp_typed(s, recv.count, recv.type),
                       .count = recv.count,
                       .type = recv.type};
    schedule_enter(s, p->node);
    coll_reduce(s, is_root && send == recv.base ? MPI_IN_PLACE : send, buffer_like(recv, f.buf), op,
                p->node_leader);
    schedule_leave(s, p->whole);
    if (!place_leads(p) || !link_up(s, p, recv.count, recv.type, &c) || !open_up(s, &c, &f))
        return;
    for (MPI_Count k = 0; k * c.segment < recv.count; k++)
        combine_and_pass_up(s, &c, &f, k, op);
    schedule_wait(s);
}

void pipeline_allreduce(struct schedule *s, const struct place *p, const void *send,
                        struct buffer recv, struct op *op)
{
    struct pipeline c;
    struct stream f = {.buf = recv.base, .count = recv.count, .type = recv.type};
    schedule_enter(s, p->node);
    coll_reduce(s, place_leads(p) && send == recv.base ? MPI_IN_PLACE : send, recv, op,
                p->node_leader);
    schedule_leave(s, p->whole);
    if (place_leads(p) && link_up(s, p, recv.count, recv.type, &c) && open_up(s, &c, &f) &&
        open_down(s, &c, &f)) {
        MPI_Count n_segments = (recv.count + c.segment - 1) / c.segment;
        for (MPI_Count k = 0; k < n_segments + c.lag; k++) {
            MPI_Count down = k - c.lag, posted = down + 2;
            if (k < n_segments)
                combine_and_pass_up(s, &c, &f, k, op);
            if (down >= 0)
                pass_to_children(s, &c, &f, down);
            if (posted >= 0 && posted < n_segments) {
                /* The result comes to where the operand was, once that has left. */
                schedule_wait_one(s, f.sent_up[posted]);
                post_from_parent(s, &c, &f, posted);
            }
        }
        schedule_wait(s);
    }
    schedule_enter(s, p->node);
    coll_bcast(s, recv, p->node_leader);
    schedule_leave(s, p->whole);
}
