/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Gather of short blocks of one size: a binomial tree.
 *
 * Over ranks relative to the root, a rank collects the blocks of its subtree as packed bytes, in
 * order, and passes them up in one message. log2 p alpha + (p - 1) n beta.
 */
#include "client/coll/algorithms/algorithms.h"

void gather_binomial(struct schedule *s, struct buffer send, const struct blocks *recv, int root)
{
    int size = s->view.size, relative = (s->view.rank - root + size) % size;
    bool in_place = send.base == MPI_IN_PLACE; /* only at the root */
    MPI_Count block_bytes = in_place ? blocks_bytes(recv, root) : buffer_size(send);
    int mask = 1;
    while (mask < size && !(relative & mask))
        mask *= 2;
    int n_blocks = relative + mask < size ? mask : size - relative;
    if (relative && n_blocks == 1) {
        schedule_send(s, send, (relative - mask + root) % size);
        return;
    }
    unsigned char *packed = schedule_temp(s, (size_t)(n_blocks * block_bytes));
    for (int child = 1; child < mask && relative + child < size; child *= 2) {
        int n = relative + 2 * child < size ? child : size - relative - child;
        schedule_irecv(s, buffer_of_bytes(packed + child * block_bytes, n * block_bytes),
                       (relative + child + root) % size);
    }
    if (relative) {
        schedule_copy(s, send, buffer_of_bytes(packed, block_bytes));
        schedule_wait(s);
        schedule_send(s, buffer_of_bytes(packed, n_blocks * block_bytes),
                      (relative - mask + root) % size);
        return;
    }
    if (!in_place)
        schedule_copy(s, send, buffer_of(blocks_at(recv, root), recv->count, recv->type));
    schedule_wait(s);
    int above = size - root - 1; /* ranks root+1 .. size-1 lie together, and so do 0 .. root-1 */
    if (above > 0)
        schedule_copy(s, buffer_of_bytes(packed + block_bytes, above * block_bytes),
                      buffer_of(blocks_at(recv, root + 1), above * recv->count, recv->type));
    if (root > 0)
        schedule_copy(s, buffer_of_bytes(packed + (above + 1) * block_bytes, root * block_bytes),
                      buffer_of(recv->buf, root * recv->count, recv->type));
}
