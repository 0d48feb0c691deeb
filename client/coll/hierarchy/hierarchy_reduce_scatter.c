/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Reduce_scatter and MPI_Reduce_scatter_block in groups. */
#include "client/coll/hierarchy/hierarchy.h"
#include "client/coll/hierarchy/layout.h"

/* The operand of a leader in the order of the walk. */
struct operand {
    void *acc;
    struct datatype *type;
    struct op *op;
    const struct layout *layout;
};

static void *operand_at(const struct operand *o, int place)
{
    return datatype_at(o->type, o->acc, o->layout->at[place]);
}

static MPI_Count operand_count(const struct operand *o, int first, int n)
{
    return o->layout->at[first + n] - o->layout->at[first];
}

static void operand_send(struct schedule *s, const struct operand *o, int first, int n, int to)
{
    if (operand_count(o, first, n) > 0)
        schedule_send(s, buffer_of(operand_at(o, first), operand_count(o, first, n), o->type), to);
}

/* Receives operands for some places and combines them with the own ones. */
static void operand_take(struct schedule *s, const struct operand *o, int first, int n, void *other,
                         int from)
{
    MPI_Count count = operand_count(o, first, n);
    if (count == 0)
        return;
    schedule_recv(s, buffer_of(other, count, o->type), from);
    schedule_reduce(s, other, buffer_of(operand_at(o, first), count, o->type), o->op);
}

/* Up the tree go the operands for the blocks of everybody who is not below, so that no operand
 * comes back to where it is from. */
static void operand_pass_up(struct schedule *s, const struct place *p, const struct operand *o,
                            void *other)
{
    const struct layout *t = o->layout;
    int size = p->whole.size;
    for (int g = 0; g < p->groups->n_groups; g++) {
        if (!place_has_child(p, g))
            continue;
        int end = t->group_first[g] + t->group_n[g];
        operand_take(s, o, 0, t->group_first[g], other, place_below(p, g));
        operand_take(s, o, end, size - end, other, place_below(p, g));
    }
    schedule_enter(s, p->group);
    if (place_has_parent(p)) {
        coll_reduce(s, place_is_entry(p) ? MPI_IN_PLACE : o->acc,
                    buffer_of(o->acc, t->at[size], o->type), o->op, p->entry);
    } else {
        /* The root's group: each leader gets what it needs for its node and for the groups that it
         * speaks with. */
        MPI_Count *counts = schedule_temp(s, (size_t)p->group.size * sizeof(MPI_Count));
        for (int i = 0; counts && i < p->group.size; i++)
            counts[i] =
                operand_count(o, t->node_first[layout_node(p, i)], t->node_n[layout_node(p, i)]);
        struct blocks held = {.type = o->type, .counts = intvec_of_count(counts)};
        if (counts)
            coll_reduce_scatter(s, o->acc, other, &held, o->op);
        schedule_copy(
            s,
            buffer_of(other, operand_count(o, t->node_first[p->my_node], t->node_n[p->my_node]),
                      o->type),
            buffer_of(operand_at(o, t->node_first[p->my_node]),
                      operand_count(o, t->node_first[p->my_node], t->node_n[p->my_node]), o->type));
    }
    schedule_enter(s, p->whole);
    if (!place_has_parent(p) || !place_is_entry(p))
        return;
    int end = t->group_first[p->my_group] + t->group_n[p->my_group];
    operand_send(s, o, 0, t->group_first[p->my_group], place_above(p, p->my_group));
    operand_send(s, o, end, size - end, place_above(p, p->my_group));
}

/* Down come the operands of everybody else for the blocks of those below. */
static void operand_pass_down(struct schedule *s, const struct place *p, const struct operand *o,
                              void *other)
{
    const struct layout *t = o->layout;
    if (place_has_parent(p)) {
        if (place_is_entry(p))
            operand_take(s, o, t->group_first[p->my_group], t->group_n[p->my_group], other,
                         place_above(p, p->my_group));
        for (int i = 0; i < p->group.size; i++) {
            int first = t->node_first[layout_node(p, i)], n = t->node_n[layout_node(p, i)];
            if (i == p->entry || operand_count(o, first, n) == 0)
                continue;
            if (place_is_entry(p))
                operand_send(s, o, first, n, p->group.map[i]);
            else if (i == p->group.rank)
                schedule_recv(s,
                              buffer_of(operand_at(o, first), operand_count(o, first, n), o->type),
                              p->group.map[p->entry]);
        }
    }
    for (int g = 0; g < p->groups->n_groups; g++)
        if (place_has_child(p, g))
            operand_send(s, o, t->group_first[g], t->group_n[g], place_below(p, g));
}

/* Each leader reduces the operands of its node; between groups only what the other side needs
 * travels, already combined. Each border: the blocks of either side once towards it. */
static void hierarchy_reduce_scatter(struct schedule *s, struct node_groups *groups,
                                     const void *send, void *recv, const struct blocks *counts,
                                     struct op *op)
{
    struct place p;
    struct layout t;
    if (!place_find(s, groups, -1, GROUP_TREE_BLOCKS, &p) || !layout_find(s, &p, &t))
        return;
    struct datatype *type = counts->type;
    int size = p.whole.size;
    MPI_Count total = blocks_first(counts, size),
              *of_node = schedule_temp(s, (size_t)p.node.size * sizeof(MPI_Count));
    t.at[0] = 0;
    for (int i = 0; i < size; i++)
        t.at[i + 1] = t.at[i] + blocks_count(counts, t.order[i]);
    struct operand o = {.type = type, .op = op, .layout = &t};
    void *other = place_leads(&p) ? schedule_temp_typed(s, total, type) : NULL;
    if (place_leads(&p))
        o.acc = schedule_temp_typed(s, total, type);
    if (s->broken)
        return;
    schedule_enter(s, p.node);
    coll_reduce(s, send, buffer_of(t.identity ? o.acc : other, total, type), op, p.node_leader);
    schedule_enter(s, p.whole);
    if (place_leads(&p)) {
        struct blocks operands = {
            .buf = other, .type = type, .count = counts->count, .counts = counts->counts};
        for (int i = 0; !t.identity && i < size; i++)
            schedule_copy(
                s,
                buffer_of(blocks_at(&operands, t.order[i]), blocks_count(counts, t.order[i]), type),
                buffer_of(operand_at(&o, i), blocks_count(counts, t.order[i]), type));
        struct chain_blocks blocks;
        if (!layout_is_long(&p, total * type->size)) {
            operand_pass_up(s, &p, &o, other);
            operand_pass_down(s, &p, &o, other);
        } else if (layout_node_blocks(s, &p, &t, &blocks)) {
            chain_reduce_scatter(s, groups, o.acc, &blocks, type, op);
        }
    }
    int first = t.node_first[p.my_node];
    for (int i = 0; i < p.node.size; i++)
        of_node[i] = t.at[first + i + 1] - t.at[first + i];
    struct blocks results = {.buf = place_leads(&p) ? operand_at(&o, first) : NULL,
                             .type = type,
                             .counts = intvec_of_count(of_node)};
    if (!counts->counts.base)
        results = (struct blocks){
            .buf = results.buf, .type = type, .count = counts->count, .uniform = true};
    schedule_enter(s, p.node);
    coll_scatter(s, &results, buffer_of(recv, blocks_count(counts, p.whole.rank), type),
                 p.node_leader);
    schedule_leave(s, p.whole);
}

void reduce_scatter_nodes(struct schedule *s, const void *send, void *recv,
                          const struct blocks *counts, struct op *op)
{
    hierarchy_reduce_scatter(s, hierarchy_nodes(s), send, recv, counts, op);
}

void reduce_scatter_networks(struct schedule *s, const void *send, void *recv,
                             const struct blocks *counts, struct op *op)
{
    hierarchy_reduce_scatter(s, hierarchy_networks(s), send, recv, counts, op);
}
