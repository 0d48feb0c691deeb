/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Scatter of short blocks of one size: a binomial tree.
 *
 * The mirror image of gather's binomial tree. log2 p alpha + (p - 1) n beta.
 */
#include "client/coll/algorithms/algorithms.h"

void scatter_binomial(struct schedule *s, const struct blocks *send, struct buffer recv, int root)
{
    int size = s->view.size, relative = (s->view.rank - root + size) % size;
    bool in_place = recv.base == MPI_IN_PLACE; /* only at the root */
    MPI_Count block_bytes = in_place ? blocks_bytes(send, root) : buffer_size(recv);
    int mask = 1;
    while (mask < size && !(relative & mask))
        mask *= 2;
    int n_blocks = relative + mask < size ? mask : size - relative;
    if (relative && n_blocks == 1) {
        schedule_recv(s, recv, (relative - mask + root) % size);
        return;
    }
    unsigned char *packed = schedule_temp(s, (size_t)(n_blocks * block_bytes));
    if (relative) {
        schedule_recv(s, buffer_of_bytes(packed, n_blocks * block_bytes),
                      (relative - mask + root) % size);
    } else {
        int above = size - root - 1;
        if (above > 0)
            schedule_copy(s, buffer_of(blocks_at(send, root + 1), above * send->count, send->type),
                          buffer_of_bytes(packed + block_bytes, above * block_bytes));
        if (root > 0)
            schedule_copy(s, buffer_of(send->buf, root * send->count, send->type),
                          buffer_of_bytes(packed + (above + 1) * block_bytes, root * block_bytes));
    }
    for (mask /= 2; mask > 0; mask /= 2) {
        if (relative + mask >= size)
            continue;
        int n = relative + 2 * mask < size ? mask : size - relative - mask;
        schedule_isend(s, buffer_of_bytes(packed + mask * block_bytes, n * block_bytes),
                       (relative + mask + root) % size);
    }
    if (relative)
        schedule_copy(s, buffer_of_bytes(packed, block_bytes), recv);
    else if (!in_place)
        schedule_copy(s, buffer_of(blocks_at(send, root), send->count, send->type), recv);
    schedule_wait(s);
}
