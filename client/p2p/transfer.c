/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/p2p/transfer.h"

#include <stdlib.h>
#include <string.h>

#include "client/object/err.h"
#include "client/object/handle.h"

/* Transfers made at once. They are never given back to the allocator before the end: the pool is as
 * large as the most that were ever in use. */
#define CHUNK_TRANSFERS 64

struct transfer_chunk {
    struct transfer_chunk *next;
    _Alignas(max_align_t) uint8_t transfers[]; /* engine.transfer_bytes each */
};

static const struct request_ops transfer_ops = {.destroy = transfer_destroy,
                                                .cancel = transfer_cancel};

void transfer_init(struct engine *e, size_t bytes)
{
    size_t align = _Alignof(max_align_t);

    e->chunks = NULL;
    e->free_transfers = NULL;
    e->transfer_bytes = (bytes + align - 1) / align * align;
    list_init(&e->unshown);
}

static struct transfer *transfer_in(struct transfer_chunk *c, const struct engine *e, int i)
{
    return (struct transfer *)(void *)(c->transfers + (size_t)i * e->transfer_bytes);
}

static bool transfer_make_chunk(struct engine *e)
{
    struct transfer_chunk *c = calloc(1, sizeof *c + CHUNK_TRANSFERS * e->transfer_bytes);

    if (!c)
        return false;
    c->next = e->chunks;
    e->chunks = c;
    for (int i = 0; i < CHUNK_TRANSFERS; i++) {
        struct transfer *t = transfer_in(c, e, i);
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
        struct transfer_chunk *c = e->chunks;
        e->chunks = c->next;
        for (int i = 0; i < CHUNK_TRANSFERS; i++) {
            struct object *obj = &transfer_in(c, e, i)->base.obj;
            /* The application may have forgotten it. */
            handle_free(obj);
            handle_unreserve(obj);
        }
        free(c);
    }
    e->free_transfers = NULL;
}

struct transfer *transfer_new(enum transfer_dir dir, struct buffer buffer, struct envelope envelope)
{
    struct comm *comm = envelope.comm;
    struct engine *e = engine_of(comm);

    if (!e->free_transfers && !transfer_make_chunk(e))
        return NULL;
    struct transfer *t = e->free_transfers;
    e->free_transfers = t->buffer.base;

    request_renew(&t->base, &transfer_ops, comm, false);
    t->base.vci = e->vci->index != 0 ? e->vci : NULL;
    comm_ref(comm);
    type_ref(buffer.type);
    t->dir = (uint8_t)dir;
    t->mode = P2P_STANDARD;
    t->blocking = false;
    t->sole = false;
    t->helped = false;
    t->rank = envelope.rank;
    t->tag = envelope.tag;
    t->context = comm->context_id + envelope.context;
    t->world = t->rank >= 0 ? (uint32_t)comm_peers(comm)->procs[t->rank] : 0;
    t->buffer = buffer;
    t->bytes = buffer.count * buffer.type->size;
    t->match.posted = false;
    list_init(&t->link);
    t->record = NULL;
    return t;
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

int transfer_cancel(struct request *r)
{
    struct transfer *t = transfer_of(r);
    struct engine *e = t->engine;

    /* A send cannot be called back (deprecated by MPI-4.0 section 3.8.4); a receive can while
     * nothing has matched it. */
    engine_enter(e);
    if (t->match.posted) {
        match_unpost(&e->match, &t->match);
        list_remove(&t->link);
        r->cancelled = true;
        transfer_complete(t, MPI_SUCCESS);
    }
    engine_leave(e);
    return MPI_SUCCESS;
}

void transfer_show_part(struct transfer *t, enum queue_state state, MPI_Count bytes, MPI_Count done)
{
    struct queue_record *r = record_begin(&t->engine->records, &t->record);

    if (!r)
        return;
    r->context = t->context;
    r->peer = record_peer(t->rank);
    r->tag = record_tag(t->tag);
    r->bytes = (uint64_t)bytes;
    r->done_bytes = (uint64_t)done;
    r->peer_world = t->rank == MPI_ANY_SOURCE && state == QUEUE_POSTED ? -1 : (int32_t)t->world;
    record_publish(r, state);
}

void transfer_show_late(struct engine *e)
{
    list_foreach_safe(it, &e->unshown) {
        list_remove(it);
        transfer_show(list_entry(it, struct transfer, link), QUEUE_POSTED);
    }
}

void transfer_left_long(struct transfer *t)
{
    if (request_is_complete(&t->base) || t->context != t->base.comm->context_id + P2P_CONTEXT_USER)
        return;
    t->helped = true;
    async_begin();
}

static int transfer_judge(const struct transfer *t, MPI_Count n_bytes)
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
    int error = transfer_judge(t, n_bytes);

    /* Now: a rendezvous ends later, perhaps in another thread. */
    err_stow(error, &t->base.detail);
    return error;
}
