/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Reduce_scatter and MPI_Reduce_scatter_block: choice. */
#include "client/coll/algorithms/algorithms.h"
#include "client/coll/choice/select.h"
#include "client/coll/hierarchy/hierarchy.h"
#include "client/coll/node/node.h"

void coll_reduce_scatter(struct schedule *s, const void *send, void *recv,
                         const struct blocks *counts, struct op *op)
{
    int size = s->view.size;
    MPI_Count count = blocks_first(counts, size);
    if (count == 0)
        return;
    if (send == MPI_IN_PLACE)
        send = recv;
    if (size == 1) {
        schedule_copy(s, buffer_of(send, count, counts->type),
                      buffer_of(recv, count, counts->type));
        return;
    }
    switch (
        select_algorithm(SELECT_REDUCE_SCATTER, s, count * counts->type->size, op->commutative)) {
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
        reduce_scatter_by_root(s, send, recv, counts, op);
        break;
    }
}
