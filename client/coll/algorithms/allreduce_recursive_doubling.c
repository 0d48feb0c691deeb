/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Allreduce of short operands: recursive doubling (Thakur, Rabenseifner, Gropp 2005).
 *
 * In round k the ranks that differ in bit k exchange what they have and both combine it, always
 * with the lower ranks' operand on the left, so that all ranks compute the same bits. log2 p (alpha
 * + n beta + n gamma). The combined operand lies in the buffer of the higher half; the two buffers
 * swap roles instead of being copied.
 */
#include "client/coll/algorithms/algorithms.h"
#include "client/coll/algorithms/fold.h"

void allreduce_recursive_doubling(struct schedule *s, const void *send, void *recv, MPI_Count count,
                                  struct datatype *type, struct op *op)
{
    int rank = s->view.rank;
    struct fold f = fold_of(s);
    int partner = fold_partner(&f, rank);
    if (f.rank < 0) {
        schedule_send(s, send, count, type, partner);
        schedule_recv(s, recv, count, type, partner);
        return;
    }
    void *acc = recv, *other = schedule_temp_typed(s, count, type);
    schedule_copy(s, send, count, type, acc, count, type);
    if (partner >= 0) {
        schedule_recv(s, other, count, type, partner);
        schedule_reduce(s, other, acc, count, type, op);
    }
    for (int mask = 1; mask < f.pof2; mask *= 2) {
        int peer = fold_back(&f, f.rank ^ mask);
        schedule_sendrecv(s, acc, count, type, peer, other, count, type, peer);
        if (peer < rank) {
            schedule_reduce(s, other, acc, count, type, op);
        } else {
            schedule_reduce(s, acc, other, count, type, op);
            void *swap = acc;
            acc = other;
            other = swap;
        }
    }
    if (partner >= 0)
        schedule_send(s, acc, count, type, partner);
    schedule_copy(s, acc, count, type, recv, count, type);
}
