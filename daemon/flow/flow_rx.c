/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/flow/flow.h"

#include <assert.h>
#include <string.h>

void flow_rx_init(struct flow_rx *f, uint32_t src_epoch)
{
    *f = (struct flow_rx){.src_epoch = src_epoch};
}

static bool flow_rx_seen(const struct flow_rx *f, uint32_t seq)
{
    uint32_t bit = seq % FLOW_RX_WINDOW;
    return f->seen[bit / 64] >> (bit % 64) & 1;
}

static void flow_rx_forget(struct flow_rx *f, uint32_t seq)
{
    uint32_t bit = seq % FLOW_RX_WINDOW;
    f->seen[bit / 64] &= ~(1ull << (bit % 64));
    f->refused[bit / 64] &= ~(1ull << (bit % 64));
}

enum flow_news flow_rx_check(const struct flow_rx *f, uint32_t seq)
{
    uint32_t ahead = seq - f->cumulative;

    if ((int32_t)ahead <= 0)
        return FLOW_DUPLICATE;
    if (ahead > FLOW_RX_WINDOW)
        return FLOW_FAR;
    return flow_rx_seen(f, seq) ? FLOW_DUPLICATE : FLOW_NEW;
}

/* Moves over numbers that have arrived out of order. */
static void flow_rx_advance(struct flow_rx *f)
{
    while (flow_rx_seen(f, f->cumulative + 1)) {
        f->cumulative++;
        flow_rx_forget(f, f->cumulative);
    }
}

void flow_rx_skip(struct flow_rx *f, uint32_t seq)
{
    uint32_t ahead = seq - f->cumulative;

    if ((int32_t)ahead <= 1)
        return;
    if (ahead > FLOW_RX_WINDOW) {
        memset(f->seen, 0, sizeof f->seen);
        memset(f->refused, 0, sizeof f->refused);
        f->cumulative = seq - 1;
        return;
    }
    while (f->cumulative != seq - 1) {
        f->cumulative++;
        flow_rx_forget(f, f->cumulative);
    }
    flow_rx_advance(f);
}

void flow_rx_take(struct flow_rx *f, uint32_t seq)
{
    assert(flow_rx_check(f, seq) == FLOW_NEW);
    if (seq == f->cumulative + 1) {
        f->cumulative = seq;
        flow_rx_forget(f, seq);
        flow_rx_advance(f);
    } else {
        uint32_t bit = seq % FLOW_RX_WINDOW;
        f->seen[bit / 64] |= 1ull << (bit % 64);
    }
}

void flow_rx_refuse(struct flow_rx *f, uint32_t seq)
{
    uint32_t bit = seq % FLOW_RX_WINDOW;

    assert(flow_rx_check(f, seq) == FLOW_NEW);
    f->refused[bit / 64] |= 1ull << (bit % 64);
}

bool flow_rx_refused(const struct flow_rx *f, uint32_t seq)
{
    uint32_t bit = seq % FLOW_RX_WINDOW;
    return f->refused[bit / 64] >> (bit % 64) & 1;
}

uint32_t flow_rx_ack(struct flow_rx *f, struct wire_ack *ack)
{
    uint32_t n_words = 0;

    *ack = (struct wire_ack){
        .cumulative = f->cumulative,
        .sent_us = f->sent_us,
        .congested = f->n_congested,
        .received = f->n_unacked,
    };
    for (uint32_t w = 0; w < WIRE_ACK_WORDS; w++) {
        /* Bit i of the acknowledgement is number cumulative + 2 + i: 64 bits that start inside a
         * word of the bitmap. */
        uint32_t bit = (f->cumulative + 2 + 64 * w) % FLOW_RX_WINDOW;
        uint64_t low = f->seen[bit / 64] >> (bit % 64);
        uint64_t high =
            bit % 64 ? f->seen[(bit / 64 + 1) % (FLOW_RX_WINDOW / 64)] << (64 - bit % 64) : 0;
        ack->selective[w] = low | high;
        if (ack->selective[w])
            n_words = w + 1;
    }
    f->n_unacked = 0;
    f->n_congested = 0;
    f->ack_now = false;
    return n_words;
}
