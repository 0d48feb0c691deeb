/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Reduce_scatter and MPI_Reduce_scatter_block of short operands: recursive halving (Thakur,
 * Rabenseifner, Gropp 2005).
 *
 * The half of the ranks that will not own a block gives its part of the operand to the other half,
 * over halving distances. log2 p alpha + (p - 1)/p n (beta + gamma), for powers of two; others
 * fold. The order of operands is not kept: commutative operations only.
 */
#include "client/coll/algorithms/algorithms.h"
#include "client/coll/algorithms/fold.h"

/* Elements of the blocks of the ranks that new numbers first..end-1 stand for. */
static MPI_Count first_of(const struct blocks *counts, const struct fold *f, int new_rank)
{
    return blocks_first(counts, new_rank < f->rest ? 2 * new_rank : new_rank + f->rest);
}

void reduce_scatter_halving(struct schedule *s, const void *send, void *recv,
                            const struct blocks *counts, struct op *op)
{
    int rank = s->view.rank, size = s->view.size;
    struct datatype *type = counts->type;
    MPI_Count count = blocks_first(counts, size);
    struct fold f = fold_of(s);
    int partner = fold_partner(&f, rank);
    if (f.rank < 0) {
        schedule_send(s, buffer_of(send, count, type), partner);
        if (blocks_count(counts, rank) > 0)
            schedule_recv(s, buffer_of(recv, blocks_count(counts, rank), type), partner);
        return;
    }
    void *acc = schedule_temp_typed(s, count, type),
         *received = schedule_temp_typed(s, count, type);
    schedule_copy(s, buffer_of(send, count, type), buffer_of(acc, count, type));
    if (partner >= 0) {
        schedule_recv(s, buffer_of(received, count, type), partner);
        schedule_reduce(s, received, buffer_of(acc, count, type), op);
    }
    int low = 0, high = f.pof2; /* new ranks among which this one still is */
    for (int distance = f.pof2 / 2; distance > 0; distance /= 2) {
        int middle = low + distance;
        bool upper = f.rank >= middle;
        int peer = fold_back(&f, upper ? f.rank - distance : f.rank + distance);
        MPI_Count a = first_of(counts, &f, low), b = first_of(counts, &f, middle),
                  c = first_of(counts, &f, high);
        MPI_Count kept = upper ? b : a, n_kept = upper ? c - b : b - a, given = upper ? a : b;
        schedule_sendrecv(s, buffer_of(datatype_at(type, acc, given), upper ? b - a : c - b, type),
                          peer, buffer_of(datatype_at(type, received, kept), n_kept, type), peer);
        schedule_reduce(s, datatype_at(type, received, kept),
                        buffer_of(datatype_at(type, acc, kept), n_kept, type), op);
        if (upper)
            low = middle;
        else
            high = middle;
    }
    if (partner >= 0 && blocks_count(counts, partner) > 0)
        schedule_send(s,
                      buffer_of(datatype_at(type, acc, blocks_first(counts, partner)),
                                blocks_count(counts, partner), type),
                      partner);
    MPI_Count n = blocks_count(counts, rank);
    schedule_copy(s, buffer_of(datatype_at(type, acc, blocks_first(counts, rank)), n, type),
                  buffer_of(recv, n, type));
}
