/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a peer sends to the native TCP driver: with a good hello and proof before it or not, in
 * pieces of several sizes, with few or many blocks to receive into. Packets have the length that
 * they may have, and no block is given twice or lost.
 *
 * Input: a byte of choices (bit 0: a good hello and proof first; bits 1 to 3: size of the pieces;
 * bits 4 and 5: blocks), then the stream.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/net/net_tcp.h"
#include "daemon/net/tcp/tcp_proof.h"
#include "tests/fuzz/fuzz.h"

#define PACKET 16464u
#define BLOCKS 16u
#define EVENTS 8

struct fuzz {
    struct arena arena;
    struct net *net;
    struct seal seal;
    bool posted[BLOCKS];
};

static void post(struct fuzz *f, uint32_t block)
{
    if (f->posted[block] || net_tcp.post(f->net, block) != 0)
        abort();
    f->posted[block] = true;
}

/* One poll. Returns whether something came. */
static bool turn(struct fuzz *f)
{
    struct net_event events[EVENTS];
    int n = net_tcp.poll(f->net, events, EVENTS);

    for (int i = 0; i < n; i++) {
        const struct net_event *e = &events[i];
        if (e->kind != NET_RECEIVED)
            continue;
        if (e->block >= BLOCKS || !f->posted[e->block] || e->len == 0 || e->len > PACKET)
            abort();
        memset(arena_at(&f->arena, e->block), 0, e->len);
        f->posted[e->block] = false;
        post(f, e->block);
    }
    return n > 0;
}

/* Hello and proof as a peer would send them. False: the machine is short of something. */
static bool introduce(struct fuzz *f, struct tcp_conn *c, const struct sockaddr_in *from)
{
    static struct net own;
    uint8_t answer[sizeof(struct tcp_hello) + sizeof(struct tcp_head) + TCP_PROOF_BYTES];
    size_t n = 0;

    own.address_len = sizeof *from;
    memcpy(own.address, from, sizeof *from);
    c->initiated = true;
    tcp_proof_begin(&own, c);
    if (tcp_proof_flush(c) < 0)
        return false;
    for (int quiet = 0; n < sizeof answer && quiet < 100000; quiet++) {
        turn(f);
        ssize_t got = recv(c->fd, answer + n, sizeof answer - n, MSG_DONTWAIT);
        n += got > 0 ? (size_t)got : 0;
    }
    memcpy(&c->hello, answer, sizeof c->hello);
    return n == sizeof answer && tcp_proof_answer(c, &f->seal) == 0 && tcp_proof_flush(c) == 0;
}

/* -1: the machine has no port left, or the like. */
static int dial(struct fuzz *f, bool known)
{
    static const struct linger at_once = {.l_onoff = 1};
    struct sockaddr_in from = {
        .sin_family = AF_INET, .sin_port = htons(1), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    static struct tcp_conn c;
    uint8_t address[NET_ADDRESS_BYTES];
    size_t len = sizeof address;
    uint32_t peer;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    /* Without codes, so that what is in the frames is looked at. */
    if (seal_init(&f->seal, (const uint8_t[SEAL_SECRET_BYTES]){1}, true, SEAL_NONE) < 0 ||
        net_tcp.peer_add(f->net, &from, sizeof from, &f->seal, &peer) != 0 ||
        net_tcp.address(f->net, address, &len) != 0)
        abort();
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once); /* no port stays behind */
    memset(&c, 0, sizeof c);
    c.fd = fd;
    if (fd < 0 || connect(fd, (struct sockaddr *)(void *)address, (socklen_t)len) < 0 ||
        (known && !introduce(f, &c, &from))) {
        perror("channel_tcp: connection");
        if (fd >= 0)
            close(fd);
        return -1;
    }
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const size_t pieces[] = {1, 7, 8, 100, 1000, 8200, 40000, SIZE_MAX};
    struct net_config config = {
        .n_blocks = BLOCKS, .max_bytes = PACKET, .address = "127.0.0.1", .provider = "tcp"};
    struct fuzz f = {.net = NULL};

    if (n == 0)
        return 0;
    log_set_level(LOG_ERROR);
    if (arena_init(&f.arena, BLOCKS, PACKET - 80) < 0 ||
        net_tcp.open(&config, &f.arena, &f.net) < 0)
        abort();
    for (uint32_t b = 0; b < (data[0] >> 4 & 3) * 5u + 1; b++)
        post(&f, b);
    int fd = dial(&f, data[0] & 1);
    for (size_t at = fd < 0 ? n : 1, piece = pieces[data[0] >> 1 & 7], k; at < n; at += k) {
        k = piece < n - at ? piece : n - at;
        ssize_t sent = send(fd, data + at, k, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
            break; /* hung up on, as it should be */
        k = sent > 0 ? (size_t)sent : 0;
        turn(&f);
        /* A byte a piece would take minutes for a large input. */
        if (at > 2000)
            piece = SIZE_MAX;
    }
    for (int quiet = 0; quiet < 40;)
        quiet = turn(&f) ? 0 : quiet + 1;
    if (fd >= 0)
        close(fd);
    turn(&f);
    net_tcp.close(f.net);
    seal_deinit(&f.seal);
    arena_deinit(&f.arena);
    return 0;
}
