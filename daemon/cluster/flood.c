/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/cluster/flood.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "daemon/cluster/mesh.h"
#include "daemon/config.h"
#include "daemon/routing/topology.h"
#include "proto/control.pb-c.h"

/* Link states are sent in frames of about so many bytes. */
#define BUNDLE_BYTES (256u << 10)
/* Of a LinkState in LinkStates: tag and length. */
#define ITEM_HEAD_BYTES 6u

void flood_init(struct flood *f, uint32_t node_id, struct topology *topology, struct mesh *mesh)
{
    *f = (struct flood){.node_id = node_id, .topology = topology, .mesh = mesh};
    list_init(&f->pending);
}

/* ---- link states ---- */

/* Link states on their way into a frame. */
struct bundle {
    struct mesh_link *to;
    uint32_t n, size;
    size_t bytes;
    Motet__LinkState **states;
};

static void bundle_send(struct bundle *b)
{
    Motet__LinkStates msg = MOTET__LINK_STATES__INIT;
    size_t len;
    uint8_t *body;

    if (b->n == 0)
        return;
    msg.states = b->states;
    msg.n_states = b->n;
    len = motet__link_states__get_packed_size(&msg);
    body = malloc(len);
    if (body)
        motet__link_states__pack(&msg, body);
    if (!body || mesh_send(b->to, MOTET__FRAME_TYPE__LINK_STATE, body, (uint32_t)len) < 0)
        b->to->flood.stale = true;
    free(body);
    b->n = 0;
    b->bytes = 0;
}

static void bundle_add(struct bundle *b, Motet__LinkState *state)
{
    size_t bytes = motet__link_state__get_packed_size(state) + ITEM_HEAD_BYTES;

    if (b->n > 0 && b->bytes + bytes > BUNDLE_BYTES)
        bundle_send(b);
    if (b->n == b->size) {
        uint32_t size = b->size ? 2 * b->size : 64;
        Motet__LinkState **grown = realloc(b->states, size * sizeof(Motet__LinkState *));
        if (!grown) {
            b->to->flood.stale = true;
            return;
        }
        b->states = grown;
        b->size = size;
    }
    b->states[b->n++] = state;
    b->bytes += bytes;
}

static void bundle_end(struct bundle *b)
{
    bundle_send(b);
    free(b->states);
}

void flood_add(struct flood *f, struct topology_node *n, const struct mesh_link *from)
{
    n->flood.n_heard = 0;
    if (list_empty(&n->flood.pending))
        list_append(&f->pending, &n->flood.pending);
    if (from)
        flood_heard(n, from);
}

void flood_heard(struct topology_node *n, const struct mesh_link *from)
{
    if (!list_empty(&n->flood.pending) && n->flood.n_heard < TOPOLOGY_FLOOD_HEARD)
        n->flood.heard[n->flood.n_heard++] = from->peer.node_id;
}

static bool flood_has_it(const struct topology_node *n, uint32_t node_id)
{
    for (uint32_t i = 0; i < n->flood.n_heard; i++)
        if (n->flood.heard[i] == node_id)
            return true;
    return false;
}

void flood_correct(struct mesh_link *to, const struct topology_node *n)
{
    struct bundle b = {.to = to};

    bundle_add(&b, n->state);
    bundle_end(&b);
}

static void flood_send_pending(struct flood *f)
{
    if (list_empty(&f->pending))
        return;
    list_foreach(it, mesh_links(f->mesh)) {
        struct bundle b = {.to = list_entry(it, struct mesh_link, link)};
        if (!b.to->up || !b.to->flood.adjacent)
            continue;
        list_foreach(p, &f->pending) {
            struct topology_node *n = list_entry(p, struct topology_node, flood.pending);
            if (!flood_has_it(n, b.to->peer.node_id))
                bundle_add(&b, n->state);
        }
        bundle_end(&b);
    }
    list_foreach_safe(it, &f->pending)
        list_remove(it);
}

/* ---- digests ---- */

static uint64_t flood_sum(const struct flood *f)
{
    uint64_t sum = 0;

    for (const struct topology_node *n = topology_first(f->topology); n; n = n->hh.next)
        sum += hash_mix64(hash_mix64((uint64_t)n->node_id << 32 | n->state->epoch) ^
                          n->state->sequence);
    return sum;
}

static void digest_fill(const struct flood *f, Motet__Digest *d)
{
    for (const struct topology_node *n = topology_first(f->topology); n; n = n->hh.next) {
        d->nodes[d->n_nodes++] = n->node_id;
        d->epochs[d->n_epochs++] = n->state->epoch;
        d->sequences[d->n_sequences++] = n->state->sequence;
    }
}

/* What a digest is for. */
enum digest_kind { DIGEST_WISH, DIGEST_SUM, DIGEST_FULL };

static void flood_send_digest(struct flood *f, struct mesh_link *l, enum digest_kind kind)
{
    bool full = kind == DIGEST_FULL;
    Motet__Digest d = MOTET__DIGEST__INIT;
    size_t n = full ? topology_count(f->topology) : 0;
    bool sent = false;

    d.wanted = l->flood.wants;
    d.full = full;
    d.sum = kind == DIGEST_SUM ? flood_sum(f) : 0;
    d.nodes = malloc((n + 1) * sizeof *d.nodes);
    d.epochs = malloc((n + 1) * sizeof *d.epochs);
    d.sequences = malloc((n + 1) * sizeof *d.sequences);
    if (d.nodes && d.epochs && d.sequences) {
        if (full)
            digest_fill(f, &d);
        size_t len = motet__digest__get_packed_size(&d);
        uint8_t *body = malloc(len);
        if (body)
            motet__digest__pack(&d, body);
        sent = body && mesh_send(l, MOTET__FRAME_TYPE__DIGEST, body, (uint32_t)len) == 0;
        free(body);
    }
    l->flood.stale = !sent;
    free(d.nodes);
    free(d.epochs);
    free(d.sequences);
}

/* Sends what the other side lacks. True: it has something newer. */
static bool flood_answer(struct flood *f, struct mesh_link *to, const Motet__Digest *d)
{
    struct bundle b = {.to = to};
    bool lacking = false;

    f->stamp++;
    for (size_t i = 0; i < d->n_nodes; i++) {
        struct topology_node *n = topology_find(f->topology, d->nodes[i]);
        int order = n ? topology_order(n->state, d->epochs[i], d->sequences[i]) : -1;
        lacking |= order < 0;
        if (n && order <= 0)
            n->flood.stamp = f->stamp;
    }
    for (struct topology_node *n = topology_first(f->topology); n; n = n->hh.next)
        if (n->flood.stamp != f->stamp)
            bundle_add(&b, n->state);
    bundle_end(&b);
    return lacking;
}

/* Whether link states go over this connection may have changed. */
static void flood_settle(struct flood *f, struct mesh_link *l, bool tell)
{
    bool adjacent = l->flood.wants || l->flood.wanted;

    if (adjacent && !l->flood.adjacent) {
        l->flood.adjacent = true;
        flood_send_digest(f, l, DIGEST_FULL);
    } else if (tell) {
        flood_send_digest(f, l, DIGEST_WISH);
    }
    l->flood.adjacent = adjacent;
}

int flood_on_digest(struct flood *f, struct mesh_link *from, const uint8_t *body, uint32_t len,
                    uint64_t now_ns)
{
    Motet__Digest *d = motet__digest__unpack(NULL, len, body);
    bool again = false;

    if (!d || d->n_nodes != d->n_epochs || d->n_nodes != d->n_sequences) {
        if (d)
            motet__digest__free_unpacked(d, NULL);
        return -EPROTO;
    }
    if (from->flood.refresh_ns == 0)
        from->flood.refresh_ns = now_ns + FLOOD_REFRESH_NS;
    if (d->full)
        again = flood_answer(f, from, d);
    else if (d->sum != 0)
        again = d->sum != flood_sum(f);
    bool was_adjacent = from->flood.adjacent;
    from->flood.wanted = d->wanted;
    flood_settle(f, from, false);
    /* What a digest shows as missing here is on its way if it was sent before; else it comes for
     * the asking. */
    if (again && was_adjacent && from->flood.adjacent)
        flood_send_digest(f, from, DIGEST_FULL);
    motet__digest__free_unpacked(d, NULL);
    return 0;
}

/* ---- which connections ---- */

/* The two smallest nodes of a network, the own one among them; 0: none. */
struct elected {
    const char *network;
    uint32_t ids[2];
};

static void elected_add(struct elected *e, uint32_t id)
{
    if (e->ids[0] == 0 || id < e->ids[0]) {
        e->ids[1] = e->ids[0];
        e->ids[0] = id;
    } else if (id != e->ids[0] && (e->ids[1] == 0 || id < e->ids[1])) {
        e->ids[1] = id;
    }
}

static struct elected *elected_of(struct elected *all, const struct flood *f, const char *network)
{
    struct elected *e = all;

    while (e->network && strcmp(e->network, network) != 0)
        e++;
    if (!e->network) {
        e->network = network;
        elected_add(e, f->node_id);
    }
    return e;
}

/* Stamps the connections to the nodes that this one names as its neighbours on the network. */
static void flood_cover(struct flood *f, const struct elected *e, uint32_t id)
{
    const struct topology_node *d = topology_find(f->topology, id);
    const struct mesh_link *to = mesh_find(f->mesh, id, e->network);

    if (!d || !to || !to->flood.adjacent || d->state->epoch != to->peer.epoch)
        return;
    for (size_t i = 0; i < d->state->n_links; i++) {
        const Motet__Adjacency *a = d->state->links[i];
        if (strcmp(a->network, e->network) != 0)
            continue;
        struct mesh_link *l = mesh_find(f->mesh, a->node_id, e->network);
        if (l)
            l->flood.covered = f->stamp;
    }
}

static void flood_choose(struct flood *f, struct mesh_link *l, const struct elected *e,
                         uint64_t now_ns)
{
    uint32_t id = l->peer.node_id;
    bool chosen = id == e->ids[0] || id == e->ids[1] || f->node_id == e->ids[0];
    bool wants = chosen || l->flood.covered != f->stamp;
    uint64_t wait_ns = chosen ? 0 : wants ? FLOOD_UNCOVERED_NS : FLOOD_LINGER_NS;

    if (wants == l->flood.wants) {
        l->flood.since_ns = 0;
        return;
    }
    if (l->flood.since_ns == 0)
        l->flood.since_ns = now_ns;
    if (now_ns - l->flood.since_ns < wait_ns) {
        f->undecided = true;
        return;
    }
    l->flood.wants = wants;
    l->flood.since_ns = 0;
    flood_settle(f, l, true);
}

static void flood_elect(struct flood *f, uint64_t now_ns)
{
    struct elected all[CONFIG_MAX_CHANNELS + 1] = {0};

    f->stamp++;
    f->undecided = false;
    list_foreach(it, mesh_links(f->mesh)) {
        const struct mesh_link *l = list_entry(it, struct mesh_link, link);
        if (l->up)
            elected_add(elected_of(all, f, l->peer.network), l->peer.node_id);
    }
    for (struct elected *e = all; e->network; e++)
        for (int i = 0; i < 2; i++)
            if (e->ids[i] != 0 && e->ids[i] < f->node_id)
                flood_cover(f, e, e->ids[i]);
    list_foreach(it, mesh_links(f->mesh)) {
        struct mesh_link *l = list_entry(it, struct mesh_link, link);
        if (l->up)
            flood_choose(f, l, elected_of(all, f, l->peer.network), now_ns);
    }
}

void flood_run(struct flood *f, uint64_t now_ns)
{
    flood_elect(f, now_ns);
    flood_send_pending(f);
}

bool flood_tick(struct flood *f, uint64_t now_ns)
{
    list_foreach(it, mesh_links(f->mesh)) {
        struct mesh_link *l = list_entry(it, struct mesh_link, link);
        if (!l->up || !l->flood.adjacent)
            continue;
        if (l->flood.refresh_ns == 0)
            l->flood.refresh_ns =
                now_ns + FLOOD_REFRESH_NS / 2 +
                hash_mix64((uint64_t)f->node_id << 32 | l->peer.node_id) % (FLOOD_REFRESH_NS / 2);
        bool due = now_ns >= l->flood.refresh_ns;
        if (due)
            l->flood.refresh_ns = now_ns + FLOOD_REFRESH_NS;
        if (due || l->flood.stale)
            flood_send_digest(f, l, l->flood.stale ? DIGEST_FULL : DIGEST_SUM);
    }
    return f->undecided || !list_empty(&f->pending);
}
