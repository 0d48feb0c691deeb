/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Reduce_scatter and MPI_Reduce_scatter_block of long operands: pairwise exchange (Thakur,
 * Rabenseifner, Gropp 2005).
 *
 * In round k each rank gets its block from the rank k below. (p - 1) alpha + (p - 1)/p n (beta +
 * gamma) for any p, no folding and little memory. Commutative operations only.
 */
#include "client/coll/algorithms/algorithms.h"

void reduce_scatter_pairwise(struct schedule *s, const void *send, void *recv,
                             const struct blocks *counts, struct op *op)
{
    int rank = s->view.rank, size = s->view.size;
    struct datatype *type = counts->type;
    MPI_Count n = blocks_count(counts, rank);
    void *acc = send == recv ? schedule_temp_typed(s, n, type)
                             : recv; /* in place: block 0 is still to be sent */
    void *received = schedule_temp_typed(s, n, type);
    schedule_copy(s, buffer_of(datatype_at(type, send, blocks_first(counts, rank)), n, type),
                  buffer_of(acc, n, type));
    for (int k = 1; k < size; k++) {
        int to = (rank + k) % size, from = (rank - k + size) % size;
        MPI_Count n_out = blocks_count(counts, to);
        schedule_sendrecv(s,
                          buffer_of(datatype_at(type, send, blocks_first(counts, to)), n_out, type),
                          n_out ? to : -1, buffer_of(received, n, type), n ? from : -1);
        schedule_reduce(s, received, buffer_of(acc, n, type), op);
    }
    schedule_copy(s, buffer_of(acc, n, type), buffer_of(recv, n, type));
}
