/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/hierarchy.h"

#include "client/coll/algorithms.h"

#include <string.h>

struct levels {
    struct schedule_view node;    /* the ranks of this node */
    struct schedule_view leaders; /* the leaders; rank -1 on other ranks */
    int node_leader;              /* place of the leader in `node` */
    int root_node;                /* place of the root's node in `leaders` */
};

/* root: -1 for unrooted operations. False: no memory, and s says so. */
static bool split(struct schedule *s, int root, struct levels *ret_levels)
{
    struct comm *comm = s->view.comm;
    struct coll_comm *c = coll_shape_of(comm);
    int my_node = c->node_of[comm->rank], root_node = root < 0 ? 0 : c->node_of[root];
    int *leaders = c->leaders;
    if (root >= 0 && leaders[root_node] != root) {
        leaders = schedule_temp(s, (size_t)c->n_nodes * sizeof(int));
        if (!leaders)
            return false;
        memcpy(leaders, c->leaders, (size_t)c->n_nodes * sizeof(int));
        leaders[root_node] = root;
    }
    *ret_levels = (struct levels){
        .node = {.comm = comm, .rank = c->my_member, .size = c->n_members, .map = c->members},
        .leaders = {.comm = comm, .rank = -1, .size = c->n_nodes, .map = leaders},
        .root_node = root_node,
    };
    for (int i = 0; i < c->n_members; i++)
        if (c->members[i] == leaders[my_node])
            ret_levels->node_leader = i;
    if (leaders[my_node] == comm->rank)
        ret_levels->leaders.rank = my_node;
    return true;
}

/* Binomial tree of empty messages towards place 0 of the view, and back from there. */
static void collect(struct schedule *s)
{
    int rank = s->view.rank, size = s->view.size;
    for (int mask = 1; mask < size; mask *= 2) {
        if (rank & mask) {
            schedule_send(s, NULL, 0, coll_byte(), rank - mask);
            return;
        }
        if (rank + mask < size)
            schedule_recv(s, NULL, 0, coll_byte(), rank + mask);
    }
}

static void let_go(struct schedule *s)
{
    int rank = s->view.rank, size = s->view.size, mask = 1;
    while (mask < size && !(rank & mask))
        mask *= 2;
    if (rank)
        schedule_recv(s, NULL, 0, coll_byte(), rank - mask);
    for (mask /= 2; mask > 0; mask /= 2)
        if (rank + mask < size)
            schedule_send(s, NULL, 0, coll_byte(), rank + mask);
}

void hierarchy_barrier(struct schedule *s)
{
    struct levels levels;
    if (!split(s, -1, &levels))
        return;
    struct schedule_view whole = schedule_enter(s, levels.node);
    collect(s);
    if (levels.leaders.rank >= 0) {
        schedule_enter(s, levels.leaders);
        coll_barrier(s);
        schedule_enter(s, levels.node);
    }
    let_go(s);
    schedule_leave(s, whole);
}

void hierarchy_bcast(struct schedule *s, void *buf, MPI_Count count, struct datatype *type, int root)
{
    struct levels levels;
    if (!split(s, root, &levels))
        return;
    struct schedule_view whole = s->view;
    if (levels.leaders.rank >= 0) {
        schedule_enter(s, levels.leaders);
        coll_bcast(s, buf, count, type, levels.root_node);
    }
    schedule_enter(s, levels.node);
    coll_bcast(s, buf, count, type, levels.node_leader);
    schedule_leave(s, whole);
}

void hierarchy_reduce(struct schedule *s, const void *send, void *recv, MPI_Count count,
                      struct datatype *type, struct op *op, int root)
{
    struct levels levels;
    if (!split(s, root, &levels))
        return;
    struct schedule_view whole = s->view;
    bool leads = levels.leaders.rank >= 0, is_root = whole.rank == root;
    void *partial = is_root ? recv : leads ? schedule_temp_typed(s, count, type) : NULL;
    schedule_enter(s, levels.node);
    coll_reduce(s, is_root && send == recv ? MPI_IN_PLACE : send, partial, count, type, op,
                levels.node_leader);
    if (leads) {
        schedule_enter(s, levels.leaders);
        coll_reduce(s, is_root ? MPI_IN_PLACE : partial, recv, count, type, op, levels.root_node);
    }
    schedule_leave(s, whole);
}

void hierarchy_allreduce(struct schedule *s, const void *send, void *recv, MPI_Count count,
                         struct datatype *type, struct op *op)
{
    struct levels levels;
    if (!split(s, -1, &levels))
        return;
    struct schedule_view whole = schedule_enter(s, levels.node);
    bool leads = levels.leaders.rank >= 0;
    coll_reduce(s, leads && send == recv ? MPI_IN_PLACE : send, recv, count, type, op, levels.node_leader);
    if (leads) {
        schedule_enter(s, levels.leaders);
        coll_allreduce(s, MPI_IN_PLACE, recv, count, type, op);
        schedule_enter(s, levels.node);
    }
    coll_bcast(s, recv, count, type, levels.node_leader);
    schedule_leave(s, whole);
}
