/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An endpoint of the native UDP driver without its socket: peers by address, posted blocks, what is
 * to be reported. Everything that net_udp does but for system calls and the clock, so that a
 * simulated link can carry it (tests/net/test_udp.c). One thread.
 */
#pragma once

#include "base/list.h"
#include "daemon/net/net.h"
#include "daemon/net/udp/udp_peer.h"

struct udp_end;

struct udp_end_config {
    const struct arena *arena;
    uint32_t max_bytes;           /* of a packet */
    uint32_t mtu_least, mtu_most; /* of the paths: payload of UDP */
    uint32_t room;                /* bytes that the socket holds */
    uint64_t seed;                /* nobody may guess it */
    bool encrypts;                /* what peers are sealed with (daemon/seal) */
};

/* What became of datagrams; for status. */
struct udp_end_count {
    uint64_t n_sent, n_resent; /* fragments, and those sent again */
    uint64_t n_ignored;        /* of no session, malformed, or seen before */
    struct net_guard guard;    /* from no peer, not sealed by it, or sealed and seen before */
};

/* The smallest datagram that packets of this size can be cut for; never below 548 (IPv4's least
 * datagram). */
uint32_t udp_end_mtu_least(uint32_t max_bytes);

int udp_end_new(const struct udp_end_config *config, struct udp_end **ret_end);
void udp_end_free(struct udp_end *end);

/* At most NET_ADDRESS_BYTES of address, compared as bytes. 0 or -ENOMEM, -ENOSPC, -EEXIST. */
int udp_end_peer_add(struct udp_end *end, const void *address, uint32_t len, struct seal *seal,
                     uint64_t now_ns, uint32_t *ret_peer);
void udp_end_peer_remove(struct udp_end *end, uint32_t peer);
const void *udp_end_peer_address(const struct udp_end *end, uint32_t peer, uint32_t *ret_len);
/* The session with a peer, for status and tests; NULL: there is none. */
const struct udp_peer *udp_end_peer(const struct udp_end *end, uint32_t peer);

int udp_end_send(struct udp_end *end, uint32_t peer, uint32_t block, uint32_t len, uint64_t now_ns);
/* As net_driver.moving. */
uint32_t udp_end_moving(struct udp_end *end, uint32_t peer);
void udp_end_path(const struct udp_end *end, uint32_t peer, struct net_path *ret_path);
int udp_end_post(struct udp_end *end, uint32_t block);
/* A datagram came; it is unsealed in place. True: it completed a packet. */
bool udp_end_input(struct udp_end *end, const void *address, uint32_t address_len, uint8_t *data,
                   uint32_t n, uint64_t now_ns, struct net_event *ret_event);
/* Datagrams that shall leave now, of one peer (UINT32_MAX: of all). Their number. */
uint32_t udp_end_output(struct udp_end *end, uint32_t peer, uint64_t now_ns, struct udp_out *outs,
                        uint32_t max);
/* This one did not leave. The newest first. */
void udp_end_unsent(struct udp_end *end, const struct udp_out *out);
/* What is to be reported, at most max. */
int udp_end_report(struct udp_end *end, struct net_event *events, int max);
bool udp_end_has_report(const struct udp_end *end);
/* When udp_end_output has something without anything coming in. */
uint64_t udp_end_due(const struct udp_end *end);
uint32_t udp_end_posted(const struct udp_end *end);
void udp_end_count(const struct udp_end *end, struct udp_end_count *ret_count);
