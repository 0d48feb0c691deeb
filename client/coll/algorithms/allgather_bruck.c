/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Allgather and MPI_Allgatherv of short blocks: Bruck's algorithm (Bruck et al. 1997).
 *
 * In round k a rank passes all it has (at most 2^k blocks, its own first) to the rank 2^k below.
 * ceil(log2 p) alpha + (p - 1) n beta and two copies, for any p and any block sizes.
 */
#include "client/coll/algorithms/algorithms.h"

void allgather_bruck(struct schedule *s, const struct blocks *recv)
{
    int rank = s->view.rank, size = s->view.size;
    /* at[i]: where block rank + i begins among the packed bytes */
    MPI_Count *at = schedule_temp(s, (size_t)(size + 1) * sizeof(MPI_Count));
    if (!at)
        return;
    at[0] = 0;
    for (int i = 0; i < size; i++)
        at[i + 1] = at[i] + blocks_bytes(recv, (rank + i) % size);
    unsigned char *packed = schedule_temp(s, (size_t)at[size]);
    schedule_copy(s, blocks_buffer(recv, rank), buffer_of_bytes(packed, at[1]));
    for (int have = 1; have < size; have *= 2) {
        int n = have < size - have ? have : size - have;
        schedule_sendrecv(s, buffer_of_bytes(packed, at[n]), (rank - have + size) % size,
                          buffer_of_bytes(packed + at[have], at[have + n] - at[have]),
                          (rank + have) % size);
    }
    for (int i = 1; i < size; i++) {
        int block = (rank + i) % size;
        schedule_copy(s, buffer_of_bytes(packed + at[i], at[i + 1] - at[i]),
                      blocks_buffer(recv, block));
    }
}
