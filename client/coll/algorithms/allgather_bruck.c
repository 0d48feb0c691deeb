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
    schedule_copy(s, blocks_at(recv, rank), blocks_count(recv, rank), recv->type, packed, at[1],
                  coll_byte());
    for (int have = 1; have < size; have *= 2) {
        int n = have < size - have ? have : size - have;
        schedule_sendrecv(s, packed, at[n], coll_byte(), (rank - have + size) % size,
                          packed + at[have], at[have + n] - at[have], coll_byte(),
                          (rank + have) % size);
    }
    for (int i = 1; i < size; i++) {
        int block = (rank + i) % size;
        schedule_copy(s, packed + at[i], at[i + 1] - at[i], coll_byte(), blocks_at(recv, block),
                      blocks_count(recv, block), recv->type);
    }
}
