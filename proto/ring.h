/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ring: the only queue of the data path. Exactly one producer thread and one consumer thread;
 * rank to rank, rank to channel, channel to rank. It lies in shared memory.
 *
 * Idea: a message is one cache line (`struct ring_slot`) with a 24-byte header and up to 32 bytes
 * of payload; a larger payload lies in the ring's data area and the slot says where. The slot
 * itself tells whether it is published (`turn` holds the lap number of its position), so that a
 * short message costs the hand-over of one line and nothing else: there is no shared tail. The one
 * shared counter, `head`, is written by the consumer once per quarter ring and read by the producer
 * only when the ring looks full.
 *
 * Neither side trusts what the other can write: the producer keeps its tail and the data positions
 * in private memory and takes from `head` only values that can be true; the consumer copies the
 * slot's length and place, checks them against the layout it was given, and uses the copy.
 *
 * Model: tests/model/ring.pml. Layout: doc/wire.md.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/thread.h"
#include "proto/bell.h"

#define RING_LINE         64u
#define RING_INLINE_BYTES 32u
/* The data area is addressed by 16-bit line numbers. */
#define RING_MAX_DATA_BYTES (65536u * RING_LINE)

/* Kinds of message; their bodies: proto/msg.h. The daemon carries them and does not interpret them.
 */
enum msg_kind {
    MSG_EAGER = 1, /* payload complete */
    MSG_RTS = 2,   /* announcement of a large or synchronous message: struct msg_rts inline, first
                      bytes may follow */
    MSG_PULL = 3,  /* receiver grants a range: struct msg_pull */
    MSG_DATA = 4,  /* a piece: context = the receiver's transfer number, tag and order = offset */
    MSG_FINISHED = 5, /* receiver has everything: context = the sender's transfer number */
    MSG_CREDIT = 6,   /* eager allowance given back: struct msg_credit */
};

/* Message flags. */
#define MSG_F_ORDERED 0x01 /* takes part in matching: `order` counts per pair of ranks */

/* One message. All integers little endian; each field is set by the sending rank unless said
 * otherwise. */
struct ring_slot {
    _Atomic uint32_t turn; /* lap of the position this slot was published for, counted from 1;
                              stored last (release) */
    uint32_t len;  /* bytes of payload; inline when <= RING_INLINE_BYTES; checked by the consumer */
    uint8_t kind;  /* enum msg_kind */
    uint8_t flags; /* MSG_F_* */
    uint16_t data_line; /* first line of the payload in the data area when len > RING_INLINE_BYTES;
                           checked by the consumer */
    uint32_t context;   /* context id of the communicator, or request number for PULL, DATA, FIN */
    int32_t source;     /* rank of the sender in that communicator */
    int32_t tag;        /* MPI tag */
    uint32_t peer;  /* world rank: destination on the way to a channel, source on the way to a rank
                       (set by the channel) */
    uint32_t order; /* number of this message among the ordered ones of this pair of ranks */
    uint8_t payload[RING_INLINE_BYTES];
};
static_assert(sizeof(struct ring_slot) == RING_LINE, "a slot is one cache line");
static_assert(offsetof(struct ring_slot, payload) == 32, "header is half a line");

/* The shared part. Followed by n_slots slots, then the data area. All zero means empty and
 * quiet. */
struct ring_shared {
    _Alignas(RING_LINE) _Atomic uint32_t
        head; /* positions released for reuse; written by the consumer */
    _Alignas(RING_LINE) _Atomic uint32_t
        active; /* 1: the consumer polls this ring, no bell needed; written by the consumer */
    _Alignas(RING_LINE) struct ring_slot slots[];
};

/* Both numbers are powers of two, known to each side from the segment layout, never read from the
 * ring. */
struct ring_shape {
    uint32_t n_slots;
    uint32_t data_bytes; /* 0 or a multiple of 2 * RING_LINE, at most RING_MAX_DATA_BYTES */
};

/* Bytes a ring of this shape occupies, a multiple of RING_LINE. */
size_t ring_size(const struct ring_shape *shape);

/* Producer's private state. One thread. */
struct ring_producer {
    struct ring_slot *slots;
    uint8_t *data;
    struct ring_shared *shared;
    uint32_t mask, shift, data_bytes;
    uint32_t tail;      /* next position to publish */
    uint32_t head_seen; /* last valid value of head */
    uint32_t data_tail; /* free-running byte position in the data area */
    uint32_t data_head; /* free-running position up to which data was released */
    uint32_t pending;   /* data bytes claimed for the slot not yet published, padding included */
    uint32_t *data_end; /* per slot: data_tail after its message */
    struct bell_ref bell;
};

/* Takes a ring for producing. `data_end` is private memory of n_slots words, owned by the
 * caller. */
void ring_producer_init(struct ring_producer *p, void *ring, const struct ring_shape *shape,
                        uint32_t *data_end, const struct bell_ref *bell);

/* Slow path of ring_claim: reads head again. False if still full. */
bool ring_make_room(struct ring_producer *p, uint32_t len);

/* Largest payload that ring_claim can ever grant: half the data area, so that wrapping never
 * wedges. */
static inline uint32_t ring_max_payload(const struct ring_shape *shape)
{
    return shape->data_bytes > 2 * RING_INLINE_BYTES ? shape->data_bytes / 2 : RING_INLINE_BYTES;
}

/* Bytes left unused at the end of the data area so that `need` bytes lie in one piece. */
static inline uint32_t ring_padding(const struct ring_producer *p, uint32_t need)
{
    uint32_t rest = p->data_bytes - (p->data_tail & (p->data_bytes - 1));
    return rest < need ? rest : 0;
}

/*
 * Claims the next slot for `len` payload bytes (at most ring_max_payload). On success *ret_payload
 * is where the payload goes. Returns NULL when the ring is full. Claiming again without publishing
 * gives the same slot.
 */
static inline struct ring_slot *ring_claim(struct ring_producer *p, uint32_t len,
                                           void **ret_payload)
{
    struct ring_slot *slot = &p->slots[p->tail & p->mask];

    p->pending = 0;
    if (p->tail - p->head_seen > p->mask && !ring_make_room(p, len))
        return NULL;
    if (len <= RING_INLINE_BYTES) {
        *ret_payload = slot->payload;
    } else {
        uint32_t need = (len + RING_LINE - 1) & ~(RING_LINE - 1);
        uint32_t pad = ring_padding(p, need);
        if (p->data_tail + pad + need - p->data_head > p->data_bytes) {
            if (!ring_make_room(p, len))
                return NULL;
            pad = ring_padding(p, need); /* an empty data area has been moved to its front */
        }
        uint32_t off = (p->data_tail + pad) & (p->data_bytes - 1);
        p->pending = pad + need;
        slot->data_line = (uint16_t)(off / RING_LINE);
        *ret_payload = p->data + off;
    }
    slot->len = len;
    return slot;
}

/* Free positions as far as the producer knows without looking. */
static inline uint32_t ring_free_hint(const struct ring_producer *p)
{
    return p->mask + 1 - (p->tail - p->head_seen);
}

/* The producer takes lines into its cache ahead of their use: so many slots, and after a message
 * with data as much of the data area, up to this limit. It would otherwise wait for each line in
 * turn to come back from the consumer's cache, as stores leave a processor in order. */
#define RING_AHEAD_SLOTS 8u
#define RING_AHEAD_BYTES 8192u
static inline void ring_own_ahead(const struct ring_producer *p, uint32_t used)
{
    uint32_t n = used < RING_AHEAD_BYTES ? used : RING_AHEAD_BYTES;

    if (ring_free_hint(p) > RING_AHEAD_SLOTS)
        thread_prefetch_own(&p->slots[(p->tail + RING_AHEAD_SLOTS) & p->mask]);
    if (p->data_tail + n - p->data_head <= p->data_bytes)
        for (uint32_t i = 0; i < n; i += RING_LINE)
            thread_prefetch_own(p->data + ((p->data_tail + i) & (p->data_bytes - 1)));
}

/* Publishes the claimed slot and tells the consumer if it does not look by itself. */
static inline void ring_publish(struct ring_producer *p)
{
    struct ring_slot *slot = &p->slots[p->tail & p->mask];

    uint32_t used = p->pending;
    p->data_tail += used;
    p->pending = 0;
    p->data_end[p->tail & p->mask] = p->data_tail;
    uint32_t turn = (p->tail >> p->shift) + 1;
    p->tail++;
    if (p->bell.fenced) {
        /* seq_cst: pairs with the seq_cst exchange in bell_sleep_begin; orders this store before
         * the loads in bell_notify. */
        atomic_exchange_explicit(&slot->turn, turn, memory_order_seq_cst);
    } else {
        /* release: pairs with the acquire in ring_peek. The order against bell_notify's loads is
         * made by the sleeper's thread_barrier_all. */
        atomic_store_explicit(&slot->turn, turn, memory_order_release);
    }
    bell_notify(&p->bell, &p->shared->active);
    ring_own_ahead(p, used);
}

/* Consumer's private state. One thread. */
struct ring_consumer {
    struct ring_slot *slots;
    uint8_t *data;
    struct ring_shared *shared;
    uint32_t mask, shift, data_bytes;
    uint32_t next;      /* next position to read */
    uint32_t released;  /* value last stored to head */
    uint32_t data_used; /* payload bytes consumed since then */
};

void ring_consumer_init(struct ring_consumer *c, void *ring, const struct ring_shape *shape);

/* Gives back every message read so far. */
static inline void ring_release(struct ring_consumer *c)
{
    c->released = c->next;
    c->data_used = 0;
    /* release: pairs with the acquire in ring_make_room; our reads of the slots come before their
     * reuse. */
    atomic_store_explicit(&c->shared->head, c->next, memory_order_release);
}

/* The next message, or NULL. It stays valid until ring_advance. The payload pointer is found with
 * ring_payload. */
static inline struct ring_slot *ring_peek(struct ring_consumer *c)
{
    struct ring_slot *slot = &c->slots[c->next & c->mask];
    uint32_t turn = (c->next >> c->shift) + 1;

    /* acquire: pairs with the release in ring_publish. */
    if (atomic_load_explicit(&slot->turn, memory_order_acquire) != turn) {
        /* Idle: give everything back, or a producer that waits for more than three quarters of the
         * data area never gets it. */
        if (c->next != c->released)
            ring_release(c);
        return NULL;
    }
    return slot;
}

/* Where the payload of a message lies. `len` and `data_line` are the caller's copies. NULL if they
 * point outside the ring. */
static inline const void *ring_payload(const struct ring_consumer *c, const struct ring_slot *slot,
                                       uint32_t len, uint16_t data_line)
{
    if (len <= RING_INLINE_BYTES)
        return slot->payload;
    uint32_t off = (uint32_t)data_line * RING_LINE;
    if (len > c->data_bytes || off > c->data_bytes - len)
        return NULL;
    return c->data + off;
}

/* Done with the message that ring_peek returned; `len` is its payload length. */
static inline void ring_advance(struct ring_consumer *c, uint32_t len)
{
    c->next++;
    c->data_used += len > RING_INLINE_BYTES ? len + RING_LINE : 0;
    if (c->next - c->released > c->mask / 4 || c->data_used > c->data_bytes / 4)
        ring_release(c);
}
