/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Reduce: choice. */
#include "client/coll/algorithms/algorithms.h"
#include "client/coll/choice/select.h"
#include "client/coll/hierarchy/hierarchy.h"
#include "client/coll/node/node.h"

void coll_reduce(struct schedule *s, const void *send, void *recv, MPI_Count count,
                 struct datatype *type, struct op *op, int root)
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
