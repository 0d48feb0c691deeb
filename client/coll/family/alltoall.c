/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Alltoall, v and w: choice, and what is in place. */
#include "client/coll/algorithms/algorithms.h"
#include "client/coll/choice/select.h"
#include "client/coll/node/node.h"

/* In place: what leaves is packed aside first. Fills *ret_send with dense blocks of bytes. */
static void set_aside(struct schedule *s, const struct blocks *recv, struct blocks *ret_send)
{
    int size = s->view.size;
    MPI_Count *counts = schedule_temp(s, (size_t)size * sizeof(MPI_Count));
    MPI_Count *displs = schedule_temp(s, (size_t)size * sizeof(MPI_Count));
    if (s->broken)
        return;
    MPI_Count total = 0;
    for (int i = 0; i < size; i++) {
        counts[i] = blocks_bytes(recv, i);
        displs[i] = total;
        total += counts[i];
    }
    unsigned char *packed = schedule_temp(s, (size_t)total);
    if (s->broken)
        return;
    for (int i = 0; i < size; i++)
        schedule_copy(s, blocks_buffer(recv, i), buffer_of_bytes(packed + displs[i], counts[i]));
    *ret_send = (struct blocks){.buf = packed, .type = datatype_predefined(MPI_BYTE)};
    if (recv->counts.base) {
        ret_send->counts = intvec_of_count(counts);
        ret_send->displs = intvec_of_count(displs);
    } else {
        ret_send->count = counts[0];
    }
}

void coll_alltoall(struct schedule *s, const struct blocks *send, const struct blocks *recv)
{
    bool regular = !recv->counts.base;
    if (regular && recv->count * recv->type->size == 0)
        return;
    struct blocks aside;
    if (!send) {
        set_aside(s, recv, &aside);
        if (s->broken)
            return;
        send = &aside;
    }
    MPI_Count block_bytes = regular ? recv->count * recv->type->size : 0;
    switch (select_algorithm(SELECT_ALLTOALL, s, block_bytes, regular)) {
    case ALLTOALL_SHARED:
        shared_alltoall(s, send, recv);
        break;
    case ALLTOALL_BRUCK:
        alltoall_bruck(s, send, recv);
        break;
    case ALLTOALL_PAIRWISE:
        alltoall_pairwise(s, send, recv);
        break;
    default:
        alltoall_linear(s, send, recv);
        break;
    }
}
