/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One control connection to a neighbour's daemon: hand-shake and liveness. Pure state machine,
 * without socket and clock; mesh.c calls it. Control thread.
 *
 *      HELLO -- Hello: versions, names --> PROOF -- Proof: cluster key --> UP
 *        |                                   |                             |
 *        `------- time over, refused --------'------- silent too long -----'--> (caller closes)
 *
 * Each side sends Hello at once; Proof is an HMAC over both Hello frames as they travelled and over
 * who opened the connection, so neither can be replayed, mirrored or changed. What follows a side's
 * Proof is encrypted, with keys out of the cluster key and both Hello frames, and numbered: nothing
 * in it can be read, changed, replayed, left out or put in between (peer_wrap, peer_unwrap).
 *
 * Out of the same comes the secret of the two incarnations on this network, from which the channels
 * make the keys of their packets (daemon/seal/seal.h). It does not depend on the connection.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/cluster/auth.h"
#include "daemon/routing/node_name.h"
#include "daemon/seal/seal.h"

#define PEER_VERSION     3u
#define PEER_HELLO_BYTES 512u
#define PEER_SALT_BYTES  32u
/* What peer_wrap adds to a frame. */
#define PEER_CODE_BYTES 8u

enum peer_state { PEER_HELLO, PEER_PROOF, PEER_UP };

/* How closely the other side's life is watched. */
enum peer_pulse {
    PEER_QUICK, /* a job depends on it */
    PEER_CALM,
    PEER_QUIET /* not at all: the kernel tells of its host's end, others of its daemon's */
};

/* Who we are, the same for all connections. */
struct peer_self {
    const char *node;
    const char *software; /* for people */
    uint32_t node_id, epoch, packet_bytes;
    uint8_t salt[PEER_SALT_BYTES]; /* drawn when the daemon started */
    const struct auth_key *key;
    uint64_t heartbeat_ns, dead_after_ns;           /* quick */
    uint64_t calm_heartbeat_ns, calm_dead_after_ns; /* calm */
    uint64_t handshake_ns;
    uint64_t lag_ns; /* that the own timer is late by, lately: who is starved of processors hears
                        and is heard late, and the others on such a host likewise */
    uint64_t changed_ns; /* when the intervals last became shorter: silence counts from then on */
};

struct peer;
struct peer_ops {
    void (*send)(void *ctx, uint16_t type, const void *body, uint32_t len);
    /* The other side's Hello is sound; may it come in? NULL, or the reason why not (stays valid
     * until the next call). */
    const char *(*admit)(void *ctx, const struct peer *peer);
    /* The connection is up. */
    void (*up)(void *ctx, uint64_t now_ns);
    /* A frame that belongs to others (LinkStates, Digest, Mail). 0 or negative errno. */
    int (*frame)(void *ctx, uint16_t type, const uint8_t *body, uint32_t len, uint64_t now_ns);
    /* A round trip was measured. */
    void (*rtt)(void *ctx, uint64_t rtt_ns, uint64_t now_ns);
};

struct peer {
    const struct peer_self *self;
    const struct peer_ops *ops;
    void *ctx;
    enum peer_state state;
    bool initiator; /* we opened the connection */
    char network[NODE_NAME_BYTES];
    enum peer_pulse pulse;
    uint64_t pulse_ns; /* when it last became quicker: silence counts from then on */
    uint64_t since_ns, heard_ns, sent_ns, measured_ns;
    uint8_t own_hello[PEER_HELLO_BYTES], other_hello[PEER_HELLO_BYTES];
    uint32_t own_hello_len, other_hello_len;
    /* The other side, valid from PEER_PROOF on. */
    char node[NODE_NAME_BYTES];
    uint32_t node_id, epoch, control_port;
    uint8_t salt[PEER_SALT_BYTES];
    enum seal_mode protect;            /* packets here, on both sides */
    uint8_t secret[SEAL_SECRET_BYTES]; /* of the two incarnations on this network, when up */
    /* What follows the proofs. */
    struct seal_key out, in;
    uint64_t n_out, n_in;
    bool out_sealed, in_sealed; /* the proof has been sent; has come, and is good */
    char reason[256];           /* why it ended, for the log and for Refused */
};

/* Starts a connection on a network by sending Hello. `protect`: of the packets on this network. */
void peer_start(struct peer *p, const struct peer_self *self, const char *network,
                enum seal_mode protect, uint32_t own_port, bool initiator,
                const struct peer_ops *ops, void *ctx, uint64_t now_ns);
/* Forgets its keys. One that was never started, all zero, is fine. */
void peer_end(struct peer *p);
/* The body of a frame as it is to travel: in ret_body, which has room for len + PEER_CODE_BYTES.
 * Returns its length. Frames must be sent in this order. */
uint32_t peer_wrap(struct peer *p, uint16_t type, const void *body, uint32_t len,
                   uint8_t *ret_body);
/* The body of a frame that came, in ret_body, which has room for len bytes, for peer_on_frame and
 * whoever looks before it. 0, or -EPROTO: close the connection, p->reason says why. */
int peer_unwrap(struct peer *p, uint16_t type, const uint8_t *body, uint32_t len, uint8_t *ret_body,
                uint32_t *ret_len);
/* 0, or -EPROTO or -EACCES: refuse the other side with p->reason. */
int peer_on_frame(struct peer *p, uint16_t type, const uint8_t *body, uint32_t len,
                  uint64_t now_ns);
/* How closely it is watched from now on. */
void peer_set_pulse(struct peer *p, enum peer_pulse pulse, uint64_t now_ns);
/* To be called at peer_next_ns, or more often. 0, or -ETIMEDOUT: close, p->reason says why. */
int peer_on_timer(struct peer *p, uint64_t now_ns);
/* When peer_on_timer wants to be called at the latest. */
uint64_t peer_next_ns(const struct peer *p);
