/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Gather and MPI_Scatter in groups. */
#include "client/coll/hierarchy/hierarchy.h"
#include "client/coll/hierarchy/layout.h"

/* What a leader holds for others: on the entry of a group everything below, on the others their
 * node and what hangs on it. */
struct held {
    int first, n;          /* places */
    unsigned char *packed; /* their blocks */
};

static struct held gather_hold(struct schedule *s, const struct place *p, const struct layout *t)
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

static struct piece gather_node_piece(const struct layout *t, const struct held *h, int node)
{
    return layout_piece(t, h->packed, h->first, t->node_first[node], t->node_n[node]);
}

static struct piece gather_group_piece(const struct layout *t, const struct held *h, int group)
{
    return layout_piece(t, h->packed, h->first, t->group_first[group], t->group_n[group]);
}

/* Copies between the root's blocks and their places; places of consecutive ranks in one step. */
static void gather_copy_at_root(struct schedule *s, const struct layout *t, const struct blocks *b,
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
 * Each border: the blocks behind it in one message. (groups) alpha + (p - 1) n beta, and two
 * copies. */
static void hierarchy_gather(struct schedule *s, struct node_groups *groups, struct buffer send,
                             const struct blocks *recv, int root)
{
    struct place p;
    struct layout t;
    if (!place_find(s, groups, root, GROUP_TREE_BLOCKS, &p) || !layout_find(s, &p, &t))
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
    struct held h = gather_hold(s, &p, &t);
    if (s->broken)
        return;
    struct blocks of_node = {.buf = place_leads(&p) ? gather_node_piece(&t, &h, p.my_node).start
                                                    : NULL,
                             .type = datatype_predefined(MPI_BYTE),
                             .count = n_bytes,
                             .uniform = true};
    for (int g = 0; g < groups->n_groups; g++)
        if (place_has_child(&p, g))
            layout_irecv(s, gather_group_piece(&t, &h, g), place_below(&p, g));
    for (int i = 0; place_is_entry(&p) && i < p.group.size; i++)
        if (i != p.entry)
            layout_irecv(s, gather_node_piece(&t, &h, layout_node(&p, i)), p.group.map[i]);
    schedule_enter(s, p.node);
    coll_gather(s, send, &of_node, p.node_leader);
    schedule_enter(s, p.whole);
    schedule_wait(s);
    if (is_root)
        gather_copy_at_root(s, &t, recv, h.packed, true);
    else if (place_is_entry(&p))
        layout_isend(s, gather_group_piece(&t, &h, p.my_group), place_above(&p, p.my_group));
    else if (place_leads(&p))
        layout_isend(s, gather_node_piece(&t, &h, p.my_node), p.group.map[p.entry]);
    schedule_wait(s);
}

void gather_nodes(struct schedule *s, struct buffer send, const struct blocks *recv, int root)
{
    hierarchy_gather(s, hierarchy_nodes(s), send, recv, root);
}

void gather_networks(struct schedule *s, struct buffer send, const struct blocks *recv, int root)
{
    hierarchy_gather(s, hierarchy_networks(s), send, recv, root);
}

/* The way of gather backwards. */
static void hierarchy_scatter(struct schedule *s, struct node_groups *groups,
                              const struct blocks *send, struct buffer recv, int root)
{
    struct place p;
    struct layout t;
    if (!place_find(s, groups, root, GROUP_TREE_BLOCKS, &p) || !layout_find(s, &p, &t))
        return;
    bool is_root = p.whole.rank == root;
    MPI_Count n_bytes = recv.base == MPI_IN_PLACE ? blocks_bytes(send, root) : buffer_size(recv);
    for (int i = 0; i <= p.whole.size; i++)
        t.at[i] = i * n_bytes;
    struct held h = gather_hold(s, &p, &t);
    if (s->broken)
        return;
    if (is_root)
        gather_copy_at_root(s, &t, send, h.packed, false);
    else if (place_is_entry(&p))
        layout_irecv(s, gather_group_piece(&t, &h, p.my_group), place_above(&p, p.my_group));
    else if (place_leads(&p))
        layout_irecv(s, gather_node_piece(&t, &h, p.my_node), p.group.map[p.entry]);
    schedule_wait(s);
    for (int g = 0; g < groups->n_groups; g++)
        if (place_has_child(&p, g))
            layout_isend(s, gather_group_piece(&t, &h, g), place_below(&p, g));
    for (int i = 0; place_is_entry(&p) && i < p.group.size; i++)
        if (i != p.entry)
            layout_isend(s, gather_node_piece(&t, &h, layout_node(&p, i)), p.group.map[i]);
    struct blocks of_node = {.buf = place_leads(&p) ? gather_node_piece(&t, &h, p.my_node).start
                                                    : NULL,
                             .type = datatype_predefined(MPI_BYTE),
                             .count = n_bytes,
                             .uniform = true};
    schedule_enter(s, p.node);
    coll_scatter(s, &of_node, recv, p.node_leader);
    schedule_leave(s, p.whole);
    schedule_wait(s);
}

void scatter_nodes(struct schedule *s, const struct blocks *send, struct buffer recv, int root)
{
    hierarchy_scatter(s, hierarchy_nodes(s), send, recv, root);
}

void scatter_networks(struct schedule *s, const struct blocks *send, struct buffer recv, int root)
{
    hierarchy_scatter(s, hierarchy_networks(s), send, recv, root);
}
