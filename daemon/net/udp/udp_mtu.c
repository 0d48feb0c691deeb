/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/net/udp/udp_mtu.h"

#include <stddef.h>

#include "base/clock.h"

/* Probes of one size before the path is held not to carry it: of a path that loses three of ten,
 * one search in four hundred is wrong. */
#define TRIES 5u
/* Two sizes so near are one. */
#define NEAR 32u
/* A black hole: so many large datagrams in a row, over so long. */
#define HOLE_LOST 6u
#define HOLE_NS   (100 * CLOCK_NS_PER_MS)
/* After one the search waits for the path to settle. */
#define SETTLE_NS   CLOCK_NS_PER_S
#define WAIT_MIN_NS (10 * CLOCK_NS_PER_S)
#define WAIT_MAX_NS (600 * CLOCK_NS_PER_S) /* RFC 8899, PMTU_RAISE_TIMER */

/* Payloads over IPv4 of what links carry: jumbo frames, FDDI, Ethernet, PPPoE, tunnels, the least
 * of IPv6. Over IPv6 20 bytes less. */
static const uint32_t usual[] = {8972, 8952, 4324, 1472, 1452, 1444, 1432, 1372, 1252, 1232};

/* The next size to try, or the end of the search. */
static void udp_mtu_next(struct udp_mtu *m, uint64_t now_ns)
{
    m->n_tries = 0;
    m->probe = 0;
    m->next_ns = now_ns;
    if (m->below > m->most) {
        m->probe = m->most > m->now ? m->most : 0;
    } else {
        for (size_t i = 0; i < sizeof usual / sizeof *usual && m->probe == 0; i++)
            if (usual[i] < m->below && usual[i] > m->now)
                m->probe = usual[i];
        if (m->probe == 0 && m->below > m->now + NEAR)
            m->probe = m->now + (m->below - m->now) / 2;
    }
    if (m->probe == 0) {
        m->next_ns = m->now == m->most ? UINT64_MAX : now_ns + m->wait_ns;
        m->wait_ns = 2 * m->wait_ns < WAIT_MAX_NS ? 2 * m->wait_ns : WAIT_MAX_NS;
    }
}

void udp_mtu_init(struct udp_mtu *m, uint32_t least, uint32_t most, uint64_t now_ns)
{
    *m = (struct udp_mtu){
        .least = least, .most = most, .now = least, .below = UINT32_MAX, .wait_ns = WAIT_MIN_NS};
    udp_mtu_next(m, now_ns);
}

uint32_t udp_mtu_probe(struct udp_mtu *m, uint64_t now_ns)
{
    if (m->under_way || now_ns < m->next_ns)
        return 0;
    if (m->probe == 0) {
        /* The path may have become wider. */
        m->below = UINT32_MAX;
        udp_mtu_next(m, now_ns);
    }
    return m->probe;
}

void udp_mtu_sent(struct udp_mtu *m)
{
    m->under_way = true;
}

void udp_mtu_arrived(struct udp_mtu *m, uint32_t size, uint64_t now_ns)
{
    if (size != m->probe)
        return;
    m->under_way = false;
    m->now = size;
    m->n_lost = 0;
    udp_mtu_next(m, now_ns);
}

void udp_mtu_missed(struct udp_mtu *m, uint32_t size, uint64_t now_ns)
{
    if (size != m->probe)
        return;
    m->under_way = false;
    if (++m->n_tries < TRIES)
        return;
    m->below = size;
    udp_mtu_next(m, now_ns);
}

bool udp_mtu_data_lost(struct udp_mtu *m, uint32_t size, uint64_t now_ns)
{
    if (size <= m->least || m->now == m->least)
        return false;
    if (m->n_lost++ == 0)
        m->lost_ns = now_ns;
    if (m->n_lost < HOLE_LOST || now_ns - m->lost_ns < HOLE_NS)
        return false;
    m->below = m->now;
    m->now = m->least;
    m->n_lost = 0;
    m->under_way = false;
    m->wait_ns = WAIT_MIN_NS;
    udp_mtu_next(m, now_ns);
    m->next_ns = now_ns + SETTLE_NS;
    return true;
}
