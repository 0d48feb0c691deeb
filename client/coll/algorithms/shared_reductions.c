/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions and scans through the exchange of a node. Operands are combined from the highest rank
 * down, so their order is kept, and all ranks that compute one result compute the same bits.
 */
#include "client/coll/node/node.h"

/* Combines the operands that all members published (from element `first` on) into acc. */
static void combine_all(struct schedule *s, const struct shared *sh, MPI_Count first, void *acc,
                        MPI_Count count, struct datatype *type, struct op *op)
{
    int last = s->view.size - 1;
    shared_look_ahead(s, sh);
    schedule_get(s, sh, last, first * type->size, acc, count, type);
    for (int i = last - 1; i >= 0; i--)
        schedule_get_reduce(s, sh, i, first * type->size, acc, count, type, op);
}

/* Everybody else publishes its operand, the root combines them. (p - 1)(n beta + n gamma) at the
 * root, one turn. */
void shared_reduce(struct schedule *s, const void *send, void *recv, MPI_Count count,
                   struct datatype *type, struct op *op, int root)
{
    struct shared sh = shared_begin(s);
    int size = s->view.size;
    if (s->view.rank != root) {
        schedule_put(s, &sh, send, count, type, root);
        schedule_finish(s, &sh);
        return;
    }
    shared_look_ahead(s, &sh);
    if (op->commutative || root == size - 1) {
        schedule_copy(s, send, count, type, recv, count, type);
        for (int i = size - 1; i >= 0; i--)
            if (i != root)
                schedule_get_reduce(s, &sh, i, 0, recv, count, type, op);
    } else {
        const void *own = send;
        if (send == recv) { /* it will be overwritten before its turn comes */
            void *aside = schedule_temp_typed(s, count, type);
            schedule_copy(s, send, count, type, aside, count, type);
            own = aside;
        }
        schedule_get(s, &sh, size - 1, 0, recv, count, type);
        for (int i = size - 2; i >= 0; i--) {
            if (i == root)
                schedule_reduce(s, own, recv, count, type, op);
            else
                schedule_get_reduce(s, &sh, i, 0, recv, count, type, op);
        }
    }
    schedule_finish(s, &sh);
}

/* Everybody publishes its operand and combines all. One turn, p n gamma on every rank: for short
 * operands. */
void shared_allreduce(struct schedule *s, const void *send, void *recv, MPI_Count count,
                      struct datatype *type, struct op *op)
{
    struct shared sh = shared_begin(s);
    schedule_put(s, &sh, send, count, type, -1);
    combine_all(s, &sh, 0, recv, count, type, op);
    schedule_finish(s, &sh);
}

/* Everybody publishes the whole operand and combines its own part. n beta + n gamma on every rank,
 * one turn. */
void shared_reduce_scatter(struct schedule *s, const void *send, void *recv,
                           const struct blocks *counts, struct op *op)
{
    struct shared sh = shared_begin(s);
    int rank = s->view.rank;
    schedule_put(s, &sh, send, blocks_first(counts, s->view.size), counts->type, -1);
    if (blocks_count(counts, rank) > 0)
        combine_all(s, &sh, blocks_first(counts, rank), recv, blocks_count(counts, rank),
                    counts->type, op);
    schedule_finish(s, &sh);
}

/* A chain: each rank takes what the rank below has combined, adds its own and publishes that for
 * the rank above. n (beta + gamma) on every rank, and scans in a row follow one another through the
 * chain. */
void shared_scan(struct schedule *s, const void *send, void *recv, MPI_Count count,
                 struct datatype *type, struct op *op)
{
    struct shared sh = shared_begin(s);
    int rank = s->view.rank;
    schedule_copy(s, send, count, type, recv, count, type);
    if (rank > 0)
        schedule_get_reduce(s, &sh, rank - 1, 0, recv, count, type, op);
    if (rank + 1 < s->view.size)
        schedule_put(s, &sh, recv, count, type, rank + 1);
    schedule_finish(s, &sh);
}

void shared_exscan(struct schedule *s, const void *send, void *recv, MPI_Count count,
                   struct datatype *type, struct op *op)
{
    struct shared sh = shared_begin(s);
    int rank = s->view.rank;
    if (rank + 1 < s->view.size) {
        const void *combined = send;
        if (rank > 0) {
            void *acc = schedule_temp_typed(s, count, type);
            schedule_copy(s, send, count, type, acc, count, type);
            schedule_get_reduce(s, &sh, rank - 1, 0, acc, count, type, op);
            combined = acc;
        }
        schedule_put(s, &sh, combined, count, type, rank + 1);
    }
    if (rank > 0)
        schedule_get(s, &sh, rank - 1, 0, recv, count, type);
    schedule_finish(s, &sh);
}
