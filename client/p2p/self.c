/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/p2p/self.h"

#include <stdlib.h>

#include "client/object/err.h"

void self_send(struct transfer *t)
{
    int own_rank = t->base.comm->rank;
    struct transfer *recv = transfer_arrived(t->engine, t->context, own_rank, t->tag);
    bool copy = t->blocking && t->mode != P2P_SYNCHRONOUS;
    size_t len = copy ? (size_t)t->bytes : 0;

    if (recv) {
        self_receive(recv, t);
        return;
    }
    struct unexpected *u = malloc(sizeof *u + len);
    if (!u) {
        transfer_complete(t,
                          err_set(MPI_ERR_NO_MEM,
                                  "no memory to keep a message of %lld bytes to this rank itself",
                                  (long long)t->bytes));
        return;
    }
    *u = (struct unexpected){
        .match = {.context = t->context, .source = own_rank, .tag = t->tag},
        .kind = copy ? UNEXPECTED_EAGER : UNEXPECTED_SELF,
        .src_world = transport_here->world_rank,
        .len = (uint32_t)len,
        .bytes = t->bytes,
        .self = t,
    };
    engine_add_unexpected(t->engine, u);
    if (copy) {
        transfer_pack_all(&t->buffer, u->payload, len);
        transfer_complete(t, MPI_SUCCESS);
    }
}

void self_receive(struct transfer *recv, struct transfer *send)
{
    const struct buffer *from = &send->buffer, *to = &recv->buffer;

    transfer_matched(recv, transport_here->world_rank, send->base.comm->rank, send->tag);
    int error = transfer_check_length(recv, send->bytes);
    recv->base.bytes =
        datatype_copy(from->base, from->count, from->type, to->base, to->count, to->type);
    transfer_complete(recv, error);
    transfer_complete(send, MPI_SUCCESS);
}
