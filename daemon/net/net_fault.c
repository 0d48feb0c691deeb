/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/net/net_fault.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rand.h"
#include "daemon/net/block.h"
#include "daemon/net/net_udp.h"

#define QUEUE_MAX 256u

struct waiting {
    uint64_t due_ns;
    struct net_event event;
};

struct net {
    const struct net_driver *driver;
    struct net *inner;
    const struct arena *arena;
    struct rand rand;
    uint64_t drop, duplicate, reorder; /* in 2^-32 */
    uint64_t delay_ns;
    bool lossy;                      /* the driver below knows `lose` */
    struct waiting queue[QUEUE_MAX]; /* received, to be passed on later */
    uint32_t n_queue;
    uint32_t spares[8]; /* blocks posted to us that the inner driver did not get: for doubles */
    uint32_t n_spares;
};

static bool fault_chance(struct net *net, uint64_t p)
{
    return p != 0 && (rand_next(&net->rand) >> 32) < p;
}

static int fault_parse(struct net *net, const char *options)
{
    char text[256];
    char *rest = text, *item;

    snprintf(text, sizeof text, "%s", options);
    while ((item = strsep(&rest, ",")) != NULL) {
        char *value = strchr(item, '=');
        char *end;
        if (!value)
            return -EINVAL;
        *value++ = 0;
        double v = strtod(value, &end);
        if (end == value || *end || v < 0)
            return -EINVAL;
        uint64_t *p = strcmp(item, "drop") == 0        ? &net->drop
                      : strcmp(item, "duplicate") == 0 ? &net->duplicate
                      : strcmp(item, "reorder") == 0   ? &net->reorder
                                                       : NULL;
        if (p && v <= 1)
            *p = (uint64_t)(v * 4294967296.0);
        else if (strcmp(item, "delay_us") == 0)
            net->delay_ns = (uint64_t)(v * 1000);
        else if (strcmp(item, "lose") == 0 && v <= 1 && net->lossy)
            continue; /* net_udp does it, to datagrams */
        else if (strcmp(item, "seed") == 0)
            net->rand.state = (uint64_t)v;
        else
            return -EINVAL;
    }
    return 0;
}

static void fault_close(struct net *net)
{
    if (!net)
        return;
    net->driver->close(net->inner);
    free(net);
}

static void fault_info(const struct net *net, struct net_info *ret_info)
{
    net->driver->info(net->inner, ret_info);
    /* What waits here is not announced by the inner descriptor. */
    ret_info->caps &= ~(uint32_t)NET_CAP_WAIT;
}

static int fault_address(struct net *net, void *buf, size_t *len)
{
    return net->driver->address(net->inner, buf, len);
}

static void fault_guard(const struct net *net, struct net_guard *ret_guard)
{
    *ret_guard = (struct net_guard){0};
    if (net->driver->guard)
        net->driver->guard(net->inner, ret_guard);
}

static int fault_peer_add(struct net *net, const void *address, size_t len, struct seal *seal,
                          uint32_t *ret_peer)
{
    return net->driver->peer_add(net->inner, address, len, seal, ret_peer);
}

static void fault_peer_remove(struct net *net, uint32_t peer)
{
    net->driver->peer_remove(net->inner, peer);
}

static int fault_send(struct net *net, uint32_t peer, uint32_t block, uint32_t len)
{
    return net->driver->send(net->inner, peer, block, len);
}

static uint32_t fault_moving(struct net *net, uint32_t peer)
{
    return net->driver->moving ? net->driver->moving(net->inner, peer) : 0;
}

static void fault_path(const struct net *net, uint32_t peer, struct net_path *ret_path)
{
    *ret_path = (struct net_path){0};
    if (net->driver->path)
        net->driver->path(net->inner, peer, ret_path);
}

static int fault_post(struct net *net, uint32_t block)
{
    if (net->duplicate && net->n_spares < sizeof net->spares / sizeof *net->spares) {
        net->spares[net->n_spares++] = block;
        return 0;
    }
    return net->driver->post(net->inner, block);
}

static void fault_enqueue(struct net *net, const struct net_event *event, uint64_t due_ns)
{
    net->queue[net->n_queue++] = (struct waiting){.due_ns = due_ns, .event = *event};
}

/* A received packet: loses it (true), or puts it into the queue. */
static void fault_receive(struct net *net, const struct net_event *event, uint64_t now_ns)
{
    if (fault_chance(net, net->drop) || net->n_queue + 2 > QUEUE_MAX) {
        if (net->driver->post(net->inner, event->block) == 0 ||
            net->n_spares == sizeof net->spares / sizeof *net->spares)
            return;
        net->spares[net->n_spares++] = event->block;
        return;
    }
    /* A packet that is overtaken waits about as long as a few others take. */
    uint64_t extra =
        fault_chance(net, net->reorder) ? rand_below(&net->rand, 200 * CLOCK_NS_PER_US) : 0;
    fault_enqueue(net, event, now_ns + net->delay_ns + extra);
    if (net->n_spares > 0 && fault_chance(net, net->duplicate)) {
        struct net_event twin = *event;
        twin.block = net->spares[--net->n_spares];
        memcpy(arena_at(net->arena, twin.block), arena_at(net->arena, event->block), event->len);
        fault_enqueue(net, &twin,
                      now_ns + net->delay_ns + rand_below(&net->rand, 100 * CLOCK_NS_PER_US));
    }
}

static int fault_poll(struct net *net, struct net_event *events, int max)
{
    struct net_event got[32];
    uint64_t now_ns = clock_now_ns();
    int n_out = 0;

    int n = net->driver->poll(net->inner, got, max < 32 ? max : 32);
    if (n < 0)
        return n;
    for (int i = 0; i < n; i++) {
        if (got[i].kind == NET_RECEIVED)
            fault_receive(net, &got[i], now_ns);
        else
            events[n_out++] = got[i];
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < net->n_queue; i++) {
        if (n_out < max && net->queue[i].due_ns <= now_ns)
            events[n_out++] = net->queue[i].event;
        else
            net->queue[kept++] = net->queue[i];
    }
    net->n_queue = kept;
    return n_out;
}

static const struct net_driver net_fault = {
    .name = "fault",
    .close = fault_close,
    .info = fault_info,
    .address = fault_address,
    .peer_add = fault_peer_add,
    .peer_remove = fault_peer_remove,
    .send = fault_send,
    .moving = fault_moving,
    .path = fault_path,
    .post = fault_post,
    .poll = fault_poll,
    .guard = fault_guard,
};

int net_fault_wrap(const struct net_driver **driver, struct net **net, const char *options,
                   const struct arena *arena)
{
    struct net *fault = calloc(1, sizeof *fault);

    if (!fault)
        return -ENOMEM;
    fault->rand.state = 1;
    fault->lossy = *driver == &net_udp;
    int rc = fault_parse(fault, options);
    if (rc < 0) {
        log_error("fault options not understood: \"%s\"", options);
        free(fault);
        return rc;
    }
    if (!fault->drop && !fault->duplicate && !fault->reorder && !fault->delay_ns) {
        /* What the driver below does itself costs nobody anything. */
        free(fault);
        return 0;
    }
    fault->driver = *driver;
    fault->inner = *net;
    fault->arena = arena;
    *driver = &net_fault;
    *net = fault;
    return 0;
}
