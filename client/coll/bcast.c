/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Bcast: choice, and the binomial tree for short messages. */
#include "client/coll/algorithms.h"
#include "client/coll/hierarchy.h"
#include "client/coll/select.h"
#include "client/coll/shared.h"

/* Binomial tree: the rank that differs from its parent in the lowest set bit receives from it and serves the
 * subtrees below that bit, largest first. ceil(log2 p) (alpha + n beta). */
void bcast_binomial(struct schedule *s, void *buf, MPI_Count count, struct datatype *type, int root)
{
    int size = s->view.size;
    int relative = (s->view.rank - root + size) % size;
    int mask = 1;
    while (mask < size && !(relative & mask))
        mask *= 2;
    if (relative)
        schedule_recv(s, buf, count, type, (relative - mask + root) % size);
    mask /= 2;
    if (mask == 1 && relative + 1 < size) { /* one child: no request */
        schedule_send(s, buf, count, type, (relative + 1 + root) % size);
        return;
    }
    for (; mask > 0; mask /= 2)
        if (relative + mask < size)
            schedule_isend(s, buf, count, type, (relative + mask + root) % size);
    schedule_wait(s);
}

void coll_bcast(struct schedule *s, void *buf, MPI_Count count, struct datatype *type, int root)
{
    MPI_Count n_bytes = count * type->size;
    if (s->view.size == 1 || n_bytes == 0)
        return;
    switch (select_algorithm(SELECT_BCAST, s, n_bytes, true)) {
    case BCAST_NODES:
        hierarchy_bcast(s, hierarchy_nodes(s), buf, count, type, root);
        break;
    case BCAST_NETWORKS:
        hierarchy_bcast(s, hierarchy_networks(s), buf, count, type, root);
        break;
    case BCAST_SHARED:
        shared_bcast(s, buf, count, type, root);
        break;
    case BCAST_SCATTER_ALLGATHER:
        bcast_scatter_allgather(s, buf, count, type, root);
        break;
    case BCAST_PIPELINE:
        bcast_pipeline(s, buf, count, type, root);
        break;
    default:
        bcast_binomial(s, buf, count, type, root);
        break;
    }
}
