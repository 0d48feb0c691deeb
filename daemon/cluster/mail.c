/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/cluster/mail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "daemon/routing/epoch.h"
#include "proto/control.pb-c.h"
#include "proto/frame.h"

#define MAX_HOPS 32u
/* Most bytes of one peer under way without acknowledgement. */
#define WINDOW_BYTES  (4u << 20)
#define RESEND_MIN_NS (300 * CLOCK_NS_PER_MS)
#define RESEND_MAX_NS (2 * CLOCK_NS_PER_S)
/* Peers are never forgotten (their numbers must go on), but a cluster has no more than so many. */
#define MAX_PEERS 8192u
/* Room that a Mail frame needs around its body. */
#define ENVELOPE_BYTES 128u

struct letter {
    struct list link;
    uint64_t sequence;
    uint16_t type;
    bool sent;
    uint32_t len;
    uint8_t body[];
};

struct mail_peer {
    UT_hash_handle hh;
    uint32_t node;
    uint32_t epoch; /* incarnation that the numbers belong to; 0 while unknown */
    /* Out. */
    uint64_t next_sequence;
    struct list letters; /* unacknowledged, oldest first */
    size_t bytes, in_flight;
    uint64_t resend_at_ns, resend_ns;
    /* In. */
    uint64_t expected;
};

struct mail {
    uint32_t node, epoch;
    size_t max_bytes;
    const struct mail_ops *ops;
    void *ctx;
    struct mail_peer *peers;
    struct list inbox; /* to the own node */
    size_t inbox_bytes;
};

struct mail *mail_new(uint32_t node, uint32_t epoch, size_t max_bytes, const struct mail_ops *ops,
                      void *ctx)
{
    struct mail *m = calloc(1, sizeof *m);

    if (!m)
        return NULL;
    m->node = node;
    m->epoch = epoch;
    m->max_bytes = max_bytes;
    m->ops = ops;
    m->ctx = ctx;
    list_init(&m->inbox);
    return m;
}

void mail_set_max_bytes(struct mail *m, size_t max_bytes)
{
    m->max_bytes = max_bytes;
}

static void letters_free(struct list *letters)
{
    list_foreach_safe(it, letters) {
        list_remove(it);
        free(list_entry(it, struct letter, link));
    }
}

void mail_free(struct mail *m)
{
    struct mail_peer *p, *next;

    if (!m)
        return;
    HASH_ITER(hh, m->peers, p, next) {
        letters_free(&p->letters);
        HASH_DEL(m->peers, p);
        free(p);
    }
    letters_free(&m->inbox);
    free(m);
}

static struct mail_peer *peer_find(const struct mail *m, uint32_t node)
{
    struct mail_peer *p;
    HASH_FIND(hh, m->peers, &node, sizeof node, p);
    return p;
}

static struct mail_peer *peer_get(struct mail *m, uint32_t node)
{
    struct mail_peer *p = peer_find(m, node);

    if (p)
        return p;
    p = HASH_COUNT(m->peers) < MAX_PEERS ? calloc(1, sizeof *p) : NULL;
    if (!p)
        return NULL;
    p->node = node;
    p->next_sequence = 1;
    p->expected = 1;
    p->resend_ns = RESEND_MIN_NS;
    p->resend_at_ns = UINT64_MAX;
    list_init(&p->letters);
    HASH_ADD(hh, m->peers, node, sizeof p->node, p);
    return p;
}

static void peer_drop_letters(struct mail_peer *p)
{
    letters_free(&p->letters);
    p->bytes = p->in_flight = 0;
    p->resend_at_ns = UINT64_MAX;
    p->resend_ns = RESEND_MIN_NS;
}

/* The peer is another incarnation than the numbers belong to. Letters written before its epoch was
 * known stay. */
static void peer_set_epoch(struct mail_peer *p, uint32_t epoch)
{
    if (p->epoch == epoch)
        return;
    if (p->epoch != 0) {
        peer_drop_letters(p);
        p->next_sequence = 1;
    }
    p->expected = 1;
    p->epoch = epoch;
}

static int transmit(struct mail *m, struct mail_peer *p, const struct letter *l)
{
    Motet__Mail msg = MOTET__MAIL__INIT;
    const struct letter *first =
        list_empty(&p->letters) ? NULL : list_entry(list_first(&p->letters), struct letter, link);

    msg.src_node = m->node;
    msg.dst_node = p->node;
    msg.src_epoch = m->epoch;
    msg.dst_epoch = p->epoch;
    msg.sequence = l ? l->sequence : 0;
    msg.acknowledged = p->expected - 1;
    msg.hops_left = MAX_HOPS;
    msg.type = l ? l->type : 0;
    msg.body.data = l ? (uint8_t *)l->body : NULL;
    msg.body.len = l ? l->len : 0;
    msg.has_floor = true;
    msg.floor = first ? first->sequence : p->next_sequence;
    size_t len = motet__mail__get_packed_size(&msg);
    uint8_t *frame = malloc(len);
    if (!frame)
        return -ENOMEM;
    motet__mail__pack(&msg, frame);
    int rc = m->ops->forward(m->ctx, p->node, frame, (uint32_t)len);
    free(frame);
    return rc;
}

/* Sends what the window allows and was not sent yet. */
static void peer_push(struct mail *m, struct mail_peer *p, uint64_t now_ns)
{
    if (p->epoch == 0) {
        uint32_t epoch = m->ops->epoch_of(m->ctx, p->node);
        if (epoch == 0) {
            p->resend_at_ns = list_empty(&p->letters) ? UINT64_MAX : now_ns + p->resend_ns;
            return;
        }
        peer_set_epoch(p, epoch);
    }
    list_foreach(it, &p->letters) {
        struct letter *l = list_entry(it, struct letter, link);
        if (l->sent)
            continue;
        if (p->in_flight > 0 && p->in_flight + l->len > WINDOW_BYTES)
            break;
        if (transmit(m, p, l) < 0)
            break;
        l->sent = true;
        p->in_flight += l->len;
    }
    if (list_empty(&p->letters))
        p->resend_at_ns = UINT64_MAX;
    else if (p->resend_at_ns == UINT64_MAX)
        p->resend_at_ns = now_ns + p->resend_ns;
}

static void peer_resend(struct mail *m, struct mail_peer *p, uint64_t now_ns)
{
    list_foreach(it, &p->letters)
        list_entry(it, struct letter, link)->sent = false;
    p->in_flight = 0;
    p->resend_at_ns = UINT64_MAX;
    peer_push(m, p, now_ns);
}

int mail_send(struct mail *m, uint32_t dst_node, uint16_t type, const void *body, uint32_t len,
              uint64_t now_ns)
{
    if (len > FRAME_MAX_BYTES - ENVELOPE_BYTES)
        return -ENOBUFS;
    struct mail_peer *p = NULL;
    if (dst_node == m->node) {
        if (m->inbox_bytes + len > m->max_bytes)
            return -ENOBUFS;
    } else {
        p = peer_get(m, dst_node);
        if (!p)
            return -ENOMEM;
        if (p->bytes + len > m->max_bytes)
            return -ENOBUFS;
    }
    struct letter *l = malloc(sizeof *l + len);
    if (!l)
        return -ENOMEM;
    l->type = type;
    l->len = len;
    l->sent = false;
    if (len > 0)
        memcpy(l->body, body, len);
    if (!p) {
        list_append(&m->inbox, &l->link);
        m->inbox_bytes += len;
        m->ops->wake(m->ctx);
        return 0;
    }
    uint32_t epoch = m->ops->epoch_of(m->ctx, dst_node);
    if (epoch != 0)
        peer_set_epoch(p, epoch);
    l->sequence = p->next_sequence++;
    list_append(&p->letters, &l->link);
    p->bytes += len;
    peer_push(m, p, now_ns);
    m->ops->wake(m->ctx);
    return 0;
}

int mail_send_msg(struct mail *m, uint32_t dst_node, uint16_t type, const ProtobufCMessage *msg,
                  uint64_t now_ns)
{
    size_t len = protobuf_c_message_get_packed_size(msg);

    if (len > FRAME_MAX_BYTES - ENVELOPE_BYTES)
        return -ENOBUFS;
    uint8_t *body = malloc(len + 1);
    if (!body)
        return -ENOMEM;
    protobuf_c_message_pack(msg, body);
    int rc = mail_send(m, dst_node, type, body, (uint32_t)len, now_ns);
    free(body);
    return rc;
}

static void on_acknowledged(struct mail *m, struct mail_peer *p, uint64_t acknowledged,
                            uint64_t now_ns)
{
    bool moved = false;

    list_foreach_safe(it, &p->letters) {
        struct letter *l = list_entry(it, struct letter, link);
        if (l->sequence > acknowledged)
            break;
        list_remove(it);
        p->bytes -= l->len;
        if (l->sent)
            p->in_flight -= l->len;
        free(l);
        moved = true;
    }
    if (!moved)
        return;
    p->resend_ns = RESEND_MIN_NS;
    p->resend_at_ns = list_empty(&p->letters) ? UINT64_MAX : now_ns + p->resend_ns;
    peer_push(m, p, now_ns);
}

/* A frame for this node. */
static int mail_arrived(struct mail *m, const Motet__Mail *msg, uint64_t now_ns)
{
    if (msg->dst_epoch != m->epoch) {
        log_debug("mail from node %08x is for another incarnation of this daemon, ignoring",
                  msg->src_node);
        return 0;
    }
    struct mail_peer *p = peer_get(m, msg->src_node);
    if (!p)
        return 0;
    if (p->epoch != 0 && p->epoch != msg->src_epoch && !epoch_newer(msg->src_epoch, p->epoch))
        return 0;
    peer_set_epoch(p, msg->src_epoch);
    on_acknowledged(m, p, msg->acknowledged, now_ns);
    if (msg->has_floor && msg->floor > p->expected)
        p->expected = msg->floor;
    if (msg->sequence == 0)
        return 0;
    bool fresh = msg->sequence == p->expected;
    if (fresh)
        p->expected++;
    transmit(m, p, NULL);
    if (fresh)
        m->ops->deliver(m->ctx, msg->src_node, (uint16_t)msg->type, msg->body.data,
                        (uint32_t)msg->body.len, now_ns);
    return 0;
}

int mail_on_frame(struct mail *m, const uint8_t *frame, uint32_t len, uint64_t now_ns)
{
    Motet__Mail *msg = motet__mail__unpack(NULL, len, frame);
    int rc = 0;

    if (!msg)
        return -EPROTO;
    if (msg->base.n_unknown_fields > 0) {
        /* Versions are equal, so there are none; and what protobuf-c takes as one it may write so
         * that nobody can read it. */
        rc = -EPROTO;
    } else if (msg->src_node == m->node || msg->src_node == 0 || msg->type > UINT16_MAX ||
               msg->src_epoch == 0) {
        /* Our own mail comes back only while routes change; it must not be mistaken for a
         * peer's. */
        rc = msg->src_node == m->node ? 0 : -EPROTO;
    } else if (msg->dst_node == m->node) {
        rc = mail_arrived(m, msg, now_ns);
    } else if (msg->hops_left > 1 && msg->hops_left <= MAX_HOPS) {
        msg->hops_left--;
        size_t n = motet__mail__get_packed_size(msg);
        uint8_t *copy = malloc(n);
        if (copy) {
            motet__mail__pack(msg, copy);
            /* No way on: the sender tries again. */
            (void)m->ops->forward(m->ctx, msg->dst_node, copy, (uint32_t)n);
            free(copy);
        }
    }
    motet__mail__free_unpacked(msg, NULL);
    return rc;
}

void mail_on_routes(struct mail *m, uint64_t now_ns)
{
    struct mail_peer *p, *next;

    HASH_ITER(hh, m->peers, p, next) {
        uint32_t epoch = m->ops->epoch_of(m->ctx, p->node);
        if (epoch != 0 && (p->epoch == 0 || epoch_newer(epoch, p->epoch)))
            peer_set_epoch(p, epoch);
        peer_resend(m, p, now_ns);
    }
    m->ops->wake(m->ctx);
}

void mail_on_lost(struct mail *m, uint32_t node)
{
    struct mail_peer *p = peer_find(m, node);

    if (p)
        peer_drop_letters(p);
}

uint64_t mail_run(struct mail *m, uint64_t now_ns)
{
    struct mail_peer *p, *next;
    uint64_t when_ns = UINT64_MAX;

    /* Only what is there now: handlers may write more, which comes with the next call. */
    struct list batch;
    list_init(&batch);
    while (!list_empty(&m->inbox)) {
        struct list *it = list_first(&m->inbox);
        list_remove(it);
        list_append(&batch, it);
    }
    m->inbox_bytes = 0;
    list_foreach_safe(it, &batch) {
        struct letter *l = list_entry(it, struct letter, link);
        list_remove(it);
        m->ops->deliver(m->ctx, m->node, l->type, l->body, l->len, now_ns);
        free(l);
    }
    HASH_ITER(hh, m->peers, p, next) {
        if (p->resend_at_ns <= now_ns) {
            p->resend_ns = p->resend_ns * 2 > RESEND_MAX_NS ? RESEND_MAX_NS : p->resend_ns * 2;
            peer_resend(m, p, now_ns);
        }
        if (p->resend_at_ns < when_ns)
            when_ns = p->resend_at_ns;
    }
    return list_empty(&m->inbox) ? when_ns : now_ns;
}

size_t mail_queued(const struct mail *m, uint32_t node)
{
    const struct mail_peer *p = node == m->node ? NULL : peer_find(m, node);
    return p ? p->bytes : node == m->node ? m->inbox_bytes : 0;
}
