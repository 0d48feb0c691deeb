/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network driver table: all that a channel asks of a network. A driver moves blocks
 * (daemon/net/block.h), which it names by index, between endpoints of one network; it may lose,
 * duplicate and reorder them, since flows put that right. It is used by its channel's thread only,
 * never blocks, and never allocates after `open` except while connecting to a new peer.
 *
 * Drivers: net_tcp (native TCP), net_udp (native UDP), net_ofi (libfabric); net_drivers.c has the
 * table. Wrappers with
 * the same functions: net_frag (packets larger than the network's datagrams), net_fault (injects
 * losses). What is written here is what tests/net/conform.c asks of each of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/seal/seal.h"

struct arena;
struct net;

#define NET_ADDRESS_BYTES 128u
#define NET_NAME_BYTES    32u

/* What a driver's endpoint can do; the optional functions go with them. */
enum net_cap {
    NET_CAP_WAIT = 0x01,     /* wait_fd and wait_ready are there */
    NET_CAP_DATAGRAM = 0x02, /* no flow control below us: a flow starts with a small window */
    NET_CAP_RENEW = 0x04,    /* a peer that is removed and added again has a new connection, and no
                                other peer notices */
    NET_CAP_SEALS = 0x08,    /* protects its packets itself; for others net_frag does */
    NET_CAP_CLASSES = 0x10,  /* packets of one class do not stand behind those of the other */
};

struct net_config {
    const char *interface; /* name of the interface ("eth0"), or NULL */
    const char *address;   /* numeric local address to bind ("10.1.0.1"), or NULL */
    uint16_t port;         /* local port to bind; 0: any */
    const char *provider;  /* "auto", "tcp", "udp", "verbs", ...: meaning is the driver's */
    const char *options;   /* driver's own, "name=value,..." or NULL; for net_fault:
                              "drop=0.01,seed=7"; for   net_udp: of these "lose=0.1" and the seed */
    uint32_t first_block;  /* the channel's own part of the arena, for registration hints */
    uint32_t n_blocks;
    uint32_t max_bytes;     /* largest packet, header included */
    enum seal_mode protect; /* of this network; what the peers' seals are made for */
    void *context;          /* a test driver's: the network that it simulates */
};

/* What an open endpoint tells about itself. */
struct net_info {
    uint32_t caps;         /* NET_CAP_* */
    uint32_t max_datagram; /* largest block that `send` takes; below max_bytes the channel puts
                              net_frag on top */
    uint32_t n_receives;   /* how many receive blocks the driver can hold; the channel posts at most
                              as many */
    const char *driver;    /* its name in the driver table; wrappers give that of what they wrap */
    char provider[NET_NAME_BYTES]; /* what is really used, for status */
    char features[NET_NAME_BYTES]; /* what it found in the kernel, words for status; may be "" */
    uint32_t bulk_bytes; /* of bulk for one peer that it wants at once, since it puts quick packets
                            in front itself; 0: it does not */
};

/* What a driver that cuts packets into datagrams knows of the way to a peer. */
struct net_path {
    uint32_t bytes, most_bytes; /* payload of its datagrams, and what the interface would allow */
    bool searching;             /* for a larger size */
    uint64_t n_sent, n_resent;  /* datagrams since the peer was added, and fragments sent again */
};

/* What an endpoint has refused, since it was opened. */
struct net_guard {
    uint64_t forged;    /* packets that were not from a peer, or damaged on the way */
    uint64_t replayed;  /* packets that had come before */
    uint64_t strangers; /* connections that did not prove to be a peer's */
};

enum net_event_kind {
    NET_RECEIVED = 1, /* block holds len bytes from someone */
    NET_SENT = 2,     /* block is the channel's again */
    NET_FAILED = 3,   /* the same, but the peer got nothing; error says why (negative errno) */
    NET_PEER_DOWN = 4 /* no block: the connection to the peer broke; error says why */
};

struct net_event {
    uint8_t kind; /* enum net_event_kind */
    uint32_t block;
    uint32_t len;
    uint32_t peer; /* NET_FAILED, NET_PEER_DOWN */
    int error;
};

/* Conditions of `send`. */
enum { NET_E_DONE = 1 /* sent already: the block stays the channel's, no event follows */ };

struct net_driver {
    const char *name;
    /* Opens an endpoint. 0 or negative errno, logged. The arena outlives the endpoint. */
    int (*open)(const struct net_config *config, const struct arena *arena, struct net **ret_net);
    /* Closes it; all blocks are the caller's again. NULL is fine. */
    void (*close)(struct net *net);
    void (*info)(const struct net *net, struct net_info *ret_info);
    /* The endpoint's own address, which peers pass to `peer_add`: at most NET_ADDRESS_BYTES. 0 or
     * negative errno. */
    int (*address)(struct net *net, void *buf, size_t *len);
    /* Names a peer, and the seal that the two ends know each other by, which stays the caller's and
     * outlives the peer. 0, or negative errno. Connects now or with the first packet, without
     * waiting. */
    int (*peer_add)(struct net *net, const void *address, size_t len, struct seal *seal,
                    uint32_t *ret_peer);
    /* Forgets a peer. Blocks being sent to it come back as NET_FAILED, soon or when the network
     * lets go of them. */
    void (*peer_remove)(struct net *net, uint32_t peer);
    /* Sends the first len bytes of a block. `cls` in the block's holder's half is its class: a
     * driver may keep the classes apart, and lets quick blocks overtake bulk ones where it can. 0
     * (an event follows), NET_E_DONE, -EAGAIN (later), or another negative errno. */
    int (*send)(struct net *net, uint32_t peer, uint32_t block, uint32_t len);
    /* Gives a block to receive into. 0, -EAGAIN when the driver holds enough, or another negative
     * errno. */
    int (*post)(struct net *net, uint32_t block);
    /* Moves things on and fetches up to max events. Their number, or negative errno when the
     * endpoint is lost. */
    int (*poll)(struct net *net, struct net_event *events, int max);

    /* Optional: what was refused. */
    void (*guard)(const struct net *net, struct net_guard *ret_guard);

    /* Optional, with NET_CAP_WAIT: a descriptor that becomes readable when `poll` has something. It
     * may change: ask before each sleep. */
    int (*wait_fd)(struct net *net);
    /* 0: sleeping on the descriptor is safe now. -EAGAIN: poll again first. */
    int (*wait_ready)(struct net *net);
    /* Optional: for which classes of packets is the network still at what was sent to this peer,
     * and has got on with it since the last call? A bit for each, 1 << enum wire_class. Whoever
     * waits for an answer then waits behind a queue, not in vain. */
    uint32_t (*moving)(struct net *net, uint32_t peer);
    /* Optional: for status. */
    void (*path)(const struct net *net, uint32_t peer, struct net_path *ret_path);
};
