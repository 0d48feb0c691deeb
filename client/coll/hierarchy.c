/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/hierarchy.h"

#include "client/coll/algorithms.h"
#include "client/coll/hierarchy_chain.h"
#include "client/core/err.h"

#include <string.h>

/* Long payloads travel in pieces, so that a group receives one while the next group already has the one before: a chain of g networks takes
 * the time of one and g - 1 pieces. Long against the time that two distant ranks take to agree on a transfer. */
#define SEGMENT_BYTES (256 << 10)

/* ---- the place of a rank
 * ---------------------------------------------------------------------------------------------------- */

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
    if (p->at_entry_only || group == p->partner)
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

bool place_find(struct schedule *s, struct levels *levels, int root, struct place *ret_place)
{
    struct comm *comm = s->view.comm;
    const struct coll_comm *c = levels->shape;
    int my_node = c->node_of[comm->rank], root_node = root < 0 ? -1 : c->node_of[root];
    int group = levels->group_of[my_node], first = levels->first[group], n = levels->first[group + 1] - first;
    const struct levels_tree *tree = levels_tree_of(levels, root < 0 ? levels->centre : levels->group_of[root_node]);
    int *leaders = levels->leaders + first;
    if (root >= 0 && levels->group_of[root_node] == group && c->leaders[root_node] != root) {
        leaders = schedule_temp(s, (size_t)n * sizeof(int));
        if (leaders)
            memcpy(leaders, levels->leaders + first, (size_t)n * sizeof(int));
    }
    if (!tree && !s->broken) {
        s->err = err_set(MPI_ERR_NO_MEM, "no memory for the ways between the networks of %s", comm->name);
        s->broken = true;
    }
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

/* Two groups that lead to equally far ends meet as equals: one crossing less than by way of a root. */
static void meet_as_equals(struct place *p, bool keep_order)
{
    if (p->tree->peer >= 0 && (!keep_order || p->tree->peer_in_order))
        p->partner = p->tree->peer;
}

/* Rank that the entries of the two groups that meet as equals exchange with; -1 on all other ranks. */
static int partner_of(const struct place *p)
{
    if (p->partner < 0 || !place_is_entry(p))
        return -1;
    if (p->my_group == p->partner)
        return place_above(p, p->partner);
    return p->tree->parent[p->my_group] < 0 ? place_below(p, p->partner) : -1;
}

/* ---- barrier
 * ---------------------------------------------------------------------------------------------------- */

/* Binomial tree of empty messages towards a place of the view, and back from there. */
static void collect(struct schedule *s, int top)
{
    int size = s->view.size, relative = (s->view.rank - top + size) % size;
    for (int mask = 1; mask < size; mask *= 2) {
        if (relative & mask) {
            schedule_send(s, NULL, 0, coll_byte(), (relative - mask + top) % size);
            return;
        }
        if (relative + mask < size)
            schedule_recv(s, NULL, 0, coll_byte(), (relative + mask + top) % size);
    }
}

static void let_go(struct schedule *s, int top)
{
    int size = s->view.size, relative = (s->view.rank - top + size) % size, mask = 1;
    while (mask < size && !(relative & mask))
        mask *= 2;
    if (relative)
        schedule_recv(s, NULL, 0, coll_byte(), (relative - mask + top) % size);
    for (mask /= 2; mask > 0; mask /= 2)
        if (relative + mask < size)
            schedule_send(s, NULL, 0, coll_byte(), (relative + mask + top) % size);
}

/* Upwards, then down again. Between groups: 2 height alpha, one less where two groups meet as equals. */
static void barrier_of_leaders(struct schedule *s, const struct place *p)
{
    int n_groups = p->levels->n_groups, partner = partner_of(p);
    if (n_groups == 1) {
        schedule_enter(s, p->group);
        coll_barrier(s);
        return;
    }
    schedule_enter(s, p->whole);
    for (int g = 0; g < n_groups; g++)
        if (place_has_child(p, g))
            schedule_recv(s, NULL, 0, coll_byte(), place_below(p, g));
    schedule_enter(s, p->group);
    collect(s, p->entry);
    schedule_enter(s, p->whole);
    if (place_is_entry(p) && place_has_parent(p)) {
        schedule_send(s, NULL, 0, coll_byte(), place_above(p, p->my_group));
        schedule_recv(s, NULL, 0, coll_byte(), place_above(p, p->my_group));
    }
    schedule_sendrecv(s, NULL, 0, coll_byte(), partner, NULL, 0, coll_byte(), partner);
    schedule_enter(s, p->group);
    let_go(s, p->entry);
    schedule_enter(s, p->whole);
    for (int g = 0; g < n_groups; g++)
        if (place_has_child(p, g))
            schedule_send(s, NULL, 0, coll_byte(), place_below(p, g));
}

void hierarchy_barrier(struct schedule *s, struct levels *levels)
{
    struct place p;
    if (!place_find(s, levels, -1, &p))
        return;
    meet_as_equals(&p, false);
    schedule_enter(s, p.node);
    collect(s, p.node_leader);
    if (place_leads(&p))
        barrier_of_leaders(s, &p);
    schedule_enter(s, p.node);
    let_go(s, p.node_leader);
    schedule_leave(s, p.whole);
}

/* ---- broadcast
 * ---------------------------------------------------------------------------------------------------- */

/* Elements of a piece. */
static MPI_Count piece_of(const struct levels *l, MPI_Count count, const struct datatype *type)
{
    if (l->n_groups == 1 || count * type->size <= SEGMENT_BYTES)
        return count;
    return type->size < SEGMENT_BYTES ? SEGMENT_BYTES / type->size : 1;
}

static void send_to_children(struct schedule *s, const struct place *p, const void *buf, MPI_Count count, struct datatype *type)
{
    for (int g = 0; g < p->levels->n_groups; g++)
        if (place_has_child(p, g))
            schedule_isend(s, buf, count, type, place_below(p, g));
}

/* From the entry of the tree's root to all ranks. What crosses a border leaves before what stays in the group. */
static void pass_down(struct schedule *s, const struct place *p, void *buf, MPI_Count count, struct datatype *type)
{
    if (place_leads(p)) {
        schedule_enter(s, p->whole);
        if (place_is_entry(p)) {
            if (place_has_parent(p))
                schedule_recv(s, buf, count, type, place_above(p, p->my_group));
            send_to_children(s, p, buf, count, type);
        }
        schedule_enter(s, p->group);
        coll_bcast(s, buf, count, type, p->entry);
        schedule_enter(s, p->whole);
        if (!place_is_entry(p))
            send_to_children(s, p, buf, count, type);
        schedule_wait(s);
    }
    schedule_enter(s, p->node);
    coll_bcast(s, buf, count, type, p->node_leader);
    schedule_leave(s, p->whole);
}

/* Along the tree, piece by piece. Each border: n beta in one direction; height (alpha + piece beta) until the farthest group begins. */
void hierarchy_bcast(struct schedule *s, struct levels *levels, void *buf, MPI_Count count, struct datatype *type, int root)
{
    struct place p;
    if (!place_find(s, levels, root, &p))
        return;
    if (chain_suits(levels, count, type)) {
        chain_bcast(s, &p, buf, count, type);
        return;
    }
    MPI_Count piece = piece_of(levels, count, type);
    for (MPI_Count at = 0; at < count; at += piece)
        pass_down(s, &p, datatype_at(type, buf, at), count - at < piece ? count - at : piece, type);
}

/* ---- reductions
 * ---------------------------------------------------------------------------------------------------- */

/* Receives the operand of a child's subtree and combines it with acc: on its left where the child holds lower ranks. */
static void take_from_child(struct schedule *s, const struct place *p, int child, void *acc, void *other, MPI_Count count,
                            struct datatype *type, struct op *op)
{
    schedule_recv(s, other, count, type, place_below(p, child));
    if (child < p->my_group || op->commutative) {
        schedule_reduce(s, other, acc, count, type, op);
    } else {
        schedule_reduce(s, acc, other, count, type, op);
        schedule_copy(s, other, count, type, acc, count, type);
    }
}

/* Children with lower ranks from the nearest down, then those with higher ranks from the nearest up. */
static void take_from_children(struct schedule *s, const struct place *p, void *acc, void *other, MPI_Count count,
                               struct datatype *type, struct op *op)
{
    struct schedule_view here = schedule_enter(s, p->whole);
    for (int g = p->my_group - 1; g >= 0; g--)
        if (place_has_child(p, g))
            take_from_child(s, p, g, acc, other, count, type, op);
    for (int g = p->my_group + 1; g < p->levels->n_groups; g++)
        if (place_has_child(p, g))
            take_from_child(s, p, g, acc, other, count, type, op);
    schedule_leave(s, here);
}

/* The operands of everything below each group's entry meet in its acc, and go to its parent. `acc` and `other` have room on leaders. */
static void pass_up(struct schedule *s, const struct place *p, const void *send, void *acc, void *other, MPI_Count count,
                    struct datatype *type, struct op *op)
{
    schedule_enter(s, p->node);
    coll_reduce(s, place_leads(p) && send == acc ? MPI_IN_PLACE : send, acc, count, type, op, p->node_leader);
    schedule_enter(s, p->group);
    if (place_leads(p)) {
        if (!p->at_entry_only)
            take_from_children(s, p, acc, other, count, type, op);
        coll_reduce(s, place_is_entry(p) ? MPI_IN_PLACE : acc, acc, count, type, op, p->entry);
        if (p->at_entry_only && place_is_entry(p))
            take_from_children(s, p, acc, other, count, type, op);
    }
    schedule_enter(s, p->whole);
    if (place_is_entry(p) && place_has_parent(p))
        schedule_send(s, acc, count, type, place_above(p, p->my_group));
}

bool hierarchy_keeps_order(struct levels *levels)
{
    const struct levels_tree *tree = levels_tree_of(levels, levels->centre);
    return tree && tree->in_order;
}

/* The place for a reduction: an operation that does not commute may need another tree than the root's, and hands the result over. */
static bool find_for_reduction(struct schedule *s, struct levels *levels, const struct op *op, int root, struct place *ret_place)
{
    if (!place_find(s, levels, root, ret_place))
        return false;
    if (!op->commutative && !ret_place->tree->in_order && !place_find(s, levels, -1, ret_place))
        return false;
    ret_place->at_entry_only = !op->commutative;
    return true;
}

/* Along the tree towards the root, piece by piece. Each border: n beta in one direction. */
void hierarchy_reduce(struct schedule *s, struct levels *levels, const void *send, void *recv, MPI_Count count,
                      struct datatype *type, struct op *op, int root)
{
    struct place p;
    if (!find_for_reduction(s, levels, op, root, &p))
        return;
    if (op->commutative && chain_suits(levels, count, type)) {
        chain_reduce(s, &p, send, recv, count, type, op);
        return;
    }
    MPI_Count piece = piece_of(levels, count, type);
    bool is_root = p.whole.rank == root, is_top = place_is_entry(&p) && p.tree->parent[p.my_group] < 0;
    int top_group = p.tree->order[0], top = place_leader_of(&p, place_entry_node(&p, top_group));
    void *acc = is_root || !place_leads(&p) ? NULL : schedule_temp_typed(s, piece, type);
    void *other = place_leads(&p) && levels->n_groups > 1 ? schedule_temp_typed(s, piece, type) : NULL;
    for (MPI_Count at = 0; at < count; at += piece) {
        MPI_Count n = count - at < piece ? count - at : piece;
        void *result = is_root ? datatype_at(type, recv, at) : acc;
        pass_up(s, &p, datatype_at(type, send, at), result, other, n, type, op);
        if (top == root)
            continue;
        if (is_top)
            schedule_send(s, result, n, type, root);
        else if (is_root)
            schedule_recv(s, result, n, type, top);
    }
}

/* Two halves of the groups have a result each; their entries exchange and combine them in one order, so that both compute the same bits. */
static void exchange_as_equals(struct schedule *s, const struct place *p, void *acc, void *other, MPI_Count count,
                               struct datatype *type, struct op *op)
{
    int partner = partner_of(p);
    if (partner < 0)
        return;
    schedule_sendrecv(s, acc, count, type, partner, other, count, type, partner);
    if (partner < p->whole.rank) {
        schedule_reduce(s, other, acc, count, type, op);
    } else {
        schedule_reduce(s, acc, other, count, type, op);
        schedule_copy(s, other, count, type, acc, count, type);
    }
}

/* Up to the centre and down again, piece by piece, the pieces going down behind those going up. Each border: n beta in each direction. */
static void allreduce_in_groups(struct schedule *s, const struct place *p, const void *send, void *recv, MPI_Count count,
                                struct datatype *type, struct op *op)
{
    MPI_Count piece = piece_of(p->levels, count, type), lag = 2 * p->tree->height * piece;
    void *other = place_leads(p) ? schedule_temp_typed(s, piece, type) : NULL;
    for (MPI_Count at = 0; at < count + lag; at += piece) {
        if (at < count) {
            MPI_Count n = count - at < piece ? count - at : piece;
            void *acc = datatype_at(type, recv, at);
            pass_up(s, p, datatype_at(type, send, at), acc, other, n, type, op);
            exchange_as_equals(s, p, acc, other, n, type, op);
        }
        if (at >= lag && at - lag < count)
            pass_down(s, p, datatype_at(type, recv, at - lag), count - at + lag < piece ? count - at + lag : piece, type);
    }
}

/* One group: its leaders choose among all algorithms for the operands of their nodes. */
static void allreduce_of_nodes(struct schedule *s, const struct place *p, const void *send, void *recv, MPI_Count count,
                               struct datatype *type, struct op *op)
{
    schedule_enter(s, p->node);
    coll_reduce(s, place_leads(p) && send == recv ? MPI_IN_PLACE : send, recv, count, type, op, p->node_leader);
    if (place_leads(p)) {
        schedule_enter(s, p->group);
        coll_allreduce(s, MPI_IN_PLACE, recv, count, type, op);
        schedule_enter(s, p->node);
    }
    coll_bcast(s, recv, count, type, p->node_leader);
    schedule_leave(s, p->whole);
}

void hierarchy_allreduce(struct schedule *s, struct levels *levels, const void *send, void *recv, MPI_Count count,
                         struct datatype *type, struct op *op)
{
    struct place p;
    if (!find_for_reduction(s, levels, op, -1, &p))
        return;
    if (levels->n_groups == 1)
        allreduce_of_nodes(s, &p, send, recv, count, type, op);
    else if (op->commutative && chain_suits(levels, count, type))
        chain_allreduce(s, &p, send, recv, count, type, op);
    else {
        meet_as_equals(&p, !op->commutative);
        allreduce_in_groups(s, &p, send, recv, count, type, op);
    }
}

/* ---- scans
 * ---------------------------------------------------------------------------------------------------- */

/* The last ranks of the group's nodes: they know what their nodes add up to. */
static bool view_last_ranks(struct schedule *s, const struct place *p, struct schedule_view *ret_view)
{
    const struct levels *l = p->levels;
    int *map = schedule_temp(s, (size_t)p->group.size * sizeof(int));
    if (!map)
        return false;
    *ret_view = (struct schedule_view){.comm = p->whole.comm, .rank = -1, .size = p->group.size, .map = map};
    for (int i = 0; i < p->group.size; i++) {
        map[i] = l->ranks[l->node_first[l->nodes[l->first[p->my_group] + i] + 1] - 1];
        if (map[i] == p->whole.rank)
            ret_view->rank = i;
    }
    return true;
}

static int last_rank_of(const struct levels *l, int group)
{
    return l->ranks[l->node_first[l->nodes[l->first[group + 1] - 1] + 1] - 1];
}

/* Gives the last rank of every node what all nodes before it add up to, if there are any. `total`: what its own node adds up to. */
static void scan_of_nodes(struct schedule *s, const struct place *p, const struct schedule_view *lasts, const void *total,
                          void *prefix, MPI_Count count, struct datatype *type, struct op *op)
{
    int g = p->my_group, last = lasts->size - 1;
    schedule_enter(s, *lasts);
    coll_exscan(s, total, prefix, count, type, op);
    if (p->levels->n_groups == 1)
        return;
    void *before = schedule_temp_typed(s, count, type); /* the groups before this one */
    void *sum = schedule_temp_typed(s, count, type);
    schedule_enter(s, p->whole);
    if (lasts->rank == last) {
        schedule_copy(s, total, count, type, sum, count, type);
        if (last > 0)
            schedule_reduce(s, prefix, sum, count, type, op);
        if (g > 0) {
            schedule_recv(s, before, count, type, last_rank_of(p->levels, g - 1));
            schedule_reduce(s, before, sum, count, type, op);
        }
        if (g + 1 < p->levels->n_groups)
            schedule_isend(s, sum, count, type, last_rank_of(p->levels, g + 1));
    }
    schedule_enter(s, *lasts);
    if (g > 0) {
        coll_bcast(s, before, count, type, last);
        if (lasts->rank > 0)
            schedule_reduce(s, before, prefix, count, type, op);
        else
            schedule_copy(s, before, count, type, prefix, count, type);
    }
    schedule_wait(s);
}

/* A scan within each node, one over what the nodes of a group add up to, and a chain over the groups: n beta for each border between two
 * groups that follow one another. */
void hierarchy_scan(struct schedule *s, struct levels *levels, const void *send, void *recv, MPI_Count count,
                    struct datatype *type, struct op *op, bool inclusive)
{
    struct place p;
    struct schedule_view lasts;
    if (!place_find(s, levels, -1, &p) || !view_last_ranks(s, &p, &lasts))
        return;
    bool is_last = lasts.rank >= 0, is_first = p.node.rank == 0;
    bool has_prefix = p.my_group > 0 || p.my_node != levels->nodes[levels->first[p.my_group]];
    void *prefix = schedule_temp_typed(s, count, type), *total = recv;
    if (is_last && !inclusive) {
        total = schedule_temp_typed(s, count, type);
        schedule_copy(s, send, count, type, total, count, type);
    }
    schedule_enter(s, p.node);
    if (inclusive)
        coll_scan(s, send, recv, count, type, op);
    else
        coll_exscan(s, send, recv, count, type, op);
    if (is_last) {
        if (!inclusive && !is_first)
            schedule_reduce(s, recv, total, count, type, op);
        scan_of_nodes(s, &p, &lasts, total, prefix, count, type, op);
    }
    schedule_enter(s, p.node);
    if (has_prefix) {
        coll_bcast(s, prefix, count, type, p.node.size - 1);
        if (inclusive || !is_first)
            schedule_reduce(s, prefix, recv, count, type, op);
        else
            schedule_copy(s, prefix, count, type, recv, count, type);
    }
    schedule_leave(s, p.whole);
}
