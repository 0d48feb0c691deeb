/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a peer sends to the native UDP driver, as bad as it likes, from inside the session: every
 * field but the names of the session and the number of the datagram is the input's. Packets have
 * the length that they may have, and no block is given twice or lost, neither of those for
 * receiving nor of those that are being sent.
 *
 * Input: datagrams, each after a byte of its length and one for kind and flags; the rest is what
 * stands behind the head. Length 255: the clock moves on instead, by the next byte in ms.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/net/block.h"
#include "daemon/net/udp/udp_end.h"
#include "tests/fuzz/fuzz.h"

#define PACKET 16464u
#define BLOCKS 64u
#define SENDS  16u

struct fuzz {
    struct arena arena;
    struct udp_end *end;
    uint32_t peer;
    uint64_t now_ns;
    bool out[BLOCKS]; /* the driver has it */
    uint32_t own;     /* our name for the session, as the driver knows it */
    uint32_t number;
};

static void check(bool ok)
{
    if (!ok)
        abort();
}

static void turn(struct fuzz *f)
{
    static struct udp_out outs[64];
    struct net_event events[16];
    uint32_t n_out = udp_end_output(f->end, UINT32_MAX, f->now_ns, outs, 64);

    for (uint32_t i = 0; i < n_out; i++)
        check(outs[i].n_head <= UDP_HEAD_MAX && outs[i].n_head + outs[i].n_data <= 1472);
    int n = udp_end_report(f->end, events, 16);
    for (int i = 0; i < n; i++) {
        if (events[i].kind == NET_PEER_DOWN)
            continue;
        check(events[i].block < SENDS && f->out[events[i].block]);
        f->out[events[i].block] = false;
    }
    for (uint32_t b = 0; b < SENDS; b++)
        if (!f->out[b])
            f->out[b] = udp_end_send(f->end, f->peer, b, 200 + 1000 * b, f->now_ns) == 0;
}

static void datagram(struct fuzz *f, uint8_t what, const uint8_t *rest, uint32_t n)
{
    uint8_t data[sizeof(struct udp_head) + 256];
    const struct udp_peer *p = udp_end_peer(f->end, f->peer);
    struct udp_head h = {.magic = UDP_MAGIC,
                         .kind = what & 7,
                         .flags = what >> 3 & 3,
                         .from = 77,
                         .to = p->own,
                         .number = f->number += 1 + (what >> 6)};
    struct net_event e;

    memcpy(data, &h, sizeof h);
    memcpy(data + sizeof h, rest, n);
    if (!udp_end_input(f->end, "p", 1, data, (uint32_t)sizeof h + n, f->now_ns, &e))
        return;
    check(e.kind == NET_RECEIVED && e.block >= SENDS && e.block < BLOCKS && f->out[e.block]);
    check(e.len > 0 && e.len <= PACKET);
    check(udp_end_post(f->end, e.block) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct fuzz f = {.now_ns = CLOCK_NS_PER_S};
    struct udp_end_config config = {.arena = &f.arena,
                                    .max_bytes = PACKET,
                                    .mtu_least = udp_end_mtu_least(PACKET),
                                    .mtu_most = 1472,
                                    .room = 1 << 20,
                                    .seed = 1};

    check(arena_init(&f.arena, BLOCKS, PACKET) == 0 && udp_end_new(&config, &f.end) == 0);
    for (uint32_t b = SENDS; b < BLOCKS; b++) {
        f.out[b] = true;
        check(udp_end_post(f.end, b) == 0);
    }
    check(udp_end_peer_add(f.end, "p", 1, NULL, f.now_ns, &f.peer) == 0);
    for (size_t at = 0; at + 2 <= n;) {
        uint32_t len = data[at], what = data[at + 1];
        at += 2;
        if (len == 255) {
            f.now_ns += what * CLOCK_NS_PER_MS;
        } else {
            len = len < n - at ? len : (uint32_t)(n - at);
            datagram(&f, (uint8_t)what, data + at, len);
            at += len;
        }
        turn(&f);
    }
    /* Everything comes back when the peer is forgotten. */
    udp_end_peer_remove(f.end, f.peer);
    struct net_event events[BLOCKS];
    int k = udp_end_report(f.end, events, BLOCKS);
    for (int i = 0; i < k; i++)
        if (events[i].kind != NET_PEER_DOWN)
            f.out[events[i].block] = false;
    for (uint32_t b = 0; b < SENDS; b++)
        check(!f.out[b]);
    check(udp_end_posted(f.end) == BLOCKS - SENDS);
    udp_end_free(f.end);
    arena_deinit(&f.arena);
    return 0;
}
