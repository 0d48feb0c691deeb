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

void allreduce_ring(struct schedule *s, const void *send, struct buffer recv, struct op *op)
{
    int rank = s->view.rank, size = s->view.size;
    int to = (rank + 1) % size, from = (rank - 1 + size) % size;
    /* Not in place, every block is received where its result goes and meets the own operand there:
     * no copy. */
    bool in_place = send == recv.base;
    void *spare =
        in_place ? schedule_temp_typed(s, length_of(recv.count, size, 0), recv.type) : NULL;
    for (int k = 0; k < size - 1; k++) {
        int out = (rank - k + size) % size, in = (rank - k - 1 + size) % size;
        MPI_Count at_out = first_of(recv.count, size, out), at_in = first_of(recv.count, size, in);
        MPI_Count n_in = length_of(recv.count, size, in);
        void *acc = datatype_at(recv.type, recv.base, at_in);
        schedule_sendrecv(s,
                          buffer_of(datatype_at(recv.type, k == 0 ? send : recv.base, at_out),
                                    length_of(recv.count, size, out), recv.type),
                          to, buffer_of(in_place ? spare : acc, n_in, recv.type), from);
        schedule_reduce(s, in_place ? spare : datatype_at(recv.type, send, at_in),
                        buffer_of(acc, n_in, recv.type), op);
    }
    for (int k = 0; k < size - 1; k++) {
        int out = (rank - k + 1 + size) % size, in = (rank - k + size) % size;
        schedule_sendrecv(
            s, buffer_part(recv, first_of(recv.count, size, out), length_of(recv.count, size, out)),
            to, buffer_part(recv, first_of(recv.count, size, in), length_of(recv.count, size, in)),
            from);
    }
}
