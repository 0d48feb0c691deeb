/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queue board: a rank's queues as seen from outside. Each request that waits (posted receive,
 * unexpected message, pending send, rendezvous) owns one record in the rank's segment; the rank
 * writes it, the daemon's control thread scans the board while the rank computes, hangs or is
 * stopped, and believes nothing: it copies a record, checks it, and drops what changed meanwhile.
 * Records are not linked, so there is no pointer to distrust.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

enum queue_state {
    QUEUE_FREE = 0,
    QUEUE_POSTED = 1,         /* receive waiting for a message */
    QUEUE_UNEXPECTED = 2,     /* message waiting for a receive */
    QUEUE_PENDING = 3,        /* send waiting for room or credit */
    QUEUE_RENDEZVOUS_OUT = 4, /* large send: announced or in transfer */
    QUEUE_RENDEZVOUS_IN = 5,  /* large receive in transfer */
    QUEUE_N_STATES
};

struct queue_record {
    _Atomic uint32_t state; /* enum queue_state; stored last (release), set to QUEUE_FREE first */
    uint32_t context;       /* context id of the communicator (+1: inside a collective) */
    int32_t peer;           /* rank in the communicator; -1 = MPI_ANY_SOURCE (posted only) */
    int32_t tag;            /* MPI_ANY_TAG is INT32_MIN (posted only) */
    uint64_t bytes;         /* size of message or of the receive buffer */
    uint64_t done_bytes;    /* transferred so far (rendezvous) */
    uint64_t since_ns;      /* CLOCK_MONOTONIC(_COARSE) when it came into this state */
    int32_t peer_world;     /* world rank of the peer, -1 unknown */
    uint32_t call;          /* enum queue_call: what the rank waits in */
    /* Large messages between ranks of one node are copied by both sides at once, chunk by chunk
     * (client/p2p/coop.c). Set by the sender before the announcement, then by whoever the comment
     * names; the daemon does not look at them. */
    _Atomic uint64_t
        coop_target; /* address of the buffer in the receiver's memory, 0: not yet; receiver */
    _Atomic uint32_t coop_next; /* next chunk that nobody has taken; both */
    _Atomic uint32_t coop_done; /* chunks that the sender has finished, or COOP_FAILED; sender */
};
static_assert(sizeof(struct queue_record) == 64, "a record is one cache line");

#define QUEUE_ANY_TAG    INT32_MIN
#define QUEUE_ANY_SOURCE (-1)
