/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/net/net_frag.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/log.h"
#include "daemon/net/block.h"

/* In front of every fragment, behind its seal's mark, which covers it. Little endian; set by the
 * sender, checked by the receiver. */
struct frag_header {
    uint32_t magic;  /* FRAG_MAGIC */
    uint32_t sender; /* drawn by the sending endpoint when it opened */
    uint64_t number; /* of the packet; the same in all its fragments */
    uint32_t total;  /* bytes of the packet */
    uint32_t offset; /* of this fragment in the packet */
    uint16_t idx;    /* of this fragment */
    uint16_t n;      /* fragments of the packet, at most FRAG_MAX */
    uint32_t reserved;
};
static_assert(sizeof(struct frag_header) == 32, "fragment header");

struct frag_front {
    struct seal_mark mark; /* SEAL_NONE: the id says whose datagram it is, the rest is 0 */
    struct frag_header header;
};
static_assert(sizeof(struct frag_front) == 56, "in front of a fragment");

#define FRAG_MAGIC    0x4d4f5446u /* "MOTF" */
#define FRAG_MAX      64u
#define FRAG_SENDS    1024u
#define FRAG_RECEIVES 2048u
#define PARTIALS      128u
#define POSTS         1024u
#define EARLY         16u
/* Inner events fetched in one poll: a packet of 16 KiB is a dozen fragments. */
#define POLL_MAX 256

struct partial {
    uint32_t sender, total;
    uint64_t number;
    uint32_t block; /* BLOCK_NONE: place not in use */
    uint16_t n;
    uint64_t seen;  /* bit per fragment */
    uint64_t stamp; /* when begun, counted in packets */
};

struct net {
    const struct net_driver *driver;
    struct net *inner;
    const struct arena *arena;
    struct arena frags;
    struct net_info inner_info;
    uint32_t max_bytes, chunk;
    uint32_t sender;
    uint64_t number;
    struct seal **peers; /* by peer */
    uint32_t n_peers;
    struct seal *seals; /* by the id of what they send */
    struct net_guard guard;
    /* Ids that nobody had when they came, and how often: a peer may know us before we know it. */
    struct frag_early {
        uint64_t id;
        uint64_t n;
    } early[EARLY];
    uint32_t next_early;
    uint32_t free[FRAG_SENDS], n_free;
    /* A packet whose fragments did not all go at once. */
    bool sending;
    uint32_t send_peer, send_block, send_len, send_off;
    uint32_t posts[POSTS], n_posts;
    struct partial partials[PARTIALS];
    uint64_t stamp;
};

static void frag_close(struct net *net)
{
    if (!net)
        return;
    if (net->inner)
        net->driver->close(net->inner);
    arena_deinit(&net->frags);
    for (uint32_t i = 0; i < net->n_peers; i++)
        if (net->peers[i])
            seal_remove(&net->seals, net->peers[i]);
    free(net->peers);
    free(net);
}

int net_frag_open(const struct net_driver *inner, const struct net_config *config,
                  const struct arena *arena, struct net **ret_net)
{
    struct net *net = calloc(1, sizeof *net);

    if (!net)
        return -ENOMEM;
    net->driver = inner;
    net->arena = arena;
    net->max_bytes = config->max_bytes;
    for (uint32_t i = 0; i < PARTIALS; i++)
        net->partials[i].block = BLOCK_NONE;

    /* The size of a datagram is known only from an open endpoint; fragments are never larger than
     * packets. */
    const uint32_t max_fragment = config->max_bytes + (uint32_t)sizeof(struct frag_front);
    int rc = arena_init(&net->frags, FRAG_SENDS + FRAG_RECEIVES, max_fragment);
    if (rc < 0)
        goto fail;
    struct net_config nc = *config;
    nc.first_block = 0;
    nc.n_blocks = FRAG_SENDS + FRAG_RECEIVES;
    nc.max_bytes = max_fragment;
    rc = inner->open(&nc, &net->frags, &net->inner);
    if (rc < 0)
        goto fail;
    inner->info(net->inner, &net->inner_info);
    uint32_t max = net->inner_info.max_datagram;
    if (max <= sizeof(struct frag_front)) {
        rc = -EMSGSIZE;
        goto fail;
    }
    net->chunk = max - (uint32_t)sizeof(struct frag_front);
    if ((config->max_bytes + net->chunk - 1) / net->chunk > FRAG_MAX) {
        log_error("packets of %u bytes do not fit %u datagrams of %u bytes", config->max_bytes,
                  FRAG_MAX, max);
        rc = -EMSGSIZE;
        goto fail;
    }
    if (getrandom(&net->sender, sizeof net->sender, 0) != (ssize_t)sizeof net->sender)
        net->sender = (uint32_t)(uintptr_t)net;
    for (uint32_t i = 0; i < FRAG_SENDS; i++)
        net->free[net->n_free++] = i;
    for (uint32_t i = 0; i < FRAG_RECEIVES && i < net->inner_info.n_receives; i++)
        if (inner->post(net->inner, FRAG_SENDS + i) < 0)
            break;
    *ret_net = net;
    return 0;

fail:
    frag_close(net);
    return rc;
}

static void frag_info(const struct net *net, struct net_info *ret_info)
{
    *ret_info = net->inner_info;
    ret_info->max_datagram = net->max_bytes;
    ret_info->n_receives = POSTS;
    ret_info->caps |= NET_CAP_SEALS;
}

static int frag_address(struct net *net, void *buf, size_t *len)
{
    return net->driver->address(net->inner, buf, len);
}

/* A datagram under an id that nobody has. */
static void frag_note_early(struct net *net, uint64_t id)
{
    net->guard.forged++;
    for (uint32_t i = 0; i < EARLY; i++)
        if (net->early[i].id == id) {
            net->early[i].n++;
            return;
        }
    net->early[net->next_early++ % EARLY] = (struct frag_early){.id = id, .n = 1};
}

/* What came under this id was no stranger's. */
static void frag_take_early(struct net *net, uint64_t id)
{
    for (uint32_t i = 0; i < EARLY; i++)
        if (net->early[i].id == id) {
            net->guard.forged -= net->early[i].n;
            net->early[i] = (struct frag_early){0};
        }
}

static int frag_peer_add(struct net *net, const void *address, size_t len, struct seal *seal,
                         uint32_t *ret_peer)
{
    uint32_t peer;
    int rc = net->driver->peer_add(net->inner, address, len, seal, &peer);

    if (rc < 0)
        return rc;
    if (peer >= net->n_peers) {
        struct seal **peers = realloc(net->peers, (peer + 1) * sizeof *peers);
        if (!peers) {
            net->driver->peer_remove(net->inner, peer);
            return -ENOMEM;
        }
        memset(peers + net->n_peers, 0, (peer + 1 - net->n_peers) * sizeof *peers);
        net->peers = peers;
        net->n_peers = peer + 1;
    }
    net->peers[peer] = seal;
    seal_add(&net->seals, seal);
    frag_take_early(net, htole64(seal->in_id));
    *ret_peer = peer;
    return 0;
}

static void frag_peer_remove(struct net *net, uint32_t peer)
{
    /* The rest of a packet to this peer has nowhere to go: it counts as lost on the way. */
    if (net->sending && net->send_peer == peer)
        net->send_off = net->send_len;
    if (net->peers[peer])
        seal_remove(&net->seals, net->peers[peer]);
    net->peers[peer] = NULL;
    net->driver->peer_remove(net->inner, peer);
}

/* Sends fragments of the current packet as long as they go. True when all are gone. */
static bool frag_send_more(struct net *net)
{
    const uint8_t *packet = arena_at(net->arena, net->send_block);
    uint16_t n = (uint16_t)((net->send_len + net->chunk - 1) / net->chunk);

    while (net->send_off < net->send_len) {
        if (net->n_free == 0)
            return false;
        uint32_t frag = net->free[net->n_free - 1];
        uint32_t bytes =
            net->send_len - net->send_off < net->chunk ? net->send_len - net->send_off : net->chunk;
        struct frag_front *front = arena_at(&net->frags, frag);
        front->header = (struct frag_header){
            .magic = FRAG_MAGIC,
            .sender = net->sender,
            .number = net->number,
            .total = net->send_len,
            .offset = net->send_off,
            .idx = (uint16_t)(net->send_off / net->chunk),
            .n = n,
        };
        seal_wrap(net->peers[net->send_peer], &front->mark, &front->header, sizeof front->header,
                  packet + net->send_off, bytes, front + 1);
        int rc =
            net->driver->send(net->inner, net->send_peer, frag, (uint32_t)sizeof *front + bytes);
        if (rc == -EAGAIN)
            return false;
        if (rc == 0)
            net->n_free--;
        /* An error loses this fragment, and with it the packet: the flow's business. */
        net->send_off += bytes;
    }
    return true;
}

static int frag_send(struct net *net, uint32_t peer, uint32_t block, uint32_t len)
{
    if (net->sending)
        return -EAGAIN;
    net->send_peer = peer;
    net->send_block = block;
    net->send_len = len;
    net->send_off = 0;
    net->number++;
    if (frag_send_more(net))
        return NET_E_DONE;
    if (net->send_off == 0)
        return -EAGAIN;
    net->sending = true;
    return 0;
}

static int frag_post(struct net *net, uint32_t block)
{
    if (net->n_posts == POSTS)
        return -EAGAIN;
    net->posts[net->n_posts++] = block;
    return 0;
}

/* The partial packet this fragment belongs to; begins one, at the cost of the oldest if need be. */
static struct partial *frag_partial_of(struct net *net, const struct frag_header *h)
{
    struct partial *unused = NULL, *oldest = NULL;

    for (uint32_t i = 0; i < PARTIALS; i++) {
        struct partial *p = &net->partials[i];
        if (p->block == BLOCK_NONE) {
            unused = p;
            continue;
        }
        if (p->number == h->number && p->sender == h->sender)
            return p->total == h->total && p->n == h->n ? p : NULL;
        if (!oldest || p->stamp < oldest->stamp)
            oldest = p;
    }
    if (oldest && (!unused || net->n_posts == 0)) {
        net->posts[net->n_posts++] = oldest->block;
        oldest->block = BLOCK_NONE;
        unused = oldest;
    }
    if (!unused || net->n_posts == 0)
        return NULL;
    *unused = (struct partial){.sender = h->sender,
                               .number = h->number,
                               .total = h->total,
                               .n = h->n,
                               .block = net->posts[--net->n_posts],
                               .stamp = net->stamp++};
    return unused;
}

/* Takes in a fragment. True if it completes a packet. */
static bool frag_receive(struct net *net, uint32_t frag, uint32_t len, struct net_event *ret_event)
{
    uint8_t *data = (uint8_t *)arena_at(&net->frags, frag) + sizeof(struct frag_front);
    struct frag_front front;

    if (len < sizeof front)
        return false;
    memcpy(&front, data - sizeof front, sizeof front);
    const struct frag_header h = front.header;
    uint32_t bytes = len - (uint32_t)sizeof front;
    /* Nothing of it is believed before. */
    struct seal *seal = seal_find(net->seals, front.mark.id);
    if (!seal) {
        frag_note_early(net, front.mark.id);
        return false;
    }
    int why = seal_unwrap(seal, &front.mark, &front.header, sizeof front.header, data, bytes, data);
    if (why != 0) {
        net->guard.forged += why == SEAL_E_CODE;
        net->guard.replayed += why == SEAL_E_OLD;
        return false;
    }
    if (h.magic != FRAG_MAGIC || h.total > net->max_bytes || h.n == 0 || h.n > FRAG_MAX ||
        h.idx >= h.n || bytes == 0 || h.offset > h.total || bytes > h.total - h.offset)
        return false;
    struct partial *p = frag_partial_of(net, &h);
    if (!p || (p->seen >> h.idx & 1))
        return false;
    p->seen |= 1ull << h.idx;
    memcpy((uint8_t *)arena_at(net->arena, p->block) + h.offset, data, bytes);
    if (p->seen != (p->n == 64 ? UINT64_MAX : (1ull << p->n) - 1))
        return false;
    *ret_event = (struct net_event){.kind = NET_RECEIVED, .block = p->block, .len = p->total};
    p->block = BLOCK_NONE;
    return true;
}

static int frag_poll(struct net *net, struct net_event *events, int max)
{
    struct net_event got[POLL_MAX];
    int n_out = 0;

    if (net->sending && max > 1 && frag_send_more(net)) {
        net->sending = false;
        events[n_out++] =
            (struct net_event){.kind = NET_SENT, .block = net->send_block, .peer = net->send_peer};
    }
    /* Each inner event makes at most one of ours. */
    int n = net->driver->poll(net->inner, got, max - n_out < POLL_MAX ? max - n_out : POLL_MAX);
    if (n < 0)
        return n;
    for (int i = 0; i < n; i++) {
        switch ((enum net_event_kind)got[i].kind) {
        case NET_RECEIVED:
            if (frag_receive(net, got[i].block, got[i].len, &events[n_out]))
                n_out++;
            net->driver->post(net->inner, got[i].block);
            break;
        case NET_SENT:
        case NET_FAILED:
            net->free[net->n_free++] = got[i].block;
            break;
        case NET_PEER_DOWN:
            events[n_out++] = got[i];
            break;
        }
    }
    return n_out;
}

static void frag_guard(const struct net *net, struct net_guard *ret_guard)
{
    *ret_guard = net->guard;
}

static int frag_wait_fd(struct net *net)
{
    return net->driver->wait_fd(net->inner);
}

static int frag_wait_ready(struct net *net)
{
    return net->sending ? -EAGAIN : net->driver->wait_ready(net->inner);
}

const struct net_driver net_frag = {
    .name = "frag",
    .close = frag_close,
    .info = frag_info,
    .address = frag_address,
    .peer_add = frag_peer_add,
    .peer_remove = frag_peer_remove,
    .send = frag_send,
    .post = frag_post,
    .poll = frag_poll,
    .guard = frag_guard,
    .wait_fd = frag_wait_fd,
    .wait_ready = frag_wait_ready,
};
