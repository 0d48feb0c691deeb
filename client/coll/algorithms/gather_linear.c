/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Gather and MPI_Gatherv of long blocks: everybody to the root.
 *
 * Every rank sends to the root. (p - 1) alpha + n beta at the root; no byte is moved twice.
 */
#include "client/coll/algorithms/algorithms.h"

/* Receives of the root under way at a time: enough to keep every sender busy, few enough for the
 * match queue. */
#define WINDOW 64

void gather_linear(struct schedule *s, struct buffer send, const struct blocks *recv, int root)
{
    int rank = s->view.rank, size = s->view.size;
    if (rank != root) {
        if (buffer_size(send) > 0)
            schedule_send(s, send, root);
        return;
    }
    int under_way = 0;
    for (int k = 1; k < size; k++) {
        int from = (root + k) % size;
        if (blocks_bytes(recv, from) == 0)
            continue;
        schedule_irecv(s, blocks_buffer(recv, from), from);
        if (++under_way % WINDOW == 0)
            schedule_wait(s);
    }
    if (send.base != MPI_IN_PLACE)
        schedule_copy(s, send, blocks_buffer(recv, root));
    schedule_wait(s);
}
