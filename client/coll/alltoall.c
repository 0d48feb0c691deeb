/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Alltoall, v and w: choice, Bruck for tiny blocks, all at once for middle ones, pairwise for long ones.
 */
#include "client/coll/algorithms.h"
#include "client/coll/select.h"
#include "client/coll/shared.h"

/* Transfers under way at a time in the linear form: the match queues stay short, every neighbour stays busy.
 */
#define LINEAR_WINDOW 32

static void copy_own(struct schedule *s, const struct blocks *send, const struct blocks *recv)
{
    int rank = s->view.rank;
    schedule_copy(s, blocks_at(send, rank), blocks_count(send, rank), blocks_type(send, rank),
                  blocks_at(recv, rank), blocks_count(recv, rank), blocks_type(recv, rank));
}

/* Bruck et al. 1997: blocks whose distance has bit k set travel 2^k ranks in round k. log2 p alpha + (p/2)
 * log2 p n beta: each byte moves several times, so for tiny blocks only. Regular blocks only. */
void alltoall_bruck(struct schedule *s, const struct blocks *send, const struct blocks *recv)
{
    int rank = s->view.rank, size = s->view.size;
    MPI_Count n = recv->count * recv->type->size;
    unsigned char *rotated = schedule_temp(s, (size_t)(size * n));
    unsigned char *out = schedule_temp(s, (size_t)((size + 1) / 2 * n));
    unsigned char *in = schedule_temp(s, (size_t)((size + 1) / 2 * n));
    if (s->broken)
        return;
    /* rotated[i]: the block for the rank i above */
    schedule_copy(s, blocks_at(send, rank), (size - rank) * send->count, send->type, rotated,
                  (size - rank) * n, coll_byte());
    if (rank > 0)
        schedule_copy(s, send->buf, rank * send->count, send->type, rotated + (size - rank) * n, rank * n,
                      coll_byte());
    for (int bit = 1; bit < size; bit *= 2) {
        MPI_Count n_out = 0;
        for (int i = 0; i < size; i++)
            if (i & bit)
                schedule_copy(s, rotated + i * n, n, coll_byte(), out + n_out++ * n, n, coll_byte());
        schedule_sendrecv(s, out, n_out * n, coll_byte(), (rank + bit) % size, in, n_out * n, coll_byte(),
                          (rank - bit + size) % size);
        n_out = 0;
        for (int i = 0; i < size; i++)
            if (i & bit)
                schedule_copy(s, in + n_out++ * n, n, coll_byte(), rotated + i * n, n, coll_byte());
    }
    for (int i = 0; i < size; i++) {
        int from = (rank - i + size) % size;
        schedule_copy(s, rotated + i * n, n, coll_byte(), blocks_at(recv, from), recv->count, recv->type);
    }
}

/* Everything posted, nearest ranks first, in windows. (p - 1)(alpha + n beta) with all transfers overlapping.
 * Empty blocks of the v and w forms send nothing. */
void alltoall_linear(struct schedule *s, const struct blocks *send, const struct blocks *recv)
{
    int rank = s->view.rank, size = s->view.size;
    for (int start = 1; start < size; start += LINEAR_WINDOW) {
        int end = start + LINEAR_WINDOW < size ? start + LINEAR_WINDOW : size;
        for (int k = start; k < end; k++) {
            int from = (rank - k + size) % size;
            if (blocks_bytes(recv, from) > 0)
                schedule_irecv(s, blocks_at(recv, from), blocks_count(recv, from), blocks_type(recv, from),
                               from);
        }
        for (int k = start; k < end; k++) {
            int to = (rank + k) % size;
            if (blocks_bytes(send, to) > 0)
                schedule_isend(s, blocks_at(send, to), blocks_count(send, to), blocks_type(send, to), to);
        }
        if (start == 1)
            copy_own(s, send, recv);
        schedule_wait(s);
    }
    if (size == 1)
        copy_own(s, send, recv);
}

/* Pairwise exchange: in round k with the ranks k above and k below. (p - 1)(alpha + n beta); each rank sends
 * one and receives one message at a time, so no receiver is crowded. */
void alltoall_pairwise(struct schedule *s, const struct blocks *send, const struct blocks *recv)
{
    int rank = s->view.rank, size = s->view.size;
    copy_own(s, send, recv);
    for (int k = 1; k < size; k++) {
        int to = (rank + k) % size, from = (rank - k + size) % size;
        if (blocks_bytes(send, to) == 0)
            to = -1;
        if (blocks_bytes(recv, from) == 0)
            from = -1;
        schedule_sendrecv(s, to < 0 ? NULL : blocks_at(send, to), to < 0 ? 0 : blocks_count(send, to),
                          to < 0 ? coll_byte() : blocks_type(send, to), to,
                          from < 0 ? NULL : blocks_at(recv, from), from < 0 ? 0 : blocks_count(recv, from),
                          from < 0 ? coll_byte() : blocks_type(recv, from), from);
    }
}

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
        schedule_copy(s, blocks_at(recv, i), blocks_count(recv, i), blocks_type(recv, i), packed + displs[i],
                      counts[i], coll_byte());
    *ret_send = (struct blocks){.buf = packed, .type = coll_byte()};
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
