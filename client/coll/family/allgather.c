/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Allgather and MPI_Allgatherv: choice. Every rank knows every block's size. */
#include "client/coll/algorithms/algorithms.h"
#include "client/coll/choice/select.h"
#include "client/coll/hierarchy/hierarchy.h"
#include "client/coll/node/node.h"

void coll_allgather(struct schedule *s, struct buffer send, const struct blocks *recv)
{
    int rank = s->view.rank, size = s->view.size;
    if (send.base != MPI_IN_PLACE)
        schedule_copy(s, send, blocks_buffer(recv, rank));
    MPI_Count total_bytes = blocks_first(recv, size) * recv->type->size;
    if (size == 1 || total_bytes == 0)
        return;
    bool regular = !recv->counts.base;
    switch (select_algorithm(SELECT_ALLGATHER, s, total_bytes, regular)) {
    case ALLGATHER_NODES:
        hierarchy_allgather(s, hierarchy_nodes(s), recv);
        break;
    case ALLGATHER_NETWORKS:
        hierarchy_allgather(s, hierarchy_networks(s), recv);
        break;
    case ALLGATHER_SHARED:
        shared_allgather(s, recv);
        break;
    case ALLGATHER_RECURSIVE_DOUBLING:
        allgather_recursive_doubling(s, recv);
        break;
    case ALLGATHER_BRUCK:
        allgather_bruck(s, recv);
        break;
    default:
        allgather_ring(s, recv);
        break;
    }
}
