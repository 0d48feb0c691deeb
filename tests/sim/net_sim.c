/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sim/net_sim.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "daemon/net/block.h"

#define PEERS_MAX      64u
#define EVENTS_MAX     8192u
#define POSTS_MAX      1024u
#define STREAM_QUEUE   48u  /* packets of one connection before `send` says later */
#define INLINE_BYTES   128u /* sent at once, without an event */
#define CONNECT_MAX_NS 3000000ull

struct packet {
    struct list node; /* in sim_network.wire */
    uint64_t due_ns;
    uint32_t from, to; /* addresses */
    uint32_t peer;     /* the sender's name of the receiver */
    uint32_t block;    /* to be reported as sent; BLOCK_NONE: was already */
    uint32_t len;
    uint8_t data[];
};

struct peer {
    uint32_t address; /* 0: free */
    uint32_t n_wire;  /* packets under way */
    uint64_t ready_ns;
};

/* An endpoint. */
struct net {
    struct sim_network *nw;
    const struct arena *arena;
    uint32_t address;
    uint32_t max_bytes;
    bool cut;
    struct peer peers[PEERS_MAX];
    uint32_t posts[POSTS_MAX], n_posts;
    struct net_event events[EVENTS_MAX];
    uint32_t ev_head, ev_tail;
};

struct sim_network {
    struct rand rand;
    struct sim_faults faults;
    uint64_t now_ns;
    struct list wire; /* in order of sending */
    uint32_t next_address;
    struct net *endpoints[NET_SIM_ENDPOINTS];
};

struct sim_network *net_sim_network_new(uint64_t seed, const struct sim_faults *faults)
{
    struct sim_network *nw = calloc(1, sizeof *nw);

    if (!nw)
        return NULL;
    nw->rand.state = seed;
    nw->faults = *faults;
    nw->next_address = 1;
    list_init(&nw->wire);
    return nw;
}

static void drop_packet(struct packet *p)
{
    list_remove(&p->node);
    free(p);
}

void net_sim_network_free(struct sim_network *nw)
{
    if (!nw)
        return;
    list_foreach_safe(it, &nw->wire)
        drop_packet(list_entry(it, struct packet, node));
    free(nw);
}

void net_sim_set_faults(struct sim_network *nw, const struct sim_faults *faults)
{
    nw->faults = *faults;
}

static struct net *endpoint(const struct sim_network *nw, uint32_t address)
{
    for (uint32_t i = 0; i < NET_SIM_ENDPOINTS; i++)
        if (nw->endpoints[i] && nw->endpoints[i]->address == address)
            return nw->endpoints[i];
    return NULL;
}

void net_sim_cut(struct sim_network *nw, uint32_t address, bool cut)
{
    struct net *net = endpoint(nw, address);

    if (net)
        net->cut = cut;
}

uint32_t net_sim_address(struct net *net)
{
    return net->address;
}

static void push_event(struct net *net, struct net_event event)
{
    assert(net->ev_tail - net->ev_head < EVENTS_MAX);
    net->events[net->ev_tail++ % EVENTS_MAX] = event;
}

static bool chance(struct sim_network *nw, uint32_t per_million)
{
    return per_million != 0 && rand_below(&nw->rand, 1000000) < per_million;
}

static uint64_t delay(struct sim_network *nw)
{
    uint64_t span = nw->faults.delay_max_ns - nw->faults.delay_min_ns;

    return nw->faults.delay_min_ns + (span ? rand_below(&nw->rand, span) : 0);
}

static struct packet *put_on_wire(struct sim_network *nw, uint32_t from, uint32_t to,
                                  const void *data, uint32_t len)
{
    struct packet *p = malloc(sizeof *p + len);

    if (!p)
        abort();
    *p = (struct packet){
        .due_ns = nw->now_ns + delay(nw), .from = from, .to = to, .block = BLOCK_NONE, .len = len};
    memcpy(p->data, data, len);
    list_append(&nw->wire, &p->node);
    return p;
}

void net_sim_inject(struct sim_network *nw, uint32_t address, const void *data, uint32_t len)
{
    put_on_wire(nw, 0, address, data, len);
}

/* The packet is over for its sender. */
static void complete(struct net *from, struct packet *p, int error)
{
    if (from && p->peer < PEERS_MAX && from->peers[p->peer].address == p->to &&
        from->peers[p->peer].n_wire > 0)
        from->peers[p->peer].n_wire--;
    if (from && p->block != BLOCK_NONE)
        push_event(from, (struct net_event){.kind = error ? NET_FAILED : NET_SENT,
                                            .block = p->block,
                                            .peer = p->peer,
                                            .error = error});
}

static bool receive(struct net *to, const struct packet *p)
{
    if (to->n_posts == 0)
        return false;
    uint32_t block = to->posts[0];
    memmove(to->posts, to->posts + 1, --to->n_posts * sizeof *to->posts);
    memcpy(arena_at(to->arena, block), p->data, p->len);
    push_event(to, (struct net_event){.kind = NET_RECEIVED, .block = block, .len = p->len});
    return true;
}

uint32_t net_sim_run(struct sim_network *nw, uint64_t now_ns)
{
    bool datagram = nw->faults.datagram;
    /* Connections of a stream whose first packet cannot arrive hold back the later ones. */
    uint64_t held[NET_SIM_ENDPOINTS * 4];
    uint32_t n_held = 0, n = 0;

    nw->now_ns = now_ns;
    list_foreach_safe(it, &nw->wire) {
        struct packet *p = list_entry(it, struct packet, node);
        struct net *from = endpoint(nw, p->from), *to = endpoint(nw, p->to);
        bool stream = !datagram && p->from != 0;
        uint64_t pair = (uint64_t)p->from << 32 | p->to;
        bool wait = p->due_ns > now_ns;
        for (uint32_t i = 0; stream && i < n_held; i++)
            wait |= held[i] == pair;
        bool removed = stream && from && from->peers[p->peer].address != p->to;
        if (!wait && removed) {
            complete(from, p, -ECANCELED);
            drop_packet(p);
            continue;
        }
        if (!wait && ((from && from->cut) || (to && to->cut))) {
            if (!stream) {
                drop_packet(p);
                continue;
            }
            wait = true;
        }
        if (!wait && !to) {
            if (from && stream)
                push_event(from, (struct net_event){
                                     .kind = NET_PEER_DOWN, .peer = p->peer, .error = -ECONNRESET});
            complete(from, p, -ECONNRESET);
            drop_packet(p);
            continue;
        }
        if (!wait && !receive(to, p)) {
            if (!stream) {
                drop_packet(p);
                continue;
            }
            wait = true;
        }
        if (wait) {
            if (stream && n_held < sizeof held / sizeof *held)
                held[n_held++] = pair;
            continue;
        }
        if (stream)
            complete(from, p, 0);
        drop_packet(p);
        n++;
    }
    return n;
}

uint64_t net_sim_next_ns(const struct sim_network *nw)
{
    uint64_t due = UINT64_MAX;

    list_foreach(it, &nw->wire) {
        const struct packet *p = list_entry(it, struct packet, node);
        const struct net *from = endpoint(nw, p->from), *to = endpoint(nw, p->to);
        if ((from && from->cut) || (to && to->cut))
            continue;
        if (p->due_ns < due)
            due = p->due_ns;
    }
    return due;
}

static int sim_open(const struct net_config *config, const struct arena *arena,
                    struct net **ret_net)
{
    struct sim_network *nw = config->context;
    struct net *net = calloc(1, sizeof *net);

    if (!net)
        return -ENOMEM;
    net->nw = nw;
    net->arena = arena;
    net->max_bytes = config->max_bytes;
    net->address = nw->next_address++;
    for (uint32_t i = 0; i < NET_SIM_ENDPOINTS; i++) {
        if (!nw->endpoints[i]) {
            nw->endpoints[i] = net;
            *ret_net = net;
            return 0;
        }
    }
    free(net);
    return -ENOSPC;
}

static void sim_close(struct net *net)
{
    if (!net)
        return;
    for (uint32_t i = 0; i < NET_SIM_ENDPOINTS; i++)
        if (net->nw->endpoints[i] == net)
            net->nw->endpoints[i] = NULL;
    free(net);
}

static void sim_info(const struct net *net, struct net_info *ret_info)
{
    uint32_t limit = net->nw->faults.max_datagram;

    *ret_info = (struct net_info){
        /* Whoever simulates is no forger. */
        .caps = NET_CAP_SEALS | (net->nw->faults.datagram ? NET_CAP_DATAGRAM : 0),
        .max_datagram = limit && limit < net->max_bytes ? limit : net->max_bytes,
        .n_receives = POSTS_MAX,
        .driver = "sim",
        .provider = "sim",
    };
}

static int sim_address(struct net *net, void *buf, size_t *len)
{
    if (*len < sizeof net->address)
        return -ENOSPC;
    memcpy(buf, &net->address, sizeof net->address);
    *len = sizeof net->address;
    return 0;
}

static int sim_peer_add(struct net *net, const void *address, size_t len, struct seal *seal,
                        uint32_t *ret_peer)
{
    uint32_t a;

    (void)seal;

    if (len != sizeof a)
        return -EINVAL;
    memcpy(&a, address, sizeof a);
    for (uint32_t i = 0; i < PEERS_MAX; i++) {
        if (net->peers[i].address == 0) {
            net->peers[i] = (struct peer){
                .address = a,
                .ready_ns = net->nw->now_ns + rand_below(&net->nw->rand, CONNECT_MAX_NS),
            };
            *ret_peer = i;
            return 0;
        }
    }
    return -ENOSPC;
}

static void sim_peer_remove(struct net *net, uint32_t peer)
{
    net->peers[peer].address = 0;
    /* What is stuck comes back after a while. */
    list_foreach(it, &net->nw->wire) {
        struct packet *p = list_entry(it, struct packet, node);
        if (p->from == net->address && p->peer == peer)
            p->due_ns = net->nw->now_ns + rand_below(&net->nw->rand, 100000000);
    }
}

static int sim_send(struct net *net, uint32_t peer, uint32_t block, uint32_t len)
{
    struct sim_network *nw = net->nw;
    const void *data = arena_at(net->arena, block);
    struct peer *to = &net->peers[peer];

    assert(to->address != 0 && len <= net->max_bytes);
    if (nw->faults.datagram) {
        if (chance(nw, nw->faults.drop))
            return NET_E_DONE;
        struct packet *p = put_on_wire(nw, net->address, to->address, data, len);
        p->peer = peer;
        if (chance(nw, nw->faults.reorder))
            p->due_ns += rand_below(&nw->rand, 2000000);
        if (chance(nw, nw->faults.duplicate)) {
            struct packet *twin = put_on_wire(nw, net->address, to->address, data, len);
            twin->peer = peer;
            twin->due_ns += rand_below(&nw->rand, 5000000);
        }
        return NET_E_DONE;
    }
    if (nw->now_ns < to->ready_ns || to->n_wire >= STREAM_QUEUE)
        return -EAGAIN;
    struct packet *p = put_on_wire(nw, net->address, to->address, data, len);
    p->peer = peer;
    to->n_wire++;
    if (len <= INLINE_BYTES)
        return NET_E_DONE;
    p->block = block;
    return 0;
}

static int sim_post(struct net *net, uint32_t block)
{
    if (net->n_posts == POSTS_MAX)
        return -EAGAIN;
    net->posts[net->n_posts++] = block;
    return 0;
}

static int sim_poll(struct net *net, struct net_event *events, int max)
{
    int n = 0;

    while (n < max && net->ev_head != net->ev_tail)
        events[n++] = net->events[net->ev_head++ % EVENTS_MAX];
    return n;
}

const struct net_driver net_sim = {
    .name = "sim",
    .open = sim_open,
    .close = sim_close,
    .info = sim_info,
    .address = sim_address,
    .peer_add = sim_peer_add,
    .peer_remove = sim_peer_remove,
    .send = sim_send,
    .post = sim_post,
    .poll = sim_poll,
};
