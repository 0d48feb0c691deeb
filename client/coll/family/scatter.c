/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Scatter and MPI_Scatterv: choice. */
#include "client/coll/algorithms/algorithms.h"
#include "client/coll/choice/select.h"
#include "client/coll/hierarchy/hierarchy.h"
#include "client/coll/node/node.h"

void coll_scatter(struct schedule *s, const struct blocks *send, bool uniform, struct buffer recv,
                  int root)
{
    MPI_Count n_bytes = 0;
    if (uniform) {
        n_bytes = recv.base == MPI_IN_PLACE ? blocks_bytes(send, root) : buffer_size(recv);
        if (n_bytes == 0)
            return;
    }
    switch (select_algorithm(SELECT_SCATTER, s, n_bytes, uniform)) {
    case SCATTER_NODES:
        hierarchy_scatter(s, hierarchy_nodes(s), send, recv, root);
        break;
    case SCATTER_NETWORKS:
        hierarchy_scatter(s, hierarchy_networks(s), send, recv, root);
        break;
    case SCATTER_SHARED:
        shared_scatter(s, send, uniform, recv, root);
        break;
    case SCATTER_BINOMIAL:
        scatter_binomial(s, send, recv, root);
        break;
    default:
        scatter_linear(s, send, recv, root);
        break;
    }
}
