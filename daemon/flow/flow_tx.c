/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/flow/flow.h"

#include <assert.h>

#define WINDOW_MIN   4u
#define QUEUED_AHEAD 32u
#define WINDOW_FREE  64u
/* The minimum of the round trip is looked for anew after this time: routes change. */
#define RTT_MIN_AGE_NS 10000000000ull
/* Beyond two round trips: a delayed acknowledgement, and a thread that waits for its core. */
#define PROBE_SLACK_NS 4000000ull

void flow_tx_init(struct flow_tx *f, const struct flow_limits *limits)
{
    f->limits = limits;
    f->acked = 0;
    f->send_next = f->next = f->resend_at = 1;
    f->n_sent = f->n_resend = 0;
    f->window_q8 = limits->window_initial << 8;
    f->threshold = limits->window_max;
    f->recovery = f->asked = f->undo_q8 = 0;
    f->n_paths = 0;
    f->srtt_us = f->rttvar_us = f->rtt_min_us = 0;
    f->rtt_min_ns = 0;
    f->rto_ns =
        5 * limits->rto_min_ns < limits->rto_max_ns ? 5 * limits->rto_min_ns : limits->rto_max_ns;
    f->deadline_ns = f->probe_ns = UINT64_MAX;
    f->first = true;
}

uint32_t flow_tx_room(const struct flow_tx *f)
{
    uint32_t pending = flow_tx_pending(f);
    uint32_t limit = flow_tx_window(f) + QUEUED_AHEAD;

    /* Packets that wait for their second sending do not count: others must be able to pass them. */
    limit += f->n_resend;
    if (limit > FLOW_WINDOW)
        limit = FLOW_WINDOW;
    /* What was acknowledged selectively still takes up numbers but no window. */
    uint32_t waiting = f->n_sent + f->n_resend + (f->next - f->send_next);
    if (pending >= FLOW_WINDOW || waiting >= limit)
        return 0;
    uint32_t numbers = FLOW_WINDOW - pending;
    return numbers < limit - waiting ? numbers : limit - waiting;
}

uint32_t flow_tx_add(struct flow_tx *f, uint32_t block, uint32_t len)
{
    uint32_t seq = f->next++;

    assert(seq - f->acked <= FLOW_WINDOW);
    *flow_tx_packet(f, seq) =
        (struct flow_packet){.block = block, .len = len, .state = FLOW_QUEUED};
    f->first = false;
    return seq;
}

bool flow_tx_next(struct flow_tx *f, uint32_t *ret_seq)
{
    if (f->n_sent >= flow_tx_window(f))
        return false;
    if (f->n_resend > 0) {
        uint32_t seq = f->resend_at;
        while (flow_tx_packet(f, seq)->state != FLOW_QUEUED) {
            seq++;
            assert(seq != f->send_next);
        }
        f->resend_at = seq;
        *ret_seq = seq;
        return true;
    }
    if (f->send_next == f->next)
        return false;
    *ret_seq = f->send_next;
    return true;
}

bool flow_tx_ask(struct flow_tx *f, uint32_t seq)
{
    uint32_t window = flow_tx_window(f);

    /* A larger window holds two acknowledgements anyway; and one request in half a window is
     * enough. */
    if (window > 2 * FLOW_ACK_EVERY || f->n_sent + 1 < window || seq - f->asked < window / 2)
        return false;
    f->asked = seq;
    return true;
}

static uint32_t flow_tx_find_path(struct flow_tx *f, uint32_t key)
{
    for (uint32_t i = 0; i < f->n_paths; i++)
        if (f->paths[i].key == key)
            return i;
    if (f->n_paths < FLOW_PATHS) {
        f->paths[f->n_paths] = (struct flow_path){.key = key, .gap = FLOW_GAP};
        return f->n_paths++;
    }
    /* More ways than places: the numbers of the one that is replaced go on. */
    uint32_t i = key % FLOW_PATHS;
    f->paths[i].key = key;
    f->paths[i].gap = FLOW_GAP;
    return i;
}

static uint64_t flow_tx_packet_rto(const struct flow_tx *f, const struct flow_packet *p)
{
    uint32_t shift = p->n_timeouts < 6 ? p->n_timeouts : 6;
    uint64_t rto = f->rto_ns << shift;

    return rto < f->limits->rto_max_ns ? rto : f->limits->rto_max_ns;
}

void flow_tx_sent(struct flow_tx *f, uint32_t seq, uint32_t path_key, uint64_t now_ns)
{
    struct flow_packet *p = flow_tx_packet(f, seq);
    uint32_t path = flow_tx_find_path(f, path_key);

    assert(p->state == FLOW_QUEUED);
    if (seq == f->send_next) {
        f->send_next++;
    } else {
        f->n_resend--;
        f->n_resent++;
    }
    p->state = FLOW_SENT;
    p->path = (uint8_t)path;
    p->number = ++f->paths[path].number;
    p->sent_ns = now_ns;
    f->n_sent++;
    uint64_t due = now_ns + flow_tx_packet_rto(f, p);
    if (due < f->deadline_ns)
        f->deadline_ns = due;
    if (f->srtt_us != 0 && p->n_timeouts == 0)
        f->probe_ns = now_ns + 2000ull * f->srtt_us + PROBE_SLACK_NS;
}

void flow_tx_defer(struct flow_tx *f, uint32_t seq, uint64_t now_ns)
{
    struct flow_packet *p = flow_tx_packet(f, seq);

    assert(p->state == FLOW_QUEUED && seq != f->send_next);
    f->n_resend--;
    f->n_sent++;
    p->state = FLOW_SENT;
    p->sent_ns = now_ns;
    uint64_t due = now_ns + flow_tx_packet_rto(f, p);
    if (due < f->deadline_ns)
        f->deadline_ns = due;
}

static void flow_tx_measure(struct flow_tx *f, uint32_t rtt_us, uint64_t now_ns)
{
    if (rtt_us > 1u << 30)
        return;
    if (rtt_us == 0)
        rtt_us = 1;
    if (f->srtt_us == 0) {
        f->srtt_us = rtt_us;
        f->rttvar_us = rtt_us / 2;
    } else {
        /* RFC 6298. */
        uint32_t delta = rtt_us > f->srtt_us ? rtt_us - f->srtt_us : f->srtt_us - rtt_us;
        f->rttvar_us = f->rttvar_us - f->rttvar_us / 4 + delta / 4;
        f->srtt_us = f->srtt_us - f->srtt_us / 8 + rtt_us / 8;
    }
    if (f->rtt_min_us == 0 || rtt_us <= f->rtt_min_us || now_ns - f->rtt_min_ns > RTT_MIN_AGE_NS) {
        f->rtt_min_us = rtt_us;
        f->rtt_min_ns = now_ns;
    }
    uint64_t rto = (f->srtt_us + 4ull * f->rttvar_us) * 1000 + f->limits->rto_min_ns / 2;
    f->rto_ns = rto < f->limits->rto_min_ns   ? f->limits->rto_min_ns
                : rto > f->limits->rto_max_ns ? f->limits->rto_max_ns
                                              : rto;
}

static void flow_tx_shrink(struct flow_tx *f, uint32_t numerator, uint32_t denominator)
{
    if ((int32_t)(f->acked - f->recovery) < 0)
        return;
    f->recovery = f->send_next - 1;
    f->window_q8 = f->window_q8 / denominator * numerator;
    if (f->window_q8 < WINDOW_MIN << 8)
        f->window_q8 = WINDOW_MIN << 8;
    f->threshold = flow_tx_window(f);
}

static void flow_tx_shrink_for_gap(struct flow_tx *f)
{
    uint32_t before_q8 = f->window_q8;

    flow_tx_shrink(f, 1, 2);
    if (f->window_q8 < before_q8)
        f->undo_q8 = before_q8;
}

static void flow_tx_grow(struct flow_tx *f, uint32_t n_acked)
{
    uint32_t window = flow_tx_window(f);

    /* An acknowledgement may wait half a millisecond and a thread as long; a round trip beyond that
     * speaks of queues. What fits a second-level cache may always be under way: it fills 1 Gbit/s
     * for 8 ms. */
    if (window >= WINDOW_FREE && f->srtt_us > 2 * f->rtt_min_us + 1000)
        return;
    if (window < f->threshold)
        f->window_q8 += n_acked << 8;
    else
        f->window_q8 += (n_acked << 8) / window;
    if (f->window_q8 > f->limits->window_max << 8)
        f->window_q8 = f->limits->window_max << 8;
}

static void flow_tx_mark_lost(struct flow_tx *f, uint32_t seq)
{
    struct flow_packet *p = flow_tx_packet(f, seq);

    p->state = FLOW_QUEUED;
    f->n_sent--;
    if (f->n_resend == 0 || (int32_t)(seq - f->resend_at) < 0)
        f->resend_at = seq;
    f->n_resend++;
}

/* This acknowledged packet was held for lost, wrongly. */
static void flow_tx_late(struct flow_tx *f, const struct flow_packet *p)
{
    struct flow_path *path = &f->paths[p->path];

    path->gap = 2 * path->gap < FLOW_GAP_MAX ? 2 * path->gap : FLOW_GAP_MAX;
    if (f->window_q8 < f->undo_q8)
        f->window_q8 = f->undo_q8;
    f->undo_q8 = 0;
}

static bool flow_tx_acknowledge(struct flow_tx *f, uint32_t seq, uint64_t now_ns,
                                uint32_t *ret_block)
{
    struct flow_packet *p = flow_tx_packet(f, seq);

    if (p->state == FLOW_ACKED)
        return false;
    /* Not sent again yet, or too short a time ago for this to be the answer to it. */
    if (p->n_fast > 0 && (p->state == FLOW_QUEUED || now_ns - p->sent_ns < f->rtt_min_us * 500ull))
        flow_tx_late(f, p);
    if (p->state == FLOW_SENT) {
        struct flow_path *path = &f->paths[p->path];
        f->n_sent--;
        if ((int32_t)(p->number - path->acked) > 0)
            path->acked = p->number;
    } else {
        f->n_resend--;
    }
    p->state = FLOW_ACKED;
    *ret_block = p->block;
    return true;
}

uint32_t flow_tx_ack(struct flow_tx *f, const struct wire_ack *ack, uint32_t n_words,
                     uint64_t now_ns, uint32_t *ret_blocks)
{
    uint32_t n_sent_numbers = f->send_next - f->acked - 1;
    uint32_t n = 0;
    bool busy = f->n_sent * 2 >= flow_tx_window(f);

    /* An acknowledgement of what was never sent is a stray one; one from the past brings only its
     * selective part. */
    if ((int32_t)(ack->cumulative - f->acked) > (int32_t)n_sent_numbers)
        return 0;
    while ((int32_t)(ack->cumulative - f->acked) > 0) {
        if (flow_tx_acknowledge(f, f->acked + 1, now_ns, &ret_blocks[n]))
            n++;
        f->acked++;
    }
    for (uint32_t w = 0; w < n_words; w++) {
        uint64_t bits = ack->selective[w];
        while (bits) {
            uint32_t seq = ack->cumulative + 2 + 64 * w + (uint32_t)__builtin_ctzll(bits);
            bits &= bits - 1;
            if (seq - f->acked - 1 >= f->send_next - f->acked - 1)
                continue;
            if (flow_tx_acknowledge(f, seq, now_ns, &ret_blocks[n]))
                n++;
        }
    }
    /* What was acknowledged selectively before may now be at the front. */
    while (f->acked + 1 != f->send_next && flow_tx_packet(f, f->acked + 1)->state == FLOW_ACKED)
        f->acked++;
    if (f->n_resend > 0 && (int32_t)(f->resend_at - f->acked) <= 0)
        f->resend_at = f->acked + 1;

    if (n == 0 && n_words == 0)
        return 0;
    if (n > 0)
        flow_tx_measure(f, (uint32_t)(now_ns / 1000) - ack->sent_us, now_ns);

    bool lost = false;
    if (n_words > 0) {
        for (uint32_t seq = f->acked + 1; seq != f->send_next; seq++) {
            struct flow_packet *p = flow_tx_packet(f, seq);
            if (p->state != FLOW_SENT || p->n_fast >= FLOW_MAX_FAST)
                continue;
            const struct flow_path *path = &f->paths[p->path];
            if ((int32_t)(path->acked - p->number) < (int32_t)path->gap)
                continue;
            p->n_fast++;
            flow_tx_mark_lost(f, seq);
            lost = true;
        }
    }
    if (lost)
        flow_tx_shrink_for_gap(f);
    else if (ack->congested > 0)
        flow_tx_shrink(f, 3, 4);
    else if (busy)
        flow_tx_grow(f, n);
    if (f->n_sent == 0)
        f->deadline_ns = f->probe_ns = UINT64_MAX;
    else if (n > 0)
        f->probe_ns = now_ns + 2000ull * f->srtt_us + PROBE_SLACK_NS;
    return n;
}

/* Marks the newest packet under way as lost. */
static uint32_t flow_tx_probe(struct flow_tx *f)
{
    for (uint32_t seq = f->send_next - 1; seq != f->acked; seq--) {
        struct flow_packet *p = flow_tx_packet(f, seq);
        if (p->state == FLOW_SENT && p->n_timeouts == 0) {
            p->n_timeouts = 1;
            flow_tx_mark_lost(f, seq);
            return 1;
        }
        if (p->state == FLOW_SENT)
            break;
    }
    return 0;
}

uint32_t flow_tx_timeout(struct flow_tx *f, uint64_t now_ns)
{
    uint64_t deadline = UINT64_MAX;
    uint32_t n = 0;
    bool first = false;

    if (now_ns >= f->probe_ns) {
        f->probe_ns = UINT64_MAX;
        n += flow_tx_probe(f);
    }
    if (now_ns < f->deadline_ns)
        return n;

    for (uint32_t seq = f->acked + 1; seq != f->send_next; seq++) {
        struct flow_packet *p = flow_tx_packet(f, seq);
        if (p->state != FLOW_SENT)
            continue;
        uint64_t due = p->sent_ns + flow_tx_packet_rto(f, p);
        if (due > now_ns) {
            if (due < deadline)
                deadline = due;
            continue;
        }
        if (p->n_timeouts == 0)
            first = true;
        if (p->n_timeouts < UINT8_MAX)
            p->n_timeouts++;
        flow_tx_mark_lost(f, seq);
        n++;
    }
    f->deadline_ns = deadline;
    f->n_timeouts += n;
    /* A packet that stays away again and again is refused or its way is broken; that says nothing
     * of the others. */
    if (first)
        flow_tx_shrink(f, 1, 2);
    return n;
}

uint32_t flow_tx_replace(struct flow_tx *f, uint32_t seq, uint32_t block, uint32_t len)
{
    struct flow_packet *p = flow_tx_packet(f, seq);
    uint32_t old = p->block;

    assert(flow_tx_holds(f, seq));
    p->block = block;
    p->len = len;
    p->n_fast = p->n_timeouts = 0;
    if (p->state == FLOW_SENT)
        flow_tx_mark_lost(f, seq);
    return old;
}

void flow_tx_lost(struct flow_tx *f, uint32_t seq)
{
    if (flow_tx_holds(f, seq) && flow_tx_packet(f, seq)->state == FLOW_SENT)
        flow_tx_mark_lost(f, seq);
}

uint32_t flow_tx_reroute(struct flow_tx *f, const uint32_t *path_keys, uint32_t n_keys)
{
    bool good[FLOW_PATHS] = {false};
    uint32_t n = 0;

    for (uint32_t i = 0; i < f->n_paths; i++)
        for (uint32_t k = 0; k < n_keys; k++)
            good[i] |= f->paths[i].key == path_keys[k];
    for (uint32_t seq = f->acked + 1; seq != f->send_next; seq++) {
        struct flow_packet *p = flow_tx_packet(f, seq);
        if (p->state == FLOW_SENT && !good[p->path]) {
            flow_tx_mark_lost(f, seq);
            n++;
        }
    }
    return n;
}

uint32_t flow_tx_drop(struct flow_tx *f, uint32_t *ret_blocks)
{
    uint32_t n = 0;

    for (uint32_t seq = f->acked + 1; seq != f->next; seq++) {
        struct flow_packet *p = flow_tx_packet(f, seq);
        if (p->state != FLOW_ACKED)
            ret_blocks[n++] = p->block;
        p->state = FLOW_ACKED;
    }
    f->acked = f->next - 1;
    f->send_next = f->resend_at = f->next;
    f->n_sent = f->n_resend = 0;
    f->deadline_ns = f->probe_ns = UINT64_MAX;
    f->first = true;
    return n;
}
