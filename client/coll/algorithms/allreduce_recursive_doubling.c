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

void allreduce_recursive_doubling(struct schedule *s, const void *send, struct buffer recv,
                                  struct op *op)
{
    int rank = s->view.rank;
    struct fold f = fold_of(s);
    int partner = fold_partner(&f, rank);
    if (f.rank < 0) {
        schedule_send(s, buffer_like(recv, send), partner);
        schedule_recv(s, recv, partner);
        return;
    }
    void *acc = recv.base, *other = schedule_temp_typed(s, recv.count, recv.type);
    schedule_copy(s, buffer_like(recv, send), buffer_like(recv, acc));
    if (partner >= 0) {
        schedule_recv(s, buffer_like(recv, other), partner);
        schedule_reduce(s, other, buffer_like(recv, acc), op);
    }
    for (int mask = 1; mask < f.pof2; mask *= 2) {
        int peer = fold_back(&f, f.rank ^ mask);
        schedule_sendrecv(s, buffer_like(recv, acc), peer, buffer_like(recv, other), peer);
        if (peer < rank) {
            schedule_reduce(s, other, buffer_like(recv, acc), op);
        } else {
            schedule_reduce(s, acc, buffer_like(recv, other), op);
            void *swap = acc;
            acc = other;
            other = swap;
        }
    }
    if (partner >= 0)
        schedule_send(s, buffer_like(recv, acc), partner);
    schedule_copy(s, buffer_like(recv, acc), recv);
}
