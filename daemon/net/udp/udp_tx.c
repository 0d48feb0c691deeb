/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/net/udp/udp_tx.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/net/block.h"
#include "daemon/net/net.h"

#define GAP_FIRST  3u
#define GAP_MAX    256u
#define FREE_GRAMS 2u
/* Time-outs in a row after which the window is the least. */
#define SILENT_COLLAPSE 3u
#define TIMEOUT_MAX_NS  (200 * CLOCK_NS_PER_MS)
#define HOLD_NS         (2 * CLOCK_NS_PER_MS)
/* While bulk waits, a fragment of it leaves after so many bytes of quick ones. */
#define QUICK_RUN (64u << 10)

enum gram_state { GRAM_NONE = 0, GRAM_SENT, GRAM_LOST };

static struct udp_tx_gram *udp_tx_gram(struct udp_tx *tx, uint32_t number)
{
    return &tx->grams[number % UDP_TX_GRAMS];
}

static struct udp_tx_packet *udp_tx_packet(struct udp_tx *tx, uint32_t packet)
{
    return &tx->packets[packet % UDP_PACKETS];
}

void udp_tx_init(struct udp_tx *tx, uint32_t number, uint32_t mtu_least, uint32_t mtu_most,
                 uint64_t now_ns)
{
    memset(tx, 0, sizeof *tx);
    tx->oldest = tx->next = 1;
    tx->number = tx->first = tx->round = number;
    tx->newest = number - 1;
    tx->gap = GAP_FIRST;
    tx->overtaken_ns = UINT64_MAX;
    udp_rate_init(&tx->rate, mtu_least, UINT32_MAX / 2);
    udp_mtu_init(&tx->mtu, mtu_least, mtu_most, now_ns);
}

static bool udp_tx_line_empty(const struct udp_tx *tx, enum wire_class cls)
{
    return tx->lines[cls].first == tx->lines[cls].end;
}

/* Does any packet have a fragment that never left? */
static bool udp_tx_has_unsent(const struct udp_tx *tx)
{
    return !udp_tx_line_empty(tx, WIRE_QUICK) || !udp_tx_line_empty(tx, WIRE_BULK);
}

static void udp_tx_line_up(struct udp_tx *tx, uint32_t n)
{
    struct udp_tx_line *line = &tx->lines[udp_tx_packet(tx, n)->cls];

    line->packets[line->end++ % UDP_PACKETS] = n;
}

/* The packet whose turn it is; there is one. */
static uint32_t udp_tx_turn(const struct udp_tx *tx)
{
    bool bulk = udp_tx_line_empty(tx, WIRE_QUICK) ||
                (tx->quick_run >= QUICK_RUN && !udp_tx_line_empty(tx, WIRE_BULK));
    const struct udp_tx_line *line = &tx->lines[bulk ? WIRE_BULK : WIRE_QUICK];

    return line->packets[line->first % UDP_PACKETS];
}

int udp_tx_add(struct udp_tx *tx, uint32_t block, enum wire_class cls, const void *data,
               uint32_t len)
{
    if (tx->next - tx->oldest + tx->n_done >= UDP_PACKETS)
        return -EAGAIN;
    struct udp_tx_packet *p = udp_tx_packet(tx, tx->next);
    bool copied = len <= UDP_TX_COPY;
    p->cls = (uint8_t)cls;
    udp_tx_line_up(tx, tx->next++);
    p->block = copied ? BLOCK_NONE : block;
    p->len = len;
    p->n_parts = p->next = p->n_arrived = p->n_lost = 0;
    p->done = false;
    if (copied)
        memcpy(p->copy, data, len);
    return copied ? NET_E_DONE : 0;
}

/* The oldest packet with a fragment to be sent again. */
static uint32_t udp_tx_lost_packet(struct udp_tx *tx)
{
    uint32_t n = tx->oldest;

    while (udp_tx_packet(tx, n)->n_lost == 0)
        n++;
    return n;
}

static uint16_t udp_tx_lost_idx(const struct udp_tx_packet *p)
{
    uint32_t w = 0;

    while (p->lost[w] == 0)
        w++;
    return (uint16_t)(64 * w + (uint32_t)__builtin_ctzll(p->lost[w]));
}

/* Decides into how large fragments a packet goes. */
static void udp_tx_cut(struct udp_tx *tx, struct udp_tx_packet *p, uint32_t extra)
{
    p->chunk = (uint16_t)(tx->mtu.now - extra);
    p->n_parts = (uint16_t)((p->len + p->chunk - 1) / p->chunk);
    assert(p->n_parts <= UDP_PARTS_MAX);
    memset(p->arrived, 0, sizeof p->arrived);
    memset(p->lost, 0, sizeof p->lost);
}

bool udp_tx_next(struct udp_tx *tx, uint32_t extra, uint64_t now_ns, struct udp_tx_piece *ret_piece)
{
    uint16_t idx;

    if ((tx->n_lost == 0 && !udp_tx_has_unsent(tx)) || now_ns < tx->hold_ns ||
        (tx->hold_ns != 0 && tx->n_under_way > 0) || tx->number - tx->first >= UDP_TX_GRAMS - 1)
        return false;
    if (tx->n_free == 0 && !udp_rate_may(&tx->rate, tx->under_way, now_ns)) {
        tx->rate.busy |= tx->under_way >= tx->rate.window;
        return false;
    }
    uint32_t n = tx->n_lost > 0 ? udp_tx_lost_packet(tx) : udp_tx_turn(tx);
    struct udp_tx_packet *p = udp_tx_packet(tx, n);
    if (tx->n_lost > 0) {
        idx = udp_tx_lost_idx(p);
    } else {
        if (p->n_parts == 0)
            udp_tx_cut(tx, p, extra);
        idx = p->next;
    }
    uint32_t offset = (uint32_t)idx * p->chunk, left = p->len - offset;
    *ret_piece = (struct udp_tx_piece){
        .part = {.packet = n,
                 .size = p->len | (n - tx->oldest) << 24,
                 .chunk = p->chunk,
                 .idx = idx},
        .copy = p->block == BLOCK_NONE ? p->copy : NULL,
        .block = p->block,
        .offset = offset,
        .len = left < p->chunk ? left : p->chunk,
    };
    return true;
}

static void udp_tx_part_sent(struct udp_tx *tx, const struct udp_part *part, uint32_t bytes)
{
    struct udp_tx_packet *p = udp_tx_packet(tx, part->packet);
    uint64_t bit = 1ull << part->idx % 64;

    if (p->lost[part->idx / 64] & bit) {
        p->lost[part->idx / 64] &= ~bit;
        p->n_lost--;
        tx->n_lost--;
        tx->n_resent++;
    } else {
        if (++p->next == p->n_parts)
            tx->lines[p->cls].first++;
        tx->quick_run =
            p->cls == WIRE_QUICK && !udp_tx_line_empty(tx, WIRE_BULK) ? tx->quick_run + bytes : 0;
    }
}

uint32_t udp_tx_sent(struct udp_tx *tx, enum udp_kind kind, const struct udp_tx_piece *piece,
                     uint32_t bytes, uint64_t now_ns)
{
    uint32_t number = tx->number++;
    struct udp_tx_gram *g = udp_tx_gram(tx, number);

    *g = (struct udp_tx_gram){.sent_ns = now_ns, .bytes = bytes, .kind = (uint8_t)kind};
    tx->n_datagrams++;
    if (kind == UDP_DATA) {
        g->packet = piece->part.packet;
        g->idx = piece->part.idx;
        udp_tx_part_sent(tx, &piece->part, bytes);
        udp_rate_left(&tx->rate, bytes, now_ns);
        tx->n_free -= tx->n_free > 0;
    }
    if (kind == UDP_DATA || kind == UDP_PING) {
        g->state = GRAM_SENT;
        tx->under_way += bytes;
        tx->n_under_way++;
        tx->asked_ns = now_ns;
    } else if (tx->first == number) {
        tx->first++;
    }
    return number;
}

/* The fragment of a datagram leaves again, unless it is known to have arrived. */
static void udp_tx_again(struct udp_tx *tx, const struct udp_tx_gram *g)
{
    struct udp_tx_packet *p = udp_tx_packet(tx, g->packet);
    uint64_t bit = 1ull << g->idx % 64;

    if (g->kind != UDP_DATA || g->packet - tx->oldest >= tx->next - tx->oldest || p->done ||
        ((p->arrived[g->idx / 64] | p->lost[g->idx / 64]) & bit))
        return;
    p->lost[g->idx / 64] |= bit;
    p->n_lost++;
    tx->n_lost++;
}

static void udp_tx_forget(struct udp_tx *tx, struct udp_tx_gram *g, enum gram_state state)
{
    g->state = (uint8_t)state;
    tx->under_way -= g->bytes;
    tx->n_under_way--;
}

void udp_tx_unsent(struct udp_tx *tx, uint32_t number)
{
    struct udp_tx_gram *g = udp_tx_gram(tx, number);

    if (g->state != GRAM_SENT)
        return;
    udp_tx_forget(tx, g, GRAM_NONE);
    udp_tx_again(tx, g);
    if (g->kind == UDP_PING && g->bytes == tx->mtu.probe)
        tx->mtu.under_way = false;
}

static void udp_tx_complete(struct udp_tx *tx, struct udp_tx_packet *p, int error)
{
    if (p->block != BLOCK_NONE)
        tx->done[tx->n_done++] = (struct udp_tx_done){.block = p->block, .error = error};
    tx->n_lost -= p->n_lost;
    p->n_lost = 0;
    p->block = BLOCK_NONE;
    p->done = true;
}

static void udp_tx_part_arrived(struct udp_tx *tx, const struct udp_tx_gram *g)
{
    struct udp_tx_packet *p = udp_tx_packet(tx, g->packet);
    uint64_t bit = 1ull << g->idx % 64;

    if (g->packet - tx->oldest >= tx->next - tx->oldest || p->done ||
        (p->arrived[g->idx / 64] & bit))
        return;
    p->arrived[g->idx / 64] |= bit;
    tx->lines[p->cls].n_arrived++;
    if (p->lost[g->idx / 64] & bit) {
        p->lost[g->idx / 64] &= ~bit;
        p->n_lost--;
        tx->n_lost--;
    }
    if (++p->n_arrived < p->n_parts)
        return;
    udp_tx_complete(tx, p, 0);
    while (tx->oldest != tx->next && udp_tx_packet(tx, tx->oldest)->done)
        tx->oldest++;
}

static void udp_tx_gram_arrived(struct udp_tx *tx, uint32_t number, uint64_t now_ns)
{
    struct udp_tx_gram *g = udp_tx_gram(tx, number);

    if (g->state == GRAM_NONE)
        return;
    if (g->state == GRAM_LOST) {
        /* It was only late. */
        tx->gap = 2 * tx->gap < GAP_MAX ? 2 * tx->gap : GAP_MAX;
        g->state = GRAM_NONE;
    } else {
        udp_tx_forget(tx, g, GRAM_NONE);
        udp_rate_arrived(&tx->rate);
    }
    udp_mtu_data_arrived(&tx->mtu, g->bytes);
    if (g->kind == UDP_DATA)
        udp_tx_part_arrived(tx, g);
    else if (g->bytes > UDP_HEAD_MAX)
        udp_mtu_arrived(&tx->mtu, g->bytes, now_ns);
}

/* A datagram is lost. True: the path carries less than was thought. */
static bool udp_tx_gram_lost(struct udp_tx *tx, struct udp_tx_gram *g, uint64_t now_ns)
{
    udp_tx_forget(tx, g, GRAM_LOST);
    udp_tx_again(tx, g);
    if (g->kind == UDP_PING) {
        if (g->bytes > UDP_HEAD_MAX)
            udp_mtu_missed(&tx->mtu, g->bytes, now_ns);
        return false;
    }
    udp_rate_lost(&tx->rate);
    return udp_mtu_data_lost(&tx->mtu, g->bytes, now_ns);
}

/* Finds what was overtaken by what arrived. */
static void udp_tx_overtaken(struct udp_tx *tx, uint64_t now_ns)
{
    uint64_t wait_ns = udp_rate_overtaken_ns(&tx->rate);
    bool open = false, hole = false;

    tx->overtaken_ns = UINT64_MAX;
    for (uint32_t n = tx->first; (int32_t)(tx->newest - n) >= 0; n++) {
        struct udp_tx_gram *g = udp_tx_gram(tx, n);
        if (g->state == GRAM_SENT && (tx->newest - n >= tx->gap || now_ns - g->sent_ns >= wait_ns))
            hole |= udp_tx_gram_lost(tx, g, now_ns);
        if (g->state == GRAM_SENT && g->sent_ns + wait_ns < tx->overtaken_ns)
            tx->overtaken_ns = g->sent_ns + wait_ns;
        open |= g->state == GRAM_SENT;
        tx->first += !open;
    }
    if (hole)
        udp_tx_restart(tx);
}

bool udp_tx_ack(struct udp_tx *tx, const struct udp_ack *ack, const uint8_t *words, uint64_t now_ns)
{
    uint32_t newest = le32toh(ack->newest);

    if (tx->number - newest - 1 >= UDP_TX_GRAMS)
        return false;
    tx->n_silent = 0;
    tx->hold_ns = ack->starving ? now_ns + HOLD_NS : 0;
    const struct udp_tx_gram *g = udp_tx_gram(tx, newest);
    if (g->state == GRAM_SENT && (int32_t)(newest - tx->newest) > 0) {
        uint64_t late_ns = le16toh(ack->delay) * 4000ull, all_ns = now_ns - g->sent_ns;
        udp_rate_measure(&tx->rate, all_ns > late_ns ? all_ns - late_ns : 0, now_ns);
    }
    if ((int32_t)(newest - tx->newest) > 0)
        tx->newest = newest;
    udp_tx_gram_arrived(tx, newest, now_ns);
    for (uint32_t w = 0; w < ack->n_words; w++) {
        uint64_t bits;
        memcpy(&bits, words + w * sizeof bits, sizeof bits);
        for (bits = le64toh(bits); bits != 0; bits &= bits - 1) {
            uint32_t back = 1 + 64 * w + (uint32_t)__builtin_ctzll(bits);
            /* What is older has been judged, but for a few that may have been late. */
            if ((int32_t)(newest - back - tx->first) < -(int32_t)GAP_MAX)
                break;
            if (tx->number - (newest - back) <= UDP_TX_GRAMS)
                udp_tx_gram_arrived(tx, newest - back, now_ns);
        }
    }
    udp_tx_overtaken(tx, now_ns);
    tx->rate.mtu = tx->mtu.now;
    if ((int32_t)(tx->newest - tx->round) >= 0) {
        udp_rate_round(&tx->rate);
        tx->round = tx->number;
    }
    return true;
}

static uint64_t udp_tx_silence_ns(const struct udp_tx *tx)
{
    uint64_t wait_ns = udp_rate_timeout_ns(&tx->rate) << (tx->n_silent < 6 ? tx->n_silent : 6);

    return tx->asked_ns + (wait_ns < TIMEOUT_MAX_NS ? wait_ns : TIMEOUT_MAX_NS);
}

uint64_t udp_tx_due(const struct udp_tx *tx)
{
    uint64_t due = tx->overtaken_ns;

    if (tx->n_under_way > 0 && udp_tx_silence_ns(tx) < due)
        due = udp_tx_silence_ns(tx);
    if (udp_mtu_searching(&tx->mtu) && !tx->mtu.under_way && tx->mtu.next_ns < due)
        due = tx->mtu.next_ns;
    if (tx->n_lost == 0 && !udp_tx_has_unsent(tx))
        return due;
    /* Something waits: for the receiver's memory, for its time to leave, or for an answer. */
    uint64_t leave = tx->hold_ns > tx->rate.next_ns ? tx->hold_ns : tx->rate.next_ns;
    if ((tx->n_free > 0 || tx->under_way < tx->rate.window) && leave < due)
        due = leave;
    return due;
}

void udp_tx_timeout(struct udp_tx *tx, uint64_t now_ns)
{
    if (now_ns >= tx->overtaken_ns)
        udp_tx_overtaken(tx, now_ns);
    if (tx->n_under_way == 0 || now_ns < udp_tx_silence_ns(tx))
        return;
    tx->n_silent++;
    tx->ping = true;
    tx->n_free = FREE_GRAMS;
    tx->asked_ns = now_ns;
    if (tx->n_silent == SILENT_COLLAPSE)
        udp_rate_collapse(&tx->rate);
    /* The oldest leave again; whether they were lost, the answer will say. */
    uint32_t n = FREE_GRAMS;
    for (uint32_t i = tx->first; n > 0 && i != tx->number; i++) {
        const struct udp_tx_gram *g = udp_tx_gram(tx, i);
        if (g->state != GRAM_SENT || g->kind != UDP_DATA)
            continue;
        udp_tx_again(tx, g);
        n--;
    }
}

void udp_tx_restart(struct udp_tx *tx)
{
    for (uint32_t n = tx->first; n != tx->number; n++)
        udp_tx_gram(tx, n)->state = GRAM_NONE;
    /* Every packet keeps its place, and the other side sees that none of the old numbers is
     * open. */
    tx->oldest += UDP_PACKETS;
    tx->next += UDP_PACKETS;
    while (tx->oldest != tx->next && udp_tx_packet(tx, tx->oldest)->done)
        tx->oldest++;
    for (uint32_t cls = 0; cls < WIRE_CLASSES; cls++)
        tx->lines[cls].first = tx->lines[cls].end;
    for (uint32_t n = tx->oldest; n != tx->next; n++) {
        struct udp_tx_packet *p = udp_tx_packet(tx, n);
        if (p->done)
            continue;
        p->n_parts = p->next = p->n_arrived = p->n_lost = 0;
        udp_tx_line_up(tx, n);
    }
    tx->first = tx->number;
    tx->n_lost = tx->under_way = tx->n_under_way = 0;
    tx->mtu.under_way = false;
    tx->overtaken_ns = UINT64_MAX;
}

void udp_tx_fail(struct udp_tx *tx, int error)
{
    for (uint32_t n = tx->oldest; n != tx->next; n++)
        if (!udp_tx_packet(tx, n)->done)
            udp_tx_complete(tx, udp_tx_packet(tx, n), error);
    udp_tx_restart(tx);
}
