/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Alltoall of tiny blocks: Bruck's algorithm (Bruck et al. 1997).
 *
 * Blocks whose distance has bit k set travel 2^k ranks in round k. log2 p alpha + (p/2) log2 p n
 * beta: each byte moves several times, so for tiny blocks only. Regular blocks only.
 */
#include "client/coll/algorithms/algorithms.h"

void alltoall_bruck(struct schedule *s, const struct blocks *send, const struct blocks *recv)
{
    int rank = s->view.rank, size = s->view.size;
    MPI_Count n = recv->count * recv->type->size;
    unsigned char *rotated = schedule_temp(s, (size_t)(size * n));
    unsigned char *out = schedule_temp(s, (size_t)((size + 1) / 2 * n));
    unsigned char *in = schedule_temp(s, (size_t)((size + 1) / 2 * n));
    if (s->broken)
        return;
    /* rotated[i]: the block for the rank i above */
    schedule_copy(s, buffer_of(blocks_at(send, rank), (size - rank) * send->count, send->type),
                  buffer_of_bytes(rotated, (size - rank) * n));
    if (rank > 0)
        schedule_copy(s, buffer_of(send->buf, rank * send->count, send->type),
                      buffer_of_bytes(rotated + (size - rank) * n, rank * n));
    for (int bit = 1; bit < size; bit *= 2) {
        MPI_Count n_out = 0;
        for (int i = 0; i < size; i++)
            if (i & bit)
                schedule_copy(s, buffer_of_bytes(rotated + i * n, n),
                              buffer_of_bytes(out + n_out++ * n, n));
        schedule_sendrecv(s, buffer_of_bytes(out, n_out * n), (rank + bit) % size,
                          buffer_of_bytes(in, n_out * n), (rank - bit + size) % size);
        n_out = 0;
        for (int i = 0; i < size; i++)
            if (i & bit)
                schedule_copy(s, buffer_of_bytes(in + n_out++ * n, n),
                              buffer_of_bytes(rotated + i * n, n));
    }
    for (int i = 0; i < size; i++) {
        int from = (rank - i + size) % size;
        schedule_copy(s, buffer_of_bytes(rotated + i * n, n),
                      buffer_of(blocks_at(recv, from), recv->count, recv->type));
    }
}
