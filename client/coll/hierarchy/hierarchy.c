/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/hierarchy/hierarchy.h"

#include "client/coll/algorithms/algorithms.h"
#include "client/coll/hierarchy/noncommutative.h"
#include "client/coll/hierarchy/pipeline.h"

#include <string.h>

/* Long payloads travel in pieces, so that a group receives one while the next group already has the
 * one before: a chain of g networks takes the time of one and g - 1 pieces. Long against the time
 * that two distant ranks take to agree on a transfer. */
#define SEGMENT_BYTES (256 << 10)

/* ---- the place of a rank ---- */

int place_entry_node(const struct place *p, int group)
{
    if (p->tree->parent[group] >= 0)
        return p->tree->edge[group].to;
    if (p->root >= 0)
        return p->root_node;
    if (p->levels->n_groups == 1)
        return p->levels->nodes[0];
    return p->tree->edge[p->tree->peer >= 0 ? p->tree->peer : p->tree->order[1]].from;
}

int place_below(const struct place *p, int group)
{
    return place_leader_of(p, p->tree->edge[group].to);
}

/* The nearest one, or the root if it is as near. */
int place_node_above(const struct place *p, int group)
{
    const struct levels_edge *edge = &p->tree->edge[group];
    int parent = p->tree->parent[group];
    if (group == p->partner)
        return place_entry_node(p, parent);
    if (p->root >= 0 && p->tree->parent[parent] < 0 && edge->from != p->root_node &&
        levels_gateways(p->levels, p->root_node, edge->to) == edge->gateways)
        return p->root_node;
    return edge->from;
}

int place_above(const struct place *p, int group)
{
    return place_leader_of(p, place_node_above(p, group));
}

bool place_has_child(const struct place *p, int group)
{
    return place_leads(p) && p->tree->parent[group] == p->my_group && group != p->partner &&
           place_node_above(p, group) == p->my_node;
}

bool place_find(struct schedule *s, struct levels *levels, int root, enum levels_load load,
                struct place *ret_place)
{
    struct comm *comm = s->view.comm;
    const struct coll_comm *c = levels->shape;
    int my_node = c->node_of[comm->rank], root_node = root < 0 ? -1 : c->node_of[root];
    int group = levels->group_of[my_node], first = levels->first[group],
        n = levels->first[group + 1] - first;
    const struct levels_tree *tree =
        levels_tree_of(levels, root < 0 ? levels->centre : levels->group_of[root_node], load);
    int *leaders = levels->leaders + first;
    if (root >= 0 && levels->group_of[root_node] == group && c->leaders[root_node] != root) {
        leaders = schedule_temp(s, (size_t)n * sizeof(int));
        if (leaders)
            memcpy(leaders, levels->leaders + first, (size_t)n * sizeof(int));
    }
    if (!tree)
        schedule_no_memory(s);
    if (s->broken)
        return false;
    *ret_place = (struct place){
        .levels = levels,
        .tree = tree,
        .whole = s->view,
        .node = {.comm = comm, .rank = c->my_member, .size = c->n_members, .map = c->members},
        .group = {.comm = comm, .rank = -1, .size = n, .map = leaders},
        .my_group = group,
        .my_node = my_node,
        .root = root,
        .root_node = root_node,
        .partner = -1,
    };
    int entry = place_entry_node(ret_place, group);
    for (int i = 0; i < n; i++) {
        int node = levels->nodes[first + i];
        if (node == root_node)
            leaders[i] = root;
        if (node == entry)
            ret_place->entry = i;
        if (leaders[i] == comm->rank)
            ret_place->group.rank = i;
    }
    int leader = place_leader_of(ret_place, my_node);
    for (int i = 0; i < c->n_members; i++)
        if (c->members[i] == leader)
            ret_place->node_leader = i;
    return true;
}

/* Two groups that lead to equally far ends meet as equals: one crossing less than by way of a
 * root. */
static void place_meet_as_equals(struct place *p)
{
    p->partner = p->tree->peer;
}

/* Rank that the entries of the two groups that meet as equals exchange with; -1 on all other
 * ranks. */
static int hierarchy_partner(const struct place *p)
{
    if (p->partner < 0 || !place_is_entry(p))
        return -1;
    if (p->my_group == p->partner)
        return place_above(p, p->partner);
    return p->tree->parent[p->my_group] < 0 ? place_below(p, p->partner) : -1;
}

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
    int n_groups = p->levels->n_groups, partner = hierarchy_partner(p);
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

void hierarchy_barrier(struct schedule *s, struct levels *levels)
{
    struct place p;
    if (!place_find(s, levels, -1, LEVELS_PAYLOAD, &p))
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

/* ---- broadcast ---- */

/* Elements of a piece. */
static MPI_Count hierarchy_piece(const struct levels *l, MPI_Count count,
                                 const struct datatype *type)
{
    if (l->n_groups == 1 || count * type->size <= SEGMENT_BYTES)
        return count;
    return type->size < SEGMENT_BYTES ? SEGMENT_BYTES / type->size : 1;
}

static void hierarchy_send_down(struct schedule *s, const struct place *p, struct buffer buf)
{
    for (int g = 0; g < p->levels->n_groups; g++)
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
void hierarchy_bcast(struct schedule *s, struct levels *levels, struct buffer buf, int root)
{
    struct place p;
    if (!place_find(s, levels, root, LEVELS_PAYLOAD, &p))
        return;
    if (pipeline_suits(levels, buf.count, buf.type)) {
        pipeline_bcast(s, &p, buf);
        return;
    }
    MPI_Count piece = hierarchy_piece(levels, buf.count, buf.type);
    for (MPI_Count at = 0; at < buf.count; at += piece)
        hierarchy_pass_down(s, &p, buffer_piece(buf, at, piece));
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
    for (int g = 0; g < p->levels->n_groups; g++) {
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
void hierarchy_reduce(struct schedule *s, struct levels *levels, const void *send,
                      struct buffer recv, struct op *op, int root)
{
    struct place p;
    if (!op->commutative) {
        noncommutative_reduce(s, levels, send, recv, op, root);
        return;
    }
    if (!place_find(s, levels, root, LEVELS_PAYLOAD, &p))
        return;
    if (pipeline_suits(levels, recv.count, recv.type)) {
        pipeline_reduce(s, &p, send, recv, op);
        return;
    }
    MPI_Count piece = hierarchy_piece(levels, recv.count, recv.type);
    bool is_root = p.whole.rank == root;
    void *acc = is_root || !place_leads(&p) ? NULL : schedule_temp_typed(s, piece, recv.type);
    void *other =
        place_leads(&p) && levels->n_groups > 1 ? schedule_temp_typed(s, piece, recv.type) : NULL;
    for (MPI_Count at = 0; at < recv.count; at += piece) {
        struct buffer part = buffer_piece(recv, at, piece);
        hierarchy_pass_up(s, &p, datatype_at(recv.type, send, at),
                          is_root ? part : buffer_like(part, acc), other, op);
    }
}

/* Two halves of the groups have a result each; their entries exchange and combine them in one
 * order, so that both compute the same bits. */
static void hierarchy_meet(struct schedule *s, const struct place *p, struct buffer acc,
                           void *other, struct op *op)
{
    int partner = hierarchy_partner(p);
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
    MPI_Count piece = hierarchy_piece(p->levels, recv.count, recv.type),
              lag = 2 * p->tree->height * piece;
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

void hierarchy_allreduce(struct schedule *s, struct levels *levels, const void *send,
                         struct buffer recv, struct op *op)
{
    struct place p;
    if (!op->commutative && (levels->n_groups > 1 || !levels->in_order)) {
        noncommutative_allreduce(s, levels, send, recv, op);
        return;
    }
    if (!place_find(s, levels, -1, LEVELS_PAYLOAD, &p))
        return;
    if (levels->n_groups == 1) {
        hierarchy_allreduce_of_nodes(s, &p, send, recv, op);
    } else if (pipeline_suits(levels, recv.count, recv.type)) {
        pipeline_allreduce(s, &p, send, recv, op);
    } else {
        place_meet_as_equals(&p);
        hierarchy_allreduce_in_groups(s, &p, send, recv, op);
    }
}
