/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between origins and targets, for what load and store do not reach.
 *
 * A pair of ranks has three streams in a window, in contexts of its private communicator:
 *  - requests, origin to target (tag 0 of the first context): operations, and what the target has
 *    to do after all earlier ones (FLUSH, UNLOCK, COMPLETE), or before all later ones (LOCK). The
 *    target carries them out in order; a request that cannot go on yet holds up those behind it,
 *    and nobody else's. So lock, put and unlock need one round trip;
 *  - answers (tag 1): handled at once, whatever waits in the other direction, as a request of one
 *    may wait for an answer to the other;
 *  - data (the third context, tag = number of the part, with MESSAGE_RESULT towards the origin):
 *    ordinary messages for what is too long to ride along. They go straight to their place where
 *    it is one run, else through a chunk of bounded size.
 *
 * Requests arrive without a receive (p2p_set_taker). One that waits keeps its eager allowance, so
 * an origin fills no more of its target's memory than by sending.
 *
 * message.c moves them, part.c makes operations into requests, serve.c carries them out.
 */
#ifndef MOTET_CLIENT_RMA_MESSAGE_H
#define MOTET_CLIENT_RMA_MESSAGE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "client/datatype/buffer.h"
#include "client/progress/request.h"
#include "client/rma/pieces.h"
#include "client/rma/win.h"

enum message_tag { MESSAGE_REQUEST, MESSAGE_ANSWER };

enum message_kind {
    /* requests */
    MESSAGE_PUT = 1,
    MESSAGE_GET,
    MESSAGE_ACCUMULATE,
    MESSAGE_COMPARE, /* data: value, compare */
    MESSAGE_LOCK,
    MESSAGE_UNLOCK, /* answered by DONE, as FLUSH */
    MESSAGE_FLUSH,
    MESSAGE_COMPLETE, /* MPI_Win_complete */
    /* answers */
    MESSAGE_RESULT_IS, /* of the part `id`: data */
    MESSAGE_DONE,
    MESSAGE_REFUSED, /* an operation without result has failed: `error` */
    MESSAGE_POST,    /* MPI_Win_post */
};

#define MESSAGE_F_FOLLOWS                                                                          \
    0x1u                         /* the operand comes as a message of its own, under the part's id \
                                  */
#define MESSAGE_F_NOTHING   0x2u /* there is no operand (MPI_NO_OP) */
#define MESSAGE_F_RESULT    0x4u /* the values before are wanted */
#define MESSAGE_F_SEPARATE  0x8u /* the result shall come as a message of its own */
#define MESSAGE_F_EXCLUSIVE 0x10u

struct message_head {
    uint8_t kind;     /* enum message_kind */
    uint8_t flags;    /* MESSAGE_F_... */
    uint16_t op;      /* handles of a predefined operation and of */
    uint16_t element; /* the predefined type of an accumulate's elements */
    uint16_t error;   /* answers: class, MPI_SUCCESS if it went well */
    uint32_t id;      /* number of the part at the origin */
    uint32_t n_pieces;
    uint64_t bytes; /* of the operand or result */
};
static_assert(sizeof(struct message_head) == 24, "pieces and data behind it are aligned");

/* Requests of at most so many bytes take their data along; they are eager within a node. */
#define MESSAGE_INLINE 8192u
/* Longer operands and results whose place is not one run travel in chunks of so much. */
#define MESSAGE_CHUNK (256u << 10)

/* Added to a part's number for data towards the origin. */
#define MESSAGE_RESULT (1 << 30)

/* This rank and another one in a window. */
struct link {
    struct win *win;
    int rank;

    /* As origin. */
    struct list queue; /* struct operation with parts that have not been sent */
    struct list busy;  /* in rma_here->busy while it is not empty */
    uint32_t n_queued;
    uint32_t n_open;          /* operations that are not complete here */
    uint32_t n_flying;        /* their parts that are under way and counted, */
    uint64_t flying_bytes;    /* and the memory that these need at the target */
    bool dirty;               /* something was sent that the target may not have carried out */
    uint32_t n_asked, n_done; /* FLUSH and UNLOCK; their answers */
    uint32_t n_posts;         /* of MPI_Win_post there that no MPI_Win_start has used */

    /* As target. */
    struct list held;    /* struct held: requests that wait for their turn */
    uint32_t n_incoming; /* operands that are on their way to their place */
    uint32_t n_reading;  /* results that are on their way straight out of the window */
    bool exclusive;      /* one of them is of an accumulate: nothing goes on before it is there */
    bool fetching;       /* the first of `held` was announced and is being received */
    bool drawn;          /* the first of `held` is a lock whose ticket is drawn: it waits */
    uint32_t ticket;
    struct list waiting; /* in rma_here->waiting meanwhile */
    uint8_t granted;     /* enum win_locked: what it holds here */
    uint32_t n_completes;
};

struct outgoing;
struct part;

#define RMA_PARTS_MAX (1u << 20)
struct rma {
    struct list busy;     /* links with a queue */
    struct list waiting;  /* links whose first request is a lock that it does not have yet */
    struct list outgoing; /* messages that are not complete */
    struct list incoming; /* serve.c */
    struct list fetching; /* announced requests and answers that are being received */
    struct list parts;    /* part.c: those with a message of data */
    struct part **slots;  /* by number */
    uint32_t n_slots, first_free;
    uint32_t n_outgoing;
    int n_active;  /* in these lists but `waiting` */
    int n_waiting; /* in `waiting`, and threads that wait for a lock in shared memory */
    struct outgoing *spare;
};
extern struct rma *rma_here;

/* The link to a rank of the window, made when needed. */
struct link *link_of(struct win *win, int rank);
void link_free(struct link *link);

/* Sends head, pieces and data as one message; they are copied. */
void message_send(struct link *link, enum message_tag tag, const struct message_head *head,
                  const struct pieces *pieces, const void *data, size_t n_bytes);
/* The same with room for the data that the caller fills in: packed by it. */
struct outgoing *message_begin(const struct message_head *head, const struct pieces *pieces,
                               size_t n_bytes, void **ret_data);
void message_post(struct link *link, enum message_tag tag, struct outgoing *message);
/* Data of `buffer`, which stays until they have left: `chunk` is freed then (may be NULL). `reads`:
 * they are in the window, and count in link.n_reading meanwhile. */
void message_send_data(struct link *link, int tag, struct buffer buffer, void *chunk, bool reads);

/* Begins to take the messages of windows; further calls do nothing. */
void message_init(void);

/* ---- part.c and serve.c, for message.c ---- */

/* A request in its turn; `n` bytes behind the head. False: it must wait. */
bool serve_request(struct link *link, const struct message_head *head, const void *body, size_t n);
/* Goes on with the requests that were held. */
void message_run(struct link *link);
int serve_poll(void);

void part_answer(struct link *link, const struct message_head *head, const void *body, size_t n);
int part_poll(void);
/* Sends of the queue what may be sent. Returns how many parts. */
int part_send_more(struct link *link);

#endif
