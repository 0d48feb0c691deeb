/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Barrier: dissemination (Hensgen, Finkel, Manber 1988).
 *
 * In round k every rank tells the one 2^k above it and hears from the one 2^k below.
 * ceil(log2 p) rounds, no root, for any p.
 */
#include "client/coll/algorithms/algorithms.h"

void barrier_dissemination(struct schedule *s)
{
    int rank = s->view.rank, size = s->view.size;
    for (int distance = 1; distance < size; distance *= 2)
        schedule_sendrecv(s, buffer_of_bytes(NULL, 0), (rank + distance) % size,
                          buffer_of_bytes(NULL, 0), (rank - distance + size) % size);
}
