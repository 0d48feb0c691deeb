/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Scatter and MPI_Scatterv of long blocks: from the root to everybody.
 *
 * The root sends to every rank. (p - 1) alpha + n beta at the root; no byte is moved twice.
 */
#include "client/coll/algorithms/algorithms.h"

#define WINDOW 64 /* sends of the root under way at a time, as in gather_linear.c */

void scatter_linear(struct schedule *s, const struct blocks *send, struct buffer recv, int root)
{
    int rank = s->view.rank, size = s->view.size;
    if (rank != root) {
        if (buffer_size(recv) > 0)
            schedule_recv(s, recv, root);
        return;
    }
    int under_way = 0;
    for (int k = 1; k < size; k++) {
        int to = (root + k) % size;
        if (blocks_bytes(send, to) == 0)
            continue;
        schedule_isend(s, blocks_buffer(send, to), to);
        if (++under_way % WINDOW == 0)
            schedule_wait(s);
    }
    if (recv.base != MPI_IN_PLACE)
        schedule_copy(s, blocks_buffer(send, root), recv);
    schedule_wait(s);
}
