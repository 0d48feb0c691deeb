/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Scatter of short blocks of one size: a binomial tree.
 *
 * The mirror image of gather's binomial tree. log2 p alpha + (p - 1) n beta.
 */
#include "client/coll/algorithms/algorithms.h"

void scatter_binomial(struct schedule *s, const struct blocks *send, void *recv,
                      MPI_Count recv_count, struct datatype *recv_type, int root)
{
    int size = s->view.size, relative = (s->view.rank - root + size) % size;
    bool in_place = recv == MPI_IN_PLACE; /* only at the root */
    MPI_Count block_bytes = in_place ? blocks_bytes(send, root) : recv_count * recv_type->size;
    int mask = 1;
    while (mask < size && !(relative & mask))
        mask *= 2;
    int n_blocks = relative + mask < size ? mask : size - relative;
    if (relative && n_blocks == 1) {
        schedule_recv(s, recv, recv_count, recv_type, (relative - mask + root) % size);
        return;
    }
    unsigned char *packed = schedule_temp(s, (size_t)(n_blocks * block_bytes));
    if (relative) {
        schedule_recv(s, packed, n_blocks * block_bytes, coll_byte(),
                      (relative - mask + root) % size);
    } else {
        int above = size - root - 1;
        if (above > 0)
            schedule_copy(s, blocks_at(send, root + 1), above * send->count, send->type,
                          packed + block_bytes, above * block_bytes, coll_byte());
        if (root > 0)
            schedule_copy(s, send->buf, root * send->count, send->type,
                          packed + (above + 1) * block_bytes, root * block_bytes, coll_byte());
    }
    for (mask /= 2; mask > 0; mask /= 2) {
        if (relative + mask >= size)
            continue;
        int n = relative + 2 * mask < size ? mask : size - relative - mask;
        schedule_isend(s, packed + mask * block_bytes, n * block_bytes, coll_byte(),
                       (relative + mask + root) % size);
    }
    if (relative)
        schedule_copy(s, packed, block_bytes, coll_byte(), recv, recv_count, recv_type);
    else if (!in_place)
        schedule_copy(s, blocks_at(send, root), send->count, send->type, recv, recv_count,
                      recv_type);
    schedule_wait(s);
}
