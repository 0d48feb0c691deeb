/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/p2p/peer.h"

#include <stdlib.h>
#include <string.h>

#include "client/transport/end.h"
#include "client/transport/foreign.h"

/* Below this two copies through the ring beat the system call that reads the sender's memory, whose
 * latency is about 1 us (bench/run --only node). */
#define LOCAL_EAGER_BYTES 16384u

#define CONTROL_PAYLOAD_BYTES 16u

/* Waits in peer.control_backlog. */
struct control_message {
    struct list link;
    uint32_t context;
    uint32_t len;
    uint8_t kind;
    uint8_t payload[CONTROL_PAYLOAD_BYTES];
};

int peer_init(struct engine *e)
{
    list_init(&e->busy_peers);
    e->n_peers = e->vci->index == 0 ? foreign_n_peers() : transport_here->n_world;
    e->peers = calloc(e->n_peers, sizeof *e->peers);
    return e->peers ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static void peer_free(struct peer *p)
{
    list_foreach_safe(it, &p->control_backlog)
        free(list_entry(it, struct control_message, link));
    free(p->method);
    free(p);
}

void peer_deinit(struct engine *e)
{
    for (uint32_t i = 0; e->peers && i < e->n_peers; i++)
        if (e->peers[i])
            peer_free(e->peers[i]);
    free(e->peers);
    e->peers = NULL;
}

void peer_forget(struct engine *e, uint32_t first, uint32_t n)
{
    for (uint32_t i = first; i < first + n && i < e->n_peers; i++) {
        struct peer *p = e->peers[i];
        if (!p)
            continue;
        if (!list_empty(&p->busy)) {
            list_remove(&p->busy);
            e->n_waiting--;
        }
        peer_free(p);
        e->peers[i] = NULL;
    }
}

struct peer *peer_make(struct engine *e, uint32_t world)
{
    struct peer *p = calloc(1, sizeof *p);

    if (!p)
        end_no_memory(__func__, "what is kept of a peer", sizeof *p);
    p->engine = e;
    p->world = world;
    list_init(&p->early);
    list_init(&p->backlog);
    list_init(&p->control_backlog);
    list_init(&p->busy);
    if (transport_here->base) {
        const struct segment_world *place = transport_world(world);
        p->node = place->node;
        p->local = place->node == transport_here->node;
        if (p->local) {
            p->ring = outbox_local(&e->outbox, place->local);
            uint32_t most = ring_max_payload(&transport_here->layout.shape.local);
            p->eager_limit = LOCAL_EAGER_BYTES < most ? LOCAL_EAGER_BYTES : most;
        } else {
            p->eager_limit = transport_here->packet_bytes;
        }
    }
    e->peers[world] = p;
    return p;
}

struct method_table *peer_make_method(struct peer *p)
{
    p->method = method_new(p->engine->vci->index, transport_here->local_rank,
                           transport_world(p->world)->local, p->engine->copy_method);
    return p->method;
}

__attribute__((noinline)) void peer_number(struct peer *p, struct ring_slot *slot)
{
    transport_here->needs_channel = true;
    p->engine->daemon_sent_msgs++;
    p->engine->daemon_sent_bytes += slot->len;
    slot->flags = MSG_F_ORDERED;
    slot->peer = p->world;
    slot->order = p->order_out++;
}

void peer_mark_busy(struct peer *p)
{
    if (list_empty(&p->busy)) {
        list_append(&p->engine->busy_peers, &p->busy);
        p->engine->n_waiting++;
    }
}

/* ---- control messages ---- */

static bool peer_try_control(struct peer *p, const struct control_message *m)
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

void peer_send_control(struct peer *p, uint8_t kind, uint32_t context, const void *payload,
                       uint32_t len)
{
    struct control_message m = {.kind = kind, .context = context, .len = len};

    if (len > 0)
        memcpy(m.payload, payload, len);
    if (list_empty(&p->control_backlog) && peer_try_control(p, &m))
        return;
    struct control_message *kept = malloc(sizeof *kept);
    if (!kept)
        end_no_memory(__func__, "a message to a rank that has no room", sizeof *kept);
    *kept = m;
    list_append(&p->control_backlog, &kept->link);
    peer_mark_busy(p);
}

int peer_retry_control(struct peer *p)
{
    int n = 0;

    list_foreach_safe(it, &p->control_backlog) {
        struct control_message *m = list_entry(it, struct control_message, link);
        if (!peer_try_control(p, m))
            break;
        list_remove(it);
        free(m);
        n++;
    }
    return n;
}

void peer_repay(struct peer *p)
{
    struct msg_credit credit = {.bytes = credit_settle(&p->credit)};

    peer_send_control(p, MSG_CREDIT, 0, &credit, sizeof credit);
}
