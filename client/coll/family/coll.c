/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/family/coll.h"

#include "client/client.h"
#include "client/coll/schedule/coll_request.h"

struct coll_state {
    coll_chooser *choose;
};
static struct coll_state coll_first;
static struct coll_state *coll_here = &coll_first;
CLIENT_PART(coll_here, coll_first);

void coll_init(coll_chooser *choose)
{
    if (coll_here->choose)
        return;
    coll_here->choose = choose;
    comm_on_destroy(coll_release);
    coll_request_init();
}

/* Short calls within a node do without the rules: there every nanosecond counts. */
static inline const struct algorithm *coll_choose(enum coll_family family, const struct schedule *s,
                                                  MPI_Count n_bytes, bool regular)
{
    const struct coll_comm *c = s->view.comm->coll;
    if (__builtin_expect(c && c->quick, 1)) {
        const struct coll_quick *quick = &c->quick[family];
        if (n_bytes <= quick->most && !s->view.map && schedule_has_steps(s))
            return quick->algorithm;
    }
    return coll_here->choose(family, s, n_bytes, regular);
}

void coll_barrier(struct schedule *s)
{
    if (s->view.size > 1)
        coll_choose(COLL_BARRIER, s, 0, true)->barrier(s);
}

void coll_bcast(struct schedule *s, struct buffer buf, int root)
{
    MPI_Count n_bytes = buffer_size(buf);
    if (s->view.size > 1 && n_bytes > 0)
        coll_choose(COLL_BCAST, s, n_bytes, true)->bcast(s, buf, root);
}

void coll_gather(struct schedule *s, struct buffer send, const struct blocks *recv, int root)
{
    MPI_Count n_bytes = 0;
    if (recv->uniform) {
        n_bytes = send.base == MPI_IN_PLACE ? blocks_bytes(recv, root) : buffer_size(send);
        if (n_bytes == 0)
            return;
    }
    coll_choose(COLL_GATHER, s, n_bytes, recv->uniform)->gather(s, send, recv, root);
}

void coll_scatter(struct schedule *s, const struct blocks *send, struct buffer recv, int root)
{
    MPI_Count n_bytes = 0;
    if (send->uniform) {
        n_bytes = recv.base == MPI_IN_PLACE ? blocks_bytes(send, root) : buffer_size(recv);
        if (n_bytes == 0)
            return;
    }
    coll_choose(COLL_SCATTER, s, n_bytes, send->uniform)->scatter(s, send, recv, root);
}

/* Every rank knows every block's size. */
void coll_allgather(struct schedule *s, struct buffer send, const struct blocks *recv)
{
    int size = s->view.size;
    if (send.base != MPI_IN_PLACE)
        schedule_copy(s, send, blocks_buffer(recv, s->view.rank));
    MPI_Count n_bytes = blocks_first(recv, size) * recv->type->size;
    if (size > 1 && n_bytes > 0)
        coll_choose(COLL_ALLGATHER, s, n_bytes, !recv->counts.base)->allgather(s, recv);
}

/* In place: what leaves is packed aside first. Fills *ret_send with dense blocks of bytes. */
static void coll_set_aside(struct schedule *s, const struct blocks *recv, struct blocks *ret_send)
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
    MPI_Count block_bytes = regular ? recv->count * recv->type->size : 0;
    struct blocks aside;
    if (regular && block_bytes == 0)
        return;
    if (!send) {
        coll_set_aside(s, recv, &aside);
        if (s->broken)
            return;
        send = &aside;
    }
    coll_choose(COLL_ALLTOALL, s, block_bytes, regular)->alltoall(s, send, recv);
}

/* Where the operand lies; alone, it is the result. */
static const void *coll_operand(struct schedule *s, const void *send, struct buffer recv)
{
    if (send == MPI_IN_PLACE)
        send = recv.base;
    if (recv.count > 0 && s->view.size == 1)
        schedule_copy(s, buffer_like(recv, send), recv);
    return send;
}

void coll_reduce(struct schedule *s, const void *send, struct buffer recv, struct op *op, int root)
{
    send = coll_operand(s, send, recv);
    if (recv.count > 0 && s->view.size > 1)
        coll_choose(COLL_REDUCE, s, buffer_size(recv), op->commutative)
            ->reduce(s, send, recv, op, root);
}

void coll_allreduce(struct schedule *s, const void *send, struct buffer recv, struct op *op)
{
    send = coll_operand(s, send, recv);
    if (recv.count > 0 && s->view.size > 1)
        coll_choose(COLL_ALLREDUCE, s, buffer_size(recv), op->commutative)
            ->allreduce(s, send, recv, op);
}

void coll_reduce_scatter(struct schedule *s, const void *send, void *recv,
                         const struct blocks *counts, struct op *op)
{
    struct buffer all = buffer_of(recv, blocks_first(counts, s->view.size), counts->type);
    send = coll_operand(s, send, all);
    if (all.count > 0 && s->view.size > 1)
        coll_choose(COLL_REDUCE_SCATTER, s, buffer_size(all), op->commutative)
            ->reduce_scatter(s, send, recv, counts, op);
}

static void coll_scan_of(struct schedule *s, const void *send, struct buffer recv, struct op *op,
                         bool inclusive)
{
    if (send == MPI_IN_PLACE)
        send = recv.base;
    if (recv.count > 0)
        coll_choose(COLL_SCAN, s, buffer_size(recv), op->commutative)
            ->scan(s, send, recv, op, inclusive);
}

void coll_scan(struct schedule *s, const void *send, struct buffer recv, struct op *op)
{
    coll_scan_of(s, send, recv, op, true);
}

void coll_exscan(struct schedule *s, const void *send, struct buffer recv, struct op *op)
{
    coll_scan_of(s, send, recv, op, false);
}
