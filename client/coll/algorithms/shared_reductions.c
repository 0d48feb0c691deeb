/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions and scans through the cells of a node. Operands are combined from the highest rank
 * down, so their order is kept, and all ranks that compute one result compute the same bits.
 */
#include "client/coll/algorithms/algorithms.h"

/* Combines the operands that all members published (from element `first` on) into acc. */
static void shared_combine(struct schedule *s, const struct node_step *step, MPI_Count first,
                           struct buffer acc, struct op *op)
{
    int last = s->view.size - 1;
    schedule_look_ahead(s, step);
    schedule_get(s, step, last, first * acc.type->size, acc);
    for (int i = last - 1; i >= 0; i--)
        schedule_get_reduce(s, step, i, first * acc.type->size, acc, op);
}

/* Everybody else publishes its operand, the root combines them. (p - 1)(n beta + n gamma) at the
 * root, one turn. */
void reduce_shared(struct schedule *s, const void *send, struct buffer recv, struct op *op,
                   int root)
{
    struct node_step step = schedule_take_step(s);
    int size = s->view.size;
    if (s->view.rank != root) {
        schedule_put(s, &step, buffer_like(recv, send), root);
        schedule_finish(s, &step);
        return;
    }
    schedule_look_ahead(s, &step);
    if (op->commutative || root == size - 1) {
        schedule_copy(s, buffer_like(recv, send), recv);
        for (int i = size - 1; i >= 0; i--)
            if (i != root)
                schedule_get_reduce(s, &step, i, 0, recv, op);
    } else {
        const void *own = send;
        if (send == recv.base) { /* it will be overwritten before its turn comes */
            void *aside = schedule_temp_typed(s, recv.count, recv.type);
            schedule_copy(s, buffer_like(recv, send), buffer_like(recv, aside));
            own = aside;
        }
        schedule_get(s, &step, size - 1, 0, recv);
        for (int i = size - 2; i >= 0; i--) {
            if (i == root)
                schedule_reduce(s, own, recv, op);
            else
                schedule_get_reduce(s, &step, i, 0, recv, op);
        }
    }
    schedule_finish(s, &step);
}

/* Everybody publishes its operand and combines all. One turn, p n gamma on every rank: for short
 * operands. */
void allreduce_shared(struct schedule *s, const void *send, struct buffer recv, struct op *op)
{
    struct node_step step = schedule_take_step(s);
    schedule_put(s, &step, buffer_like(recv, send), -1);
    shared_combine(s, &step, 0, recv, op);
    schedule_finish(s, &step);
}

/* Everybody publishes the whole operand and combines its own part. n beta + n gamma on every rank,
 * one turn. */
void reduce_scatter_shared(struct schedule *s, const void *send, void *recv,
                           const struct blocks *counts, struct op *op)
{
    struct node_step step = schedule_take_step(s);
    int rank = s->view.rank;
    schedule_put(s, &step, buffer_of(send, blocks_first(counts, s->view.size), counts->type), -1);
    if (blocks_count(counts, rank) > 0)
        shared_combine(s, &step, blocks_first(counts, rank),
                       buffer_of(recv, blocks_count(counts, rank), counts->type), op);
    schedule_finish(s, &step);
}

/* A chain: each rank takes what the rank below has combined, adds its own and publishes that for
 * the rank above. n (beta + gamma) on every rank, and scans in a row follow one another through the
 * chain. */
static void shared_scan(struct schedule *s, const void *send, struct buffer recv, struct op *op)
{
    struct node_step step = schedule_take_step(s);
    int rank = s->view.rank;
    schedule_copy(s, buffer_like(recv, send), recv);
    if (rank > 0)
        schedule_get_reduce(s, &step, rank - 1, 0, recv, op);
    if (rank + 1 < s->view.size)
        schedule_put(s, &step, recv, rank + 1);
    schedule_finish(s, &step);
}

static void shared_exscan(struct schedule *s, const void *send, struct buffer recv, struct op *op)
{
    struct node_step step = schedule_take_step(s);
    int rank = s->view.rank;
    if (rank + 1 < s->view.size) {
        const void *combined = send;
        if (rank > 0) {
            void *acc = schedule_temp_typed(s, recv.count, recv.type);
            schedule_copy(s, buffer_like(recv, send), buffer_like(recv, acc));
            schedule_get_reduce(s, &step, rank - 1, 0, buffer_like(recv, acc), op);
            combined = acc;
        }
        schedule_put(s, &step, buffer_like(recv, combined), rank + 1);
    }
    if (rank > 0)
        schedule_get(s, &step, rank - 1, 0, recv);
    schedule_finish(s, &step);
}

void scan_shared(struct schedule *s, const void *send, struct buffer recv, struct op *op,
                 bool inclusive)
{
    if (inclusive)
        shared_scan(s, send, recv, op);
    else
        shared_exscan(s, send, recv, op);
}
