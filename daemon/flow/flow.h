/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows: the reliable stream from one channel of a node to another node, whatever way its packets
 * take. The two ends are pure state machines: no clock, no network, no memory of their own. The
 * channel's tx asks the sending end what to send, its rx asks the receiving end whether a packet is
 * new. Owned by one channel thread each.
 *
 * Sending end, each packet:
 *
 *      add --> QUEUED --sent--> SENT --acknowledged--> gone
 *                 ^               |
 *                 '----- lost <---'
 *
 * Lost: 3 packets sent later on the same path have arrived (a gap); time-out; its way is gone.
 *
 * Order of packets on different paths says nothing about loss, so gaps are judged path by path. A
 * path may change the order of its own (a network that repairs its losses lets others pass
 * meanwhile): when a packet held for lost turns out to be late, its path needs twice the gap from
 * then on, and the window is what it was (compare RFC 8985, section 3.4).
 * (Compare RFC 9002, which counts the same threshold of 3, and RFC 2018 for selective
 * acknowledgements.)
 *
 * The window (packets under way) grows by one per packet acknowledged up to the first sign of
 * congestion and by one per window afterwards (RFC 5681); it shrinks to a half after a loss, to
 * three quarters after a congestion mark (RFC 3168 marks, milder answer since marks come before
 * queues are full), at most once per window. It stops growing while the round trip is far above its
 * minimum, so that bulk data does not build queues that small messages wait in.
 *
 * When the last packets of a burst are lost nothing comes after them to show the gap. So after two
 * round trips of silence the newest packet is sent once more; its acknowledgement shows what is
 * missing (RFC 8985, section 7).
 *
 * Receiving end: a cumulative number and a bitmap. Every new packet is delivered at once; nothing
 * is put in order here. A packet that cannot be delivered (its rank does not drain) is refused, for
 * good under this number: otherwise it would hold the window at its place and stall the packets
 * behind it. The source then sends the number empty, and the message under a new number later.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/wire.h"

/* most numbers between the oldest unacknowledged one and the newest; what an ack can describe */
#define FLOW_WINDOW    512u
#define FLOW_RX_WINDOW 1024u /* numbers the receiver remembers beyond the cumulative one */
#define FLOW_PATHS     8u
#define FLOW_GAP       3u /* packets overtaking on one path that prove a loss, at first */
#define FLOW_GAP_MAX   256u
#define FLOW_ACK_EVERY 16u /* packets after which the receiver acknowledges at once */
/* times a packet is sent again by gap; afterwards only time does it (it may be refused, not
 * lost) */
#define FLOW_MAX_FAST 2u

struct flow_limits {
    uint64_t rto_min_ns, rto_max_ns;
    uint32_t window_initial, window_max; /* packets, at most FLOW_WINDOW */
};

enum flow_state { FLOW_ACKED = 0, FLOW_QUEUED, FLOW_SENT };

struct flow_packet {
    uint64_t sent_ns;
    uint32_t block;
    uint32_t len;
    uint32_t number; /* of its last transmission on its path */
    uint8_t state;   /* enum flow_state */
    uint8_t path;
    uint8_t n_fast; /* times found lost by gap */
    uint8_t n_timeouts;
};

struct flow_path {
    uint32_t key;    /* low 24 bits of the hop word: neighbour and channel */
    uint32_t number; /* transmissions so far */
    uint32_t acked;  /* newest transmission known to have arrived */
    uint32_t gap;    /* numbers that prove a loss here */
};

struct flow_tx {
    const struct flow_limits *limits;
    uint32_t acked;     /* everything up to here has arrived */
    uint32_t send_next; /* first number never sent */
    uint32_t next;      /* number of the next packet to be added */
    uint32_t n_sent;    /* packets in FLOW_SENT */
    uint32_t n_resend;  /* packets before send_next in FLOW_QUEUED */
    uint32_t resend_at; /* no number before this one is to be sent again */
    uint32_t window_q8; /* packets under way allowed, in 1/256 */
    uint32_t threshold; /* up to here the window grows fast */
    uint32_t asked;     /* number of the last packet that asked for an acknowledgement */
    uint32_t undo_q8;   /* the window before it shrank for a gap; 0: it did not */
    uint32_t recovery;  /* the window shrinks again only when this number is acknowledged */
    uint32_t n_paths;
    uint32_t srtt_us, rttvar_us, rtt_min_us; /* 0: unknown */
    uint64_t rtt_min_ns;                     /* when rtt_min_us was found */
    uint64_t rto_ns;
    uint64_t deadline_ns; /* no packet times out before */
    uint64_t probe_ns;    /* when the newest packet is sent again to provoke an acknowledgement */
    uint64_t n_resent, n_timeouts;
    bool first; /* the next packet added carries WIRE_F_FIRST */
    struct flow_path paths[FLOW_PATHS];
    struct flow_packet packets[FLOW_WINDOW];
};

/* Starts at number 1. limits stay valid. */
void flow_tx_init(struct flow_tx *f, const struct flow_limits *limits);

static inline uint32_t flow_tx_window(const struct flow_tx *f)
{
    return f->window_q8 >> 8;
}

/* Packets not yet acknowledged, sent or not. */
static inline uint32_t flow_tx_pending(const struct flow_tx *f)
{
    return f->next - f->acked - 1;
}

static inline struct flow_packet *flow_tx_packet(struct flow_tx *f, uint32_t seq)
{
    return &f->packets[seq & (FLOW_WINDOW - 1)];
}

/* Is this number in the window, and unacknowledged? */
static inline bool flow_tx_holds(const struct flow_tx *f, uint32_t seq)
{
    return seq - f->acked - 1 < f->next - f->acked - 1 &&
           f->packets[seq & (FLOW_WINDOW - 1)].state != FLOW_ACKED;
}

/* How many more packets may be added: what the window lets go, and a few that wait so that it never
 * runs dry. */
uint32_t flow_tx_room(const struct flow_tx *f);
/* Adds a packet and returns its number. Only with room. */
uint32_t flow_tx_add(struct flow_tx *f, uint32_t block, uint32_t len);
/* When flow_tx_timeout has something to do; UINT64_MAX: not by itself. */
static inline uint64_t flow_tx_due(const struct flow_tx *f)
{
    return f->probe_ns < f->deadline_ns ? f->probe_ns : f->deadline_ns;
}
/* Is there a packet that may be sent now? Lost ones first. */
bool flow_tx_next(struct flow_tx *f, uint32_t *ret_seq);
/* Should this packet, about to be sent, ask for an acknowledgement without delay? When it uses up a
 * small window. */
bool flow_tx_ask(struct flow_tx *f, uint32_t seq);
/* The packet that flow_tx_next named went out over this path. */
void flow_tx_sent(struct flow_tx *f, uint32_t seq, uint32_t path_key, uint64_t now_ns);
/* Puts off the time-out of a packet that is still waiting to leave. */
void flow_tx_defer(struct flow_tx *f, uint32_t seq, uint64_t now_ns);
/* Processes an acknowledgement with n_words selective words. Blocks of packets that need no more
 * care go to ret_blocks (FLOW_WINDOW entries); returns their number. */
uint32_t flow_tx_ack(struct flow_tx *f, const struct wire_ack *ack, uint32_t n_words,
                     uint64_t now_ns, uint32_t *ret_blocks);
/* Marks packets as lost whose time is over, and the newest one if nothing was heard for long.
 * Returns their number. */
uint32_t flow_tx_timeout(struct flow_tx *f, uint64_t now_ns);
/* Puts another block in the place of an unacknowledged packet, to be sent as if lost. Returns the
 * one that was there. */
uint32_t flow_tx_replace(struct flow_tx *f, uint32_t seq, uint32_t block, uint32_t len);
/* Marks one packet as lost (its sending failed). No sign of congestion. */
void flow_tx_lost(struct flow_tx *f, uint32_t seq);
/* Marks all packets as lost that went over paths other than these. Returns their number. */
uint32_t flow_tx_reroute(struct flow_tx *f, const uint32_t *path_keys, uint32_t n_keys);
/* Gives up everything unacknowledged; blocks as in flow_tx_ack. Numbers go on, the next packet
 * tells the receiver to skip. */
uint32_t flow_tx_drop(struct flow_tx *f, uint32_t *ret_blocks);

struct flow_rx {
    uint32_t src_epoch;  /* incarnation of the source; 0: not in use */
    uint32_t cumulative; /* everything up to here has arrived */
    uint32_t n_unacked;  /* packets since the last acknowledgement */
    uint32_t n_congested;
    uint32_t sent_us;    /* of the newest packet that arrived */
    bool ack_now;        /* gap, duplicate, or asked for */
    uint64_t ack_due_ns; /* when n_unacked > 0 */
    uint64_t seen[FLOW_RX_WINDOW /
                  64]; /* bit (seq % FLOW_RX_WINDOW) for numbers beyond the cumulative one */
    uint64_t refused[FLOW_RX_WINDOW /
                     64]; /* likewise: only an empty packet is taken under this number */
};

void flow_rx_init(struct flow_rx *f, uint32_t src_epoch);

enum flow_news { FLOW_NEW, FLOW_DUPLICATE, FLOW_FAR /* beyond the window: cannot be */ };

/* What is this number? Does not change anything. */
enum flow_news flow_rx_check(const struct flow_rx *f, uint32_t seq);
/* Everything before this number was given up by the source (WIRE_F_FIRST). */
void flow_rx_skip(struct flow_rx *f, uint32_t seq);
/* The packet was taken. Only if flow_rx_check says FLOW_NEW. */
void flow_rx_take(struct flow_rx *f, uint32_t seq);
/* The packet is not taken, nor is any other with a message under this number. Only if flow_rx_check
 * says FLOW_NEW. */
void flow_rx_refuse(struct flow_rx *f, uint32_t seq);
bool flow_rx_refused(const struct flow_rx *f, uint32_t seq);
/* Is there a gap, so that the source should hear of it? */
static inline bool flow_rx_gap(const struct flow_rx *f, uint32_t seq)
{
    return seq != f->cumulative;
}
/* Fills an acknowledgement and resets the counts. Returns how many selective words are in use. */
uint32_t flow_rx_ack(struct flow_rx *f, struct wire_ack *ret_ack);
