/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives in levels with a block for each rank.
 *
 * Blocks travel packed, in the order in which a walk over the tree meets the ranks: group by group,
 * node by node, and behind each node the groups that it speaks with. So everything that one rank
 * passes on, for its node, its group or the subtree of its group, lies in one piece, and every rank
 * knows the size of each piece.
 */
#include "client/coll/hierarchy/chain.h"
#include "client/coll/hierarchy/hierarchy.h"

struct layout {
    int *order;                 /* [size] ranks as the walk meets them */
    int *node_first, *node_n;   /* [n_nodes] where a node and what hangs on it lies in `order` */
    int *group_first, *group_n; /* [n_groups] the same of groups */
    MPI_Count *at; /* [size + 1] where the block of each place begins, in bytes or elements */
    bool identity; /* the walk meets the ranks in their order */
};

static void walk(struct layout *t, const struct place *p, int group, int *next)
{
    const struct levels *l = p->levels;
    t->group_first[group] = *next;
    for (int i = l->first[group]; i < l->first[group + 1]; i++) {
        int node = l->nodes[i];
        t->node_first[node] = *next;
        for (int k = l->node_first[node]; k < l->node_first[node + 1]; k++)
            t->order[(*next)++] = l->ranks[k];
        for (int g = 0; g < l->n_groups; g++)
            if (p->tree->parent[g] == group && place_node_above(p, g) == node)
                walk(t, p, g, next);
        t->node_n[node] = *next - t->node_first[node];
    }
    t->group_n[group] = *next - t->group_first[group];
}

/* The places; `at` is the caller's to fill. False: no memory. */
static bool lay_out(struct schedule *s, const struct place *p, struct layout *ret_layout)
{
    size_t n_nodes = (size_t)p->levels->shape->n_nodes, n_groups = (size_t)p->levels->n_groups,
           size = (size_t)p->whole.size;
    int *ints = schedule_temp(s, (size + 2 * n_nodes + 2 * n_groups) * sizeof(int));
    int next = 0;
    struct layout *t = ret_layout;
    *t = (struct layout){.at = schedule_temp(s, (size + 1) * sizeof(MPI_Count)), .identity = true};
    if (s->broken)
        return false;
    t->order = ints;
    t->node_first = t->order + size;
    t->node_n = t->node_first + n_nodes;
    t->group_first = t->node_n + n_nodes;
    t->group_n = t->group_first + n_groups;
    walk(t, p, p->tree->order[0], &next);
    for (int i = 0; i < p->whole.size; i++)
        t->identity = t->identity && t->order[i] == i;
    return true;
}

/* Bytes of blocks. */
static void measure(struct layout *t, const struct blocks *b, int size)
{
    t->at[0] = 0;
    for (int i = 0; i < size; i++)
        t->at[i + 1] = t->at[i] + blocks_bytes(b, t->order[i]);
}

/* A piece of the layout in a buffer of bytes that begins with place `base`. */
struct piece {
    unsigned char *start;
    MPI_Count n;
};

static struct piece piece_of(const struct layout *t, unsigned char *packed, int base, int first,
                             int n)
{
    return (struct piece){packed + (t->at[first] - t->at[base]), t->at[first + n] - t->at[first]};
}

static void isend_piece(struct schedule *s, struct piece piece, int to)
{
    if (piece.n > 0)
        schedule_isend(s, buffer_of_bytes(piece.start, piece.n), to);
}

static void irecv_piece(struct schedule *s, struct piece piece, int from)
{
    if (piece.n > 0)
        schedule_irecv(s, buffer_of_bytes(piece.start, piece.n), from);
}

/* ---- gather and scatter ---- */

/* What a leader holds for others: on the entry of a group everything below, on the others their
 * node and what hangs on it. */
struct held {
    int first, n;          /* places */
    unsigned char *packed; /* their blocks */
};

static struct held hold(struct schedule *s, const struct place *p, const struct layout *t)
{
    struct held h = {t->node_first[p->my_node], t->node_n[p->my_node], NULL};
    if (place_is_entry(p)) {
        h.first = t->group_first[p->my_group];
        h.n = t->group_n[p->my_group];
    }
    if (place_leads(p))
        h.packed = schedule_temp(s, (size_t)(t->at[h.first + h.n] - t->at[h.first]));
    return h;
}

static struct piece piece_of_node(const struct layout *t, const struct held *h, int node)
{
    return piece_of(t, h->packed, h->first, t->node_first[node], t->node_n[node]);
}

static struct piece piece_of_group(const struct layout *t, const struct held *h, int group)
{
    return piece_of(t, h->packed, h->first, t->group_first[group], t->group_n[group]);
}

static int node_at(const struct place *p, int i) /* of place i in the group */
{
    return p->levels->nodes[p->levels->first[p->my_group] + i];
}

/* Copies between the root's blocks and their places; places of consecutive ranks in one step. */
static void copy_at_root(struct schedule *s, const struct layout *t, const struct blocks *b,
                         unsigned char *packed, bool unpack)
{
    int size = s->view.size;
    for (int i = 0, n; i < size; i += n) {
        for (n = 1; i + n < size && t->order[i + n] == t->order[i] + n; n++)
            ;
        void *block = blocks_at(b, t->order[i]);
        MPI_Count n_bytes = t->at[i + n] - t->at[i];
        if (unpack)
            schedule_copy(s, buffer_of_bytes(packed + t->at[i], n_bytes),
                          buffer_of(block, n * b->count, b->type));
        else
            schedule_copy(s, buffer_of(block, n * b->count, b->type),
                          buffer_of_bytes(packed + t->at[i], n_bytes));
    }
}

/* From the nodes to their leaders, from there to the entries of the groups, and along the tree.
 * Each border: the blocks behind it in one message. (levels) alpha + (p - 1) n beta, and two
 * copies. */
void hierarchy_gather(struct schedule *s, struct levels *levels, struct buffer send,
                      const struct blocks *recv, int root)
{
    struct place p;
    struct layout t;
    if (!place_find(s, levels, root, LEVELS_BLOCKS, &p) || !lay_out(s, &p, &t))
        return;
    bool is_root = p.whole.rank == root;
    if (send.base == MPI_IN_PLACE) {
        send.base = blocks_at(recv, root);
        send.count = recv->count;
        send.type = recv->type;
    }
    MPI_Count n_bytes = buffer_size(send);
    for (int i = 0; i <= p.whole.size; i++)
        t.at[i] = i * n_bytes;
    struct held h = hold(s, &p, &t);
    if (s->broken)
        return;
    struct blocks of_node = {.buf = place_leads(&p) ? piece_of_node(&t, &h, p.my_node).start : NULL,
                             .type = datatype_predefined(MPI_BYTE),
                             .count = n_bytes};
    for (int g = 0; g < levels->n_groups; g++)
        if (place_has_child(&p, g))
            irecv_piece(s, piece_of_group(&t, &h, g), place_below(&p, g));
    for (int i = 0; place_is_entry(&p) && i < p.group.size; i++)
        if (i != p.entry)
            irecv_piece(s, piece_of_node(&t, &h, node_at(&p, i)), p.group.map[i]);
    schedule_enter(s, p.node);
    coll_gather(s, send, &of_node, true, p.node_leader);
    schedule_enter(s, p.whole);
    schedule_wait(s);
    if (is_root)
        copy_at_root(s, &t, recv, h.packed, true);
    else if (place_is_entry(&p))
        isend_piece(s, piece_of_group(&t, &h, p.my_group), place_above(&p, p.my_group));
    else if (place_leads(&p))
        isend_piece(s, piece_of_node(&t, &h, p.my_node), p.group.map[p.entry]);
    schedule_wait(s);
}

/* The way of gather backwards. */
void hierarchy_scatter(struct schedule *s, struct levels *levels, const struct blocks *send,
                       struct buffer recv, int root)
{
    struct place p;
    struct layout t;
    if (!place_find(s, levels, root, LEVELS_BLOCKS, &p) || !lay_out(s, &p, &t))
        return;
    bool is_root = p.whole.rank == root;
    MPI_Count n_bytes = recv.base == MPI_IN_PLACE ? blocks_bytes(send, root) : buffer_size(recv);
    for (int i = 0; i <= p.whole.size; i++)
        t.at[i] = i * n_bytes;
    struct held h = hold(s, &p, &t);
    if (s->broken)
        return;
    if (is_root)
        copy_at_root(s, &t, send, h.packed, false);
    else if (place_is_entry(&p))
        irecv_piece(s, piece_of_group(&t, &h, p.my_group), place_above(&p, p.my_group));
    else if (place_leads(&p))
        irecv_piece(s, piece_of_node(&t, &h, p.my_node), p.group.map[p.entry]);
    schedule_wait(s);
    for (int g = 0; g < levels->n_groups; g++)
        if (place_has_child(&p, g))
            isend_piece(s, piece_of_group(&t, &h, g), place_below(&p, g));
    for (int i = 0; place_is_entry(&p) && i < p.group.size; i++)
        if (i != p.entry)
            isend_piece(s, piece_of_node(&t, &h, node_at(&p, i)), p.group.map[i]);
    struct blocks of_node = {.buf = place_leads(&p) ? piece_of_node(&t, &h, p.my_node).start : NULL,
                             .type = datatype_predefined(MPI_BYTE),
                             .count = n_bytes};
    schedule_enter(s, p.node);
    coll_scatter(s, &of_node, true, recv, p.node_leader);
    schedule_leave(s, p.whole);
    schedule_wait(s);
}

/* ---- allgather ---- */

/* The bytes of all blocks, if they lie in the order of the walk without gap; else NULL. */
static unsigned char *dense(const struct layout *t, const struct blocks *b, int size)
{
    unsigned char *start = blocks_at(b, 0);
    if (!t->identity || !b->type->contiguous)
        return NULL;
    for (int i = 0; b->displs.base && i < size; i++)
        if ((unsigned char *)blocks_at(b, i) != start + t->at[i])
            return NULL;
    return datatype_run_start(b->type, start);
}

/* The blocks of this rank's node come together on its leader. */
static void gather_node(struct schedule *s, const struct place *p, const struct layout *t,
                        const struct blocks *recv, unsigned char *packed, bool in_place)
{
    int own = p->whole.rank, n = p->node.size, first = t->node_first[p->my_node];
    struct blocks of_node = {.buf = packed + t->at[first],
                             .type = datatype_predefined(MPI_BYTE),
                             .count = blocks_bytes(recv, own)};
    if (recv->counts.base) {
        MPI_Count *counts = schedule_temp(s, 2 * (size_t)n * sizeof(MPI_Count)),
                  *displs = counts + n;
        if (!counts)
            return;
        for (int i = 0; i < n; i++) {
            counts[i] = t->at[first + i + 1] - t->at[first + i];
            displs[i] = t->at[first + i] - t->at[first];
        }
        of_node.counts = intvec_of_count(counts);
        of_node.displs = intvec_of_count(displs);
    }
    bool stays = in_place && place_leads(p);
    schedule_enter(s, p->node);
    coll_gather(
        s,
        buffer_of(stays ? MPI_IN_PLACE : blocks_at(recv, own), blocks_count(recv, own), recv->type),
        &of_node, !recv->counts.base, p->node_leader);
    schedule_enter(s, p->whole);
}

/* The leaders of a group exchange what they hold. */
static void allgather_group(struct schedule *s, const struct place *p, const struct layout *t,
                            unsigned char *packed)
{
    int n = p->group.size;
    MPI_Count *counts = schedule_temp(s, 2 * (size_t)n * sizeof(MPI_Count)), *displs = counts + n;
    if (!counts)
        return;
    for (int i = 0; i < n; i++) {
        int node = node_at(p, i);
        displs[i] = t->at[t->node_first[node]];
        counts[i] = t->at[t->node_first[node] + t->node_n[node]] - displs[i];
    }
    struct blocks held = {.buf = packed,
                          .type = datatype_predefined(MPI_BYTE),
                          .counts = intvec_of_count(counts),
                          .displs = intvec_of_count(displs)};
    schedule_enter(s, p->group);
    coll_allgather(s, buffer_of_bytes(MPI_IN_PLACE, 0), &held);
    schedule_enter(s, p->whole);
}

/* All that is not below a group: before it and behind it. */
struct rest {
    struct piece before, behind;
};

static struct rest rest_of(const struct layout *t, unsigned char *packed, int group, int size)
{
    int end = t->group_first[group] + t->group_n[group];
    return (struct rest){piece_of(t, packed, 0, 0, t->group_first[group]),
                         piece_of(t, packed, 0, end, size - end)};
}

/* What a leader of a group with a parent lacks comes down; the leaders below get what they lack. */
static void pass_rest_down(struct schedule *s, const struct place *p, const struct layout *t,
                           unsigned char *packed)
{
    int size = p->whole.size;
    if (place_has_parent(p)) {
        struct rest rest = rest_of(t, packed, p->my_group, size);
        if (place_is_entry(p)) {
            irecv_piece(s, rest.before, place_above(p, p->my_group));
            irecv_piece(s, rest.behind, place_above(p, p->my_group));
            schedule_wait(s);
        }
        schedule_enter(s, p->group);
        coll_bcast(s, buffer_of_bytes(rest.before.start, rest.before.n), p->entry);
        coll_bcast(s, buffer_of_bytes(rest.behind.start, rest.behind.n), p->entry);
        schedule_enter(s, p->whole);
    }
    for (int g = 0; g < p->levels->n_groups; g++) {
        if (!place_has_child(p, g))
            continue;
        struct rest rest = rest_of(t, packed, g, size);
        isend_piece(s, rest.before, place_below(p, g));
        isend_piece(s, rest.behind, place_below(p, g));
    }
}

/* From here on blocks are passed on one by one, so that all cards work at the same time: 1.25 MiB
 * over three networks in 124 ms instead of 188; about the same at 64 KiB. */
#define LONG_BYTES (64 << 10)

static bool is_long(const struct place *p, MPI_Count n_bytes)
{
    return p->levels->n_groups > 1 && n_bytes >= LONG_BYTES;
}

/* Where the blocks of each node's ranks lie. False: no memory. */
static bool find_node_blocks(struct schedule *s, const struct place *p, const struct layout *t,
                             struct chain_blocks *ret_blocks)
{
    const int *node_first = p->levels->node_first;
    int n_nodes = p->levels->shape->n_nodes;
    MPI_Count *counts = schedule_temp(s, 2 * (size_t)n_nodes * sizeof(MPI_Count));
    if (!counts)
        return false;
    *ret_blocks = (struct chain_blocks){.at = counts, .n = counts + n_nodes};
    for (int i = 0; i < n_nodes; i++) {
        ret_blocks->at[i] = t->at[t->node_first[i]];
        ret_blocks->n[i] =
            t->at[t->node_first[i] + node_first[i + 1] - node_first[i]] - ret_blocks->at[i];
    }
    return true;
}

/* Each subtree's blocks come together on all leaders of its group and go up; what a subtree lacks
 * comes down. Each border: the blocks of either side once in the direction of the other. */
void hierarchy_allgather(struct schedule *s, struct levels *levels, const struct blocks *recv)
{
    struct place p;
    struct layout t;
    if (!place_find(s, levels, -1, LEVELS_BLOCKS, &p) || !lay_out(s, &p, &t))
        return;
    int size = p.whole.size;
    measure(&t, recv, size);
    unsigned char *packed = dense(&t, recv, size);
    bool in_place = packed != NULL;
    if (!in_place)
        packed = schedule_temp(s, (size_t)t.at[size]);
    if (s->broken)
        return;
    gather_node(s, &p, &t, recv, packed, in_place);
    if (place_leads(&p) && is_long(&p, t.at[size])) {
        struct chain_blocks blocks;
        if (find_node_blocks(s, &p, &t, &blocks))
            chain_allgather(s, levels, packed, &blocks);
    } else if (place_leads(&p)) {
        for (int g = 0; g < levels->n_groups; g++)
            if (place_has_child(&p, g))
                irecv_piece(s, piece_of(&t, packed, 0, t.group_first[g], t.group_n[g]),
                            place_below(&p, g));
        schedule_wait(s);
        allgather_group(s, &p, &t, packed);
        if (place_is_entry(&p) && place_has_parent(&p))
            isend_piece(s,
                        piece_of(&t, packed, 0, t.group_first[p.my_group], t.group_n[p.my_group]),
                        place_above(&p, p.my_group));
        pass_rest_down(s, &p, &t, packed);
    }
    schedule_enter(s, p.node);
    coll_bcast(s, buffer_of_bytes(packed, t.at[size]), p.node_leader);
    schedule_leave(s, p.whole);
    schedule_wait(s);
    for (int i = 0; !in_place && i < size; i++)
        if (t.order[i] != p.whole.rank)
            schedule_copy(s, buffer_of_bytes(packed + t.at[i], t.at[i + 1] - t.at[i]),
                          blocks_buffer(recv, t.order[i]));
}

/* ---- reduce_scatter ---- */

/* The operand of a leader in the order of the walk. */
struct operand {
    void *acc;
    struct datatype *type;
    struct op *op;
    const struct layout *layout;
};

static void *element(const struct operand *o, int place)
{
    return datatype_at(o->type, o->acc, o->layout->at[place]);
}

static MPI_Count n_elements(const struct operand *o, int first, int n)
{
    return o->layout->at[first + n] - o->layout->at[first];
}

static void send_places(struct schedule *s, const struct operand *o, int first, int n, int to)
{
    if (n_elements(o, first, n) > 0)
        schedule_send(s, buffer_of(element(o, first), n_elements(o, first, n), o->type), to);
}

/* Receives operands for some places and combines them with the own ones. */
static void take_places(struct schedule *s, const struct operand *o, int first, int n, void *other,
                        int from)
{
    MPI_Count count = n_elements(o, first, n);
    if (count == 0)
        return;
    schedule_recv(s, buffer_of(other, count, o->type), from);
    schedule_reduce(s, other, buffer_of(element(o, first), count, o->type), o->op);
}

/* Up the tree go the operands for the blocks of everybody who is not below, so that no operand
 * comes back to where it is from. */
static void pass_operands_up(struct schedule *s, const struct place *p, const struct operand *o,
                             void *other)
{
    const struct layout *t = o->layout;
    int size = p->whole.size;
    for (int g = 0; g < p->levels->n_groups; g++) {
        if (!place_has_child(p, g))
            continue;
        int end = t->group_first[g] + t->group_n[g];
        take_places(s, o, 0, t->group_first[g], other, place_below(p, g));
        take_places(s, o, end, size - end, other, place_below(p, g));
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
            counts[i] = n_elements(o, t->node_first[node_at(p, i)], t->node_n[node_at(p, i)]);
        struct blocks held = {.type = o->type, .counts = intvec_of_count(counts)};
        if (counts)
            coll_reduce_scatter(s, o->acc, other, &held, o->op);
        schedule_copy(
            s,
            buffer_of(other, n_elements(o, t->node_first[p->my_node], t->node_n[p->my_node]),
                      o->type),
            buffer_of(element(o, t->node_first[p->my_node]),
                      n_elements(o, t->node_first[p->my_node], t->node_n[p->my_node]), o->type));
    }
    schedule_enter(s, p->whole);
    if (!place_has_parent(p) || !place_is_entry(p))
        return;
    int end = t->group_first[p->my_group] + t->group_n[p->my_group];
    send_places(s, o, 0, t->group_first[p->my_group], place_above(p, p->my_group));
    send_places(s, o, end, size - end, place_above(p, p->my_group));
}

/* Down come the operands of everybody else for the blocks of those below. */
static void pass_operands_down(struct schedule *s, const struct place *p, const struct operand *o,
                               void *other)
{
    const struct layout *t = o->layout;
    if (place_has_parent(p)) {
        if (place_is_entry(p))
            take_places(s, o, t->group_first[p->my_group], t->group_n[p->my_group], other,
                        place_above(p, p->my_group));
        for (int i = 0; i < p->group.size; i++) {
            int first = t->node_first[node_at(p, i)], n = t->node_n[node_at(p, i)];
            if (i == p->entry || n_elements(o, first, n) == 0)
                continue;
            if (place_is_entry(p))
                send_places(s, o, first, n, p->group.map[i]);
            else if (i == p->group.rank)
                schedule_recv(s, buffer_of(element(o, first), n_elements(o, first, n), o->type),
                              p->group.map[p->entry]);
        }
    }
    for (int g = 0; g < p->levels->n_groups; g++)
        if (place_has_child(p, g))
            send_places(s, o, t->group_first[g], t->group_n[g], place_below(p, g));
}

/* Each leader reduces the operands of its node; between groups only what the other side needs
 * travels, already combined. Each border: the blocks of either side once towards it. */
void hierarchy_reduce_scatter(struct schedule *s, struct levels *levels, const void *send,
                              void *recv, const struct blocks *counts, struct op *op)
{
    struct place p;
    struct layout t;
    if (!place_find(s, levels, -1, LEVELS_BLOCKS, &p) || !lay_out(s, &p, &t))
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
                buffer_of(element(&o, i), blocks_count(counts, t.order[i]), type));
        struct chain_blocks blocks;
        if (!is_long(&p, total * type->size)) {
            pass_operands_up(s, &p, &o, other);
            pass_operands_down(s, &p, &o, other);
        } else if (find_node_blocks(s, &p, &t, &blocks)) {
            chain_reduce_scatter(s, levels, o.acc, &blocks, type, op);
        }
    }
    int first = t.node_first[p.my_node];
    for (int i = 0; i < p.node.size; i++)
        of_node[i] = t.at[first + i + 1] - t.at[first + i];
    struct blocks results = {.buf = place_leads(&p) ? element(&o, first) : NULL,
                             .type = type,
                             .counts = intvec_of_count(of_node)};
    if (!counts->counts.base)
        results = (struct blocks){.buf = results.buf, .type = type, .count = counts->count};
    schedule_enter(s, p.node);
    coll_scatter(s, &results, !counts->counts.base,
                 buffer_of(recv, blocks_count(counts, p.whole.rank), type), p.node_leader);
    schedule_leave(s, p.whole);
}
