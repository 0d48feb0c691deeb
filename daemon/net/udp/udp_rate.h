/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much may be under way to a peer, and how fast it leaves. Belongs to the sending end of a
 * session (udp_tx.h): no clock, no memory.
 *
 * The window grows while the round trip shows no queue, doubling at first, by an eighth or 16 KiB a
 * round later; a queue of more than a millisecond shrinks it in proportion (compare RFC 6817, which
 * steers by delay, too). Loss alone says little: a bad cable loses without any queue, a short queue
 * loses before it delays. So the share that is lost is compared with what is usual on this path:
 * more than usual cuts the window to 0.6, and if two cuts do not help, the share *is* what is
 * usual here. What is usual falls again with every better round.
 *
 * Datagrams leave at five quarters of window per round trip (twice while it doubles), so that a
 * short queue in front of a slow link does not get a whole window at once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct udp_rate {
    uint32_t window, limit; /* bytes; window <= limit */
    uint32_t mtu;
    bool fast;                   /* doubling */
    bool busy;                   /* the window was used up in this round */
    uint32_t srtt_us, rttvar_us; /* 0: unknown */
    uint32_t round_us;           /* least of this round; UINT32_MAX: none measured */
    uint32_t base_us[2];         /* least of this period and of the one before */
    uint64_t base_ns;            /* begin of this period */
    uint32_t n_arrived, n_lost;  /* since the share was judged last */
    uint32_t usual;              /* share lost that is usual, in 1/1024 */
    uint32_t n_cuts;             /* one behind the other, none of which helped yet */
    uint32_t cut_for;            /* share that the first of these answered */
    bool after_cut;              /* this round speaks of what left before it */
    uint64_t next_ns;            /* nothing leaves before */
};

/* `limit`: most bytes ever under way. */
void udp_rate_init(struct udp_rate *r, uint32_t mtu, uint32_t limit);
/* A datagram's round trip, without the receiver's own delay. */
void udp_rate_measure(struct udp_rate *r, uint64_t rtt_ns, uint64_t now_ns);
static inline void udp_rate_arrived(struct udp_rate *r)
{
    r->n_arrived++;
}
static inline void udp_rate_lost(struct udp_rate *r)
{
    r->n_lost++;
}
/* Everything that was under way when the last round ended is judged. */
void udp_rate_round(struct udp_rate *r);
/* Nothing was heard for several time-outs. */
void udp_rate_collapse(struct udp_rate *r);
/* Least round trip known, in us; 0: unknown. */
uint32_t udp_rate_base(const struct udp_rate *r);
/* May something leave now? */
static inline bool udp_rate_may(const struct udp_rate *r, uint32_t under_way, uint64_t now_ns)
{
    return under_way < r->window && now_ns >= r->next_ns;
}
void udp_rate_left(struct udp_rate *r, uint32_t bytes, uint64_t now_ns);
/* Time after which an unanswered datagram calls for another one. */
uint64_t udp_rate_timeout_ns(const struct udp_rate *r);
/* Time after which a datagram that was overtaken is lost. */
uint64_t udp_rate_overtaken_ns(const struct udp_rate *r);
