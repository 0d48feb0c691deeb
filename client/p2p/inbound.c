/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/p2p/inbound.h"

#include <stdlib.h>
#include <string.h>

#include "client/object/err.h"
#include "client/p2p/announce.h"
#include "client/p2p/eager.h"
#include "client/p2p/protocols.h"
#include "client/p2p/self.h"
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

/* An ordered message that overtook another one on the way (different networks, resending). In
 * peer.early. */
struct early_message {
    struct list link;
    struct incoming incoming;
    uint8_t payload[];
};

/* ---- receives ---- */

/* Takes the oldest unexpected message that fits, if there is one. Out of line: the short path of a
 * receive that comes before its message shall not save registers for it. */
static __attribute__((noinline)) bool inbound_take_oldest(struct transfer *t)
{
    struct match *match = &t->engine->match;
    struct unexpected *u = match_find_unexpected(match, t->context, t->rank, t->tag);

    if (!u)
        return false;
    match_remove_unexpected(match, u);
    inbound_take_unexpected(t, u);
    return true;
}

void inbound_start(struct transfer *t)
{
    if (t->rank == MPI_PROC_NULL) {
        t->base.source = MPI_PROC_NULL;
        transfer_complete(t, MPI_SUCCESS);
        return;
    }
    if (t->engine->match.n_unexpected > 0 && inbound_take_oldest(t))
        return;
    transfer_post(t);
    if (t->blocking)
        transfer_show_later(t);
    else
        transfer_show(t, QUEUE_POSTED);
}

void inbound_take_unexpected(struct transfer *t, struct unexpected *u)
{
    record_hide(&t->engine->records, &u->record);
    switch (u->kind) {
    case UNEXPECTED_EAGER:
        eager_receive(t, u->src_world, u->match.source, u->match.tag, u->payload, u->len);
        if (u->src_world != transport_here->world_rank)
            peer_owe(peer_get(t->engine, u->src_world), u->len);
        break;
    case UNEXPECTED_RTS:
        transfer_matched(t, u->src_world, u->match.source, u->match.tag);
        announce_accept(t, peer_get(t->engine, u->src_world), &u->rts, u->payload, u->len, false);
        break;
    case UNEXPECTED_SELF:
        self_receive(t, u->self);
        break;
    }
    free(u);
}

/* ---- messages that are matched ---- */

static void inbound_keep_unexpected(const struct incoming *in)
{
    const void *body = in->payload;
    uint32_t len = in->len;
    struct msg_rts rts = {.bytes = in->len};

    if (in->kind == MSG_RTS && !announce_split(in->payload, in->len, &rts, &body, &len))
        return;
    bool (*taker)(uint32_t, int32_t, int32_t, const void *, MPI_Count) = in->engine->taker;
    if (taker && in->kind == MSG_EAGER &&
        taker(in->context, in->source, in->tag, in->payload, (MPI_Count)in->len))
        return;
    struct unexpected *u = malloc(sizeof *u + len);
    if (!u)
        end_no_memory(__func__, "an unexpected message", sizeof *u + len);
    *u = (struct unexpected){
        .match = {.context = in->context, .source = in->source, .tag = in->tag},
        .kind = in->kind == MSG_RTS ? UNEXPECTED_RTS : UNEXPECTED_EAGER,
        .src_world = in->src_world,
        .len = len,
        .bytes = (MPI_Count)rts.bytes,
        .rts = rts,
    };
    memcpy(u->payload, body, len);
    engine_add_unexpected(in->engine, u);
    if (taker && in->kind == MSG_RTS)
        taker(in->context, in->source, in->tag, NULL, (MPI_Count)rts.bytes);
}

static void inbound_match(const struct incoming *in)
{
    struct transfer *t = transfer_arrived(in->engine, in->context, in->source, in->tag);

    if (!t) {
        inbound_keep_unexpected(in);
    } else if (in->kind == MSG_EAGER) {
        eager_receive(t, in->src_world, in->source, in->tag, in->payload, in->len);
        peer_owe(peer_get(in->engine, in->src_world), in->len);
    } else {
        struct msg_rts rts;
        const void *first;
        uint32_t first_len;
        transfer_matched(t, in->src_world, in->source, in->tag);
        if (announce_split(in->payload, in->len, &rts, &first, &first_len))
            announce_accept(t, peer_get(in->engine, in->src_world), &rts, first, first_len, true);
        else
            transfer_complete(t,
                              err_set(MPI_ERR_INTERN, "a malformed announcement came from rank %u",
                                      in->src_world));
    }
}

/* ---- order ---- */

static void inbound_keep_early(struct peer *p, const struct incoming *in)
{
    /* From the back: most overtake few. */
    struct list *where = &p->early;
    while (where->prev != &p->early) {
        struct early_message *before = list_entry(where->prev, struct early_message, link);
        int32_t ahead = (int32_t)(before->incoming.order - in->order);
        if (ahead == 0)
            return; /* the same once more */
        if (ahead < 0)
            break;
        where = where->prev;
    }
    struct early_message *m = malloc(sizeof *m + in->len);
    if (!m)
        end_no_memory(__func__, "a message that came early", sizeof *m + in->len);
    m->incoming = *in;
    memcpy(m->payload, in->payload, in->len);
    list_insert_before(where, &m->link);
}

/* Restores the order in which a remote rank sent (MPI-5.0 section 3.5, nonovertaking): the daemon
 * delivers each message once but lets packets of different ways overtake one another. */
static void inbound_in_order(const struct incoming *in)
{
    struct peer *p = peer_get(in->engine, in->src_world);
    struct list *first;

    if (in->order != p->order_in) {
        if ((int32_t)(in->order - p->order_in) > 0)
            inbound_keep_early(p, in);
        return;
    }
    p->order_in++;
    inbound_match(in);
    while ((first = list_first(&p->early)) != NULL) {
        struct early_message *m = list_entry(first, struct early_message, link);
        if (m->incoming.order != p->order_in)
            break;
        list_remove(&m->link);
        p->order_in++;
        m->incoming.payload = m->payload;
        inbound_match(&m->incoming);
        free(m);
    }
}

void inbound_forget(struct engine *e, uint32_t first, uint32_t n)
{
    for (uint32_t i = first; i < first + n && i < e->n_peers; i++) {
        if (!e->peers[i])
            continue;
        list_foreach_safe(it, &e->peers[i]->early)
            free(list_entry(it, struct early_message, link));
        list_init(&e->peers[i]->early);
    }
}

void inbound_deinit(struct engine *e)
{
    if (e->peers)
        inbound_forget(e, 0, e->n_peers);
}

/* ---- everything that comes ---- */

static void inbound_on_credit(const struct incoming *in)
{
    struct msg_credit credit;

    if (in->len != sizeof credit)
        return;
    memcpy(&credit, in->payload, sizeof credit);
    credit_returned(&peer_get(in->engine, in->src_world)->credit, credit.bytes);
}

static void inbound_on_pull(const struct incoming *in)
{
    struct msg_pull pull;

    if (in->len != sizeof pull)
        return;
    memcpy(&pull, in->payload, sizeof pull);
    announce_on_pull(in->engine, in->src_world, in->context, &pull);
}

static void inbound_dispatch(struct engine *engine, uint32_t src_world,
                             const struct ring_slot *slot, uint8_t kind, uint32_t len,
                             const void *payload)
{
    struct incoming in = {
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
        engine_count_received(engine, len);
        if (slot->flags & MSG_F_ORDERED) {
            engine->daemon_recv_msgs++;
            engine->daemon_recv_bytes += len;
            in.order = slot->order;
            inbound_in_order(&in);
        } else {
            inbound_match(&in);
        }
        break;
    case MSG_DATA:
        engine_count_received(engine, len);
        if (!peer_get(engine, src_world)->local)
            engine->daemon_recv_bytes += len;
        rendezvous_on_data(&protocols_of(engine)->rendezvous, src_world, in.context,
                           (uint32_t)in.tag | (uint64_t)slot->order << 32, payload, len);
        break;
    case MSG_PULL:
        inbound_on_pull(&in);
        break;
    case MSG_FINISHED:
        announce_on_finished(engine, src_world, in.context);
        break;
    case MSG_CREDIT:
        inbound_on_credit(&in);
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
        struct transfer *t = transfer_arrived(engine, slot->context, source, tag);
        if (t) {
            engine_count_received(engine, len);
            eager_receive(t, src_world, source, tag, payload, len);
            peer_owe(peer_get(engine, src_world), len);
            return;
        }
    }
    inbound_dispatch(engine, src_world, slot, kind, len, payload);
}
