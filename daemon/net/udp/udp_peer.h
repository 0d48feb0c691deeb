/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer of an endpoint: the session with it, in both directions. Pure: datagrams come in and go
 * out as bytes, with the time.
 *
 * Making a session, each side (own: the name that we drew; theirs: 0 as long as it is not known):
 *
 *      ALONE --- hello(to = own) ---> TALKING --- 2 s without a word, though asked ---> ALONE
 *        |                              |
 *        hello(to = 0) now and then     hello from another name: answered under a fresh name of
 *                                       ours; when that comes back, the session begins anew
 *
 * So a session begins only with somebody who has read what we sent to the peer's address, and what
 * was recorded of an older session names a name of ours that is gone.
 */
#pragma once

#include "base/rand.h"
#include "daemon/net/udp/udp_rx.h"
#include "daemon/net/udp/udp_tx.h"
#include "daemon/seal/seal.h"

/* One datagram to be sent: a head, and bytes of a packet behind it. */
struct udp_out {
    uint32_t peer;         /* index of the endpoint's (udp_end.h) */
    struct seal_mark mark; /* if n_mark > 0, right in front of the head */
    uint8_t head[UDP_HEAD_MAX];
    uint32_t n_mark, n_head;
    const uint8_t *copy; /* where `offset` counts from; NULL: from the begin of `block` */
    uint32_t block, offset, n_data;
    uint32_t number; /* for udp_peer_unsent; hello: 0 and `hello` */
    bool hello;
};

static_assert(offsetof(struct udp_out, head) ==
                  offsetof(struct udp_out, mark) + sizeof(struct seal_mark),
              "the head follows the mark");

/* A packet that arrived. */
struct udp_whole {
    uint32_t block, len;
};

struct udp_peer {
    uint32_t own, theirs;
    uint32_t fresh, stranger; /* our name for a new session, and who asked for it */
    uint32_t mtu_most, mtu_least;
    uint32_t room;   /* bytes that our socket holds */
    uint32_t n_mark; /* bytes in front of each head */
    struct rand names;
    bool say_hello;
    uint32_t hello_to;
    uint64_t hello_ns, hello_wait_ns; /* ALONE: when to try again */
    uint64_t hinted_ns;
    uint64_t heard_ns;
    uint64_t waiting_ns; /* since when packets wait for an answer; 0: none do */
    bool down;           /* the session broke: to be reported */
    bool starved;        /* it was told that there is no block */
    struct udp_tx tx;
    struct udp_rx rx;
};

struct udp_peer_config {
    uint32_t mtu_least, mtu_most, room, n_mark;
    uint64_t seed; /* nobody may guess it */
};

void udp_peer_init(struct udp_peer *p, const struct udp_peer_config *config, uint64_t now_ns);
/* Takes a packet, as udp_tx_add. */
int udp_peer_send(struct udp_peer *p, uint32_t block, enum wire_class cls, const void *data,
                  uint32_t len, uint64_t now_ns);
/* The next datagram that may leave now. False: none. */
bool udp_peer_next(struct udp_peer *p, uint64_t now_ns, struct udp_out *ret_out);
/* It did not leave: the socket is full. */
void udp_peer_unsent(struct udp_peer *p, const struct udp_out *out);

/* Conditions of udp_peer_receive. */
enum {
    UDP_PEER_WHOLE = 1,  /* a packet is complete */
    UDP_PEER_IGNORED = 2 /* not of this session, seen before, or malformed */
};
/* Bytes of a datagram up to those of a packet, by what it says it is; 0: it is none. */
uint32_t udp_peer_head_bytes(const uint8_t *data, uint32_t n);
int udp_peer_receive(struct udp_peer *p, struct udp_posts *posts, const uint8_t *data, uint32_t n,
                     uint64_t now_ns, struct udp_whole *ret_whole);
/* When udp_peer_timeout or udp_peer_next has something to do; UINT64_MAX: not by itself. */
uint64_t udp_peer_due(const struct udp_peer *p);
void udp_peer_timeout(struct udp_peer *p, struct udp_posts *posts, uint64_t now_ns);
/* Does anything wait for an answer, or for its time? Otherwise it need not be looked at. */
bool udp_peer_idle(const struct udp_peer *p);
/* The blocks of half-received packets go back to `posts`, the session ends. */
void udp_peer_deinit(struct udp_peer *p, struct udp_posts *posts);
