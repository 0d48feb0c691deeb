/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Barrier: dissemination. */
#include "client/coll/coll.h"
#include "client/coll/hierarchy.h"
#include "client/coll/select.h"
#include "client/coll/shared.h"

/* Dissemination (Hensgen, Finkel, Manber 1988): in round k every rank tells the one 2^k above it and hears
 * from the one 2^k below. ceil(log2 p) rounds, no root, for any p. */
static void barrier_dissemination(struct schedule *s)
{
    int rank = s->view.rank, size = s->view.size;
    for (int distance = 1; distance < size; distance *= 2)
        schedule_sendrecv(s, NULL, 0, coll_byte(), (rank + distance) % size, NULL, 0, coll_byte(),
                          (rank - distance + size) % size);
}

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
