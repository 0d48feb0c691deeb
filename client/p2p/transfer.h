/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A transfer: one send or receive in progress, behind an MPI request. It knows its place in the
 * match table, in the lists of whoever it waits for, and among the queue records. A protocol that
 * keeps more of it begins its own struct with this one (rendezvous.h, coop.h); the pool's transfers
 * have room for the largest.
 */
#ifndef MOTET_CLIENT_P2P_TRANSFER_H
#define MOTET_CLIENT_P2P_TRANSFER_H

#include "base/list.h"
#include "client/datatype/buffer.h"
#include "client/datatype/datatype.h"
#include "client/object/comm.h"
#include "client/object/group.h"
#include "client/p2p/engine.h"
#include "client/p2p/envelope.h"
#include "client/p2p/match.h"
#include "client/p2p/record.h"
#include "client/progress/async.h"
#include "client/progress/request.h"
#include "proto/queue.h"

enum transfer_dir { TRANSFER_SEND, TRANSFER_RECV };

struct transfer {
    struct request base;
    struct engine *engine;
    uint8_t dir;   /* enum transfer_dir */
    uint8_t mode;  /* enum p2p_mode; sends */
    bool blocking; /* the caller waits inside the library: no record until it has waited long */
    bool sole;     /* send: the application waits for this message and no other */
    bool helped;   /* the helper thread may advance it (client/progress/async.h) */
    int32_t rank;  /* peer in comm_peers(comm), MPI_ANY_SOURCE or MPI_PROC_NULL */
    int32_t tag;
    uint32_t context; /* of the communicator, with enum p2p_context added */
    uint32_t world;   /* peer's world rank: sends always, receives once matched */
    struct buffer buffer;
    MPI_Count bytes; /* send: size of the message; receive: room in the buffer */
    struct match_node match;
    struct list link; /* in the one list it waits in: a peer's backlog, engine.unshown, or one of a
                         protocol */
    struct queue_record *record;
};

/* Sets up the pool: a transfer takes `bytes`, those that protocols add included. */
void transfer_init(struct engine *e, size_t bytes);
/* Frees the pool. */
void transfer_deinit(struct engine *e);

/* Takes one from the pool and sets it up; holds references to comm and type. NULL: no memory. */
struct transfer *transfer_new(enum transfer_dir dir, struct buffer buffer,
                              struct envelope envelope);
/* What request_ops.destroy and .cancel of a transfer do: for kinds with an ops table of their
 * own. */
void transfer_destroy(struct request *r);
int transfer_cancel(struct request *r);

static inline struct transfer *transfer_of(struct request *r)
{
    return (struct transfer *)r;
}

/* ---- queue records ---- */

/* Shows it in this state; of a rendezvous, that `done` of `bytes` have come. */
void transfer_show_part(struct transfer *t, enum queue_state state, MPI_Count bytes,
                        MPI_Count done);
static inline void transfer_show(struct transfer *t, enum queue_state state)
{
    transfer_show_part(t, state, t->bytes, 0);
}
/* Bytes moved so far, for one that is shown. */
static inline void transfer_show_moved(struct transfer *t, MPI_Count moved)
{
    if (t->record)
        t->record->done_bytes = (uint64_t)moved;
}
/* Remembers a blocking receive for transfer_show_late; it must be removed (list_remove of t->link)
 * before it completes. */
static inline void transfer_show_later(struct transfer *t)
{
    list_append(&t->engine->unshown, &t->link);
}
/* Shows all that were remembered. */
void transfer_show_late(struct engine *e);

/* ---- matching and completion ---- */

/* Posts a receive. */
static inline void transfer_post(struct transfer *t)
{
    t->match.context = t->context;
    t->match.source = t->rank;
    t->match.tag = t->tag;
    match_post(&t->engine->match, &t->match);
}

/* The posted receive that takes this message, or NULL. */
static inline struct transfer *transfer_arrived(struct engine *e, uint32_t context, int32_t source,
                                                int32_t tag)
{
    struct match_node *node = match_arrived(&e->match, context, source, tag);
    return node ? list_entry(node, struct transfer, match) : NULL;
}

/* The receive has its message: it waits to be shown no more, and its status is known. */
static inline void transfer_matched(struct transfer *t, uint32_t src_world, int32_t source,
                                    int32_t tag)
{
    list_remove(&t->link);
    t->base.source = source;
    t->base.tag = tag;
    t->world = src_world;
}

/* Whether a message of n_bytes fits a receive: 0; MPI_ERR_TRUNCATE when it is larger; MPI_ERR_TYPE
 * when it ends within an element of a type with gaps, so that the two ends certainly gave different
 * types (MPI-5.0 section 3.3.1). Without gaps the bytes are taken as they are, as other libraries
 * do. t->base has the message's source and tag, and keeps what is said of an error. */
int transfer_judge_length(struct transfer *t, MPI_Count n_bytes);

static inline int transfer_check_length(struct transfer *t, MPI_Count n_bytes)
{
    if (__builtin_expect(n_bytes <= t->bytes && (t->buffer.type->contiguous || n_bytes == t->bytes),
                         1))
        return MPI_SUCCESS;
    return transfer_judge_length(t, n_bytes);
}

/* Completes it, off all lists, and takes its record off. */
static inline void transfer_complete(struct transfer *t, int error)
{
    if (t->record)
        record_hide(&t->engine->records, &t->record);
    if (__builtin_expect(t->helped, 0)) {
        t->helped = false;
        async_end();
    }
    request_complete(&t->base, error);
}

/* The call that started it returns and leaves it unfinished. */
void transfer_left_long(struct transfer *t);
static inline void transfer_left(struct transfer *t)
{
    if (__builtin_expect(t->bytes >= ASYNC_MIN_BYTES, 0))
        transfer_left_long(t);
}

/* ---- whole messages ---- */

/* Packs the whole message. */
static inline void transfer_pack_all(const struct buffer *b, void *out, size_t n_bytes)
{
    /* No bytes may mean no buffer, and memcpy wants one all the same. */
    if (n_bytes == 0)
        return;
    if (__builtin_expect(b->type->contiguous, 1)) {
        __builtin_memcpy(out, datatype_run_start(b->type, b->base), n_bytes);
    } else {
        struct type_cursor c;
        type_cursor_init(&c, b->type, b->count, b->base);
        type_cursor_pack(&c, out, n_bytes);
    }
}

static inline void transfer_unpack_all(const struct buffer *b, const void *in, size_t n_bytes)
{
    if (n_bytes == 0)
        return;
    if (__builtin_expect(b->type->contiguous, 1)) {
        __builtin_memcpy(datatype_run_start(b->type, b->base), in, n_bytes);
    } else {
        struct type_cursor c;
        type_cursor_init(&c, b->type, b->count, b->base);
        type_cursor_unpack(&c, in, n_bytes);
    }
}

#endif
