/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/inter.h"

#define LINEAR_WINDOW 32 /* transfers under way at a time in linear exchanges */

static struct schedule_view enter_local(struct schedule *s)
{
    struct comm *local = s->view.comm->local_comm;
    return schedule_enter(s, (struct schedule_view){.comm = local, .rank = local->rank, .size = local->size});
}

static int remote_size(const struct schedule *s)
{
    return comm_remote_size(s->view.comm);
}

/* Rank 0 leaves the first barrier when its group is complete, and enters the second one when the other group
 * is. */
void inter_barrier(struct schedule *s)
{
    struct schedule_view inter = enter_local(s);
    coll_barrier(s);
    schedule_leave(s, inter);
    if (inter.rank == 0)
        schedule_sendrecv(s, NULL, 0, coll_byte(), 0, NULL, 0, coll_byte(), 0);
    enter_local(s);
    coll_barrier(s);
    schedule_leave(s, inter);
}

void inter_bcast(struct schedule *s, void *buf, MPI_Count count, struct datatype *type, int root)
{
    if (root == MPI_PROC_NULL || count * type->size == 0)
        return;
    if (root == MPI_ROOT) {
        schedule_send(s, buf, count, type, 0);
        return;
    }
    if (s->view.rank == 0)
        schedule_recv(s, buf, count, type, root);
    struct schedule_view inter = enter_local(s);
    coll_bcast(s, buf, count, type, 0);
    schedule_leave(s, inter);
}

/* Posts the receives of one block from every remote rank; they complete at the next wait. */
static void receive_blocks(struct schedule *s, const struct blocks *recv)
{
    for (int i = 0; i < remote_size(s); i++)
        if (blocks_bytes(recv, i) > 0)
            schedule_irecv(s, blocks_at(recv, i), blocks_count(recv, i), blocks_type(recv, i), i);
}

void inter_gather(struct schedule *s, const void *send, MPI_Count send_count, struct datatype *send_type,
                  const struct blocks *recv, int root)
{
    if (root == MPI_PROC_NULL)
        return;
    if (root == MPI_ROOT) {
        receive_blocks(s, recv);
        schedule_wait(s);
    } else if (send_count * send_type->size > 0) {
        schedule_send(s, send, send_count, send_type, root);
    }
}

void inter_scatter(struct schedule *s, const struct blocks *send, void *recv, MPI_Count recv_count,
                   struct datatype *recv_type, int root)
{
    if (root == MPI_PROC_NULL)
        return;
    if (root != MPI_ROOT) {
        if (recv_count * recv_type->size > 0)
            schedule_recv(s, recv, recv_count, recv_type, root);
        return;
    }
    for (int i = 0; i < remote_size(s); i++)
        if (blocks_bytes(send, i) > 0)
            schedule_isend(s, blocks_at(send, i), blocks_count(send, i), blocks_type(send, i), i);
    schedule_wait(s);
}

/* Each group's rank 0 collects the blocks of the other group, packs them when they do not lie in a row, and
 * hands them round. */
void inter_allgather(struct schedule *s, const void *send, MPI_Count send_count, struct datatype *send_type,
                     const struct blocks *recv)
{
    int n = remote_size(s);
    MPI_Count total = 0;
    for (int i = 0; i < n; i++)
        total += blocks_bytes(recv, i);
    if (s->view.rank == 0)
        receive_blocks(s, recv);
    if (send_count * send_type->size > 0)
        schedule_isend(s, send, send_count, send_type, 0);
    schedule_wait(s);
    bool regular = !recv->counts.base;
    unsigned char *packed = regular ? NULL : schedule_temp(s, (size_t)total);
    MPI_Count at = 0;
    if (s->broken)
        return;
    for (int i = 0; !regular && s->view.rank == 0 && i < n; at += blocks_bytes(recv, i), i++)
        schedule_copy(s, blocks_at(recv, i), blocks_count(recv, i), recv->type, packed + at,
                      blocks_bytes(recv, i), coll_byte());
    struct schedule_view inter = enter_local(s);
    if (regular)
        coll_bcast(s, recv->buf, n * recv->count, recv->type, 0);
    else
        coll_bcast(s, packed, total, coll_byte(), 0);
    schedule_leave(s, inter);
    for (int i = 0; !regular && s->view.rank != 0 && i < n; at += blocks_bytes(recv, i), i++)
        schedule_copy(s, packed + at, blocks_bytes(recv, i), coll_byte(), blocks_at(recv, i),
                      blocks_count(recv, i), recv->type);
}

void inter_alltoall(struct schedule *s, const struct blocks *send, const struct blocks *recv)
{
    int n = remote_size(s);
    for (int start = 0; start < n; start += LINEAR_WINDOW) {
        int end = start + LINEAR_WINDOW < n ? start + LINEAR_WINDOW : n;
        for (int i = start; i < end; i++)
            if (blocks_bytes(recv, i) > 0)
                schedule_irecv(s, blocks_at(recv, i), blocks_count(recv, i), blocks_type(recv, i), i);
        for (int i = start; i < end; i++)
            if (blocks_bytes(send, i) > 0)
                schedule_isend(s, blocks_at(send, i), blocks_count(send, i), blocks_type(send, i), i);
        schedule_wait(s);
    }
}

/* The local group's result, in rank 0's returned buffer. */
static void *reduce_locally(struct schedule *s, const void *send, MPI_Count count, struct datatype *type,
                            struct op *op)
{
    struct schedule_view inter = enter_local(s);
    void *result = s->view.rank == 0 ? schedule_temp_typed(s, count, type) : NULL;
    coll_reduce(s, send, result, count, type, op, 0);
    schedule_leave(s, inter);
    return result;
}

void inter_reduce(struct schedule *s, const void *send, void *recv, MPI_Count count, struct datatype *type,
                  struct op *op, int root)
{
    if (root == MPI_PROC_NULL || count == 0)
        return;
    if (root == MPI_ROOT) {
        schedule_recv(s, recv, count, type, 0);
        return;
    }
    void *result = reduce_locally(s, send, count, type, op);
    if (s->view.rank == 0)
        schedule_send(s, result, count, type, root);
}

void inter_allreduce(struct schedule *s, const void *send, void *recv, MPI_Count count, struct datatype *type,
                     struct op *op)
{
    if (count == 0)
        return;
    void *result = reduce_locally(s, send, count, type, op);
    if (s->view.rank == 0)
        schedule_sendrecv(s, result, count, type, 0, recv, count, type, 0);
    struct schedule_view inter = enter_local(s);
    coll_bcast(s, recv, count, type, 0);
    schedule_leave(s, inter);
}

void inter_reduce_scatter(struct schedule *s, const void *send, void *recv, const struct blocks *counts,
                          struct op *op)
{
    int n = s->view.comm->size;
    MPI_Count count = blocks_first(counts, n);
    if (count == 0)
        return;
    void *result = reduce_locally(s, send, count, counts->type, op);
    struct blocks whole = *counts;
    if (s->view.rank == 0) {
        whole.buf = schedule_temp_typed(s, count, counts->type);
        if (s->broken)
            return;
        schedule_sendrecv(s, result, count, counts->type, 0, whole.buf, count, counts->type, 0);
    }
    struct schedule_view inter = enter_local(s);
    coll_scatter(s, &whole, !counts->counts.base, recv, blocks_count(counts, s->view.rank), counts->type, 0);
    schedule_leave(s, inter);
}
