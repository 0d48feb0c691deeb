/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The largest datagram that a path carries, found by trying (RFC 8899). Sizes are payloads of UDP.
 * Data starts with a size that every path carries; the first probe has the size of the interface,
 * so that on a local network one round trip finds it. When large datagrams stay away while small
 * ones arrive, the size falls back at once and is looked for below. No clock, no memory.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct udp_mtu {
    uint32_t least, most; /* what data may have at least, and at most */
    uint32_t now;         /* what it has */
    uint32_t below;       /* the path does not carry this size: look below */
    uint32_t probe;       /* size of the probe that is tried; 0: none */
    uint32_t n_tries;     /* probes of this size that got lost */
    bool under_way;       /* a probe is */
    uint64_t next_ns;     /* no probe before; UINT64_MAX: the search has ended */
    uint64_t wait_ns;     /* from its end to the next one */
    uint32_t n_lost;      /* large datagrams lost since one arrived */
    uint64_t lost_ns;     /* the first of these was lost */
};

void udp_mtu_init(struct udp_mtu *m, uint32_t least, uint32_t most, uint64_t now_ns);
/* The size that should be tried now, 0: none. The caller sends it, or asks again. */
uint32_t udp_mtu_probe(struct udp_mtu *m, uint64_t now_ns);
/* A probe left. */
void udp_mtu_sent(struct udp_mtu *m);
/* A probe of this size arrived, or did not. */
void udp_mtu_arrived(struct udp_mtu *m, uint32_t size, uint64_t now_ns);
void udp_mtu_missed(struct udp_mtu *m, uint32_t size, uint64_t now_ns);
/* Data (or anything) of this size arrived. */
static inline void udp_mtu_data_arrived(struct udp_mtu *m, uint32_t size)
{
    if (size > m->least)
        m->n_lost = 0;
}
/* Data of this size was lost, while something else arrived. True: the size fell, and everything on
 * its way that is larger is lost. */
bool udp_mtu_data_lost(struct udp_mtu *m, uint32_t size, uint64_t now_ns);
/* When udp_mtu_probe has something; only worth waking for while `searching`. */
static inline bool udp_mtu_searching(const struct udp_mtu *m)
{
    return m->probe != 0;
}
