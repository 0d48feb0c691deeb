/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Allreduce: choice. */
#include "client/coll/algorithms/algorithms.h"
#include "client/coll/choice/select.h"
#include "client/coll/hierarchy/hierarchy.h"
#include "client/coll/node/node.h"

void coll_allreduce(struct schedule *s, const void *send, void *recv, MPI_Count count,
                    struct datatype *type, struct op *op)
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
    switch (select_algorithm(SELECT_ALLREDUCE, s, n_bytes, op->commutative)) {
    case ALLREDUCE_NODES:
        hierarchy_allreduce(s, hierarchy_nodes(s), send, recv, count, type, op);
        break;
    case ALLREDUCE_NETWORKS:
        hierarchy_allreduce(s, hierarchy_networks(s), send, recv, count, type, op);
        break;
    case ALLREDUCE_SHARED:
        shared_allreduce(s, send, recv, count, type, op);
        break;
    case ALLREDUCE_RABENSEIFNER:
        allreduce_rabenseifner(s, send, recv, count, type, op);
        break;
    case ALLREDUCE_RING:
        allreduce_ring(s, send, recv, count, type, op);
        break;
    default:
        allreduce_recursive_doubling(s, send, recv, count, type, op);
        break;
    }
}
