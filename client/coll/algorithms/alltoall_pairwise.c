/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Alltoall, v and w, of long blocks: pairwise exchange (Thakur, Rabenseifner, Gropp 2005).
 *
 * In round k with the ranks k above and k below. (p - 1)(alpha + n beta); each rank sends one and
 * receives one message at a time, so no receiver is crowded.
 */
#include "client/coll/algorithms/own_block.h"

void alltoall_pairwise(struct schedule *s, const struct blocks *send, const struct blocks *recv)
{
    int rank = s->view.rank, size = s->view.size;
    own_block_copy(s, send, recv);
    for (int k = 1; k < size; k++) {
        int to = (rank + k) % size, from = (rank - k + size) % size;
        if (blocks_bytes(send, to) == 0)
            to = -1;
        if (blocks_bytes(recv, from) == 0)
            from = -1;
        schedule_sendrecv(
            s,
            buffer_of(to < 0 ? NULL : blocks_at(send, to), to < 0 ? 0 : blocks_count(send, to),
                      to < 0 ? datatype_predefined(MPI_BYTE) : blocks_type(send, to)),
            to,
            buffer_of(from < 0 ? NULL : blocks_at(recv, from),
                      from < 0 ? 0 : blocks_count(recv, from),
                      from < 0 ? datatype_predefined(MPI_BYTE) : blocks_type(recv, from)),
            from);
    }
}
