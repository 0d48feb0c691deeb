/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/p2p/inbound.h"

#include <stdlib.h>
#include <string.h>

#include "client/object/err.h"
#include "client/p2p/board.h"
#include "client/p2p/outbound.h"
#include "client/p2p/rendezvous.h"
#include "client/transport/end.h"

/* The fields of a slot, read once. */
struct incoming {
    struct engine *engine;
    uint32_t src_world;
    uint32_t context;
    int32_t source;
    int32_t tag;
    uint32_t order;
    uint32_t len;
    uint8_t kind;
    const void *payload;
};

/* An ordered message that overtook another one on the way (different networks, resending). The node
 * is first (peer_deinit). */
struct early_message {
    struct list link;
    struct incoming incoming;
    uint8_t payload[];
};

static inline void count_received(struct engine *e, uint64_t bytes)
{
    if (__builtin_expect(e->vci->index != 0, 0)) {
        e->recv_msgs++;
        e->recv_bytes += bytes;
        return;
    }
    struct segment_rank *me = transport_here->me;
    atomic_store_explicit(&me->recv_msgs,
                          atomic_load_explicit(&me->recv_msgs, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    atomic_store_explicit(&me->recv_bytes,
                          atomic_load_explicit(&me->recv_bytes, memory_order_relaxed) + bytes,
                          memory_order_relaxed);
}

/* The receive has its message: off the deferred list, and its status is known. */
static inline void matched(struct transfer *t, uint32_t src_world, int32_t source, int32_t tag)
{
    list_remove(&t->link);
    t->base.source = source;
    t->base.tag = tag;
    t->world = src_world;
}

static inline void deliver_eager(struct transfer *t, uint32_t src_world, int32_t source,
                                 int32_t tag, const void *payload, uint32_t len)
{
    matched(t, src_world, source, tag);
    int error = transfer_check_length(t, len);
    if (__builtin_expect(len > t->bytes, 0))
        len = (uint32_t)t->bytes;
    transfer_unpack_all(&t->buffer, payload, len);
    t->base.bytes = len;
    transfer_complete(t, error);
}

static bool split_rts(const struct incoming *e, struct msg_rts *ret_rts, const void **ret_first,
                      uint32_t *ret_len)
{
    if (e->len < sizeof *ret_rts)
        return false;
    memcpy(ret_rts, e->payload, sizeof *ret_rts);
    *ret_first = (const uint8_t *)e->payload + sizeof *ret_rts;
    *ret_len = e->len - (uint32_t)sizeof *ret_rts;
    return ret_rts->bytes <= INT64_MAX && *ret_len <= ret_rts->bytes;
}

static void keep_unexpected(const struct incoming *e)
{
    const void *body = e->payload;
    uint32_t len = e->len;
    struct msg_rts rts = {.bytes = e->len};

    if (e->kind == MSG_RTS && !split_rts(e, &rts, &body, &len))
        return;
    struct unexpected *u = malloc(sizeof *u + len);
    if (!u)
        end_no_memory(__func__, "an unexpected message", sizeof *u + len);
    *u = (struct unexpected){
        .match = {.context = e->context, .source = e->source, .tag = e->tag},
        .kind = e->kind == MSG_RTS ? UNEXPECTED_RTS : UNEXPECTED_EAGER,
        .src_world = e->src_world,
        .len = len,
        .bytes = (MPI_Count)rts.bytes,
        .rts = rts,
    };
    memcpy(u->payload, body, len);
    match_add_unexpected(&e->engine->match, u);
    board_show_unexpected(e->engine, u);
}

static void arrived(const struct incoming *e)
{
    struct transfer *t = match_arrived(&e->engine->match, e->context, e->source, e->tag);

    if (!t) {
        keep_unexpected(e);
    } else if (e->kind == MSG_EAGER) {
        deliver_eager(t, e->src_world, e->source, e->tag, e->payload, e->len);
        outbound_owe(peer_get(e->engine, e->src_world), e->len + PEER_EAGER_OVERHEAD);
    } else {
        struct msg_rts rts;
        const void *first;
        uint32_t first_len;
        matched(t, e->src_world, e->source, e->tag);
        if (split_rts(e, &rts, &first, &first_len))
            rendezvous_accept(t, peer_get(e->engine, e->src_world), &rts, first, first_len);
        else
            transfer_complete(t,
                              err_set(MPI_ERR_INTERN, "a malformed announcement came from rank %u",
                                      e->src_world));
    }
}

static void keep_early(struct peer *p, const struct incoming *e)
{
    struct early_message *m = malloc(sizeof *m + e->len);

    if (!m)
        end_no_memory(__func__, "a message that came early", sizeof *m + e->len);
    m->incoming = *e;
    memcpy(m->payload, e->payload, e->len);
    /* From the back: most overtake few. */
    struct list *where = &p->early;
    while (where->prev != &p->early &&
           (int32_t)(list_entry(where->prev, struct early_message, link)->incoming.order -
                     e->order) > 0)
        where = where->prev;
    list_insert_before(where, &m->link);
}

/* Restores the order in which a remote rank sent (MPI-5.0 section 3.5, nonovertaking): the daemon
 * delivers each message once but lets packets of different ways overtake one another. */
static void in_order(const struct incoming *e)
{
    struct peer *p = peer_get(e->engine, e->src_world);
    struct list *first;

    if (e->order != p->order_in) {
        if ((int32_t)(e->order - p->order_in) > 0)
            keep_early(p, e);
        return;
    }
    p->order_in++;
    arrived(e);
    while ((first = list_first(&p->early)) != NULL) {
        struct early_message *m = list_entry(first, struct early_message, link);
        if (m->incoming.order != p->order_in)
            break;
        list_remove(&m->link);
        p->order_in++;
        m->incoming.payload = m->payload;
        arrived(&m->incoming);
        free(m);
    }
}

static void on_credit(const struct incoming *e)
{
    struct peer *p = peer_get(e->engine, e->src_world);
    struct msg_credit credit;

    if (e->len != sizeof credit)
        return;
    memcpy(&credit, e->payload, sizeof credit);
    p->eager_out -= credit.bytes < p->eager_out ? credit.bytes : p->eager_out;
}

static void any_message(struct engine *engine, uint32_t src_world, const struct ring_slot *slot,
                        uint8_t kind, uint32_t len, const void *payload)
{
    struct incoming e = {
        .engine = engine,
        .src_world = src_world,
        .context = slot->context,
        .source = slot->source,
        .tag = slot->tag,
        .len = len,
        .kind = kind,
        .payload = payload,
    };

    switch (kind) {
    case MSG_EAGER:
    case MSG_RTS:
        count_received(e.engine, len);
        if (slot->flags & MSG_F_ORDERED) {
            e.order = slot->order;
            in_order(&e);
        } else {
            arrived(&e);
        }
        break;
    case MSG_DATA:
        count_received(e.engine, len);
        rendezvous_on_data(e.engine, src_world, e.context,
                           (uint32_t)e.tag | (uint64_t)slot->order << 32, payload, len);
        break;
    case MSG_PULL: {
        struct msg_pull pull;
        if (len != sizeof pull)
            break;
        memcpy(&pull, payload, sizeof pull);
        rendezvous_on_pull(e.engine, src_world, e.context, &pull);
        break;
    }
    case MSG_FINISHED:
        rendezvous_on_fin(e.engine, src_world, e.context);
        break;
    case MSG_CREDIT:
        on_credit(&e);
        break;
    default:
        /* Not written by this library: dropped, as whoever wrote it can only have hurt its own
         * job. */
        break;
    }
}

void inbound_message(void *arg, uint32_t src_world, const struct ring_slot *slot, uint32_t len,
                     const void *payload)
{
    struct engine *engine = arg;
    uint8_t kind = slot->kind;

    /* The short path: a whole message from this node that a receive waits for. */
    if (__builtin_expect(kind == MSG_EAGER && !(slot->flags & MSG_F_ORDERED), 1)) {
        int32_t source = slot->source, tag = slot->tag;
        struct transfer *t = match_arrived(&engine->match, slot->context, source, tag);
        if (t) {
            count_received(engine, len);
            deliver_eager(t, src_world, source, tag, payload, len);
            outbound_owe(peer_get(engine, src_world), len + PEER_EAGER_OVERHEAD);
            return;
        }
    }
    any_message(engine, src_world, slot, kind, len, payload);
}

void inbound_take_own(struct transfer *t, struct transfer *send)
{
    matched(t, transport_here->world_rank, send->base.comm->rank, send->tag);
    int error = transfer_check_length(t, send->bytes);
    t->base.bytes = datatype_copy(send->buffer.base, send->buffer.count, send->buffer.type,
                                  t->buffer.base, t->buffer.count, t->buffer.type);
    transfer_complete(t, error);
    transfer_complete(send, MPI_SUCCESS);
}

void inbound_take_unexpected(struct transfer *t, struct unexpected *u)
{
    board_hide(t->engine, &u->record);
    switch (u->kind) {
    case UNEXPECTED_EAGER:
        deliver_eager(t, u->src_world, u->match.source, u->match.tag, u->payload, u->len);
        if (u->src_world != transport_here->world_rank)
            outbound_owe(peer_get(t->engine, u->src_world), u->len + PEER_EAGER_OVERHEAD);
        break;
    case UNEXPECTED_RTS:
        matched(t, u->src_world, u->match.source, u->match.tag);
        rendezvous_accept(t, peer_get(t->engine, u->src_world), &u->rts, u->payload, u->len);
        break;
    case UNEXPECTED_SELF:
        inbound_take_own(t, u->self);
        break;
    }
    free(u);
}
