/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/net/udp/udp_peer.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/net/block.h"

#define HELLO_FIRST_NS (10 * CLOCK_NS_PER_MS)
#define HELLO_MOST_NS  CLOCK_NS_PER_S
/* Between two words to somebody who talks to a name that is not ours. */
#define HINT_NS (5 * CLOCK_NS_PER_MS)
/* A session in which packets wait so long without a word from the other side is over. */
#define SILENT_NS (2 * CLOCK_NS_PER_S)
/* What a socket may be said to hold. */
#define ROOM_MIN 16384u
#define ROOM_MAX (1u << 30)

/* What a probe is filled with. */
static const uint8_t zeros[UINT16_MAX];

static uint32_t udp_peer_name(struct udp_peer *p)
{
    uint32_t name = (uint32_t)(rand_next(&p->names) >> 32);

    return name != 0 ? name : 1;
}

/* No session: hellos until somebody answers. */
static void udp_peer_alone(struct udp_peer *p, uint64_t now_ns)
{
    p->own = udp_peer_name(p);
    p->theirs = p->fresh = p->stranger = 0;
    p->hello_wait_ns = HELLO_FIRST_NS;
    p->hello_ns = now_ns;
}

void udp_peer_init(struct udp_peer *p, const struct udp_peer_config *config, uint64_t now_ns)
{
    memset(p, 0, offsetof(struct udp_peer, tx));
    p->names.state = config->seed;
    p->mtu_least = config->mtu_least;
    p->mtu_most = config->mtu_most;
    p->room = config->room;
    p->n_mark = config->n_mark;
    p->heard_ns = now_ns;
    udp_peer_alone(p, now_ns);
    udp_tx_init(&p->tx, udp_peer_name(p), p->mtu_least, p->mtu_most, now_ns);
    udp_rx_init(&p->rx);
}

void udp_peer_deinit(struct udp_peer *p, struct udp_posts *posts)
{
    udp_rx_deinit(&p->rx, posts);
    udp_tx_fail(&p->tx, -ECONNRESET);
}

int udp_peer_send(struct udp_peer *p, uint32_t block, enum wire_class cls, const void *data,
                  uint32_t len, uint64_t now_ns)
{
    int rc = udp_tx_add(&p->tx, block, cls, data, len);

    if (rc >= 0 && p->waiting_ns == 0)
        p->waiting_ns = now_ns;
    return rc;
}

static void udp_peer_head(struct udp_peer *p, struct udp_out *out, enum udp_kind kind,
                          uint8_t flags)
{
    struct udp_head h = {.magic = htole16(UDP_MAGIC),
                         .kind = (uint8_t)kind,
                         .flags = flags,
                         .from = htole32(p->own),
                         .to = htole32(p->theirs)};

    memcpy(out->head, &h, sizeof h);
    out->n_head = sizeof h;
}

/* It has its number now. */
static void udp_peer_number(struct udp_peer *p, struct udp_out *out, enum udp_kind kind,
                            const struct udp_tx_piece *piece, uint64_t now_ns)
{
    uint32_t bytes = out->n_mark + out->n_head + out->n_data;

    if (kind == UDP_PING && p->waiting_ns == 0)
        p->waiting_ns = now_ns;
    out->number = udp_tx_sent(&p->tx, kind, piece, bytes, now_ns);
    uint32_t number = htole32(out->number);
    memcpy(out->head + offsetof(struct udp_head, number), &number, sizeof number);
}

static void udp_peer_hello(struct udp_peer *p, struct udp_out *out)
{
    struct udp_hello hello = {.version = htole32(UDP_VERSION), .room = htole32(p->room)};
    struct udp_head h = {
        .magic = htole16(UDP_MAGIC),
        .kind = UDP_HELLO,
        .from = htole32(p->hello_to != 0 && p->hello_to == p->stranger ? p->fresh : p->own),
        .to = htole32(p->hello_to)};

    memcpy(out->head, &h, sizeof h);
    memcpy(out->head + sizeof h, &hello, sizeof hello);
    out->n_head = sizeof h + sizeof hello;
    out->hello = true;
    p->say_hello = false;
}

static void udp_peer_data(struct udp_peer *p, struct udp_out *out, struct udp_tx_piece *piece,
                          uint64_t now_ns)
{
    bool whole = piece->len == (piece->part.size & UDP_SIZE_MAX);
    bool embed = p->rx.n_waiting > 0 && whole &&
                 p->n_mark + UDP_DATA_BYTES + UDP_EMBED_BYTES + piece->len <= p->tx.mtu.now;
    /* The window is full with it: go on as soon as it is there. */
    bool last = p->tx.under_way + 2 * piece->len >= p->tx.rate.window;
    struct udp_part part = {.packet = htole32(piece->part.packet),
                            .size = htole32(piece->part.size),
                            .chunk = htole16(piece->part.chunk),
                            .idx = htole16(piece->part.idx)};

    udp_peer_head(p, out, UDP_DATA, (uint8_t)((last ? UDP_F_NOW : 0) | (embed ? UDP_F_ACKS : 0)));
    memcpy(out->head + out->n_head, &part, sizeof part);
    out->n_head += (uint32_t)sizeof part;
    if (embed) {
        /* One word, always: udp_rx_ack leaves out what nobody needs, and one it never does. */
        out->n_head += udp_rx_ack(&p->rx, 1, now_ns, out->head + out->n_head);
    }
    out->copy = piece->copy;
    out->block = piece->block;
    out->offset = piece->offset;
    out->n_data = piece->len;
    udp_peer_number(p, out, UDP_DATA, piece, now_ns);
}

bool udp_peer_next(struct udp_peer *p, uint64_t now_ns, struct udp_out *ret_out)
{
    struct udp_tx_piece piece;
    uint32_t probe;

    ret_out->copy = NULL;
    ret_out->block = BLOCK_NONE;
    ret_out->n_mark = p->n_mark;
    ret_out->offset = ret_out->n_data = ret_out->number = 0;
    ret_out->hello = false;
    if (p->say_hello) {
        udp_peer_hello(p, ret_out);
        return true;
    }
    if (p->theirs == 0)
        return false;
    if (p->tx.ping) {
        p->tx.ping = false;
        udp_peer_head(p, ret_out, UDP_PING, UDP_F_NOW);
        udp_peer_number(p, ret_out, UDP_PING, NULL, now_ns);
        return true;
    }
    probe = udp_mtu_searching(&p->tx.mtu) || !udp_tx_idle(&p->tx)
                ? udp_mtu_probe(&p->tx.mtu, now_ns)
                : 0;
    if (probe != 0) {
        udp_peer_head(p, ret_out, UDP_PING, UDP_F_NOW);
        ret_out->copy = zeros;
        ret_out->n_data = probe - ret_out->n_mark - ret_out->n_head;
        udp_peer_number(p, ret_out, UDP_PING, NULL, now_ns);
        udp_mtu_sent(&p->tx.mtu);
        return true;
    }
    if (udp_tx_next(&p->tx, p->n_mark + (uint32_t)UDP_DATA_BYTES, now_ns, &piece)) {
        udp_peer_data(p, ret_out, &piece, now_ns);
        return true;
    }
    if (p->rx.ack_now || (p->rx.n_waiting > 0 && now_ns >= p->rx.ack_ns)) {
        udp_peer_head(p, ret_out, UDP_ACK, 0);
        ret_out->n_head +=
            udp_rx_ack(&p->rx, UDP_ACK_WORDS, now_ns, ret_out->head + ret_out->n_head);
        udp_peer_number(p, ret_out, UDP_ACK, NULL, now_ns);
        return true;
    }
    return false;
}

void udp_peer_unsent(struct udp_peer *p, const struct udp_out *out)
{
    if (out->hello)
        p->say_hello = true;
    else
        udp_tx_unsent(&p->tx, out->number);
}

/* A session with this name of theirs begins. */
static void udp_peer_begin(struct udp_peer *p, struct udp_posts *posts, uint32_t theirs,
                           uint64_t now_ns)
{
    p->theirs = theirs;
    p->fresh = p->stranger = 0;
    p->heard_ns = now_ns;
    udp_rx_deinit(&p->rx, posts);
    udp_rx_init(&p->rx);
    udp_tx_restart(&p->tx);
    uint32_t limit = p->tx.rate.limit;
    udp_rate_init(&p->tx.rate, p->tx.mtu.least, limit);
    udp_mtu_init(&p->tx.mtu, p->mtu_least, p->mtu_most, now_ns);
}

static int udp_peer_on_hello(struct udp_peer *p, struct udp_posts *posts, uint32_t from,
                             uint32_t to, const uint8_t *data, uint32_t n, uint64_t now_ns)
{
    struct udp_hello hello;

    if (n != sizeof hello || from == 0)
        return UDP_PEER_IGNORED;
    memcpy(&hello, data, sizeof hello);
    if (le32toh(hello.version) != UDP_VERSION)
        return UDP_PEER_IGNORED;
    /* Only who has read what we sent is believed. */
    uint32_t room = le32toh(hello.room);
    if ((to == p->own && (p->theirs == 0 || p->theirs == from)) ||
        (p->fresh != 0 && to == p->fresh && from == p->stranger))
        p->tx.rate.limit = room < ROOM_MIN ? ROOM_MIN : room > ROOM_MAX ? ROOM_MAX : room;
    if (to == p->own) {
        if (p->theirs == 0) {
            udp_peer_begin(p, posts, from, now_ns);
            p->say_hello = true; /* it may wait for our first word */
            p->hello_to = from;
        }
        return from == p->theirs ? 0 : UDP_PEER_IGNORED;
    }
    if (p->fresh != 0 && to == p->fresh && from == p->stranger) {
        p->own = p->fresh;
        udp_peer_begin(p, posts, from, now_ns);
        return 0;
    }
    if (p->theirs != 0 && from != p->theirs && from != p->stranger) {
        p->stranger = from;
        p->fresh = udp_peer_name(p);
    }
    p->say_hello = true;
    p->hello_to = from;
    return 0;
}

/* A datagram of the session with a number of its own; `data` from behind the head. */
static int udp_peer_take(struct udp_peer *p, struct udp_posts *posts, const struct udp_head *h,
                         const uint8_t *data, uint32_t n, uint64_t now_ns,
                         struct udp_whole *ret_whole)
{
    uint32_t number = le32toh(h->number), n_part = sizeof(struct udp_part);
    bool at_once = h->flags & UDP_F_NOW;
    struct udp_part part;
    struct udp_ack ack;
    int rc = 0;

    switch ((enum udp_kind)h->kind) {
    case UDP_DATA:
        if (h->flags & UDP_F_ACKS)
            n_part += UDP_EMBED_BYTES;
        if (n <= n_part)
            return UDP_PEER_IGNORED;
        memcpy(&part, data, sizeof part);
        if (h->flags & UDP_F_ACKS) {
            memcpy(&ack, data + sizeof part, sizeof ack);
            if (ack.n_words > 1 ||
                !udp_tx_ack(&p->tx, &ack, data + sizeof part + sizeof ack, now_ns))
                return UDP_PEER_IGNORED;
        }
        rc = udp_rx_part(&p->rx, posts, &part, data + n_part, n - n_part, &ret_whole->block,
                         &ret_whole->len);
        if (rc == UDP_RX_BAD)
            return UDP_PEER_IGNORED;
        p->starved |= rc == UDP_RX_NO_ROOM;
        if (rc != UDP_RX_NO_ROOM)
            udp_rx_note(&p->rx, number, true, at_once, now_ns);
        return rc == UDP_RX_WHOLE ? UDP_PEER_WHOLE : 0;
    case UDP_ACK:
        if (n < sizeof ack)
            return UDP_PEER_IGNORED;
        memcpy(&ack, data, sizeof ack);
        if (ack.n_words > UDP_ACK_WORDS || n != sizeof ack + 8u * ack.n_words ||
            !udp_tx_ack(&p->tx, &ack, data + sizeof ack, now_ns))
            return UDP_PEER_IGNORED;
        udp_rx_note(&p->rx, number, false, false, now_ns);
        return 0;
    case UDP_PING:
        udp_rx_note(&p->rx, number, true, true, now_ns);
        return 0;
    case UDP_HELLO:
        break;
    }
    return UDP_PEER_IGNORED;
}

uint32_t udp_peer_head_bytes(const uint8_t *data, uint32_t n)
{
    struct udp_head h;
    uint32_t bytes = sizeof h;

    if (n < sizeof h)
        return 0;
    memcpy(&h, data, sizeof h);
    if (h.kind == UDP_HELLO)
        bytes += (uint32_t)sizeof(struct udp_hello);
    else if (h.kind == UDP_DATA)
        bytes = (uint32_t)(UDP_DATA_BYTES + (h.flags & UDP_F_ACKS ? UDP_EMBED_BYTES : 0));
    else if (h.kind == UDP_ACK)
        bytes = n % 16 == 0 && n <= UDP_HEAD_MAX ? n : 0;
    else if (h.kind != UDP_PING)
        bytes = 0;
    return bytes <= n ? bytes : 0;
}

int udp_peer_receive(struct udp_peer *p, struct udp_posts *posts, const uint8_t *data, uint32_t n,
                     uint64_t now_ns, struct udp_whole *ret_whole)
{
    struct udp_head h;

    if (n < sizeof h)
        return UDP_PEER_IGNORED;
    memcpy(&h, data, sizeof h);
    uint32_t from = le32toh(h.from), to = le32toh(h.to);
    if (le16toh(h.magic) != UDP_MAGIC)
        return UDP_PEER_IGNORED;
    data += sizeof h;
    n -= (uint32_t)sizeof h;
    if (h.kind == UDP_HELLO)
        return udp_peer_on_hello(p, posts, from, to, data, n, now_ns);
    if (p->fresh != 0 && to == p->fresh && from == p->stranger) {
        p->own = p->fresh;
        udp_peer_begin(p, posts, from, now_ns);
    } else if (p->theirs == 0 && to == p->own && from != 0) {
        udp_peer_begin(p, posts, from, now_ns);
    }
    if (to != p->own || from != p->theirs) {
        /* It may have missed that we began anew. */
        if (now_ns - p->hinted_ns >= HINT_NS && p->theirs != 0) {
            p->hinted_ns = now_ns;
            p->say_hello = true;
            p->hello_to = p->theirs;
        }
        return UDP_PEER_IGNORED;
    }
    if (!udp_rx_is_new(&p->rx, le32toh(h.number)))
        return UDP_PEER_IGNORED;
    int rc = udp_peer_take(p, posts, &h, data, n, now_ns, ret_whole);
    if (rc != UDP_PEER_IGNORED) {
        p->heard_ns = now_ns;
        p->waiting_ns = udp_tx_idle(&p->tx) ? 0 : now_ns;
    }
    return rc;
}

uint64_t udp_peer_due(const struct udp_peer *p)
{
    uint64_t due = UINT64_MAX;

    if (p->say_hello || p->rx.ack_now || p->tx.ping)
        return 0;
    if (p->waiting_ns != 0 && !udp_tx_idle(&p->tx))
        due = p->waiting_ns + SILENT_NS;
    if (p->theirs == 0)
        return p->hello_ns < due ? p->hello_ns : due;
    uint64_t tx_due = udp_tx_due(&p->tx);
    if (p->rx.n_waiting > 0 && p->rx.ack_ns < due)
        due = p->rx.ack_ns;
    return tx_due < due ? tx_due : due;
}

void udp_peer_timeout(struct udp_peer *p, struct udp_posts *posts, uint64_t now_ns)
{
    if (udp_tx_idle(&p->tx))
        p->waiting_ns = 0; /* what was unanswered is held for lost */
    if (p->waiting_ns != 0 && now_ns >= p->waiting_ns + SILENT_NS) {
        udp_tx_fail(&p->tx, -ETIMEDOUT);
        udp_rx_deinit(&p->rx, posts);
        udp_rx_init(&p->rx);
        p->waiting_ns = 0;
        p->down = true;
        udp_peer_alone(p, now_ns);
    }
    if (p->theirs != 0) {
        udp_tx_timeout(&p->tx, now_ns);
    } else if (now_ns >= p->hello_ns) {
        p->say_hello = true;
        p->hello_to = 0;
        p->hello_ns = now_ns + p->hello_wait_ns;
        p->hello_wait_ns =
            2 * p->hello_wait_ns < HELLO_MOST_NS ? 2 * p->hello_wait_ns : HELLO_MOST_NS;
    }
}

bool udp_peer_idle(const struct udp_peer *p)
{
    return p->theirs != 0 && udp_tx_idle(&p->tx) && udp_peer_due(p) == UINT64_MAX;
}
