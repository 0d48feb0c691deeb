/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/net/net_none.h"

#include <errno.h>
#include <stdlib.h>

struct net {
    uint32_t max_bytes;
};

static int none_open(const struct net_config *config, const struct arena *arena,
                     struct net **ret_net)
{
    struct net *net = malloc(sizeof *net);

    (void)arena;
    if (!net)
        return -ENOMEM;
    net->max_bytes = config->max_bytes;
    *ret_net = net;
    return 0;
}

static void none_close(struct net *net)
{
    free(net);
}

static void none_info(const struct net *net, struct net_info *ret_info)
{
    *ret_info = (struct net_info){
        .caps = NET_CAP_WAIT,
        .max_datagram = net->max_bytes,
        .driver = "none",
        .provider = "none",
    };
}

static int none_address(struct net *net, void *buf, size_t *len)
{
    (void)net, (void)buf;
    *len = 0;
    return 0;
}

static int none_peer_add(struct net *net, const void *address, size_t len, struct seal *seal,
                         uint32_t *ret_peer)
{
    (void)net, (void)address, (void)len, (void)seal, (void)ret_peer;
    return -ENETUNREACH;
}

static void none_peer_remove(struct net *net, uint32_t peer)
{
    (void)net, (void)peer;
}

static int none_send(struct net *net, uint32_t peer, uint32_t block, uint32_t len)
{
    (void)net, (void)peer, (void)block, (void)len;
    return -ENETUNREACH;
}

static int none_post(struct net *net, uint32_t block)
{
    (void)net, (void)block;
    return -EAGAIN;
}

static int none_poll(struct net *net, struct net_event *events, int max)
{
    (void)net, (void)events, (void)max;
    return 0;
}

static int none_wait_fd(struct net *net)
{
    (void)net;
    return -1; /* nothing will come */
}

static int none_wait_ready(struct net *net)
{
    (void)net;
    return 0;
}

const struct net_driver net_none = {
    .name = "none",
    .open = none_open,
    .close = none_close,
    .info = none_info,
    .address = none_address,
    .peer_add = none_peer_add,
    .peer_remove = none_peer_remove,
    .send = none_send,
    .post = none_post,
    .poll = none_poll,
    .wait_fd = none_wait_fd,
    .wait_ready = none_wait_ready,
};
