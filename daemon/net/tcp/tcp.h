/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the native TCP driver keeps, for the files of this folder and net_tcp.c (the endpoint) only.
 * Used by the channel's thread.
 *
 * Two endpoints are joined by a connection for each class of packets: quick ones in one stream with
 * bulk would wait behind all that its socket holds, and for what it sends again. So whoever is a
 * peer for the channel is two peers here, one for each class, that know nothing of one another;
 * their numbers are 2 * the channel's + class.
 *
 * A connection carries frames both ways: a head (magic, length, code) and a packet. The first frame
 * each way is a hello with the listening address of its sender and the class, by which the other
 * side knows which peer it claims to be, and a random number; the second one proves it. Of two
 * peers the one with the lower address connects; the other one does so too when nothing comes for a
 * while, and two connections do no harm: each side sends on one and reads both.
 *
 *      opened --- hello ---> greeted --- proof ---> proved: packets
 *        |                     | nobody knows the peer yet: not read until somebody does
 *        `---------------------'--- 5 s, or wrong: closed
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/list.h"
#include "daemon/net/block.h"
#include "daemon/net/net.h"

#define TCP_FRAME_MAGIC 0x4d4f5450u /* "MOTP" */
#define TCP_HELLO_MAGIC 0x4d4f5448u /* "MOTH" */
#define TCP_PROOF_MAGIC 0x4d4f5441u /* "MOTA" */
#define TCP_VERSION     3u
#define TCP_NONCE_BYTES 32u
#define TCP_PROOF_BYTES 32u
#define TCP_PEER_NONE   UINT32_MAX

/* In front of every packet, little endian. */
struct tcp_head {
    uint32_t magic; /* TCP_FRAME_MAGIC; in the first frame TCP_HELLO_MAGIC, then TCP_PROOF_MAGIC */
    uint32_t len;   /* bytes that follow */
    uint64_t code;  /* of a packet: its seal, under its number in the stream from 0; else 0 */
};
static_assert(sizeof(struct tcp_head) == 16, "head of a frame");

/* Contents of the first frame each way. */
struct tcp_hello {
    struct tcp_head head;
    uint32_t version; /* TCP_VERSION */
    uint32_t cls;     /* enum wire_class: of the packets that come here */
    uint32_t address_len;
    uint32_t reserved;
    uint8_t address[NET_ADDRESS_BYTES]; /* where its sender listens */
    uint8_t nonce[TCP_NONCE_BYTES];     /* random */
};
static_assert(sizeof(struct tcp_hello) == 192, "hello");
#define TCP_HELLO_BYTES (sizeof(struct tcp_hello) - sizeof(struct tcp_head))

struct tcp_conn {
    struct list node;   /* in net.conns or net.graves */
    struct list active; /* in net.active while packets come in */
    int fd;
    uint32_t peer;   /* that it is with; TCP_PEER_NONE: they opened it and have not proved it yet */
    uint32_t claims; /* that it says it is; TCP_PEER_NONE: has not said, or nobody knows it yet */
    uint8_t cls;     /* enum wire_class; quick until that is known */
    bool connecting, greeted, proved, initiated, dead;
    struct sockaddr_storage from; /* of those who connected: theirs */
    uint32_t n_quiet;             /* polls without a byte */
    uint64_t since_ns;            /* made (coarse clock) */
    uint32_t epoll_set;           /* events asked for */
    /* Out: the peer's queue; before it our hello and proof. */
    uint32_t out_len, out_at;
    uint8_t out[sizeof(struct tcp_hello) + sizeof(struct tcp_head) + TCP_PROOF_BYTES];
    struct tcp_hello own_hello;
    struct seal_key out_key;
    uint64_t n_out;     /* frames sealed */
    uint64_t sent_poll; /* number of the poll after which something was sent last */
    /* In: the head of the frame that is arriving, then where its contents go. */
    struct tcp_head head;
    uint32_t n_head; /* bytes of the head that have arrived */
    uint32_t block;  /* BLOCK_NONE: no contents yet */
    uint32_t filled; /* bytes of contents that have arrived */
    uint32_t guess;  /* length of the last frame: the next is often as long */
    struct tcp_hello hello;
    uint8_t proof[TCP_PROOF_BYTES];
    struct seal_key in;
    uint64_t n_in;  /* frames opened */
    uint32_t n_bad; /* of them damaged */
};

struct tcp_peer {
    bool used;
    uint8_t cls; /* enum wire_class */
    struct seal *seal;
    bool waiting; /* in net.n_waiting: without a connection */
    uint16_t address_len;
    int down;          /* error to be reported */
    uint64_t retry_ns; /* not to be connected before (coarse clock) */
    uint32_t backoff_ms;
    struct tcp_conn *conn; /* what is sent goes there; NULL: none yet */
    struct list dirty;     /* in net.dirty while blocks are queued */
    uint32_t head, tail, n_queued;
    uint32_t head_off;        /* bytes of the first block's frame that are sent */
    uint64_t confirmed_bytes; /* by the far kernel, when last asked */
    uint8_t address[NET_ADDRESS_BYTES];
};

/* What the driver knows of a block it holds. */
struct tcp_slot {
    struct tcp_head head;
    bool sealed; /* the head has its code */
    uint32_t next;
    uint32_t peer;
    int error;
};

/* Where small frames are read to. What could not be passed on for want of blocks or events stays,
 * and nothing else of its class is read before. */
struct tcp_stage {
    uint8_t *bytes;
    size_t at, end;
    struct tcp_conn *conn; /* whose bytes are left over; NULL: none */
};

struct net {
    const struct arena *arena;
    uint32_t max_bytes;
    int listen_fd, epoll_fd;
    uint16_t address_len;
    uint8_t address[NET_ADDRESS_BYTES];
    char text[64];   /* the same for messages */
    uint8_t *sealed; /* encrypted packets on their way, by block; NULL: nothing is encrypted */
    struct tcp_slot *slots;
    uint32_t *posted, n_posted;
    struct tcp_peer *peers;
    uint32_t n_peers, n_waiting, n_down;
    struct list conns, active, dirty, graves;
    uint32_t n_strangers; /* they opened, and are nobody yet */
    uint32_t n_unproved;  /* those, and what this side opened */
    uint32_t n_active;
    struct net_guard guard;
    uint64_t complained_ns, complained_of; /* for the log */
    uint64_t n_polls;
    uint64_t connect_ns;                   /* no peer is to be connected before */
    uint32_t n_cold;                       /* active, and not read in this poll */
    uint32_t n_skipped;                    /* polls since the last look at all sockets */
    uint32_t done_head, done_tail, n_done; /* blocks whose sending is over, to be reported */
    struct tcp_stage stages[WIRE_CLASSES];
};

/* The events of one poll. */
struct tcp_events {
    struct net_event *at;
    int n, max;
};
