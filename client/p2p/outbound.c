/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/p2p/outbound.h"

#include <stdlib.h>
#include <string.h>

#include "client/p2p/board.h"
#include "client/p2p/joint.h"
#include "client/p2p/rendezvous.h"
#include "client/transport/end.h"

#define CONTROL_PAYLOAD_BYTES 16u

/* Waits in peer.control. The node is first (peer_deinit). */
struct control_message {
    struct list link;
    uint32_t context;
    uint32_t len;
    uint8_t kind;
    uint8_t payload[CONTROL_PAYLOAD_BYTES];
};

int outbound_init(struct engine *e)
{
    list_init(&e->busy_peers);
    e->n_waiting = 0;
    return peer_init(e);
}

static void mark_busy(struct peer *p)
{
    if (list_empty(&p->busy)) {
        list_append(&p->engine->busy_peers, &p->busy);
        p->engine->n_waiting++;
    }
}

static inline void count_sent(struct engine *e, uint64_t bytes)
{
    if (__builtin_expect(e->vci->index != 0, 0)) {
        e->sent_msgs++;
        e->sent_bytes += bytes;
        return;
    }
    struct segment_rank *me = transport_here->me;
    /* One writer: plain read, relaxed store. */
    atomic_store_explicit(&me->sent_msgs,
                          atomic_load_explicit(&me->sent_msgs, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    atomic_store_explicit(&me->sent_bytes,
                          atomic_load_explicit(&me->sent_bytes, memory_order_relaxed) + bytes,
                          memory_order_relaxed);
}

/* Fills the header of an ordered message and publishes it. */
static inline void publish(struct peer *p, struct ring_producer *ring, struct ring_slot *slot,
                           uint8_t kind, uint32_t context, int32_t source, int32_t tag)
{
    slot->kind = kind;
    slot->context = context;
    slot->source = source;
    slot->tag = tag;
    if (p->local) {
        slot->flags = 0;
        if (__builtin_expect(p->engine->vci->index == 0, 1))
            transport_here->needs_channel = false;
    } else {
        transport_here->needs_channel = true;
        slot->flags = MSG_F_ORDERED;
        slot->peer = p->world;
        slot->order = p->order_out++;
    }
    ring_publish(ring);
}

static inline bool try_eager(struct peer *p, const struct buffer *message, MPI_Count bytes,
                             uint32_t context, int32_t source, int32_t tag)
{
    void *payload;

    if (bytes > p->eager_limit ||
        p->eager_out + (uint64_t)bytes + PEER_EAGER_OVERHEAD > PEER_EAGER_ALLOWANCE)
        return false;
    struct ring_producer *ring = peer_ring(p, false);
    if (!ring)
        return false;
    struct ring_slot *slot = ring_claim(ring, (uint32_t)bytes, &payload);
    if (!slot)
        return false;
    transfer_pack_all(message, payload, (size_t)bytes);
    p->eager_out += (uint64_t)bytes + PEER_EAGER_OVERHEAD;
    count_sent(p->engine, (uint64_t)bytes);
    publish(p, ring, slot, MSG_EAGER, context, source, tag);
    return true;
}

bool outbound_try_eager(struct peer *p, const struct buffer *message, MPI_Count bytes,
                        uint32_t context, int32_t source, int32_t tag)
{
    /* Nothing overtakes what waits. */
    return list_empty(&p->pending) && try_eager(p, message, bytes, context, source, tag);
}

/* Publishes the announcement of a large or synchronous message. False: no room. */
static bool try_announce(struct peer *p, struct transfer *t)
{
    struct msg_rts rts = {.bytes = (uint64_t)t->bytes};
    uint32_t first = 0;
    void *payload;

    struct ring_producer *ring = peer_ring(p, false);
    if (!ring)
        return false;
    bool fits = sizeof rts + (uint64_t)t->bytes <= p->eager_limit;
    bool allowed = p->eager_out + (uint64_t)t->bytes + PEER_EAGER_OVERHEAD <= PEER_EAGER_ALLOWANCE;
    if (fits && allowed && t->mode == P2P_SYNCHRONOUS) {
        rts.flags |= MSG_RTS_SYNC;
        first = (uint32_t)t->bytes;
    } else if (p->local && !p->no_readv && t->buffer.type->contiguous) {
        rts.flags |= MSG_RTS_SAME_NODE;
        rts.address = (uint64_t)(uintptr_t)datatype_run_start(t->buffer.type, t->buffer.base);
    } else if (!p->local && p->eager_out + p->eager_limit <= PEER_EAGER_ALLOWANCE) {
        /* The first packet's worth rides along: it covers half of the round trip that the grant
         * takes. */
        uint64_t room = p->eager_limit - sizeof rts;
        first = (uint32_t)((uint64_t)t->bytes < room ? (uint64_t)t->bytes : room);
    }
    struct ring_slot *slot = ring_claim(ring, (uint32_t)sizeof rts + first, &payload);
    if (!slot)
        return false;
    if (!t->number && !rendezvous_number(t))
        return false;
    rts.transfer = t->number;
    board_show(t, QUEUE_RENDEZVOUS_OUT);
    if (rts.flags & MSG_RTS_SAME_NODE)
        rts.record = joint_offer(t);
    memcpy(payload, &rts, sizeof rts);
    type_cursor_init(&t->cursor, t->buffer.type, t->buffer.count, t->buffer.base);
    if (first > 0)
        type_cursor_pack(&t->cursor, (uint8_t *)payload + sizeof rts, first);
    t->moved = t->granted = first;
    if (first > 0)
        p->eager_out += first + PEER_EAGER_OVERHEAD;
    count_sent(p->engine, (uint64_t)t->bytes);
    p->engine->rendezvous_out++;
    publish(p, ring, slot, MSG_RTS, t->context, t->base.comm->rank, t->tag);
    return true;
}

/* Whatever waits before it is the caller's business. False: no room; the transfer is untouched. */
static bool try_send(struct peer *p, struct transfer *t)
{
    if (t->mode != P2P_SYNCHRONOUS &&
        try_eager(p, &t->buffer, t->bytes, t->context, t->base.comm->rank, t->tag)) {
        transfer_complete(t, MPI_SUCCESS);
        return true;
    }
    if (t->mode != P2P_SYNCHRONOUS && t->bytes <= p->eager_limit &&
        p->eager_out + (uint64_t)t->bytes + PEER_EAGER_OVERHEAD <= PEER_EAGER_ALLOWANCE)
        return false; /* eager in principle: wait for room rather than change the protocol */
    return try_announce(p, t);
}

void outbound_send(struct peer *p, struct transfer *t)
{
    if (list_empty(&p->pending) && try_send(p, t))
        return;
    list_append(&p->pending, &t->link);
    board_show(t, QUEUE_PENDING);
    mark_busy(p);
}

static bool try_control(struct peer *p, const struct control_message *m)
{
    void *payload;
    struct ring_producer *ring = peer_ring(p, false);
    struct ring_slot *slot = ring ? ring_claim(ring, m->len, &payload) : NULL;

    if (!slot)
        return false;
    memcpy(payload, m->payload, m->len);
    slot->kind = m->kind;
    slot->flags = 0;
    slot->context = m->context;
    slot->source = 0;
    slot->tag = 0;
    slot->peer = p->world;
    slot->order = 0;
    ring_publish(ring);
    return true;
}

void outbound_control(struct peer *p, uint8_t kind, uint32_t context, const void *body,
                      uint32_t len)
{
    struct control_message m = {.kind = kind, .context = context, .len = len};

    if (len > 0)
        memcpy(m.payload, body, len);
    if (list_empty(&p->control) && try_control(p, &m))
        return;
    struct control_message *kept = malloc(sizeof *kept);
    if (!kept)
        end_no_memory(__func__, "a message to a rank that has no room", sizeof *kept);
    *kept = m;
    list_append(&p->control, &kept->link);
    mark_busy(p);
}

void outbound_repay(struct peer *p)
{
    struct msg_credit credit = {.bytes = p->eager_owed};

    p->eager_owed = 0;
    outbound_control(p, MSG_CREDIT, 0, &credit, sizeof credit);
}

static int poll_peer(struct peer *p)
{
    int n = 0;

    list_foreach_safe(it, &p->control) {
        struct control_message *m = list_entry(it, struct control_message, link);
        if (!try_control(p, m))
            return n;
        list_remove(it);
        free(m);
        n++;
    }
    list_foreach_safe(it, &p->pending) {
        struct transfer *t = list_entry(it, struct transfer, link);
        /* Off the list first: completing it may free it. */
        list_remove(it);
        if (!try_send(p, t)) {
            list_prepend(&p->pending, it);
            return n;
        }
        n++;
    }
    return n;
}

int outbound_poll(struct engine *e)
{
    int n = rendezvous_poll(e);

    list_foreach_safe(it, &e->busy_peers) {
        struct peer *p = list_entry(it, struct peer, busy);
        n += poll_peer(p);
        if (list_empty(&p->control) && list_empty(&p->pending)) {
            list_remove(it);
            e->n_waiting--;
        }
    }
    return n;
}
