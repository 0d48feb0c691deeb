/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Gather and MPI_Gatherv: choice. */
#include "client/coll/algorithms/algorithms.h"
#include "client/coll/choice/select.h"
#include "client/coll/hierarchy/hierarchy.h"
#include "client/coll/node/node.h"

void coll_gather(struct schedule *s, struct buffer send, const struct blocks *recv, bool uniform,
                 int root)
{
    MPI_Count n_bytes = 0;
    if (uniform) {
        n_bytes = send.base == MPI_IN_PLACE ? blocks_bytes(recv, root) : buffer_size(send);
        if (n_bytes == 0)
            return;
    }
    switch (select_algorithm(SELECT_GATHER, s, n_bytes, uniform)) {
    case GATHER_NODES:
        hierarchy_gather(s, hierarchy_nodes(s), send, recv, root);
        break;
    case GATHER_NETWORKS:
        hierarchy_gather(s, hierarchy_networks(s), send, recv, root);
        break;
    case GATHER_SHARED:
        shared_gather(s, send, recv, uniform, root);
        break;
    case GATHER_BINOMIAL:
        gather_binomial(s, send, recv, root);
        break;
    default:
        gather_linear(s, send, recv, root);
        break;
    }
}
