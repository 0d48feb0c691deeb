/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How two endpoints of the native TCP driver prove to each other that they know the secret of their
 * link, and the keys of their connection. Both proofs are over both hellos, random numbers of both
 * sides among them, and over who opened the connection: what was seen on another connection, or
 * comes back from this one, proves nothing.
 */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/net/tcp/tcp_proof.h"

void tcp_proof_begin(const struct net *net, struct tcp_conn *c)
{
    struct tcp_hello *hello = &c->own_hello;

    *hello = (struct tcp_hello){
        .head = {.magic = htole32(TCP_HELLO_MAGIC), .len = htole32((uint32_t)TCP_HELLO_BYTES)},
        .version = htole32(TCP_VERSION),
        .cls = htole32(c->cls),
        .address_len = htole32(net->address_len)};
    memcpy(hello->address, net->address, net->address_len);
    seal_random(hello->nonce, sizeof hello->nonce);
    memcpy(c->out, hello, sizeof *hello);
    c->out_len = sizeof *hello;
}

/* What the proof of the side that opened the connection, or of the other one, is made of. */
struct tcp_proof_context {
    struct tcp_hello opener, other;
    uint8_t role, mode;
    uint8_t reserved[6]; /* no bytes that nobody sets */
};
static_assert(sizeof(struct tcp_proof_context) == 2 * sizeof(struct tcp_hello) + 8, "packed");

static struct tcp_proof_context tcp_proof_context(const struct tcp_conn *c, const struct seal *seal,
                                                  bool of_opener)
{
    return (struct tcp_proof_context){.opener = c->initiated ? c->own_hello : c->hello,
                                      .other = c->initiated ? c->hello : c->own_hello,
                                      .role = of_opener ? 'I' : 'A',
                                      .mode = (uint8_t)seal->mode};
}

int tcp_proof_answer(struct tcp_conn *c, const struct seal *seal)
{
    struct tcp_proof_context context = tcp_proof_context(c, seal, c->initiated);
    const struct tcp_head head = {.magic = htole32(TCP_PROOF_MAGIC),
                                  .len = htole32(TCP_PROOF_BYTES)};

    memcpy(c->out + c->out_len, &head, sizeof head);
    int rc = seal_derive(seal->secret, "motet tcp: proof", &context, sizeof context,
                         c->out + c->out_len + sizeof head, TCP_PROOF_BYTES);
    if (rc == 0)
        c->out_len += (uint32_t)sizeof head + TCP_PROOF_BYTES;
    return rc;
}

int tcp_proof_check(struct tcp_conn *c, const struct seal *seal)
{
    struct tcp_proof_context context = tcp_proof_context(c, seal, !c->initiated);
    uint8_t expected[TCP_PROOF_BYTES];

    int rc = seal_derive(seal->secret, "motet tcp: proof", &context, sizeof context, expected,
                         sizeof expected);
    if (rc == 0 && !seal_equal(expected, c->proof, sizeof expected))
        rc = -EACCES;
    for (int in = 0; rc == 0 && in < 2; in++) {
        context.role = c->initiated != (in != 0) ? 'I' : 'A';
        rc = seal_key_init(in ? &c->in : &c->out_key, seal->secret, "motet tcp: key", &context,
                           sizeof context, seal->mode);
    }
    return rc;
}

int tcp_proof_flush(struct tcp_conn *c)
{
    while (c->out_at < c->out_len) {
        ssize_t n =
            send(c->fd, c->out + c->out_at, c->out_len - c->out_at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
            return -errno;
        if (n <= 0)
            return 0;
        c->out_at += (uint32_t)n;
    }
    return 0;
}
