/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Reduce of short operands: a binomial tree.
 *
 * The operands of a subtree, an unbroken row of ranks, meet at its lowest rank. Operations that do
 * not commute start the rows at rank 0 and hand the result to the root. ceil(log2 p)(alpha + n beta
 * + n gamma). Received operands become the accumulator in turn, so that nothing is copied but the
 * result of an odd chain.
 */
#include "client/coll/algorithms/algorithms.h"

/* Sends the tree's result from its top to the root where they differ. */
static void hand_to_root(struct schedule *s, const void *result, struct buffer recv, int top,
                         int root)
{
    if (s->view.rank == top)
        schedule_send(s, buffer_like(recv, result), root);
    else if (s->view.rank == root)
        schedule_recv(s, recv, top);
}

void reduce_binomial(struct schedule *s, const void *send, struct buffer recv, struct op *op,
                     int root)
{
    int rank = s->view.rank, size = s->view.size, top = op->commutative ? root : 0;
    int relative = (rank - top + size) % size, n_children = 0, mask = 1;
    for (; mask < size && !(relative & mask); mask *= 2)
        n_children += relative + mask < size;
    const void *acc = send;
    if (n_children > 0) {
        bool into_recv = relative == 0 && rank == root;
        bool clash = into_recv && send == recv.base &&
                     n_children % 2; /* the first receive would overwrite the operand */
        void *last = into_recv ? recv.base : schedule_temp_typed(s, recv.count, recv.type);
        void *other =
            n_children > 1 || clash ? schedule_temp_typed(s, recv.count, recv.type) : NULL;
        if (clash) {
            schedule_copy(s, buffer_like(recv, send), buffer_like(recv, other));
            acc = other;
        }
        int left = n_children;
        for (int bit = 1; left > 0; bit *= 2) {
            if (relative + bit >= size)
                continue;
            void *into = --left % 2 ? other : last;
            schedule_recv(s, buffer_like(recv, into), (relative + bit + top) % size);
            schedule_reduce(s, acc, buffer_like(recv, into), op);
            acc = into;
        }
    }
    if (relative)
        schedule_send(s, buffer_like(recv, acc), (relative - mask + top) % size);
    if (top != root)
        hand_to_root(s, acc, recv, top, root);
}
