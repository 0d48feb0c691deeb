/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ranks say to each other in the payload of a ring slot. The daemon does not look at it.
 * Little endian.
 *
 * RTS       context, source, tag: the envelope. Payload: struct msg_rts, then the first bytes of
 * the message (may be none). PULL      context: the sender's transfer number. Payload: struct
 * msg_pull. DATA      context: the receiver's transfer number; offset = (uint32_t)tag |
 * (uint64_t)order << 32. Payload: the bytes. FINISHED  context: the sender's transfer number. No
 * payload: the message was matched and has arrived, the send is complete. CREDIT    Payload: struct
 * msg_credit.
 *
 * Transfer numbers are taken by the rank that uses them and never 0; one that is not known is
 * ignored.
 */
#pragma once

#include <assert.h>
#include <stdint.h>

/* `address` may be read by process_vm_readv: the message is one dense run */
#define MSG_RTS_SAME_NODE 0x1u
/* the payload is the whole message; the sender waits for FINISHED */
#define MSG_RTS_SYNC 0x2u
/* within a node: the sender waits for this message and no other */
#define MSG_RTS_ALONE 0x4u
/* within a node: time_ns says when the sender began */
#define MSG_RTS_TIMED 0x8u
/* within a node: enum method (proto/method.h), two bits from here on */
#define MSG_RTS_METHOD_SHIFT 4u

struct msg_rts {
    uint64_t bytes;    /* of the whole message */
    uint64_t address;  /* in the sender's memory, with MSG_RTS_SAME_NODE */
    uint32_t transfer; /* the sender's number */
    uint32_t flags;
    uint32_t record;  /* index + 1 of the sender's queue record, for cooperative copy; 0: none */
    uint32_t time_ns; /* the low half of the sender's CLOCK_MONOTONIC, with MSG_RTS_TIMED */
};
static_assert(sizeof(struct msg_rts) == 32, "fits into a slot");

static inline uint8_t msg_rts_method(uint32_t flags)
{
    return flags >> MSG_RTS_METHOD_SHIFT & 3u;
}

struct msg_pull {
    uint64_t granted;  /* the sender may send all bytes before this offset */
    uint32_t transfer; /* the receiver's number, for DATA */
    uint32_t reserved;
};
static_assert(sizeof(struct msg_pull) == 16, "fits into a slot");

struct msg_credit {
    uint64_t bytes; /* of eager messages that found their receive since the last one */
};
static_assert(sizeof(struct msg_credit) == 8, "fits into a slot");
