/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/net/udp/udp_rate.h"

#include <string.h>

#include "base/clock.h"

#define WINDOW_FIRST (64u << 10)
#define STEP_MAX     (16u << 10)
/* The queue that may stand in the network. */
#define QUEUE_US 1000u
/* Datagrams by which a share is judged: with fewer, chance cuts. */
#define JUDGED 64u
#define SHARE  1024u
/* More than this over one and a half times the usual share is not usual. */
#define SHARE_SLACK 40u
/* A path that loses more without being too full is not one that is steered for: a larger share
 * always cuts. Where less is lost, two cuts end what the window did. */
#define SHARE_MOST 460u
#define CUTS       2u
/* The least round trip is looked for anew after this: routes change. */
#define PERIOD_NS (5 * CLOCK_NS_PER_S)
/* What may leave at once: 250 us of the rate, at least two datagrams. */
#define BURST_NS (250 * CLOCK_NS_PER_US)
/* Before a round trip is known (the handshake knows none). */
#define TIMEOUT_FIRST_NS (20 * CLOCK_NS_PER_MS)
/* The receiver's delay, and a thread that waits for its core. */
#define TIMEOUT_SLACK_NS (3 * CLOCK_NS_PER_MS)
#define OVERTAKEN_MIN_NS (200 * CLOCK_NS_PER_US)

static uint32_t udp_rate_floor(const struct udp_rate *r)
{
    uint32_t floor = 2 * r->mtu > 8192 ? 2 * r->mtu : 8192;

    return floor < r->limit ? floor : r->limit;
}

static void udp_rate_set(struct udp_rate *r, uint64_t window)
{
    uint32_t floor = udp_rate_floor(r);

    r->window = window < floor ? floor : window > r->limit ? r->limit : (uint32_t)window;
}

void udp_rate_init(struct udp_rate *r, uint32_t mtu, uint32_t limit)
{
    *r = (struct udp_rate){.mtu = mtu, .limit = limit, .fast = true, .round_us = UINT32_MAX};
    udp_rate_set(r, WINDOW_FIRST);
}

uint32_t udp_rate_base(const struct udp_rate *r)
{
    uint32_t a = r->base_us[0], b = r->base_us[1];

    return a == 0 || (b != 0 && b < a) ? b : a;
}

void udp_rate_measure(struct udp_rate *r, uint64_t rtt_ns, uint64_t now_ns)
{
    uint64_t us = rtt_ns / CLOCK_NS_PER_US;
    uint32_t rtt_us = us == 0 ? 1 : us > 1u << 28 ? 1u << 28 : (uint32_t)us;

    if (r->srtt_us == 0) {
        r->srtt_us = rtt_us;
        r->rttvar_us = rtt_us / 2;
    } else {
        /* RFC 6298. */
        uint32_t delta = rtt_us > r->srtt_us ? rtt_us - r->srtt_us : r->srtt_us - rtt_us;
        r->rttvar_us = r->rttvar_us - r->rttvar_us / 4 + delta / 4;
        r->srtt_us = r->srtt_us - r->srtt_us / 8 + rtt_us / 8;
        r->srtt_us += r->srtt_us == 0;
    }
    if (rtt_us < r->round_us)
        r->round_us = rtt_us;
    if (now_ns - r->base_ns > PERIOD_NS) {
        r->base_us[1] = r->base_us[0];
        r->base_us[0] = 0;
        r->base_ns = now_ns;
    }
    if (r->base_us[0] == 0 || rtt_us < r->base_us[0])
        r->base_us[0] = rtt_us;
}

/* Is more lost than usual? Learns what is. */
static bool udp_rate_judge(struct udp_rate *r)
{
    uint32_t n = r->n_arrived + r->n_lost;

    if (n < JUDGED)
        return false;
    uint32_t share = (uint32_t)((uint64_t)r->n_lost * SHARE / n);
    r->n_arrived = r->n_lost = 0;
    if (share < r->usual)
        r->usual -= (r->usual - share) / 2;
    if (share <= r->usual + r->usual / 2 + SHARE_SLACK && share <= SHARE_MOST) {
        r->n_cuts = 0;
        return false;
    }
    if (r->n_cuts >= CUTS && r->cut_for <= SHARE_MOST && 10 * share >= 7 * r->cut_for) {
        r->usual = share < SHARE_MOST ? share : SHARE_MOST;
        r->n_cuts = 0;
        return false;
    }
    if (r->n_cuts++ == 0)
        r->cut_for = share;
    return true;
}

void udp_rate_round(struct udp_rate *r)
{
    uint32_t base = udp_rate_base(r), most = base + base / 4 + QUEUE_US;
    bool after = r->after_cut;

    r->after_cut = false;
    if (after) {
        /* All that was judged left before the cut. */
        r->n_arrived = r->n_lost = 0;
    } else if (udp_rate_judge(r)) {
        r->fast = false;
        r->after_cut = true;
        udp_rate_set(r, (uint64_t)r->window * 3 / 5);
    } else if (r->round_us != UINT32_MAX && base != 0 && r->round_us > most) {
        uint64_t window = (uint64_t)r->window * most / r->round_us;
        r->fast = false;
        udp_rate_set(r, window < r->window / 2 ? r->window / 2 : window);
    } else if (r->busy && r->n_cuts == 0) {
        uint32_t step = r->window / 8;
        step = step < r->mtu ? r->mtu : step;
        step = step > STEP_MAX && r->mtu < STEP_MAX ? STEP_MAX : step;
        udp_rate_set(r, r->fast ? 2ull * r->window : (uint64_t)r->window + step);
    }
    r->busy = false;
    r->round_us = UINT32_MAX;
}

void udp_rate_collapse(struct udp_rate *r)
{
    udp_rate_set(r, 0);
    r->fast = true;
    r->n_arrived = r->n_lost = 0;
    r->n_cuts = 0;
    r->after_cut = false;
}

void udp_rate_left(struct udp_rate *r, uint32_t bytes, uint64_t now_ns)
{
    uint64_t rtt_ns = (uint64_t)r->srtt_us * CLOCK_NS_PER_US;
    uint64_t least_ns;

    if (r->srtt_us == 0)
        return;
    uint64_t per = r->fast ? 2ull * r->window : (uint64_t)r->window + r->window / 4;
    uint64_t burst_ns = 2ull * r->mtu * rtt_ns / per;
    burst_ns = burst_ns > BURST_NS ? burst_ns : BURST_NS;
    least_ns = now_ns > burst_ns ? now_ns - burst_ns : 0;
    r->next_ns = (r->next_ns > least_ns ? r->next_ns : least_ns) + bytes * rtt_ns / per;
}

uint64_t udp_rate_timeout_ns(const struct udp_rate *r)
{
    if (r->srtt_us == 0)
        return TIMEOUT_FIRST_NS;
    return (r->srtt_us + 4ull * r->rttvar_us) * CLOCK_NS_PER_US + TIMEOUT_SLACK_NS;
}

uint64_t udp_rate_overtaken_ns(const struct udp_rate *r)
{
    /* RFC 9002, section 6.1.2. */
    return r->srtt_us * CLOCK_NS_PER_US * 9 / 8 + OVERTAKEN_MIN_NS;
}
