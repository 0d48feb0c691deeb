/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Allgather and MPI_Allgatherv of long blocks: a ring (Chan, Heimlich, Purkayastha, van de
 * Geijn 2007).
 *
 * Each rank passes on to its upper neighbour what it received last. (p - 1)(alpha + n beta), no
 * copy, and only neighbours talk.
 */
#include "client/coll/algorithms/algorithms.h"

void allgather_ring(struct schedule *s, const struct blocks *recv)
{
    int rank = s->view.rank, size = s->view.size;
    int to = (rank + 1) % size, from = (rank - 1 + size) % size;
    for (int k = 0; k < size - 1; k++) {
        int out = (rank - k + size) % size, in = (rank - k - 1 + size) % size;
        schedule_sendrecv(s, blocks_buffer(recv, out), to, blocks_buffer(recv, in), from);
    }
}
