/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Barrier: choice. */
#include "client/coll/algorithms/algorithms.h"
#include "client/coll/choice/select.h"
#include "client/coll/hierarchy/hierarchy.h"
#include "client/coll/node/node.h"

void coll_barrier(struct schedule *s)
{
    if (s->view.size == 1)
        return;
    switch (select_algorithm(SELECT_BARRIER, s, 0, true)) {
    case BARRIER_NODES:
        hierarchy_barrier(s, hierarchy_nodes(s));
        break;
    case BARRIER_NETWORKS:
        hierarchy_barrier(s, hierarchy_networks(s));
        break;
    case BARRIER_SHARED:
        shared_barrier(s);
        break;
    default:
        barrier_dissemination(s);
        break;
    }
}
