/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Allreduce of very long operands: reduce-scatter and allgather on a ring (Patarasuk and Yuan
 * 2009).
 *
 * 2 (p - 1) alpha + 2 (p - 1)/p n beta + (p - 1)/p n gamma for any p, and only neighbours talk. The
 * operand of each block is combined in the order of the ring: for commutative operations only.
 */
#include "client/coll/algorithms/algorithms.h"

/* Blocks of count / size elements; the first count % size blocks have one more. */
static MPI_Count first_of(MPI_Count count, int size, int i)
{
    MPI_Count longer = count % size;
    return i * (count / size) + (i < longer ? i : longer);
}

static MPI_Count length_of(MPI_Count count, int size, int i)
{
    return count / size + (i < count % size);
}

void allreduce_ring(struct schedule *s, const void *send, void *recv, MPI_Count count,
                    struct datatype *type, struct op *op)
{
    int rank = s->view.rank, size = s->view.size;
    int to = (rank + 1) % size, from = (rank - 1 + size) % size;
    /* Not in place, every block is received where its result goes and meets the own operand there:
     * no copy. */
    bool in_place = send == recv;
    void *spare = in_place ? schedule_temp_typed(s, length_of(count, size, 0), type) : NULL;
    for (int k = 0; k < size - 1; k++) {
        int out = (rank - k + size) % size, in = (rank - k - 1 + size) % size;
        MPI_Count at_out = first_of(count, size, out), at_in = first_of(count, size, in);
        MPI_Count n_in = length_of(count, size, in);
        void *acc = datatype_at(type, recv, at_in);
        schedule_sendrecv(s, datatype_at(type, k == 0 ? send : recv, at_out),
                          length_of(count, size, out), type, to, in_place ? spare : acc, n_in, type,
                          from);
        schedule_reduce(s, in_place ? spare : datatype_at(type, send, at_in), acc, n_in, type, op);
    }
    for (int k = 0; k < size - 1; k++) {
        int out = (rank - k + 1 + size) % size, in = (rank - k + size) % size;
        schedule_sendrecv(s, datatype_at(type, recv, first_of(count, size, out)),
                          length_of(count, size, out), type, to,
                          datatype_at(type, recv, first_of(count, size, in)),
                          length_of(count, size, in), type, from);
    }
}
