/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/p2p/transfer.h"

#include <stdlib.h>
#include <string.h>

#include "client/object/err.h"
#include "client/object/handle.h"
#include "client/p2p/board.h"
#include "client/p2p/inbound.h"
#include "client/p2p/outbound.h"
#include "client/p2p/rendezvous.h"
#include "client/progress/async.h"
#include "client/transport/transport.h"

/* Transfers made at once. They are never given back to the allocator before the end: the pool is as
 * large as the most that were ever in use. */
#define POOL_CHUNK 64

struct pool_chunk {
    struct pool_chunk *next;
    struct transfer transfers[POOL_CHUNK];
};

static const struct request_ops transfer_ops;

static bool pool_grow(struct engine *e)
{
    struct pool_chunk *c = malloc(sizeof *c);

    if (!c)
        return false;
    c->next = e->chunks;
    e->chunks = c;
    for (int i = 0; i < POOL_CHUNK; i++) {
        struct transfer *t = &c->transfers[i];
        /* A place for good makes a new handle cheap, and in further vcis one that needs no library
         * lock. */
        request_init(&t->base, &transfer_ops, NULL, false);
        handle_reserve(&t->base.obj);
        t->engine = e;
        t->buffer.base = e->free_transfers;
        e->free_transfers = t;
    }
    return true;
}

void transfer_deinit(struct engine *e)
{
    while (e->chunks) {
        struct pool_chunk *c = e->chunks;
        e->chunks = c->next;
        for (int i = 0; i < POOL_CHUNK; i++) {
            /* The application may have forgotten it. */
            handle_free(&c->transfers[i].base.obj);
            handle_unreserve(&c->transfers[i].base.obj);
        }
        free(c);
    }
    e->free_transfers = NULL;
}

void transfer_destroy(struct request *r)
{
    struct transfer *t = transfer_of(r);

    struct engine *e = t->engine;

    type_unref(t->buffer.type);
    comm_unref(t->base.comm);
    engine_enter(e);
    t->buffer.base = e->free_transfers;
    e->free_transfers = t;
    engine_leave(e);
}

static int cancel(struct request *r)
{
    struct transfer *t = transfer_of(r);
    struct engine *e = t->engine;

    /* A send cannot be called back (deprecated by MPI-4.0 section 3.8.4); a receive can while
     * nothing has matched it. */
    engine_enter(e);
    if (t->dir == TRANSFER_RECV && t->posted) {
        match_unpost(&e->match, t);
        list_remove(&t->link);
        r->cancelled = true;
        transfer_complete(t, MPI_SUCCESS);
    }
    engine_leave(e);
    return MPI_SUCCESS;
}

static int start(struct request *r)
{
    struct transfer *t = transfer_of(r);

    engine_enter(t->engine);
    transfer_rewind(t);
    if (t->dir == TRANSFER_SEND)
        transfer_start_send(t);
    else
        transfer_start_recv(t);
    transfer_left(t);
    engine_leave(t->engine);
    return MPI_SUCCESS;
}

static const struct request_ops transfer_ops = {.destroy = transfer_destroy, .cancel = cancel};
static const struct request_ops persistent_ops = {
    .destroy = transfer_destroy, .cancel = cancel, .start = start};

struct transfer *transfer_new(enum transfer_dir dir, struct buffer buffer, struct envelope envelope,
                              bool persistent)
{
    struct engine *e = engine_of(envelope.comm);
    struct comm *comm = envelope.comm;

    if (!e->free_transfers && !pool_grow(e))
        return NULL;
    struct transfer *t = e->free_transfers;
    e->free_transfers = t->buffer.base;

    request_renew(&t->base, persistent ? &persistent_ops : &transfer_ops, comm, persistent);
    t->base.vci = e->vci->index != 0 ? e->vci : NULL;
    comm_ref(comm);
    type_ref(buffer.type);
    t->dir = (uint8_t)dir;
    t->mode = P2P_STANDARD;
    t->blocking = false;
    t->sole = false;
    t->posted = false;
    t->helped = false;
    t->joint = false;
    t->rank = envelope.rank;
    t->tag = envelope.tag;
    t->context = comm->context_id + envelope.context;
    t->world = t->rank >= 0 ? (uint32_t)comm_peers(comm)->procs[t->rank] : 0;
    t->buffer = buffer;
    t->bytes = buffer.count * buffer.type->size;
    list_init(&t->link);
    t->record = NULL;
    t->number = 0;
    t->moved = 0;
    return t;
}

void transfer_left_long(struct transfer *t)
{
    if (request_is_complete(&t->base) || t->context != t->base.comm->context_id + P2P_CONTEXT_USER)
        return;
    t->helped = true;
    async_begin();
}

void transfer_rewind(struct transfer *t)
{
    request_set_complete(&t->base, false);
    t->base.active = true;
    t->base.cancelled = false;
    t->base.error = MPI_SUCCESS;
    t->base.source = MPI_ANY_SOURCE;
    t->base.tag = MPI_ANY_TAG;
    t->base.bytes = 0;
    t->moved = 0;
}

static int judge_length(const struct transfer *t, MPI_Count n_bytes)
{
    MPI_Count rest;

    if (n_bytes > t->bytes)
        return err_set(
            MPI_ERR_TRUNCATE,
            "a message of %lld bytes with tag %d from rank %d met a receive of %lld bytes",
            (long long)n_bytes, t->base.tag, t->base.source, (long long)t->bytes);
    datatype_elements_of_bytes(t->buffer.type, n_bytes, &rest);
    if (rest > 0)
        return err_set(MPI_ERR_TYPE,
                       "a message of %lld bytes with tag %d from rank %d ends within an element of "
                       "the receive's datatype",
                       (long long)n_bytes, t->base.tag, t->base.source);
    return MPI_SUCCESS;
}

int transfer_judge_length(struct transfer *t, MPI_Count n_bytes)
{
    int error = judge_length(t, n_bytes);

    /* Now: a rendezvous ends later, perhaps in another thread. */
    err_stow(error, &t->base.detail);
    return error;
}

/* A message to this process itself: handed to a posted receive, or kept. */
static void send_to_self(struct transfer *t)
{
    struct match *match = &t->engine->match;
    struct transfer *recv = match_arrived(match, t->context, t->base.comm->rank, t->tag);
    bool copy = t->blocking && t->mode != P2P_SYNCHRONOUS;
    size_t len = copy ? (size_t)t->bytes : 0;

    if (recv) {
        inbound_take_own(recv, t);
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
        .match = {.context = t->context, .source = t->base.comm->rank, .tag = t->tag},
        .kind = copy ? UNEXPECTED_EAGER : UNEXPECTED_SELF,
        .src_world = transport_here->world_rank,
        .len = (uint32_t)len,
        .bytes = t->bytes,
        .self = t,
    };
    match_add_unexpected(match, u);
    board_show_unexpected(t->engine, u);
    if (copy) {
        transfer_pack_all(&t->buffer, u->payload, len);
        transfer_complete(t, MPI_SUCCESS);
    }
}

void transfer_start_send(struct transfer *t)
{
    if (t->rank == MPI_PROC_NULL)
        transfer_complete(t, MPI_SUCCESS);
    else if (t->world == transport_here->world_rank)
        send_to_self(t);
    else
        outbound_send(peer_get(t->engine, t->world), t);
}

void transfer_start_recv(struct transfer *t)
{
    if (t->rank == MPI_PROC_NULL) {
        t->base.source = MPI_PROC_NULL;
        transfer_complete(t, MPI_SUCCESS);
        return;
    }
    struct match *match = &t->engine->match;
    if (match->n_unexpected > 0) {
        struct unexpected *u = match_find_unexpected(match, t->context, t->rank, t->tag);
        if (u) {
            match_remove_unexpected(match, u);
            inbound_take_unexpected(t, u);
            return;
        }
    }
    match_post(match, t);
    if (t->blocking)
        board_defer(t);
    else
        board_show(t, QUEUE_POSTED);
}
