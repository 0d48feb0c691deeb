/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/net/udp/udp_rx.h"

#include <endian.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/net/block.h"

/* An acknowledgement waits for so many datagrams, or so long, if nobody asks for it. */
#define ACK_EVERY    32u
#define ACK_DELAY_NS (300 * CLOCK_NS_PER_US)

enum packet_state { PACKET_NONE = 0, PACKET_PARTIAL, PACKET_WHOLE };

void udp_rx_init(struct udp_rx *rx)
{
    memset(rx, 0, sizeof *rx);
}

static void udp_rx_close(struct udp_rx *rx, struct udp_posts *posts, struct udp_rx_packet *p)
{
    if (p->state == PACKET_PARTIAL) {
        posts->blocks[posts->n++] = p->block;
        rx->n_partial--;
    }
    p->state = PACKET_NONE;
}

void udp_rx_deinit(struct udp_rx *rx, struct udp_posts *posts)
{
    for (uint32_t i = 0; i < UDP_PACKETS; i++)
        udp_rx_close(rx, posts, &rx->packets[i]);
}

static bool udp_rx_seen(const struct udp_rx *rx, uint32_t number)
{
    uint32_t bit = number % UDP_RX_NUMBERS;

    return rx->seen[bit / 64] >> bit % 64 & 1;
}

bool udp_rx_is_new(const struct udp_rx *rx, uint32_t number)
{
    uint32_t back = rx->newest - number;

    if (!rx->begun || (int32_t)back < 0)
        return true;
    return back < UDP_RX_NUMBERS && !udp_rx_seen(rx, number);
}

void udp_rx_note(struct udp_rx *rx, uint32_t number, bool asks, bool at_once, uint64_t now_ns)
{
    uint32_t ahead = number - rx->newest;

    if (!rx->begun) {
        rx->begun = true;
        rx->told = rx->told_now = number - 1;
        ahead = 1;
    }
    if ((int32_t)ahead > 0) {
        /* Whoever sent what is missing shall know soon; numbers of acknowledgements are no loss. */
        rx->ack_now |= ahead > 1 && asks;
        if (ahead >= UDP_RX_NUMBERS)
            memset(rx->seen, 0, sizeof rx->seen);
        for (uint32_t n = ahead < UDP_RX_NUMBERS ? number - ahead + 1 : number; n != number; n++)
            rx->seen[n % UDP_RX_NUMBERS / 64] &= ~(1ull << n % UDP_RX_NUMBERS % 64);
        rx->newest = number;
        rx->newest_ns = now_ns;
    }
    rx->seen[number % UDP_RX_NUMBERS / 64] |= 1ull << number % UDP_RX_NUMBERS % 64;
    if (!asks)
        return;
    if (rx->n_waiting++ == 0)
        rx->ack_ns = now_ns + ACK_DELAY_NS;
    rx->ack_now |= at_once || rx->n_waiting >= ACK_EVERY;
}

/* Forgets packets before this number. */
static void udp_rx_forward(struct udp_rx *rx, struct udp_posts *posts, uint32_t oldest)
{
    if (!rx->based) {
        rx->based = true;
        rx->base = oldest;
        return;
    }
    if ((int32_t)(oldest - rx->base) >= (int32_t)UDP_PACKETS) {
        udp_rx_deinit(rx, posts);
        rx->base = oldest;
    }
    for (; (int32_t)(oldest - rx->base) > 0; rx->base++)
        udp_rx_close(rx, posts, &rx->packets[rx->base % UDP_PACKETS]);
}

int udp_rx_part(struct udp_rx *rx, struct udp_posts *posts, const struct udp_part *part,
                const uint8_t *data, uint32_t n, uint32_t *ret_block, uint32_t *ret_len)
{
    uint32_t number = le32toh(part->packet), size = le32toh(part->size);
    uint32_t len = size & UDP_SIZE_MAX, before = size >> 24;
    uint32_t chunk = le16toh(part->chunk), idx = le16toh(part->idx);

    if (len == 0 || len > posts->max_bytes || chunk == 0 || before >= UDP_PACKETS)
        return UDP_RX_BAD;
    uint32_t n_parts = (len + chunk - 1) / chunk;
    if (n_parts > UDP_PARTS_MAX || idx >= n_parts ||
        n != (idx == n_parts - 1 ? len - idx * chunk : chunk))
        return UDP_RX_BAD;
    udp_rx_forward(rx, posts, number - before);
    if ((int32_t)(number - rx->base) < 0)
        return 0; /* done with, or given up */
    struct udp_rx_packet *p = &rx->packets[number % UDP_PACKETS];
    if (p->state == PACKET_WHOLE)
        return 0;
    if (p->state == PACKET_NONE) {
        if (posts->n == 0) {
            rx->starving = rx->ack_now = true;
            return UDP_RX_NO_ROOM;
        }
        *p = (struct udp_rx_packet){.block = posts->blocks[--posts->n],
                                    .len = len,
                                    .chunk = (uint16_t)chunk,
                                    .n_parts = (uint16_t)n_parts,
                                    .state = PACKET_PARTIAL};
        rx->n_partial++;
    }
    if (p->len != len || p->chunk != chunk)
        return UDP_RX_BAD;
    if (p->got[idx / 64] >> idx % 64 & 1)
        return 0;
    memcpy((uint8_t *)arena_at(posts->arena, p->block) + (size_t)idx * chunk, data, n);
    p->got[idx / 64] |= 1ull << idx % 64;
    if (++p->n_got < n_parts)
        return 0;
    p->state = PACKET_WHOLE;
    rx->n_partial--;
    *ret_block = p->block;
    *ret_len = len;
    return UDP_RX_WHOLE;
}

uint32_t udp_rx_ack(struct udp_rx *rx, uint32_t n_words, uint64_t now_ns, uint8_t *ret_ack)
{
    uint64_t delay = (now_ns - rx->newest_ns) / 4000;
    /* What the last two acknowledgements told need not be told again, but for a word. */
    uint32_t want = (rx->newest - rx->told) / 64 + 2;
    uint32_t n = (want | 1) < n_words ? want | 1 : n_words;
    struct udp_ack ack = {.newest = htole32(rx->newest),
                          .delay = htole16((uint16_t)(delay < UINT16_MAX ? delay : UINT16_MAX)),
                          .n_words = (uint8_t)n,
                          .starving = rx->starving};

    memcpy(ret_ack, &ack, sizeof ack);
    for (uint32_t w = 0; w < n; w++) {
        uint64_t word = 0;
        for (uint32_t i = 0; i < 64; i++)
            word |= (uint64_t)udp_rx_seen(rx, rx->newest - 1 - 64 * w - i) << i;
        word = htole64(word);
        memcpy(ret_ack + sizeof ack + w * sizeof word, &word, sizeof word);
    }
    rx->told = rx->told_now;
    rx->told_now = rx->newest;
    rx->n_waiting = 0;
    rx->ack_now = rx->starving = false;
    return (uint32_t)(sizeof ack + n * sizeof(uint64_t));
}
