/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/cluster/peer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "proto/control.pb-c.h"
#include "proto/wire.h"

#define NONCE_BYTES 32u
/* Between measurements of the round trip, or so many heartbeats where those are rare; others ask
 * for no answer. */
#define MEASURE_EVERY_NS    (2 * CLOCK_NS_PER_S)
#define MEASURE_EVERY_BEATS 4u
/* Silence is borne longer by so many times the own lag, and by so many times dead_after at most. */
#define LAG_PEAKS 4u
#define LAG_MOST  3u

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
                enum seal_mode protect, uint32_t own_port, bool initiator,
                const struct peer_ops *ops, void *ctx, uint64_t now_ns)
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
    p->protect = protect;
    seal_random(nonce, sizeof nonce);
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
    msg.salt.data = (uint8_t *)self->salt;
    msg.salt.len = sizeof self->salt;
    msg.protect = protect;
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
    if (msg->nonce.len != NONCE_BYTES || msg->salt.len != PEER_SALT_BYTES || msg->epoch == 0 ||
        name_len == 0 || name_len >= sizeof p->node || msg->node_id == 0 ||
        msg->node_id != node_name_id(msg->node))
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
    if (msg->protect != p->protect)
        return peer_end_with(p, -EPROTO,
                             "node %s has protect = %s on network %s, here it is %s: give both the "
                             "same in motetd.conf",
                             msg->node, seal_mode_name(msg->protect), p->network,
                             seal_mode_name(p->protect));
    snprintf(p->node, sizeof p->node, "%s", msg->node);
    p->node_id = msg->node_id;
    p->epoch = msg->epoch;
    memcpy(p->salt, msg->salt.data, sizeof p->salt);
    p->control_port = msg->has_control_port ? msg->control_port : 0;
    return 0;
}

/* The keys of this connection, and the secret of the two incarnations. Both sides name the parts in
 * the same order: the side that opened the connection first, and the lower node id first. */
static int peer_make_keys(struct peer *p)
{
    struct {
        uint8_t salts[2][PEER_SALT_BYTES];
        uint32_t ids[2], epochs[2];
        char network[NODE_NAME_BYTES];
    } pair = {0};
    uint8_t hellos[2 * PEER_HELLO_BYTES], session[SEAL_SECRET_BYTES];
    const struct peer_self *self = p->self;
    const int own = self->node_id < p->node_id ? 0 : 1;
    const uint32_t n_first = p->initiator ? p->own_hello_len : p->other_hello_len;

    memcpy(hellos, p->initiator ? p->own_hello : p->other_hello, n_first);
    memcpy(hellos + n_first, p->initiator ? p->other_hello : p->own_hello,
           p->own_hello_len + p->other_hello_len - n_first);
    const struct seal_source source = {.secret = self->key->bytes,
                                       .n_secret = self->key->len,
                                       .salt = hellos,
                                       .n_salt = p->own_hello_len + p->other_hello_len};
    if (seal_derive_from(&source, "motet control", NULL, 0, session, sizeof session) < 0 ||
        seal_key_init(&p->out, session, "motet control: key", p->initiator ? "I" : "A", 1,
                      SEAL_ENCRYPT) < 0 ||
        seal_key_init(&p->in, session, "motet control: key", p->initiator ? "A" : "I", 1,
                      SEAL_ENCRYPT) < 0)
        return -EIO;
    seal_forget(session, sizeof session);

    memcpy(pair.salts[own], self->salt, sizeof pair.salts[0]);
    memcpy(pair.salts[!own], p->salt, sizeof pair.salts[0]);
    pair.ids[own] = self->node_id;
    pair.ids[!own] = p->node_id;
    pair.epochs[own] = self->epoch;
    pair.epochs[!own] = p->epoch;
    snprintf(pair.network, sizeof pair.network, "%s", p->network);
    const struct seal_source key = {
        .secret = self->key->bytes, .n_secret = self->key->len, .salt = pair.salts, .n_salt = 64};
    return seal_derive_from(&key, "motet pair", &pair, sizeof pair, p->secret, sizeof p->secret);
}

void peer_end(struct peer *p)
{
    seal_key_deinit(&p->out);
    seal_key_deinit(&p->in);
    seal_forget(p->secret, sizeof p->secret);
}

/* What of a frame is not encrypted, and what its number means. */
struct peer_head {
    uint16_t type;
    uint16_t reserved[7];
};
static_assert(sizeof(struct peer_head) == 16, "head of a sealed frame");

uint32_t peer_wrap(struct peer *p, uint16_t type, const void *body, uint32_t len, uint8_t *ret_body)
{
    const struct peer_head head = {.type = type};

    if (!p->out_sealed) {
        memcpy(ret_body, body, len);
        return len;
    }
    uint64_t code = seal_key_wrap(&p->out, p->n_out++, &head, sizeof head, body, len,
                                  ret_body + PEER_CODE_BYTES);
    memcpy(ret_body, &code, sizeof code);
    return len + PEER_CODE_BYTES;
}

int peer_unwrap(struct peer *p, uint16_t type, const uint8_t *body, uint32_t len, uint8_t *ret_body,
                uint32_t *ret_len)
{
    const struct peer_head head = {.type = type};
    uint64_t code;

    *ret_len = len;
    if (!p->in_sealed) {
        memcpy(ret_body, body, len);
        return 0;
    }
    if (len < PEER_CODE_BYTES)
        return peer_end_with(p, -EPROTO, "frame of type %u is not sealed", type);
    memcpy(&code, body, sizeof code);
    *ret_len = len - PEER_CODE_BYTES;
    if (seal_key_unwrap(&p->in, p->n_in++, code, &head, sizeof head, body + PEER_CODE_BYTES,
                        *ret_len, ret_body) != 0)
        return peer_end_with(
            p, -EPROTO, "a frame does not come from node %s, or was changed on the way", p->node);
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
    if (rc == 0)
        rc = peer_make_keys(p);
    if (rc < 0)
        return peer_end_with(p, -EACCES, "cannot compute the proof");
    Motet__Proof answer = MOTET__PROOF__INIT;
    answer.mac.data = mac;
    answer.mac.len = sizeof mac;
    p->state = PEER_PROOF;
    peer_send_msg(p, MOTET__FRAME_TYPE__PROOF, &answer.base, now_ns);
    p->out_sealed = true;
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
    p->in_sealed = true;
    /* Only now: a stranger must not learn what is known here. */
    const char *why = p->ops->admit(p->ctx, p);
    if (why)
        return peer_end_with(p, -EACCES, "%s", why);
    p->state = PEER_UP;
    p->ops->up(p->ctx, now_ns);
    return 0;
}

static uint64_t peer_heartbeat_ns(const struct peer *p)
{
    return p->pulse == PEER_QUICK ? p->self->heartbeat_ns : p->self->calm_heartbeat_ns;
}

static uint64_t peer_measure_ns(const struct peer *p)
{
    return p->pulse == PEER_QUICK ? MEASURE_EVERY_NS
                                  : MEASURE_EVERY_BEATS * p->self->calm_heartbeat_ns;
}

static uint64_t peer_dead_after_ns(const struct peer *p)
{
    uint64_t ns = p->pulse == PEER_QUICK ? p->self->dead_after_ns : p->self->calm_dead_after_ns;
    uint64_t more_ns = LAG_PEAKS * p->self->lag_ns, most_ns = LAG_MOST * p->self->dead_after_ns;

    return ns + (more_ns < most_ns ? more_ns : most_ns);
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
    } else if (now_ns - p->sent_ns >= peer_heartbeat_ns(p) / 4) {
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
        if (type == MOTET__FRAME_TYPE__LINK_STATE || type == MOTET__FRAME_TYPE__DIGEST ||
            type == MOTET__FRAME_TYPE__MAIL) {
            int rc = p->ops->frame(p->ctx, type, body, len, now_ns);
            return rc < 0 ? peer_end_with(p, -EPROTO, "frame of type %u is not valid", type) : 0;
        }
        break;
    }
    return peer_end_with(p, -EPROTO, "frame of type %u does not belong here", type);
}

void peer_set_pulse(struct peer *p, enum peer_pulse pulse, uint64_t now_ns)
{
    if (pulse < p->pulse)
        p->pulse_ns = now_ns;
    p->pulse = pulse;
}

static uint64_t peer_silent_since(const struct peer *p)
{
    uint64_t since_ns = p->heard_ns > p->self->changed_ns ? p->heard_ns : p->self->changed_ns;

    return since_ns > p->pulse_ns ? since_ns : p->pulse_ns;
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
    if (p->pulse == PEER_QUIET)
        return 0;
    if (now_ns - peer_silent_since(p) > peer_dead_after_ns(p))
        return peer_end_with(p, -ETIMEDOUT, "silent for %llu ms",
                             (unsigned long long)((now_ns - p->heard_ns) / CLOCK_NS_PER_MS));
    bool measure = p->measured_ns == 0 || now_ns - p->measured_ns >= peer_measure_ns(p);
    /* Timers come a little early or late: three quarters of the interval is due. */
    if (!measure && now_ns - p->sent_ns < peer_heartbeat_ns(p) - peer_heartbeat_ns(p) / 4)
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
    if (p->pulse == PEER_QUIET)
        return UINT64_MAX;
    uint64_t send_ns = p->sent_ns + peer_heartbeat_ns(p),
             dead_ns = peer_silent_since(p) + peer_dead_after_ns(p) + CLOCK_NS_PER_MS;
    return send_ns < dead_ns ? send_ns : dead_ns;
}
