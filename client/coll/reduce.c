/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Reduce: choice, and the binomial tree for short operands. */
#include "client/coll/algorithms.h"
#include "client/coll/hierarchy.h"
#include "client/coll/select.h"
#include "client/coll/shared.h"

/* Sends the tree's result from its top to the root where they differ. */
static void hand_to_root(struct schedule *s, const void *result, void *recv, MPI_Count count,
                         struct datatype *type, int top, int root)
{
    if (s->view.rank == top)
        schedule_send(s, result, count, type, root);
    else if (s->view.rank == root)
        schedule_recv(s, recv, count, type, top);
}

/* Binomial tree: the operands of a subtree, an unbroken row of ranks, meet at its lowest rank. Operations
 * that do not commute start the rows at rank 0 and hand the result to the root. ceil(log2 p)(alpha + n beta +
 * n gamma). Received operands become the accumulator in turn, so that nothing is copied but the result of an
 * odd chain. */
void reduce_binomial(struct schedule *s, const void *send, void *recv, MPI_Count count, struct datatype *type,
                     struct op *op, int root)
{
    int rank = s->view.rank, size = s->view.size, top = op->commutative ? root : 0;
    int relative = (rank - top + size) % size, n_children = 0, mask = 1;
    for (; mask < size && !(relative & mask); mask *= 2)
        n_children += relative + mask < size;
    const void *acc = send;
    if (n_children > 0) {
        bool into_recv = relative == 0 && rank == root;
        bool clash =
            into_recv && send == recv && n_children % 2; /* the first receive would overwrite the operand */
        void *last = into_recv ? recv : schedule_temp_typed(s, count, type);
        void *other = n_children > 1 || clash ? schedule_temp_typed(s, count, type) : NULL;
        if (clash) {
            schedule_copy(s, send, count, type, other, count, type);
            acc = other;
        }
        int left = n_children;
        for (int bit = 1; left > 0; bit *= 2) {
            if (relative + bit >= size)
                continue;
            void *into = --left % 2 ? other : last;
            schedule_recv(s, into, count, type, (relative + bit + top) % size);
            schedule_reduce(s, acc, into, count, type, op);
            acc = into;
        }
    }
    if (relative)
        schedule_send(s, acc, count, type, (relative - mask + top) % size);
    if (top != root)
        hand_to_root(s, acc, recv, count, type, top, root);
}

void coll_reduce(struct schedule *s, const void *send, void *recv, MPI_Count count, struct datatype *type,
                 struct op *op, int root)
{
    MPI_Count n_bytes = count * type->size;
    if (count == 0)
        return;
    if (send == MPI_IN_PLACE)
        send = recv;
    if (s->view.size == 1) {
        schedule_copy(s, send, count, type, recv, count, type);
        return;
    }
    switch (select_algorithm(SELECT_REDUCE, s, n_bytes, op->commutative)) {
    case REDUCE_NODES:
        hierarchy_reduce(s, hierarchy_nodes(s), send, recv, count, type, op, root);
        break;
    case REDUCE_NETWORKS:
        hierarchy_reduce(s, hierarchy_networks(s), send, recv, count, type, op, root);
        break;
    case REDUCE_SHARED:
        shared_reduce(s, send, recv, count, type, op, root);
        break;
    case REDUCE_RABENSEIFNER:
        reduce_rabenseifner(s, send, recv, count, type, op, root);
        break;
    default:
        reduce_binomial(s, send, recv, count, type, op, root);
        break;
    }
}
