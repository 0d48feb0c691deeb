/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/net/net_skeleton.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/net/block.h"

#define ENDPOINTS 16u
#define PEERS     64u
#define POSTS     64u

struct skeleton_peer {
    uint32_t address; /* 0: free */
    bool down;        /* to be told */
};

/* An endpoint. The channel's thread is the only one that uses it, so nothing here is locked. */
struct net {
    const struct arena *arena;
    uint32_t address; /* of this endpoint; not 0 */
    uint32_t max_bytes;
    int event_fd;
    struct skeleton_peer peers[PEERS];
    uint32_t posts[POSTS], n_posts;  /* blocks to receive into */
    struct net_event arrived[POSTS]; /* not fetched yet; each of them used up a post */
    uint32_t n_arrived;
};

/* The "network": whoever has an address here can be reached. */
static struct net *skeleton_endpoints[ENDPOINTS];
static uint32_t skeleton_last_address;

static struct net *skeleton_at(uint32_t address)
{
    for (uint32_t i = 0; i < ENDPOINTS; i++)
        if (skeleton_endpoints[i] && skeleton_endpoints[i]->address == address)
            return skeleton_endpoints[i];
    return NULL;
}

/* Everything is allocated here; later calls run on the channel's thread. What the hardware wants to
 * know of the memory is registered here, too: arena->base, arena->n_bytes. */
static int skeleton_open(const struct net_config *config, const struct arena *arena,
                         struct net **ret_net)
{
    struct net *net = calloc(1, sizeof *net);
    uint32_t i = 0;

    if (!net)
        return -ENOMEM;
    while (i < ENDPOINTS && skeleton_endpoints[i])
        i++;
    net->event_fd = i < ENDPOINTS ? eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) : -1;
    if (net->event_fd < 0) {
        free(net);
        return -ENOSPC;
    }
    net->arena = arena;
    net->max_bytes = config->max_bytes;
    net->address = ++skeleton_last_address;
    skeleton_endpoints[i] = net;
    *ret_net = net;
    return 0;
}

/* Blocks that are posted or being sent are the caller's again without an event. */
static void skeleton_close(struct net *net)
{
    if (!net)
        return;
    for (uint32_t i = 0; i < ENDPOINTS; i++)
        if (skeleton_endpoints[i] == net)
            skeleton_endpoints[i] = NULL;
    close(net->event_fd);
    free(net);
}

/* `caps` tells the channel what it may rely on. A driver that takes less than max_bytes at once
 * says so in max_datagram, and net_frag comes around it. */
static void skeleton_info(const struct net *net, struct net_info *ret_info)
{
    *ret_info = (struct net_info){
        .caps = NET_CAP_WAIT,
        .max_datagram = net->max_bytes,
        .n_receives = POSTS,
        .driver = "skeleton",
        .provider = "skeleton",
    };
}

/* The address travels to the other nodes as it is. */
static int skeleton_address(struct net *net, void *buf, size_t *len)
{
    if (*len < sizeof net->address)
        return -ENOSPC;
    memcpy(buf, &net->address, sizeof net->address);
    *len = sizeof net->address;
    return 0;
}

/* An address comes from another node: check it. Connecting, where there is something to connect,
 * goes on in `poll`; nobody waits for it here. */
static int skeleton_peer_add(struct net *net, const void *address, size_t len, struct seal *seal,
                             uint32_t *ret_peer)
{
    uint32_t a;

    (void)seal;

    if (len != sizeof a)
        return -EINVAL;
    memcpy(&a, address, sizeof a);
    if (a == 0)
        return -EINVAL;
    for (uint32_t i = 0; i < PEERS; i++) {
        if (net->peers[i].address == 0) {
            net->peers[i] = (struct skeleton_peer){.address = a};
            *ret_peer = i;
            return 0;
        }
    }
    return -ENOSPC;
}

/* Were blocks being sent to it, each would come back as NET_FAILED from `poll`. */
static void skeleton_peer_remove(struct net *net, uint32_t peer)
{
    net->peers[peer] = (struct skeleton_peer){0};
}

/*
 * Three ways to answer. NET_E_DONE: the bytes are copied or gone, the block is the channel's at
 * once. 0: the driver keeps the block and reports NET_SENT or NET_FAILED for it, once. -EAGAIN: not
 * now, nothing has happened; the channel tries again, so this is how a full queue holds back what
 * comes behind. Any other error: not sent, and the channel tells control that the link is broken.
 */
static int skeleton_send(struct net *net, uint32_t peer, uint32_t block, uint32_t len)
{
    struct skeleton_peer *p = &net->peers[peer];
    struct net *to = skeleton_at(p->address);
    uint64_t one = 1;

    assert(p->address != 0 && len <= net->max_bytes);
    if (!to) {
        p->down = true;
        return -ECONNRESET;
    }
    if (to->n_posts == 0)
        return -EAGAIN;
    uint32_t place = to->posts[--to->n_posts];
    memcpy(arena_at(to->arena, place), arena_at(net->arena, block), len);
    assert(to->n_arrived < POSTS);
    to->arrived[to->n_arrived++] =
        (struct net_event){.kind = NET_RECEIVED, .block = place, .len = len};
    /* A full counter has been seen already. */
    if (write(to->event_fd, &one, sizeof one) < 0)
        assert(errno == EAGAIN);
    return NET_E_DONE;
}

/* The block is the driver's until it comes back as NET_RECEIVED. */
static int skeleton_post(struct net *net, uint32_t block)
{
    if (net->n_posts + net->n_arrived == POSTS)
        return -EAGAIN;
    net->posts[net->n_posts++] = block;
    return 0;
}

/* At most `max` events; the others wait for the next call. A negative number ends the endpoint. */
static int skeleton_poll(struct net *net, struct net_event *events, int max)
{
    int n = 0;

    for (uint32_t i = 0; i < PEERS && n < max; i++) {
        if (!net->peers[i].down)
            continue;
        net->peers[i].down = false;
        events[n++] = (struct net_event){.kind = NET_PEER_DOWN, .peer = i, .error = -ECONNRESET};
    }
    uint32_t fetched = 0;
    while (fetched < net->n_arrived && n < max)
        events[n++] = net->arrived[fetched++];
    net->n_arrived -= fetched;
    memmove(net->arrived, net->arrived + fetched, net->n_arrived * sizeof *net->arrived);
    return n;
}

static int skeleton_wait_fd(struct net *net)
{
    return net->event_fd;
}

/* Between this and the sleep nothing may be missed: what arrives later makes the descriptor
 * readable. */
static int skeleton_wait_ready(struct net *net)
{
    uint64_t count;

    if (net->n_arrived > 0)
        return -EAGAIN;
    if (read(net->event_fd, &count, sizeof count) < 0)
        assert(errno == EAGAIN);
    return 0;
}

const struct net_driver net_skeleton = {
    .name = "skeleton",
    .open = skeleton_open,
    .close = skeleton_close,
    .info = skeleton_info,
    .address = skeleton_address,
    .peer_add = skeleton_peer_add,
    .peer_remove = skeleton_peer_remove,
    .send = skeleton_send,
    .post = skeleton_post,
    .poll = skeleton_poll,
    .wait_fd = skeleton_wait_fd,
    .wait_ready = skeleton_wait_ready,
};
