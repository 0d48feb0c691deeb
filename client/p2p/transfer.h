/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A transfer: one send or receive in progress, behind an MPI request. Also what matching, the
 * protocols and the board of queue records hang their own state on.
 */
#ifndef MOTET_CLIENT_P2P_TRANSFER_H
#define MOTET_CLIENT_P2P_TRANSFER_H

#include "base/list.h"
#include "client/datatype/datatype.h"
#include "client/object/comm.h"
#include "client/object/group.h"
#include "client/p2p/board.h"
#include "client/p2p/engine.h"
#include "client/p2p/match.h"
#include "client/p2p/p2p.h"
#include "client/progress/async.h"
#include "client/progress/request.h"
#include "proto/queue.h"

enum transfer_dir { TRANSFER_SEND, TRANSFER_RECV };

struct transfer {
    struct request base;
    struct engine *engine;
    uint8_t dir;   /* enum transfer_dir */
    uint8_t mode;  /* enum p2p_mode; sends */
    bool blocking; /* the caller waits inside the library: no board record until it has waited long
                    */
    bool sole;     /* send: the application waits for this message and no other */
    bool posted;   /* receive: in the match table */
    bool helped;   /* the helper thread may advance it (client/progress/async.h) */
    bool joint; /* in joint.c's list of offered sends or of receives that wait for the sender's last
                   chunks */
    int32_t rank; /* peer in comm_peers(comm), MPI_ANY_SOURCE or MPI_PROC_NULL */
    int32_t tag;
    uint32_t context; /* of the communicator, with enum p2p_context added */
    uint32_t world;   /* peer's world rank: sends always, receives once matched */
    struct buffer buffer;
    MPI_Count bytes; /* send: size of the message; receive: room in the buffer */
    struct match_node match;
    struct list link; /* send: waiting for room, or granted and sending; receive: not yet on the
                         board, or waiting for budget */
    struct queue_record *record;
    /* Rendezvous. */
    uint32_t number; /* own transfer number, 0: none */
    uint32_t remote; /* the peer's transfer number */
    MPI_Count
        total; /* receive: bytes that will arrive: the message, or the buffer if that is smaller */
    MPI_Count granted;      /* bytes the sender may have sent by now */
    MPI_Count moved;        /* bytes packed or unpacked so far */
    uint32_t joint_rest;    /* receive: chunks that the sender has taken */
    uint32_t joint_record;  /* receive: the sender's record */
    uint64_t joint_address; /* receive: the message in the sender's memory */
    struct type_cursor cursor;
};

/* Takes one from the pool and sets it up; holds references to comm and type. NULL: no memory. */
struct transfer *transfer_new(enum transfer_dir dir, struct buffer buffer, struct envelope envelope,
                              bool persistent);
/* Puts it back into its state before the start, for persistent requests. */
void transfer_rewind(struct transfer *t);

/* Starts a send or receive that transfer_new set up; may complete it at once. */
void transfer_start_send(struct transfer *t);
void transfer_start_recv(struct transfer *t);

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

/* Completes it, off all lists and the board. */
static inline void transfer_complete(struct transfer *t, int error)
{
    if (t->record)
        board_hide(t->engine, &t->record);
    if (__builtin_expect(t->helped, 0)) {
        t->helped = false;
        async_end();
    }
    request_complete(&t->base, error);
}

/* What request_ops.destroy of a transfer does: for kinds with an ops table of their own. */
void transfer_destroy(struct request *r);

/* Frees the pool. */
void transfer_deinit(struct engine *e);

/* The call that started it returns and leaves it unfinished. */
void transfer_left_long(struct transfer *t);
static inline void transfer_left(struct transfer *t)
{
    if (__builtin_expect(t->bytes >= ASYNC_MIN_BYTES, 0))
        transfer_left_long(t);
}

static inline struct transfer *transfer_of(struct request *r)
{
    return (struct transfer *)r;
}

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
