/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Bcast: choice. */
#include "client/coll/algorithms/algorithms.h"
#include "client/coll/choice/select.h"
#include "client/coll/hierarchy/hierarchy.h"
#include "client/coll/node/node.h"

void coll_bcast(struct schedule *s, struct buffer buf, int root)
{
    MPI_Count n_bytes = buffer_size(buf);
    if (s->view.size == 1 || n_bytes == 0)
        return;
    switch (select_algorithm(SELECT_BCAST, s, n_bytes, true)) {
    case BCAST_NODES:
        hierarchy_bcast(s, hierarchy_nodes(s), buf, root);
        break;
    case BCAST_NETWORKS:
        hierarchy_bcast(s, hierarchy_networks(s), buf, root);
        break;
    case BCAST_SHARED:
        shared_bcast(s, buf, root);
        break;
    case BCAST_SCATTER_ALLGATHER:
        bcast_scatter_allgather(s, buf, root);
        break;
    case BCAST_PIPELINE:
        bcast_pipeline(s, buf, root);
        break;
    default:
        bcast_binomial(s, buf, root);
        break;
    }
}
