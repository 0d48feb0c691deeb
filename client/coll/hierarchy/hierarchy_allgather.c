/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Allgather and MPI_Allgatherv in groups. */
#include "client/coll/hierarchy/hierarchy.h"
#include "client/coll/hierarchy/layout.h"

/* The bytes of all blocks, if they lie in the order of the walk without gap; else NULL. */
static unsigned char *allgather_dense(const struct layout *t, const struct blocks *b, int size)
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
static void allgather_gather_node(struct schedule *s, const struct place *p, const struct layout *t,
                                  const struct blocks *recv, unsigned char *packed, bool in_place)
{
    int own = p->whole.rank, n = p->node.size, first = t->node_first[p->my_node];
    struct blocks of_node = {.buf = packed + t->at[first],
                             .type = datatype_predefined(MPI_BYTE),
                             .count = blocks_bytes(recv, own),
                             .uniform = !recv->counts.base};
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
        &of_node, p->node_leader);
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
        int node = layout_node(p, i);
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

static struct rest allgather_rest(const struct layout *t, unsigned char *packed, int group,
                                  int size)
{
    int end = t->group_first[group] + t->group_n[group];
    return (struct rest){layout_piece(t, packed, 0, 0, t->group_first[group]),
                         layout_piece(t, packed, 0, end, size - end)};
}

/* What a leader of a group with a parent lacks comes down; the leaders below get what they lack. */
static void allgather_pass_rest_down(struct schedule *s, const struct place *p,
                                     const struct layout *t, unsigned char *packed)
{
    int size = p->whole.size;
    if (place_has_parent(p)) {
        struct rest rest = allgather_rest(t, packed, p->my_group, size);
        if (place_is_entry(p)) {
            layout_irecv(s, rest.before, place_above(p, p->my_group));
            layout_irecv(s, rest.behind, place_above(p, p->my_group));
            schedule_wait(s);
        }
        schedule_enter(s, p->group);
        coll_bcast(s, buffer_of_bytes(rest.before.start, rest.before.n), p->entry);
        coll_bcast(s, buffer_of_bytes(rest.behind.start, rest.behind.n), p->entry);
        schedule_enter(s, p->whole);
    }
    for (int g = 0; g < p->groups->n_groups; g++) {
        if (!place_has_child(p, g))
            continue;
        struct rest rest = allgather_rest(t, packed, g, size);
        layout_isend(s, rest.before, place_below(p, g));
        layout_isend(s, rest.behind, place_below(p, g));
    }
}

/* Each subtree's blocks come together on all leaders of its group and go up; what a subtree lacks
 * comes down. Each border: the blocks of either side once in the direction of the other. */
static void hierarchy_allgather(struct schedule *s, struct node_groups *groups,
                                const struct blocks *recv)
{
    struct place p;
    struct layout t;
    if (!place_find(s, groups, -1, GROUP_TREE_BLOCKS, &p) || !layout_find(s, &p, &t))
        return;
    int size = p.whole.size;
    layout_measure(&t, recv, size);
    unsigned char *packed = allgather_dense(&t, recv, size);
    bool in_place = packed != NULL;
    if (!in_place)
        packed = schedule_temp(s, (size_t)t.at[size]);
    if (s->broken)
        return;
    allgather_gather_node(s, &p, &t, recv, packed, in_place);
    if (place_leads(&p) && layout_is_long(&p, t.at[size])) {
        struct chain_blocks blocks;
        if (layout_node_blocks(s, &p, &t, &blocks))
            chain_allgather(s, groups, packed, &blocks);
    } else if (place_leads(&p)) {
        for (int g = 0; g < groups->n_groups; g++)
            if (place_has_child(&p, g))
                layout_irecv(s, layout_piece(&t, packed, 0, t.group_first[g], t.group_n[g]),
                             place_below(&p, g));
        schedule_wait(s);
        allgather_group(s, &p, &t, packed);
        if (place_is_entry(&p) && place_has_parent(&p))
            layout_isend(
                s, layout_piece(&t, packed, 0, t.group_first[p.my_group], t.group_n[p.my_group]),
                place_above(&p, p.my_group));
        allgather_pass_rest_down(s, &p, &t, packed);
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

void allgather_nodes(struct schedule *s, const struct blocks *recv)
{
    hierarchy_allgather(s, hierarchy_nodes(s), recv);
}

void allgather_networks(struct schedule *s, const struct blocks *recv)
{
    hierarchy_allgather(s, hierarchy_networks(s), recv);
}
