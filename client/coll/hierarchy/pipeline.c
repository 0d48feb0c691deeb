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

#include "client/coll/family/coll.h"
#include "client/coll/hierarchy/tree.h"

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

bool pipeline_suits(const struct node_groups *l, struct buffer buf)
{
    MPI_Count n_bytes = buffer_size(buf);
    return l->n_groups > 1 && n_bytes >= LEAST_BYTES && buf.type->size <= SHORT_SEGMENT &&
           (l->shape->n_nodes <= SHORT_CHAIN || n_bytes / LONG_SEGMENT >= l->shape->n_nodes);
}

/* Of a leader: its neighbours in the tree of chains. False: no memory. */
static bool pipeline_link(struct schedule *s, const struct place *p, struct buffer buf,
                          struct pipeline *ret_pipeline)
{
    struct node_tree tree;
    int n_nodes = p->groups->shape->n_nodes;
    if (!tree_of_place(s, p, &tree))
        return false;
    int up = tree.parent[p->my_node];
    *ret_pipeline = (struct pipeline){.parent = up >= 0 ? place_leader_of(p, up) : -1,
                                      .lag = n_nodes > 3 ? n_nodes : 3};
    ret_pipeline->children = tree_children(s, &tree, p->my_node, &ret_pipeline->n_children);
    for (int i = 0; i < ret_pipeline->n_children; i++)
        ret_pipeline->children[i] = place_leader_of(p, ret_pipeline->children[i]);
    MPI_Count bytes = buffer_size(buf) / MANY_SEGMENTS;
    ret_pipeline->segment = (bytes < SHORT_SEGMENT  ? SHORT_SEGMENT
                             : bytes < LONG_SEGMENT ? bytes
                                                    : LONG_SEGMENT) /
                            buf.type->size;
    return !s->broken;
}

/* ---- segments ---- */

/* Sends to each child under way at a time. */
#define WINDOW 4

/* A payload on its way. Arrays of ids, as schedule_wait_one wants them. */
struct stream {
    struct buffer buf;
    int received[2]; /* from the parent, by the parity of the segment */
    int *sent_down;  /* [n_children][WINDOW] to the children */
    int *sent_up;    /* [segments] to the parent */
    int *taken;      /* [n_children][2] from the children, by the parity of the segment */
    void **room;     /* [n_children][2] where they go */
};

static struct buffer pipeline_segment(const struct pipeline *c, const struct stream *f, MPI_Count k)
{
    struct buffer segment = buffer_piece(f->buf, k * c->segment, c->segment);
    if (segment.count < 0)
        segment.count = 0;
    return segment;
}

static int *pipeline_no_ids(struct schedule *s, MPI_Count n)
{
    int *ids = schedule_temp(s, (size_t)n * sizeof(int));
    for (MPI_Count i = 0; ids && i < n; i++)
        ids[i] = -1;
    return ids;
}

static bool pipeline_open_down(struct schedule *s, const struct pipeline *c, struct stream *f)
{
    f->received[0] = f->received[1] = -1;
    f->sent_down = pipeline_no_ids(s, (MPI_Count)c->n_children * WINDOW);
    return !s->broken;
}

static void pipeline_post_from_parent(struct schedule *s, const struct pipeline *c,
                                      struct stream *f, MPI_Count k)
{
    struct buffer segment = pipeline_segment(c, f, k);
    if (segment.count > 0 && c->parent >= 0)
        f->received[k % 2] = schedule_irecv(s, segment, c->parent);
}

/* A segment that has come from the parent leaves for the children. */
static void pipeline_pass_to_children(struct schedule *s, const struct pipeline *c,
                                      struct stream *f, MPI_Count k)
{
    schedule_wait_one(s, f->received[k % 2]);
    for (int i = 0; i < c->n_children; i++) {
        int *sent = &f->sent_down[(MPI_Count)i * WINDOW + k % WINDOW];
        schedule_wait_one(s, *sent);
        *sent = schedule_isend(s, pipeline_segment(c, f, k), c->children[i]);
    }
}

static void pipeline_post_from_children(struct schedule *s, const struct pipeline *c,
                                        struct stream *f, MPI_Count k)
{
    struct buffer segment = pipeline_segment(c, f, k);
    for (int i = 0; segment.count > 0 && i < c->n_children; i++) {
        int slot = 2 * i + (int)(k % 2);
        f->taken[slot] = schedule_irecv(s, buffer_like(segment, f->room[slot]), c->children[i]);
    }
}

static bool pipeline_open_up(struct schedule *s, const struct pipeline *c, struct stream *f)
{
    MPI_Count n = 2 * (MPI_Count)c->n_children;
    f->taken = pipeline_no_ids(s, n);
    f->sent_up = pipeline_no_ids(s, (f->buf.count + c->segment - 1) / c->segment);
    f->room = schedule_temp(s, (size_t)n * sizeof(void *));
    for (MPI_Count i = 0; !s->broken && i < n; i++)
        f->room[i] = schedule_temp_typed(s, pipeline_segment(c, f, 0).count, f->buf.type);
    if (s->broken)
        return false;
    pipeline_post_from_children(s, c, f, 0);
    pipeline_post_from_children(s, c, f, 1);
    return true;
}

/* The children's operands for a segment join the own one, and the result leaves for the parent. */
static void pipeline_combine_and_pass_up(struct schedule *s, const struct pipeline *c,
                                         struct stream *f, MPI_Count k, struct op *op)
{
    struct buffer segment = pipeline_segment(c, f, k);
    for (int i = 0; i < c->n_children; i++) {
        schedule_wait_one(s, f->taken[2 * i + k % 2]);
        schedule_reduce(s, f->room[2 * i + k % 2], segment, op);
    }
    pipeline_post_from_children(s, c, f, k + 2);
    if (c->parent >= 0)
        f->sent_up[k] = schedule_isend(s, segment, c->parent);
}

/* ---- collectives ---- */

void pipeline_bcast(struct schedule *s, const struct place *p, struct buffer buf)
{
    struct pipeline c;
    struct stream f = {.buf = buf};
    if (place_leads(p) && pipeline_link(s, p, buf, &c) && pipeline_open_down(s, &c, &f)) {
        pipeline_post_from_parent(s, &c, &f, 0);
        pipeline_post_from_parent(s, &c, &f, 1);
        for (MPI_Count k = 0; k * c.segment < buf.count; k++) {
            pipeline_pass_to_children(s, &c, &f, k);
            pipeline_post_from_parent(s, &c, &f, k + 2);
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
    struct stream f = {.buf = recv};
    if (!is_root && place_leads(p))
        f.buf.base = schedule_temp_typed(s, recv.count, recv.type);
    schedule_enter(s, p->node);
    coll_reduce(s, is_root && send == recv.base ? MPI_IN_PLACE : send, f.buf, op, p->node_leader);
    schedule_leave(s, p->whole);
    if (!place_leads(p) || !pipeline_link(s, p, recv, &c) || !pipeline_open_up(s, &c, &f))
        return;
    for (MPI_Count k = 0; k * c.segment < recv.count; k++)
        pipeline_combine_and_pass_up(s, &c, &f, k, op);
    schedule_wait(s);
}

void pipeline_allreduce(struct schedule *s, const struct place *p, const void *send,
                        struct buffer recv, struct op *op)
{
    struct pipeline c;
    struct stream f = {.buf = recv};
    schedule_enter(s, p->node);
    coll_reduce(s, place_leads(p) && send == recv.base ? MPI_IN_PLACE : send, recv, op,
                p->node_leader);
    schedule_leave(s, p->whole);
    if (place_leads(p) && pipeline_link(s, p, recv, &c) && pipeline_open_up(s, &c, &f) &&
        pipeline_open_down(s, &c, &f)) {
        MPI_Count n_segments = (recv.count + c.segment - 1) / c.segment;
        for (MPI_Count k = 0; k < n_segments + c.lag; k++) {
            MPI_Count down = k - c.lag, posted = down + 2;
            if (k < n_segments)
                pipeline_combine_and_pass_up(s, &c, &f, k, op);
            if (down >= 0)
                pipeline_pass_to_children(s, &c, &f, down);
            if (posted >= 0 && posted < n_segments) {
                /* The result comes to where the operand was, once that has left. */
                schedule_wait_one(s, f.sent_up[posted]);
                pipeline_post_from_parent(s, &c, &f, posted);
            }
        }
        schedule_wait(s);
    }
    schedule_enter(s, p->node);
    coll_bcast(s, recv, p->node_leader);
    schedule_leave(s, p->whole);
}
