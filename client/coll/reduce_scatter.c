/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Reduce_scatter and MPI_Reduce_scatter_block: choice, recursive halving, pairwise, and reduce with
 * scatter. */
#include "client/coll/algorithms.h"
#include "client/coll/fold.h"
#include "client/coll/hierarchy.h"
#include "client/coll/select.h"
#include "client/coll/shared.h"

/* Elements of the blocks of the ranks that new numbers first..end-1 stand for. */
static MPI_Count first_of(const struct blocks *counts, const struct fold *f, int new_rank)
{
    return blocks_first(counts, new_rank < f->rest ? 2 * new_rank : new_rank + f->rest);
}

/* Recursive halving (Thakur, Rabenseifner, Gropp 2005): the half of the ranks that will not own a block gives
 * its part of the operand to the other half, over halving distances. log2 p alpha + (p - 1)/p n (beta +
 * gamma), for powers of two; others fold. The order of operands is not kept: commutative operations only. */
void reduce_scatter_halving(struct schedule *s, const void *send, void *recv, const struct blocks *counts,
                            struct op *op)
{
    int rank = s->view.rank, size = s->view.size;
    struct datatype *type = counts->type;
    MPI_Count count = blocks_first(counts, size);
    struct fold f = fold_of(s);
    int partner = fold_partner(&f, rank);
    if (f.rank < 0) {
        schedule_send(s, send, count, type, partner);
        if (blocks_count(counts, rank) > 0)
            schedule_recv(s, recv, blocks_count(counts, rank), type, partner);
        return;
    }
    void *acc = schedule_temp_typed(s, count, type), *received = schedule_temp_typed(s, count, type);
    schedule_copy(s, send, count, type, acc, count, type);
    if (partner >= 0) {
        schedule_recv(s, received, count, type, partner);
        schedule_reduce(s, received, acc, count, type, op);
    }
    int low = 0, high = f.pof2; /* new ranks among which this one still is */
    for (int distance = f.pof2 / 2; distance > 0; distance /= 2) {
        int middle = low + distance;
        bool upper = f.rank >= middle;
        int peer = fold_back(&f, upper ? f.rank - distance : f.rank + distance);
        MPI_Count a = first_of(counts, &f, low), b = first_of(counts, &f, middle),
                  c = first_of(counts, &f, high);
        MPI_Count kept = upper ? b : a, n_kept = upper ? c - b : b - a, given = upper ? a : b;
        schedule_sendrecv(s, datatype_at(type, acc, given), upper ? b - a : c - b, type, peer,
                          datatype_at(type, received, kept), n_kept, type, peer);
        schedule_reduce(s, datatype_at(type, received, kept), datatype_at(type, acc, kept), n_kept, type, op);
        if (upper)
            low = middle;
        else
            high = middle;
    }
    if (partner >= 0 && blocks_count(counts, partner) > 0)
        schedule_send(s, datatype_at(type, acc, blocks_first(counts, partner)), blocks_count(counts, partner),
                      type, partner);
    MPI_Count n = blocks_count(counts, rank);
    schedule_copy(s, datatype_at(type, acc, blocks_first(counts, rank)), n, type, recv, n, type);
}

/* Pairwise: in round k each rank gets its block from the rank k below. (p - 1) alpha + (p - 1)/p n (beta +
 * gamma) for any p, no folding and little memory. Commutative operations only. */
void reduce_scatter_pairwise(struct schedule *s, const void *send, void *recv, const struct blocks *counts,
                             struct op *op)
{
    int rank = s->view.rank, size = s->view.size;
    struct datatype *type = counts->type;
    MPI_Count n = blocks_count(counts, rank);
    void *acc =
        send == recv ? schedule_temp_typed(s, n, type) : recv; /* in place: block 0 is still to be sent */
    void *received = schedule_temp_typed(s, n, type);
    schedule_copy(s, datatype_at(type, send, blocks_first(counts, rank)), n, type, acc, n, type);
    for (int k = 1; k < size; k++) {
        int to = (rank + k) % size, from = (rank - k + size) % size;
        MPI_Count n_out = blocks_count(counts, to);
        schedule_sendrecv(s, datatype_at(type, send, blocks_first(counts, to)), n_out, type, n_out ? to : -1,
                          received, n, type, n ? from : -1);
        schedule_reduce(s, received, acc, n, type, op);
    }
    schedule_copy(s, acc, n, type, recv, n, type);
}

/* For operations that do not commute: an ordered reduction to rank 0, then a scatter. */
static void reduce_then_scatter(struct schedule *s, const void *send, void *recv, const struct blocks *counts,
                                struct op *op)
{
    int size = s->view.size, rank = s->view.rank;
    MPI_Count count = blocks_first(counts, size);
    struct blocks whole = *counts;
    if (rank == 0) {
        whole.buf = schedule_temp_typed(s, count, counts->type);
        if (s->broken)
            return;
    }
    coll_reduce(s, send, whole.buf, count, counts->type, op, 0);
    coll_scatter(s, &whole, !counts->counts.base, recv, blocks_count(counts, rank), counts->type, 0);
}

void coll_reduce_scatter(struct schedule *s, const void *send, void *recv, const struct blocks *counts,
                         struct op *op)
{
    int size = s->view.size;
    MPI_Count count = blocks_first(counts, size);
    if (count == 0)
        return;
    if (send == MPI_IN_PLACE)
        send = recv;
    if (size == 1) {
        schedule_copy(s, send, count, counts->type, recv, count, counts->type);
        return;
    }
    switch (select_algorithm(SELECT_REDUCE_SCATTER, s, count * counts->type->size, op->commutative)) {
    case REDUCE_SCATTER_NODES:
        hierarchy_reduce_scatter(s, hierarchy_nodes(s), send, recv, counts, op);
        break;
    case REDUCE_SCATTER_NETWORKS:
        hierarchy_reduce_scatter(s, hierarchy_networks(s), send, recv, counts, op);
        break;
    case REDUCE_SCATTER_SHARED:
        shared_reduce_scatter(s, send, recv, counts, op);
        break;
    case REDUCE_SCATTER_HALVING:
        reduce_scatter_halving(s, send, recv, counts, op);
        break;
    case REDUCE_SCATTER_PAIRWISE:
        reduce_scatter_pairwise(s, send, recv, counts, op);
        break;
    default:
        reduce_then_scatter(s, send, recv, counts, op);
        break;
    }
}
