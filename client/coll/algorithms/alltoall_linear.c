/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Alltoall, v and w, of middle blocks: everything at once.
 *
 * Everything posted, nearest ranks first, in windows. (p - 1)(alpha + n beta) with all transfers
 * overlapping. Empty blocks of the v and w forms send nothing.
 */
#include "client/coll/algorithms/own_block.h"

/* Transfers under way at a time: the match queues stay short, every neighbour stays busy. */
#define WINDOW 32

void alltoall_linear(struct schedule *s, const struct blocks *send, const struct blocks *recv)
{
    int rank = s->view.rank, size = s->view.size;
    for (int start = 1; start < size; start += WINDOW) {
        int end = start + WINDOW < size ? start + WINDOW : size;
        for (int k = start; k < end; k++) {
            int from = (rank - k + size) % size;
            if (blocks_bytes(recv, from) > 0)
                schedule_irecv(s, blocks_buffer(recv, from), from);
        }
        for (int k = start; k < end; k++) {
            int to = (rank + k) % size;
            if (blocks_bytes(send, to) > 0)
                schedule_isend(s, blocks_buffer(send, to), to);
        }
        if (start == 1)
            own_block_copy(s, send, recv);
        schedule_wait(s);
    }
    if (size == 1)
        own_block_copy(s, send, recv);
}
