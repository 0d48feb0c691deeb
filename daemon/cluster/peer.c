/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/cluster/peer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "proto/control.pb-c.h"
#include "proto/wire.h"

#define NONCE_BYTES 32u
/* The round trip is measured so often; in between a heartbeat asks for no answer. */
#define MEASURE_EVERY_NS (2 * CLOCK_NS_PER_S)

static int peer_end_with(struct peer *p, int rc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int peer_end_with(struct peer *p, int rc, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(p->reason, sizeof p->reason, fmt, ap);
    va_end(ap);
    return rc;
}

static void peer_send_msg(struct peer *p, uint16_t type, const ProtobufCMessage *msg,
                          uint64_t now_ns)
{
    uint8_t body[PEER_HELLO_BYTES];
    size_t len = protobuf_c_message_get_packed_size(msg);

    if (len > sizeof body)
        return;
    protobuf_c_message_pack(msg, body);
    p->sent_ns = now_ns;
    p->ops->send(p->ctx, type, body, (uint32_t)len);
}

void peer_start(struct peer *p, const struct peer_self *self, const char *network,
                uint32_t own_port, bool initiator, const struct peer_ops *ops, void *ctx,
                uint64_t now_ns)
{
    Motet__Hello msg = MOTET__HELLO__INIT;
    uint8_t nonce[NONCE_BYTES];

    memset(p, 0, sizeof *p);
    p->self = self;
    p->ops = ops;
    p->ctx = ctx;
    p->state = PEER_HELLO;
    p->initiator = initiator;
    snprintf(p->network, sizeof p->network, "%s", network);
    p->since_ns = p->heard_ns = now_ns;
    if (getrandom(nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce)
        memset(nonce, 0,
               sizeof nonce); /* the kernel never gives less for 32 bytes once it has started */
    msg.version = PEER_VERSION;
    msg.wire_version = WIRE_VERSION;
    msg.node = (char *)self->node;
    msg.node_id = self->node_id;
    msg.epoch = self->epoch;
    msg.network = p->network;
    msg.packet_bytes = self->packet_bytes;
    msg.nonce.data = nonce;
    msg.nonce.len = sizeof nonce;
    msg.software = (char *)self->software;
    msg.has_control_port = true;
    msg.control_port = own_port;
    p->own_hello_len = (uint32_t)motet__hello__pack(&msg, p->own_hello);
    p->sent_ns = now_ns;
    ops->send(ctx, MOTET__FRAME_TYPE__HELLO, p->own_hello, p->own_hello_len);
}

/* The proof of one side: label, its role, its own Hello, the other's. */
static int peer_proof(const struct peer *p, bool of_initiator, bool own,
                      uint8_t mac[AUTH_MAC_BYTES])
{
    const struct auth_part parts[] = {
        {"motet-hello", 11},
        {of_initiator ? "I" : "A", 1},
        {own ? p->own_hello : p->other_hello, own ? p->own_hello_len : p->other_hello_len},
        {own ? p->other_hello : p->own_hello, own ? p->other_hello_len : p->own_hello_len},
    };

    return auth_mac(p->self->key, parts, sizeof parts / sizeof parts[0], mac);
}

static int peer_check_hello(struct peer *p, const Motet__Hello *msg)
{
    size_t name_len = strlen(msg->node);

    if (msg->version != PEER_VERSION || msg->wire_version != WIRE_VERSION)
        return peer_end_with(p, -EPROTO,
                             "node speaks control version %u, packets %u; here %u and %u",
                             msg->version, msg->wire_version, PEER_VERSION, WIRE_VERSION);
    if (msg->nonce.len != NONCE_BYTES || msg->epoch == 0 || name_len == 0 ||
        name_len >= sizeof p->node || msg->node_id == 0 || msg->node_id != node_name_id(msg->node))
        return peer_end_with(p, -EPROTO, "hello is not valid");
    for (const char *c = msg->node; *c; c++)
        if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 127)
            return peer_end_with(p, -EPROTO, "hello is not valid");
    if (strcmp(msg->network, p->network) != 0)
        return peer_end_with(p, -EPROTO, "node %s calls this network '%.55s', here it is '%s'",
                             msg->node, msg->network, p->network);
    if (msg->packet_bytes != p->self->packet_bytes)
        return peer_end_with(p, -EPROTO, "node %s has packet_bytes = %u, here it is %u", msg->node,
                             msg->packet_bytes, p->self->packet_bytes);
    snprintf(p->node, sizeof p->node, "%s", msg->node);
    p->node_id = msg->node_id;
    p->epoch = msg->epoch;
    p->control_port = msg->has_control_port ? msg->control_port : 0;
    return 0;
}

static int peer_on_hello(struct peer *p, const uint8_t *body, uint32_t len, uint64_t now_ns)
{
    Motet__Hello *msg = len <= sizeof p->other_hello ? motet__hello__unpack(NULL, len, body) : NULL;
    uint8_t mac[AUTH_MAC_BYTES];

    if (!msg)
        return peer_end_with(p, -EPROTO, "hello is not valid");
    int rc = peer_check_hello(p, msg);
    motet__hello__free_unpacked(msg, NULL);
    if (rc < 0)
        return rc;
    memcpy(p->other_hello, body, len);
    p->other_hello_len = len;
    rc = peer_proof(p, p->initiator, true, mac);
    if (rc < 0)
        return peer_end_with(p, -EACCES, "cannot compute the proof");
    Motet__Proof answer = MOTET__PROOF__INIT;
    answer.mac.data = mac;
    answer.mac.len = sizeof mac;
    p->state = PEER_PROOF;
    peer_send_msg(p, MOTET__FRAME_TYPE__PROOF, &answer.base, now_ns);
    return 0;
}

static int peer_on_proof(struct peer *p, const uint8_t *body, uint32_t len, uint64_t now_ns)
{
    Motet__Proof *msg = motet__proof__unpack(NULL, len, body);
    uint8_t mac[AUTH_MAC_BYTES];
    int rc = peer_proof(p, !p->initiator, false, mac);

    bool good = msg && rc == 0 && msg->mac.len == sizeof mac && auth_equal(msg->mac.data, mac);
    if (msg)
        motet__proof__free_unpacked(msg, NULL);
    if (!good)
        return peer_end_with(p, -EACCES, "node %s has another cluster key", p->node);
    /* Only now: a stranger must not learn what is known here. */
    const char *why = p->ops->admit(p->ctx, p);
    if (why)
        return peer_end_with(p, -EACCES, "%s", why);
    p->state = PEER_UP;
    p->ops->up(p->ctx, now_ns);
    return 0;
}

static int peer_on_heartbeat(struct peer *p, const uint8_t *body, uint32_t len, uint64_t now_ns)
{
    Motet__Heartbeat *msg = motet__heartbeat__unpack(NULL, len, body);

    if (!msg)
        return peer_end_with(p, -EPROTO, "heartbeat is not valid");
    if (msg->echo) {
        if (msg->sent_ns != 0 && msg->sent_ns == p->measured_ns && now_ns >= msg->sent_ns)
            p->ops->rtt(p->ctx, now_ns - msg->sent_ns, now_ns);
    } else if (msg->sent_ns != 0) {
        Motet__Heartbeat answer = MOTET__HEARTBEAT__INIT;
        answer.sent_ns = msg->sent_ns;
        answer.echo = true;
        peer_send_msg(p, MOTET__FRAME_TYPE__HEARTBEAT, &answer.base, now_ns);
    } else if (now_ns - p->sent_ns >= p->self->heartbeat_ns / 4) {
        /* Awake anyway: the own sign of life goes now, and the own timer need not fire. */
        Motet__Heartbeat own = MOTET__HEARTBEAT__INIT;
        own.sent_ns = 0;
        own.echo = true;
        peer_send_msg(p, MOTET__FRAME_TYPE__HEARTBEAT, &own.base, now_ns);
    }
    motet__heartbeat__free_unpacked(msg, NULL);
    return 0;
}

int peer_on_frame(struct peer *p, uint16_t type, const uint8_t *body, uint32_t len, uint64_t now_ns)
{
    p->heard_ns = now_ns;
    switch (p->state) {
    case PEER_HELLO:
        if (type == MOTET__FRAME_TYPE__HELLO)
            return peer_on_hello(p, body, len, now_ns);
        break;
    case PEER_PROOF:
        if (type == MOTET__FRAME_TYPE__PROOF)
            return peer_on_proof(p, body, len, now_ns);
        break;
    case PEER_UP:
        if (type == MOTET__FRAME_TYPE__HEARTBEAT)
            return peer_on_heartbeat(p, body, len, now_ns);
        if (type == MOTET__FRAME_TYPE__LINK_STATE || type == MOTET__FRAME_TYPE__MAIL) {
            int rc = p->ops->frame(p->ctx, type, body, len, now_ns);
            return rc < 0 ? peer_end_with(p, -EPROTO, "frame of type %u is not valid", type) : 0;
        }
        break;
    }
    return peer_end_with(p, -EPROTO, "frame of type %u does not belong here", type);
}

static uint64_t peer_silent_since(const struct peer *p)
{
    return p->heard_ns > p->self->changed_ns ? p->heard_ns : p->self->changed_ns;
}

int peer_on_timer(struct peer *p, uint64_t now_ns)
{
    Motet__Heartbeat msg = MOTET__HEARTBEAT__INIT;

    if (p->state != PEER_UP) {
        if (now_ns - p->since_ns <= p->self->handshake_ns)
            return 0;
        return peer_end_with(p, -ETIMEDOUT, "no hand-shake within %llu ms",
                             (unsigned long long)(p->self->handshake_ns / CLOCK_NS_PER_MS));
    }
    if (now_ns - peer_silent_since(p) > p->self->dead_after_ns)
        return peer_end_with(p, -ETIMEDOUT, "silent for %llu ms",
                             (unsigned long long)((now_ns - p->heard_ns) / CLOCK_NS_PER_MS));
    bool measure = p->measured_ns == 0 || now_ns - p->measured_ns >= MEASURE_EVERY_NS;
    /* Timers come a little early or late: three quarters of the interval is due. */
    if (!measure && now_ns - p->sent_ns < p->self->heartbeat_ns - p->self->heartbeat_ns / 4)
        return 0;
    if (measure)
        p->measured_ns = now_ns;
    msg.sent_ns = measure ? now_ns : 0;
    msg.echo = false;
    peer_send_msg(p, MOTET__FRAME_TYPE__HEARTBEAT, &msg.base, now_ns);
    return 0;
}

uint64_t peer_next_ns(const struct peer *p)
{
    if (p->state != PEER_UP)
        return p->since_ns + p->self->handshake_ns;
    uint64_t send_ns = p->sent_ns + p->self->heartbeat_ns,
             dead_ns = peer_silent_since(p) + p->self->dead_after_ns + CLOCK_NS_PER_MS;
    return send_ns < dead_ns ? send_ns : dead_ns;
}
