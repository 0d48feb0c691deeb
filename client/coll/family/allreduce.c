/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Allreduce: choice. */
#include "client/coll/algorithms/algorithms.h"
#include "client/coll/choice/select.h"
#include "client/coll/hierarchy/hierarchy.h"
#include "client/coll/node/node.h"

void coll_allreduce(struct schedule *s, const void *send, struct buffer recv, struct op *op)
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
    switch (select_algorithm(SELECT_ALLREDUCE, s, n_bytes, op->commutative)) {
    case ALLREDUCE_NODES:
        hierarchy_allreduce(s, hierarchy_nodes(s), send, recv, op);
        break;
    case ALLREDUCE_NETWORKS:
        hierarchy_allreduce(s, hierarchy_networks(s), send, recv, op);
        break;
    case ALLREDUCE_SHARED:
        shared_allreduce(s, send, recv, op);
        break;
    case ALLREDUCE_RABENSEIFNER:
        allreduce_rabenseifner(s, send, recv, op);
        break;
    case ALLREDUCE_RING:
        allreduce_ring(s, send, recv, op);
        break;
    default:
        allreduce_recursive_doubling(s, send, recv, op);
        break;
    }
}
