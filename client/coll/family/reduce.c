/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Reduce: choice. */
#include "client/coll/algorithms/algorithms.h"
#include "client/coll/choice/select.h"
#include "client/coll/hierarchy/hierarchy.h"
#include "client/coll/node/node.h"

void coll_reduce(struct schedule *s, const void *send, struct buffer recv, struct op *op, int root)
{
    MPI_Count n_bytes = buffer_size(recv);
    if (recv.count == 0)
        return;
    if (send == MPI_IN_PLACE)
        send = recv.base;
    if (s->view.size == 1) {
        schedule_copy(s, buffer_like(recv, send), recv);
        return;
    }
    switch (select_algorithm(SELECT_REDUCE, s, n_bytes, op->commutative)) {
    case REDUCE_NODES:
        hierarchy_reduce(s, hierarchy_nodes(s), send, recv, op, root);
        break;
    case REDUCE_NETWORKS:
        hierarchy_reduce(s, hierarchy_networks(s), send, recv, op, root);
        break;
    case REDUCE_SHARED:
        shared_reduce(s, send, recv, op, root);
        break;
    case REDUCE_RABENSEIFNER:
        reduce_rabenseifner(s, send, recv, op, root);
        break;
    default:
        reduce_binomial(s, send, recv, op, root);
        break;
    }
}
