/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams of the native UDP driver. Two endpoints talk in a session: each names the other by an
 * identity that it drew at random for this session, and whoever does not know both names is not
 * heard. Every datagram but a hello has a number of its own, which is never used again: a fragment
 * that is sent once more gets another number, so that an acknowledgement says which of the two
 * arrived (compare RFC 9000, section 12.3).
 *
 *      [mark] head | HELLO: hello
 *                  | DATA:  part, [ack with one word], bytes of the packet
 *                  | ACK:   ack, words
 *                  | PING:  zeros (an acknowledgement is wanted; its size tries the path)
 *
 * The mark (daemon/seal) is there unless the network is not protected: everything behind it is
 * covered by its code, nothing is looked at before that is found right, and no datagram is taken
 * twice. With encryption the bytes of packets are not readable, all before them is. Little
 * endian.
 */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define UDP_MAGIC   0x4d55u
#define UDP_VERSION 1u

enum udp_kind { UDP_HELLO = 1, UDP_DATA, UDP_ACK, UDP_PING };

enum {
    UDP_F_NOW = 1,  /* acknowledge without waiting for more */
    UDP_F_ACKS = 2, /* DATA: an acknowledgement stands between part and bytes */
};

/* In front of every datagram; set by the sender, checked by the receiver. */
struct udp_head {
    uint16_t magic;  /* UDP_MAGIC */
    uint8_t kind;    /* enum udp_kind */
    uint8_t flags;   /* UDP_F_* */
    uint32_t from;   /* the sender's name in this session */
    uint32_t to;     /* the receiver's, as the sender knows it; HELLO: 0 if it does not */
    uint32_t number; /* of the datagram; HELLO: 0 */
};
static_assert(sizeof(struct udp_head) == 16, "head of a datagram");

struct udp_hello {
    uint32_t version;  /* UDP_VERSION */
    uint32_t room;     /* bytes that the sender's socket holds: never more may be under way */
    uint32_t spare[2]; /* 0 */
};
static_assert(sizeof(struct udp_hello) == 16, "hello");

/* Of a fragment. */
struct udp_part {
    uint32_t packet; /* number of the packet in the session */
    uint32_t size;   /* low 24 bits: bytes of the packet; high 8: packet minus the oldest number
                        that is not done with */
    uint16_t chunk;  /* bytes of every fragment but the last */
    uint16_t idx;    /* of this fragment */
    uint32_t spare;  /* 0 */
};
static_assert(sizeof(struct udp_part) == 16, "part");

struct udp_ack {
    uint32_t newest;  /* datagram of the highest number that arrived */
    uint16_t delay;   /* since then, in 4 us */
    uint8_t n_words;  /* odd, of the bitmap: bit i of all is number newest - 1 - i */
    uint8_t starving; /* 1: there is no memory for new packets */
};
static_assert(sizeof(struct udp_ack) == 8, "acknowledgement");

#define UDP_ACK_WORDS   15u /* an odd number, always: what is sealed as head comes in lines of 16 */
#define UDP_PACKETS     128u /* numbers of packets that may be open at once */
#define UDP_PARTS_MAX   256u /* fragments of a packet */
#define UDP_SIZE_MAX    0xffffffu
#define UDP_DATA_BYTES  (sizeof(struct udp_head) + sizeof(struct udp_part))
#define UDP_EMBED_BYTES (sizeof(struct udp_ack) + sizeof(uint64_t))
#define UDP_HEAD_MAX                                                                               \
    (sizeof(struct udp_head) + sizeof(struct udp_ack) + UDP_ACK_WORDS * sizeof(uint64_t))
