/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a neighbour's daemon sends: frames of any type in any order, before and after the hand-shake
 * (the key is known here, so the fuzzer gets in), link states into the topology, the graph and the
 * routes, mail into the mail box.
 *
 * Input: pieces, each a type, two bytes of length, a body.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/cluster/flood.h"
#include "daemon/cluster/mail.h"
#include "daemon/cluster/mesh.h"
#include "daemon/routing/graph.h"
#include "daemon/routing/node_name.h"
#include "daemon/routing/topology.h"
#include "proto/control.pb-c.h"
#include "tests/fuzz/fuzz.h"

struct fuzz {
    struct topology *topology;
    struct mail *mail;
    struct flood flood;
    struct mesh *mesh;
    struct mesh_link link;
    unsigned n_delivered;
};

static void on_send(void *ctx, uint16_t type, const void *body, uint32_t len)
{
    (void)ctx, (void)type, (void)body, (void)len;
}

static const char *on_admit(void *ctx, const struct peer *peer)
{
    (void)ctx, (void)peer;
    return NULL;
}

static void on_up(void *ctx, uint64_t now_ns)
{
    (void)now_ns;
    (void)ctx;
}

static int on_frame(void *ctx, uint16_t type, const uint8_t *body, uint32_t len, uint64_t now_ns)
{
    struct fuzz *f = ctx;
    struct topology_change change;

    if (type == MOTET__FRAME_TYPE__MAIL)
        return mail_on_frame(f->mail, body, len, now_ns);
    if (type == MOTET__FRAME_TYPE__DIGEST)
        return flood_on_digest(&f->flood, &f->link, body, len, now_ns);
    Motet__LinkStates *all = motet__link_states__unpack(NULL, len, body);
    int rc = all ? 0 : -1;
    for (size_t i = 0; all && i < all->n_states; i++)
        rc |= topology_apply(f->topology, all->states[i], &change) < 0 ? -1 : 0;
    if (all) {
        all->n_states = 0;
        motet__link_states__free_unpacked(all, NULL);
    }
    return rc;
}

static int on_mesh_send(void *ctx, struct mesh_link *link, uint16_t type, const void *body,
                        uint32_t len)
{
    (void)ctx, (void)link;
    if (type == MOTET__FRAME_TYPE__DIGEST) {
        Motet__Digest *d = motet__digest__unpack(NULL, len, body);
        if (!d)
            abort();
        motet__digest__free_unpacked(d, NULL);
    } else {
        Motet__LinkStates *all = motet__link_states__unpack(NULL, len, body);
        if (!all)
            abort();
        motet__link_states__free_unpacked(all, NULL);
    }
    return 0;
}

static void on_rtt(void *ctx, uint64_t rtt_ns, uint64_t now_ns)
{
    (void)now_ns;
    (void)ctx, (void)rtt_ns;
}

static int mail_forward(void *ctx, uint32_t dst, const uint8_t *frame, uint32_t len)
{
    (void)ctx, (void)dst;
    Motet__Mail *msg = motet__mail__unpack(NULL, len, frame);
    if (!msg)
        abort(); /* what we send can be read */
    motet__mail__free_unpacked(msg, NULL);
    return 0;
}

static void mail_deliver(void *ctx, uint32_t src, uint16_t type, const uint8_t *body, uint32_t len,
                         uint64_t now_ns)
{
    (void)now_ns;
    (void)src, (void)type, (void)body, (void)len;
    ((struct fuzz *)ctx)->n_delivered++;
}

static uint32_t mail_epoch_of(void *ctx, uint32_t node)
{
    (void)ctx;
    return node & 1;
}

static void mail_wake(void *ctx)
{
    (void)ctx;
}

static void routes(const struct topology *t)
{
    struct graph g;

    if (graph_init(&g, t) < 0)
        return;
    struct route *r = calloc(g.n_nodes + 1, sizeof *r);
    for (uint32_t self = 0; r && self < g.n_nodes && self < 4; self++) {
        if (g.by_index[self])
            route_compute(g.nodes, g.n_nodes, self, r);
    }
    free(r);
    graph_deinit(&g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const struct peer_ops ops = {
        .send = on_send, .admit = on_admit, .up = on_up, .frame = on_frame, .rtt = on_rtt};
    static const struct mail_ops mail_ops = {.forward = mail_forward,
                                             .deliver = mail_deliver,
                                             .epoch_of = mail_epoch_of,
                                             .wake = mail_wake};
    static struct auth_key key = {.len = 32};
    struct peer_self self = {.node = "me",
                             .software = "test",
                             .node_id = node_name_id("me"),
                             .epoch = 7,
                             .packet_bytes = 16384,
                             .key = &key,
                             .heartbeat_ns = 1000,
                             .dead_after_ns = 100000,
                             .handshake_ns = 1000000};
    struct fuzz f = {.topology = topology_new(self.node_id, 7, 64),
                     .mail = mail_new(self.node_id, 7, 1 << 20, &mail_ops, &f)};
    static const struct mesh_socket_ops socket_ops = {.send = on_mesh_send};
    static const struct config config = {.n_channels = 0};
    const struct mesh_setup mesh = {.config = &config, .socket_ops = &socket_ops};
    f.mesh = f.link.mesh = mesh_new(&mesh);
    flood_init(&f.flood, self.node_id, f.topology, f.mesh);
    struct peer peer;
    uint64_t now_ns = 1;

    log_set_level(LOG_ERROR);
    peer_start(&peer, &self, "net", SEAL_INTEGRITY, 1, n & 1, &ops, &f, now_ns);
    while (n >= 3) {
        uint16_t type = data[0] & 0x0f;
        uint32_t len = (uint32_t)(data[1] | data[2] << 8);
        /* A high bit lets the piece in without a hand-shake, which the fuzzer could not compute. */
        if (data[0] & 0x80)
            peer.state = PEER_UP;
        data += 3;
        n -= 3;
        len = len < n ? len : (uint32_t)n;
        now_ns += 100;
        if (peer_on_frame(&peer, type, data, len, now_ns) < 0 && peer.reason[0] == '\0')
            abort(); /* a refusal has a reason */
        peer_on_timer(&peer, now_ns);
        data += len;
        n -= len;
    }
    mail_run(f.mail, now_ns + CLOCK_NS_PER_S);
    routes(f.topology);
    mail_free(f.mail);
    mesh_free(f.mesh);
    topology_free(f.topology);
    return 0;
}
