/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Allgather of short blocks: recursive doubling (Thakur, Rabenseifner, Gropp 2005).
 *
 * For powers of two: in round k a rank exchanges the 2^k blocks it has with the rank whose number
 * differs in bit k. log2 p alpha + (p - 1) n beta. Regular blocks only.
 */
#include "client/coll/algorithms/algorithms.h"

void allgather_recursive_doubling(struct schedule *s, const struct blocks *recv)
{
    int rank = s->view.rank, size = s->view.size;
    for (int mask = 1; mask < size; mask *= 2) {
        int peer = rank ^ mask, mine = rank & ~(mask - 1), theirs = peer & ~(mask - 1);
        schedule_sendrecv(s, buffer_of(blocks_at(recv, mine), mask * recv->count, recv->type), peer,
                          buffer_of(blocks_at(recv, theirs), mask * recv->count, recv->type), peer);
    }
}
