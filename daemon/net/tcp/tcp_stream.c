/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What flows through a connection of the native TCP driver. Out: several frames in one system call.
 * In: small frames are read together into the stage and copied from there; after a large frame the
 * next ones are expected to be as large, and are read straight into blocks, several in one call.
 * Where the guess was wrong, what lies in the wrong place takes the way over the stage.
 */
#include <endian.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/log.h"
#include "daemon/net/tcp/tcp_hello.h"
#include "daemon/net/tcp/tcp_peer.h"
#include "daemon/net/tcp/tcp_proof.h"
#include "daemon/net/tcp/tcp_stream.h"

/* Frames in one system call. */
#define SEND_FRAMES 32u
#define READ_FRAMES 8u
/* Bytes in one system call: more would leave the caches before it is used. */
#define SEND_BYTES (256u << 10)
/* Below this a copy costs less than a place of its own in the call. */
#define GUESS_MIN   8192u
#define STAGE_BYTES (64u << 10)
/* A connection that damages so many packets is made anew. */
#define BAD_MAX 16u

size_t tcp_stream_stage_bytes(uint32_t max_bytes)
{
    size_t guessed = READ_FRAMES * (max_bytes + sizeof(struct tcp_head));

    return guessed > STAGE_BYTES ? guessed : STAGE_BYTES;
}

/* Adds the rest of a frame to a vector, without its first `off` bytes. Frames are sealed in the
 * order in which they are added: that is their order in the stream. */
static int tcp_stream_add_frame(const struct net *net, struct tcp_conn *c, uint32_t block,
                                uint32_t off, struct iovec *iov)
{
    struct tcp_slot *s = &net->slots[block];
    uint8_t *packet = arena_at(net->arena, block), *data = packet;
    uint32_t len = le32toh(s->head.len);
    int n = 0;

    /* A packet may be sent again some other way, so it stays readable where it is. */
    if (net->sealed)
        data = net->sealed + block * net->arena->stride;
    if (!s->sealed) {
        s->head.code = seal_key_wrap(&c->out_key, c->n_out++, NULL, 0, packet, len, data);
        s->sealed = true;
    }
    if (off < sizeof s->head) {
        iov[n++] =
            (struct iovec){.iov_base = (uint8_t *)&s->head + off, .iov_len = sizeof s->head - off};
        off = 0;
    } else {
        off -= (uint32_t)sizeof s->head;
    }
    iov[n++] = (struct iovec){.iov_base = data + off, .iov_len = len - off};
    return n;
}

static long tcp_stream_send_vector(int fd, struct iovec *iov, int n)
{
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = (size_t)n};
    ssize_t rc = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (rc >= 0)
        return rc;
    return errno == EAGAIN || errno == EINTR || errno == ENOBUFS ? 0 : -errno;
}

long tcp_stream_send(struct net *net, struct tcp_conn *c, uint32_t block)
{
    struct iovec iov[2];
    int n = tcp_stream_add_frame(net, c, block, 0, iov);

    return tcp_stream_send_vector(c->fd, iov, n);
}

bool tcp_stream_moving(const struct tcp_conn *c, uint64_t *confirmed_bytes)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof info;

    if (getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
        return false;
    bool more = info.tcpi_bytes_acked != *confirmed_bytes;
    *confirmed_bytes = info.tcpi_bytes_acked;
    /* When all is confirmed no answer is under way behind a queue. */
    return more && (info.tcpi_unacked > 0 || info.tcpi_notsent_bytes > 0);
}

/* Takes what was sent off the peer's queue. */
static void tcp_stream_advance(struct net *net, struct tcp_peer *p, size_t n_bytes)
{
    while (n_bytes > 0) {
        uint32_t block = p->head;
        struct tcp_slot *s = &net->slots[block];
        size_t left = sizeof s->head + le32toh(s->head.len) - p->head_off;
        if (n_bytes < left) {
            p->head_off += (uint32_t)n_bytes;
            return;
        }
        n_bytes -= left;
        p->head_off = 0;
        p->head = s->next;
        p->n_queued--;
        tcp_peer_done(net, block, 0);
    }
}

int tcp_stream_flush(struct net *net, struct tcp_peer *p)
{
    struct tcp_conn *c = p->conn;

    if (c->out_at < c->out_len) {
        int rc = tcp_proof_flush(c);
        if (rc < 0 || c->out_at < c->out_len)
            return rc;
    }
    while (p->n_queued > 0) {
        struct iovec iov[2 * SEND_FRAMES];
        size_t n_bytes = 0;
        int n = 0;
        uint32_t block = p->head, off = p->head_off;
        for (uint32_t i = 0; i < p->n_queued && i < SEND_FRAMES && n_bytes < SEND_BYTES; i++) {
            const struct tcp_slot *s = &net->slots[block];
            n += tcp_stream_add_frame(net, c, block, off, &iov[n]);
            n_bytes += sizeof s->head + le32toh(s->head.len) - off;
            block = s->next;
            off = 0;
        }
        long rc = tcp_stream_send_vector(c->fd, iov, n);
        if (rc < 0)
            return (int)rc;
        c->sent_poll = net->n_polls;
        tcp_stream_advance(net, p, (size_t)rc);
        if ((size_t)rc < n_bytes)
            break;
    }
    return 0;
}

/* The head is complete: is it one that may come here? */
static int tcp_stream_check_head(struct net *net, const struct tcp_conn *c)
{
    uint32_t magic = le32toh(c->head.magic), len = le32toh(c->head.len);

    if (!c->greeted  ? magic == TCP_HELLO_MAGIC && len == TCP_HELLO_BYTES
        : !c->proved ? magic == TCP_PROOF_MAGIC && len == TCP_PROOF_BYTES
                     : magic == TCP_FRAME_MAGIC && len > 0 && len <= net->max_bytes)
        return 0;
    tcp_hello_complain(net, c,
                       c->proved ? "a frame that is none of ours"
                                 : "whoever is there is not a motetd of this version");
    return -EPROTO;
}

/* A frame is there. One that was damaged counts as lost on the way. */
static void tcp_stream_finish_frame(struct net *net, struct tcp_conn *c, struct tcp_events *events)
{
    void *packet = arena_at(net->arena, c->block);

    c->n_head = 0;
    if (seal_key_unwrap(&c->in, c->n_in++, c->head.code, NULL, 0, packet, c->filled, packet) != 0) {
        net->guard.forged++;
        c->n_bad++;
        tcp_hello_complain(net, c, "a packet was damaged on the way; it is sent again");
        net->posted[net->n_posted++] = c->block;
        c->block = BLOCK_NONE;
        return;
    }
    events->at[events->n++] = (struct net_event){
        .kind = NET_RECEIVED, .block = c->block, .len = c->filled, .peer = c->peer};
    c->guess = c->filled;
    c->block = BLOCK_NONE;
}

/* Gives the frame whose head is complete a place. False: there is none, or no event could be
 * told. */
static bool tcp_stream_place_frame(struct net *net, struct tcp_conn *c,
                                   const struct tcp_events *events)
{
    if (net->n_posted == 0 || events->n >= events->max)
        return false;
    c->block = net->posted[--net->n_posted];
    c->filled = 0;
    return true;
}

/* Passes bytes of the stream on. Returns how many could be, or negative errno. */
static long tcp_stream_feed(struct net *net, struct tcp_conn *c, const uint8_t *bytes, size_t n,
                            struct tcp_events *events)
{
    size_t at = 0;

    while (at < n) {
        if (c->n_head < sizeof c->head) {
            size_t k = sizeof c->head - c->n_head;
            k = k < n - at ? k : n - at;
            memcpy((uint8_t *)&c->head + c->n_head, bytes + at, k);
            at += k;
            c->n_head += (uint32_t)k;
            if (c->n_head < sizeof c->head)
                break;
            if (tcp_stream_check_head(net, c) < 0)
                return -EPROTO;
            c->filled = 0;
        }
        size_t len = le32toh(c->head.len), k = len - c->filled < n - at ? len - c->filled : n - at;
        if (!c->proved) {
            uint8_t *to = c->greeted ? c->proof : (uint8_t *)&c->hello + sizeof c->head;
            memcpy(to + c->filled, bytes + at, k);
            at += k;
            c->filled += (uint32_t)k;
            if (c->filled < len)
                continue;
            c->n_head = 0;
            if (!c->greeted)
                c->hello.head = c->head;
            int rc = c->greeted ? tcp_hello_proved(net, c) : tcp_hello_greeted(net, c);
            if (rc < 0)
                return rc;
            if (c->claims == TCP_PEER_NONE)
                break; /* nobody knows it yet: the rest waits */
            continue;
        }
        if (c->block == BLOCK_NONE) {
            if (!tcp_stream_place_frame(net, c, events))
                break;
            k = len < n - at ? len : n - at;
        }
        if (c->filled + k == len && events->n >= events->max)
            break;
        memcpy((uint8_t *)arena_at(net->arena, c->block) + c->filled, bytes + at, k);
        at += k;
        c->filled += (uint32_t)k;
        if (c->filled == len)
            tcp_stream_finish_frame(net, c, events);
    }
    return (long)at;
}

int tcp_stream_rest(struct net *net, enum wire_class cls, struct tcp_events *events)
{
    struct tcp_stage *stage = &net->stages[cls];
    struct tcp_conn *c = stage->conn;

    if (c->greeted && c->claims == TCP_PEER_NONE)
        return 0;
    long rc = tcp_stream_feed(net, c, stage->bytes + stage->at, stage->end - stage->at, events);
    if (rc < 0)
        return (int)rc;
    stage->at += (size_t)rc;
    if (stage->at == stage->end)
        stage->conn = NULL;
    return 0;
}

/* The stage of its class holds the next bytes of this connection, up to `end`. */
static int tcp_stream_feed_stage(struct net *net, struct tcp_conn *c, size_t end,
                                 struct tcp_events *events)
{
    struct tcp_stage *stage = &net->stages[c->cls];

    stage->at = 0;
    stage->end = end;
    stage->conn = end > 0 ? c : NULL;
    return end > 0 ? tcp_stream_rest(net, (enum wire_class)c->cls, events) : 0;
}

/* A call for several frames as long as the last one. */
struct guess {
    struct iovec iov[2 * READ_FRAMES + 1];
    struct tcp_head heads[READ_FRAMES];
    uint32_t blocks[READ_FRAMES];
    uint32_t len; /* expected of each frame */
    int n, n_frames;
};

static void tcp_stream_guess_frames(struct net *net, struct tcp_conn *c,
                                    const struct tcp_events *events, struct guess *g)
{
    int room = events->max - events->n;

    g->n = g->n_frames = 0;
    g->len = c->guess;
    if (c->block != BLOCK_NONE) {
        g->iov[g->n++] =
            (struct iovec){.iov_base = (uint8_t *)arena_at(net->arena, c->block) + c->filled,
                           .iov_len = le32toh(c->head.len) - c->filled};
        room--;
    }
    /* One block stays for a frame that is read over the stage. */
    while (g->len >= GUESS_MIN && g->n_frames < (int)READ_FRAMES && g->n_frames < room &&
           net->n_posted > 1) {
        int i = g->n_frames++;
        g->blocks[i] = net->posted[--net->n_posted];
        g->iov[g->n++] = (struct iovec){.iov_base = &g->heads[i], .iov_len = sizeof g->heads[i]};
        g->iov[g->n++] =
            (struct iovec){.iov_base = arena_at(net->arena, g->blocks[i]), .iov_len = g->len};
    }
}

/* Copies what lies in the vector from entry i on, n bytes in all, to the stage. */
static void tcp_stream_to_stage(const struct tcp_stage *stage, const struct guess *g, int i,
                                size_t n)
{
    size_t at = 0;

    for (; at < n; i++) {
        size_t k = g->iov[i].iov_len < n - at ? g->iov[i].iov_len : n - at;
        memcpy(stage->bytes + at, g->iov[i].iov_base, k);
        at += k;
    }
}

/* Sorts out what such a call brought. */
static int tcp_stream_take_guess(struct net *net, struct tcp_conn *c, struct guess *g, size_t n,
                                 struct tcp_events *events)
{
    int i = 0, f = 0, rc = 0;

    if (c->block != BLOCK_NONE) {
        size_t k = g->iov[0].iov_len < n ? g->iov[0].iov_len : n;
        c->filled += (uint32_t)k;
        n -= k;
        i = 1;
        if (c->filled == le32toh(c->head.len))
            tcp_stream_finish_frame(net, c, events);
    }
    for (; n > 0; f++, i += 2) {
        size_t k = n < sizeof c->head ? n : sizeof c->head;
        memcpy(&c->head, &g->heads[f], k);
        c->n_head = (uint32_t)k;
        n -= k;
        if (k < sizeof c->head)
            break;
        rc = tcp_stream_check_head(net, c);
        if (rc < 0)
            break;
        c->filled = 0;
        if (le32toh(c->head.len) != g->len) {
            tcp_stream_to_stage(&net->stages[c->cls], g, i + 1, n);
            break;
        }
        c->block = g->blocks[f];
        k = n < g->len ? n : g->len;
        c->filled = (uint32_t)k;
        n -= k;
        if (c->filled == g->len)
            tcp_stream_finish_frame(net, c, events);
    }
    /* Blocks without a frame go back; the one in which a frame began is the connection's. */
    for (int back = g->n_frames - 1; back >= f; back--)
        if (g->blocks[back] != c->block)
            net->posted[net->n_posted++] = g->blocks[back];
    if (rc == 0 && c->block == BLOCK_NONE && c->n_head == sizeof c->head)
        rc = tcp_stream_feed_stage(net, c, n, events);
    return rc;
}

long tcp_stream_read(struct net *net, struct tcp_conn *c, struct tcp_events *events)
{
    bool guessing =
        c->proved && (c->block != BLOCK_NONE
                          ? le32toh(c->head.len) - c->filled >= GUESS_MIN || c->guess >= GUESS_MIN
                          : c->guess >= GUESS_MIN && c->n_head == 0);
    struct guess g;
    ssize_t n;

    if (events->n >= events->max)
        return 0;
    if (guessing)
        tcp_stream_guess_frames(net, c, events, &g);
    if (guessing && g.n > 0) {
        struct msghdr msg = {.msg_iov = g.iov, .msg_iovlen = (size_t)g.n};
        n = recvmsg(c->fd, &msg, MSG_DONTWAIT);
    } else {
        guessing = false;
        n = recv(c->fd, net->stages[c->cls].bytes,
                 c->greeted ? STAGE_BYTES : sizeof c->hello - c->n_head - c->filled, MSG_DONTWAIT);
    }
    int rc = n > 0 ? 0 : n == 0 ? -ECONNRESET : errno == EAGAIN || errno == EINTR ? 0 : -errno;
    if (guessing) {
        int taken = tcp_stream_take_guess(net, c, &g, n > 0 ? (size_t)n : 0, events);
        rc = rc < 0 ? rc : taken;
    } else if (n > 0) {
        rc = tcp_stream_feed_stage(net, c, (size_t)n, events);
    }
    if (rc == 0 && c->n_bad > BAD_MAX)
        rc = -EBADMSG;
    return rc < 0 ? rc : n > 0 ? n : 0;
}
