/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/net/tcp/tcp_peer.h"

#include "base/clock.h"

#define BACKOFF_MIN_MS 10u
#define BACKOFF_MAX_MS 1000u

void tcp_peer_done(struct net *net, uint32_t block, int error)
{
    struct tcp_slot *s = &net->slots[block];

    s->error = error;
    s->next = BLOCK_NONE;
    if (net->n_done++ == 0)
        net->done_head = block;
    else
        net->slots[net->done_tail].next = block;
    net->done_tail = block;
}

/* The peer is without a connection: when it may have one again. */
void tcp_peer_await(struct net *net, struct tcp_peer *p, uint64_t after_ns)
{
    p->conn = NULL;
    p->retry_ns = clock_coarse_ns() + after_ns;
    if (p->retry_ns < net->connect_ns)
        net->connect_ns = p->retry_ns;
    if (!p->waiting) {
        p->waiting = true;
        net->n_waiting++;
    }
}

void tcp_peer_fail_queue(struct net *net, struct tcp_peer *p, int error)
{
    while (p->n_queued > 0) {
        uint32_t block = p->head;
        p->head = net->slots[block].next;
        p->n_queued--;
        tcp_peer_done(net, block, error);
    }
    p->head_off = 0;
    list_remove(&p->dirty);
}

void tcp_peer_down(struct net *net, struct tcp_peer *p, int error)
{
    if (p->down == 0)
        net->n_down++;
    p->down = error;
    p->backoff_ms = p->backoff_ms == 0                   ? BACKOFF_MIN_MS
                    : p->backoff_ms * 2 > BACKOFF_MAX_MS ? BACKOFF_MAX_MS
                                                         : p->backoff_ms * 2;
    tcp_peer_await(net, p, p->backoff_ms * CLOCK_NS_PER_MS);
}

void tcp_peer_use(struct net *net, struct tcp_peer *p, struct tcp_conn *c)
{
    p->conn = c;
    if (p->waiting) {
        p->waiting = false;
        net->n_waiting--;
    }
}

void tcp_peer_report(struct net *net, struct tcp_events *events)
{
    while (net->n_done > 0 && events->n < events->max) {
        uint32_t block = net->done_head;
        const struct tcp_slot *s = &net->slots[block];
        net->done_head = s->next;
        net->n_done--;
        events->at[events->n++] = (struct net_event){.kind = s->error == 0 ? NET_SENT : NET_FAILED,
                                                     .block = block,
                                                     .peer = s->peer,
                                                     .error = s->error};
    }
    for (uint32_t i = 0; net->n_down > 0 && i < net->n_peers && events->n < events->max; i++) {
        struct tcp_peer *p = &net->peers[i];
        if (p->down == 0)
            continue;
        events->at[events->n++] =
            (struct net_event){.kind = NET_PEER_DOWN, .peer = i / WIRE_CLASSES, .error = p->down};
        p->down = 0;
        net->n_down--;
    }
}
