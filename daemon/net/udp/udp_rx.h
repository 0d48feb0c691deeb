/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receiving end of a session: which datagrams have come, and packets put together of their
 * fragments, each straight into a block that the channel posted. A packet is passed on when its
 * last fragment is there, whatever others lack. What may be open at once is bounded by the numbers
 * of packets (UDP_PACKETS); a fragment for which there is no block is not acknowledged. No clock,
 * no socket.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/net/udp/udp_wire.h"

struct arena;

#define UDP_RX_NUMBERS 1024u

struct udp_rx_packet {
    uint32_t block;
    uint32_t len;
    uint16_t chunk, n_parts, n_got;
    uint8_t state; /* udp_rx.c */
    uint64_t got[UDP_PARTS_MAX / 64];
};

struct udp_rx {
    bool begun;
    uint32_t newest;   /* highest number that arrived */
    uint32_t told;     /* newest of the acknowledgement before the last */
    uint32_t told_now; /* of the last */
    uint32_t base;     /* packets before it are done with */
    bool based;
    uint32_t n_waiting; /* datagrams that want an acknowledgement */
    bool ack_now;
    bool starving;              /* a fragment found no block */
    uint64_t newest_ns, ack_ns; /* ack_ns: when it is due, if n_waiting > 0 */
    uint32_t n_partial;
    uint64_t seen[UDP_RX_NUMBERS / 64];
    struct udp_rx_packet packets[UDP_PACKETS];
};

/* Blocks to receive into, of the whole endpoint. */
struct udp_posts {
    const struct arena *arena;
    uint32_t max_bytes; /* of a packet */
    uint32_t n;
    uint32_t *blocks;
};

void udp_rx_init(struct udp_rx *rx);
/* Gives back the blocks of packets that lack something. */
void udp_rx_deinit(struct udp_rx *rx, struct udp_posts *posts);

/* Is this number new? Changes nothing. */
bool udp_rx_is_new(const struct udp_rx *rx, uint32_t number);
/* The datagram was taken. `asks`: it wants an acknowledgement. */
void udp_rx_note(struct udp_rx *rx, uint32_t number, bool asks, bool at_once, uint64_t now_ns);

/* Conditions of udp_rx_part. */
enum {
    UDP_RX_WHOLE = 1, /* its packet is complete: in *ret_block, *ret_len */
    UDP_RX_NO_ROOM = 2,
    UDP_RX_BAD = 3, /* it cannot be what a sound sender sends */
};
/* Takes in a fragment of n bytes. 0 or a condition; with the last two it counts as lost. */
int udp_rx_part(struct udp_rx *rx, struct udp_posts *posts, const struct udp_part *part,
                const uint8_t *data, uint32_t n, uint32_t *ret_block, uint32_t *ret_len);

/* Writes an acknowledgement of at most n_words words (odd); returns its bytes. */
uint32_t udp_rx_ack(struct udp_rx *rx, uint32_t n_words, uint64_t now_ns, uint8_t *ret_ack);
