/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sending end of a session: packets in fragments, until each fragment is known to have arrived.
 * No clock, no socket, no order between packets:
 *
 *      fragment:  unsent --> under way (as datagram n) --acknowledged--> done
 *                    ^             |
 *                    '--- lost <---'   then it leaves as datagram m > n
 *
 * Datagram n is lost when one of three numbers more has arrived, or any later one and a round trip
 * and an eighth has passed (RFC 9002, section 6.1); where that turns out to be wrong since the
 * network changes the order, the three becomes more. When nothing is heard at all, two fragments
 * and a small datagram are sent to provoke an answer (section 6.2).
 *
 * Quick packets leave before bulk ones; what was lost leaves before both. Packets that fit are
 * copied, and their blocks are free at once; a larger one keeps its block until its last fragment
 * has arrived.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/net/udp/udp_mtu.h"
#include "daemon/net/udp/udp_rate.h"
#include "daemon/net/udp/udp_wire.h"
#include "proto/wire.h"

#define UDP_TX_COPY  256u  /* bytes of a packet that is copied */
#define UDP_TX_GRAMS 2048u /* datagrams remembered */

struct udp_tx_packet {
    uint32_t block; /* BLOCK_NONE: copied, or done */
    uint32_t len;
    uint16_t chunk;   /* decided when the first fragment leaves */
    uint16_t n_parts; /* 0: nothing has left yet */
    uint16_t next;    /* fragment that never left */
    uint16_t n_arrived, n_lost;
    uint8_t cls; /* enum wire_class */
    bool done;
    uint64_t arrived[UDP_PARTS_MAX / 64], lost[UDP_PARTS_MAX / 64];
    uint8_t copy[UDP_TX_COPY];
};

struct udp_tx_gram {
    uint64_t sent_ns;
    uint32_t packet;
    uint32_t bytes; /* of the datagram */
    uint16_t idx;
    uint8_t kind;  /* enum udp_kind */
    uint8_t state; /* udp_tx.c */
};

/* Packets of one class with a fragment that never left: [first, end) of a ring of their numbers. */
struct udp_tx_line {
    uint32_t first, end;
    uint32_t n_arrived; /* fragments of this class that are known to have arrived, ever */
    uint32_t packets[UDP_PACKETS];
};

/* A block that is the channel's again. */
struct udp_tx_done {
    uint32_t block;
    int error;
};

struct udp_tx {
    uint32_t oldest, next; /* numbers of packets: [oldest, next) are open */
    uint32_t n_lost;       /* fragments to be sent again */
    uint32_t number;       /* of the next datagram */
    uint32_t first;        /* no datagram before it is under way */
    uint32_t newest;       /* highest number known to have arrived */
    uint32_t round;        /* the round ends when this number is judged */
    uint32_t under_way;    /* bytes */
    uint32_t n_under_way;  /* datagrams that await an answer */
    uint32_t gap;          /* numbers that prove a loss */
    uint32_t n_silent;     /* time-outs in a row */
    uint32_t n_free;       /* datagrams that may leave in spite of the window */
    bool ping;             /* a small datagram shall leave */
    uint64_t asked_ns;     /* the last one that wants an answer left */
    uint64_t overtaken_ns; /* when an overtaken one is lost; UINT64_MAX: none */
    uint64_t hold_ns;      /* the receiver has no memory: nothing before, and one at a time; or 0 */
    uint32_t n_done;
    struct udp_tx_done done[UDP_PACKETS];
    struct udp_rate rate;
    struct udp_mtu mtu;
    uint64_t n_datagrams, n_resent; /* counts */
    struct udp_tx_line lines[WIRE_CLASSES];
    uint32_t quick_run; /* bytes of quick ones that left while bulk waited */
    struct udp_tx_packet packets[UDP_PACKETS];
    struct udp_tx_gram grams[UDP_TX_GRAMS];
};

/* A fragment to be sent. */
struct udp_tx_piece {
    struct udp_part part;
    const uint8_t *copy; /* of the packet, if it was copied */
    uint32_t block;      /* else */
    uint32_t offset, len;
};

/* `number`: of the first datagram, any. */
void udp_tx_init(struct udp_tx *tx, uint32_t number, uint32_t mtu_least, uint32_t mtu_most,
                 uint64_t now_ns);
/* Takes a packet. 0 (it will be in `done`), NET_E_DONE or -EAGAIN. */
int udp_tx_add(struct udp_tx *tx, uint32_t block, enum wire_class cls, const void *data,
               uint32_t len);
/* May a fragment leave, and which? `extra`: bytes of the datagram around it. */
bool udp_tx_next(struct udp_tx *tx, uint32_t extra, uint64_t now_ns,
                 struct udp_tx_piece *ret_piece);
/* A datagram leaves; returns its number. `piece` is NULL unless kind is UDP_DATA. */
uint32_t udp_tx_sent(struct udp_tx *tx, enum udp_kind kind, const struct udp_tx_piece *piece,
                     uint32_t bytes, uint64_t now_ns);
/* It did not leave after all: the socket is full. */
void udp_tx_unsent(struct udp_tx *tx, uint32_t number);
/* False: it speaks of what was never sent. `words` lie unaligned. */
bool udp_tx_ack(struct udp_tx *tx, const struct udp_ack *ack, const uint8_t *words,
                uint64_t now_ns);
/* When udp_tx_timeout has something to do. */
uint64_t udp_tx_due(const struct udp_tx *tx);
void udp_tx_timeout(struct udp_tx *tx, uint64_t now_ns);
/* All open packets begin anew, under new numbers. */
void udp_tx_restart(struct udp_tx *tx);
/* Gives all packets up. */
void udp_tx_fail(struct udp_tx *tx, int error);

static inline bool udp_tx_idle(const struct udp_tx *tx)
{
    return tx->oldest == tx->next && tx->n_under_way == 0;
}
