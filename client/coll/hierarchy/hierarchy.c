/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/hierarchy/hierarchy.h"

#include "client/coll/hierarchy/noncommutative.h"
#include "client/coll/hierarchy/pipeline.h"

/* Long payloads travel in pieces, so that a group receives one while the next group already has the
 * one before: a chain of g networks takes the time of one and g - 1 pieces. Long against the time
 * that two distant ranks take to agree on a transfer. */
#define SEGMENT_BYTES (256 << 10)

/* ---- barrier ---- */

/* Binomial tree of empty messages towards a place of the view, and back from there. */
static void hierarchy_collect(struct schedule *s, int top)
{
    int size = s->view.size, relative = (s->view.rank - top + size) % size;
    for (int mask = 1; mask < size; mask *= 2) {
        if (relative & mask) {
            schedule_send(s, buffer_of_bytes(NULL, 0), (relative - mask + top) % size);
            return;
        }
        if (relative + mask < size)
            schedule_recv(s, buffer_of_bytes(NULL, 0), (relative + mask + top) % size);
    }
}

static void hierarchy_let_go(struct schedule *s, int top)
{
    int size = s->view.size, relative = (s->view.rank - top + size) % size, mask = 1;
    while (mask < size && !(relative & mask))
        mask *= 2;
    if (relative)
        schedule_recv(s, buffer_of_bytes(NULL, 0), (relative - mask + top) % size);
    for (mask /= 2; mask > 0; mask /= 2)
        if (relative + mask < size)
            schedule_send(s, buffer_of_bytes(NULL, 0), (relative + mask + top) % size);
}

/* Upwards, then down again. Between groups: 2 height alpha, one less where two groups meet as
 * equals. */
static void hierarchy_barrier_of_leaders(struct schedule *s, const struct place *p)
{
    int n_groups = p->groups->n_groups, partner = place_partner(p);
    if (n_groups == 1) {
        schedule_enter(s, p->group);
        coll_barrier(s);
        return;
    }
    schedule_enter(s, p->whole);
    for (int g = 0; g < n_groups; g++)
        if (place_has_child(p, g))
            schedule_recv(s, buffer_of_bytes(NULL, 0), place_below(p, g));
    schedule_enter(s, p->group);
    hierarchy_collect(s, p->entry);
    schedule_enter(s, p->whole);
    if (place_is_entry(p) && place_has_parent(p)) {
        schedule_send(s, buffer_of_bytes(NULL, 0), place_above(p, p->my_group));
        schedule_recv(s, buffer_of_bytes(NULL, 0), place_above(p, p->my_group));
    }
    schedule_sendrecv(s, buffer_of_bytes(NULL, 0), partner, buffer_of_bytes(NULL, 0), partner);
    schedule_enter(s, p->group);
    hierarchy_let_go(s, p->entry);
    schedule_enter(s, p->whole);
    for (int g = 0; g < n_groups; g++)
        if (place_has_child(p, g))
            schedule_send(s, buffer_of_bytes(NULL, 0), place_below(p, g));
}

static void hierarchy_barrier(struct schedule *s, struct node_groups *groups)
{
    struct place p;
    if (!place_find(s, groups, -1, GROUP_TREE_PAYLOAD, &p))
        return;
    place_meet_as_equals(&p);
    schedule_enter(s, p.node);
    hierarchy_collect(s, p.node_leader);
    if (place_leads(&p))
        hierarchy_barrier_of_leaders(s, &p);
    schedule_enter(s, p.node);
    hierarchy_let_go(s, p.node_leader);
    schedule_leave(s, p.whole);
}

void barrier_nodes(struct schedule *s)
{
    hierarchy_barrier(s, hierarchy_nodes(s));
}

void barrier_networks(struct schedule *s)
{
    hierarchy_barrier(s, hierarchy_networks(s));
}

/* ---- broadcast ---- */

/* Elements of a piece. */
static MPI_Count hierarchy_piece(const struct node_groups *l, struct buffer buf)
{
    return l->n_groups == 1 ? buf.count : buffer_elements(buf, SEGMENT_BYTES);
}

static void hierarchy_send_down(struct schedule *s, const struct place *p, struct buffer buf)
{
    for (int g = 0; g < p->groups->n_groups; g++)
        if (place_has_child(p, g))
            schedule_isend(s, buf, place_below(p, g));
}

/* From the entry of the tree's root to all ranks. What crosses a border leaves before what stays in
 * the group. */
static void hierarchy_pass_down(struct schedule *s, const struct place *p, struct buffer buf)
{
    if (place_leads(p)) {
        schedule_enter(s, p->whole);
        if (place_is_entry(p)) {
            if (place_has_parent(p))
                schedule_recv(s, buf, place_above(p, p->my_group));
            hierarchy_send_down(s, p, buf);
        }
        schedule_enter(s, p->group);
        coll_bcast(s, buf, p->entry);
        schedule_enter(s, p->whole);
        if (!place_is_entry(p))
            hierarchy_send_down(s, p, buf);
        schedule_wait(s);
    }
    schedule_enter(s, p->node);
    coll_bcast(s, buf, p->node_leader);
    schedule_leave(s, p->whole);
}

/* Along the tree, piece by piece. Each border: n beta in one direction; height (alpha + piece beta)
 * until the farthest group begins. */
static void hierarchy_bcast(struct schedule *s, struct node_groups *groups, struct buffer buf,
                            int root)
{
    struct place p;
    if (!place_find(s, groups, root, GROUP_TREE_PAYLOAD, &p))
        return;
    if (pipeline_suits(groups, buf)) {
        pipeline_bcast(s, &p, buf);
        return;
    }
    MPI_Count piece = hierarchy_piece(groups, buf);
    for (MPI_Count at = 0; at < buf.count; at += piece)
        hierarchy_pass_down(s, &p, buffer_piece(buf, at, piece));
}

void bcast_nodes(struct schedule *s, struct buffer buf, int root)
{
    hierarchy_bcast(s, hierarchy_nodes(s), buf, root);
}

void bcast_networks(struct schedule *s, struct buffer buf, int root)
{
    hierarchy_bcast(s, hierarchy_networks(s), buf, root);
}

/* ---- reductions ---- */

/* The operands of everything below each group's entry meet in its acc, and go to its parent. `acc`
 * and `other`, of the same length, have room on leaders. */
static void hierarchy_pass_up(struct schedule *s, const struct place *p, const void *send,
                              struct buffer acc, void *other, struct op *op)
{
    bool stays = place_leads(p) && send == acc.base;
    schedule_enter(s, p->node);
    coll_reduce(s, stays ? MPI_IN_PLACE : send, acc, op, p->node_leader);
    schedule_enter(s, p->whole);
    for (int g = 0; g < p->groups->n_groups; g++) {
        if (!place_has_child(p, g))
            continue;
        schedule_recv(s, buffer_like(acc, other), place_below(p, g));
        schedule_reduce(s, other, acc, op);
    }
    schedule_enter(s, p->group);
    if (place_leads(p))
        coll_reduce(s, place_is_entry(p) ? MPI_IN_PLACE : acc.base, acc, op, p->entry);
    schedule_enter(s, p->whole);
    if (place_is_entry(p) && place_has_parent(p))
        schedule_send(s, acc, place_above(p, p->my_group));
}

/* Along the tree towards the root, piece by piece. Each border: n beta in one direction. */
static void hierarchy_reduce(struct schedule *s, struct node_groups *groups, const void *send,
                             struct buffer recv, struct op *op, int root)
{
    struct place p;
    if (!op->commutative) {
        noncommutative_reduce(s, groups, send, recv, op, root);
        return;
    }
    if (!place_find(s, groups, root, GROUP_TREE_PAYLOAD, &p))
        return;
    if (pipeline_suits(groups, recv)) {
        pipeline_reduce(s, &p, send, recv, op);
        return;
    }
    MPI_Count piece = hierarchy_piece(groups, recv);
    bool is_root = p.whole.rank == root;
    void *acc = is_root || !place_leads(&p) ? NULL : schedule_temp_typed(s, piece, recv.type);
    void *other =
        place_leads(&p) && groups->n_groups > 1 ? schedule_temp_typed(s, piece, recv.type) : NULL;
    for (MPI_Count at = 0; at < recv.count; at += piece) {
        struct buffer part = buffer_piece(recv, at, piece);
        hierarchy_pass_up(s, &p, datatype_at(recv.type, send, at),
                          is_root ? part : buffer_like(part, acc), other, op);
    }
}

void reduce_nodes(struct schedule *s, const void *send, struct buffer recv, struct op *op, int root)
{
    hierarchy_reduce(s, hierarchy_nodes(s), send, recv, op, root);
}

void reduce_networks(struct schedule *s, const void *send, struct buffer recv, struct op *op,
                     int root)
{
    hierarchy_reduce(s, hierarchy_networks(s), send, recv, op, root);
}

/* Two halves of the groups have a result each; their entries exchange and combine them in one
 * order, so that both compute the same bits. */
static void hierarchy_meet(struct schedule *s, const struct place *p, struct buffer acc,
                           void *other, struct op *op)
{
    int partner = place_partner(p);
    if (partner < 0)
        return;
    schedule_sendrecv(s, acc, partner, buffer_like(acc, other), partner);
    if (partner < p->whole.rank) {
        schedule_reduce(s, other, acc, op);
    } else {
        schedule_reduce(s, acc.base, buffer_like(acc, other), op);
        schedule_copy(s, buffer_like(acc, other), acc);
    }
}

/* Up to the centre and down again, piece by piece, the pieces going down behind those going up.
 * Each border: n beta in each direction. */
static void hierarchy_allreduce_in_groups(struct schedule *s, const struct place *p,
                                          const void *send, struct buffer recv, struct op *op)
{
    MPI_Count piece = hierarchy_piece(p->groups, recv), lag = 2 * p->tree->height * piece;
    void *other = place_leads(p) ? schedule_temp_typed(s, piece, recv.type) : NULL;
    for (MPI_Count at = 0; at < recv.count + lag; at += piece) {
        if (at < recv.count) {
            struct buffer part = buffer_piece(recv, at, piece);
            hierarchy_pass_up(s, p, datatype_at(recv.type, send, at), part, other, op);
            hierarchy_meet(s, p, part, other, op);
        }
        if (at >= lag && at - lag < recv.count)
            hierarchy_pass_down(s, p, buffer_piece(recv, at - lag, piece));
    }
}

/* One group: its leaders choose among all algorithms for the operands of their nodes. */
static void hierarchy_allreduce_of_nodes(struct schedule *s, const struct place *p,
                                         const void *send, struct buffer recv, struct op *op)
{
    schedule_enter(s, p->node);
    coll_reduce(s, place_leads(p) && send == recv.base ? MPI_IN_PLACE : send, recv, op,
                p->node_leader);
    if (place_leads(p)) {
        schedule_enter(s, p->group);
        coll_allreduce(s, MPI_IN_PLACE, recv, op);
        schedule_enter(s, p->node);
    }
    coll_bcast(s, recv, p->node_leader);
    schedule_leave(s, p->whole);
}

static void hierarchy_allreduce(struct schedule *s, struct node_groups *groups, const void *send,
                                struct buffer recv, struct op *op)
{
    struct place p;
    if (!op->commutative && (groups->n_groups > 1 || !groups->in_order)) {
        noncommutative_allreduce(s, groups, send, recv, op);
        return;
    }
    if (!place_find(s, groups, -1, GROUP_TREE_PAYLOAD, &p))
        return;
    if (groups->n_groups == 1) {
        hierarchy_allreduce_of_nodes(s, &p, send, recv, op);
    } else if (pipeline_suits(groups, recv)) {
        pipeline_allreduce(s, &p, send, recv, op);
    } else {
        place_meet_as_equals(&p);
        hierarchy_allreduce_in_groups(s, &p, send, recv, op);
    }
}

void allreduce_nodes(struct schedule *s, const void *send, struct buffer recv, struct op *op)
{
    hierarchy_allreduce(s, hierarchy_nodes(s), send, recv, op);
}

void allreduce_networks(struct schedule *s, const void *send, struct buffer recv, struct op *op)
{
    hierarchy_allreduce(s, hierarchy_networks(s), send, recv, op);
}
