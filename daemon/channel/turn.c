/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/channel/turn.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/log.h"

#define EVENTS_PER_TURN 64
#define TX_PER_TURN     64u
#define GIVEN_PER_TURN  64u
#define CMDS_PER_TURN   16u
#define SLOW_NS         (50 * CLOCK_NS_PER_MS)

static void turn_lose_net(struct turn *t, int error)
{
    log_error("channel %s: endpoint lost: %s", t->port.name, strerror(-error));
    t->port.net_lost = true;
    struct cmd_event event = {.type = EVENT_FAILED, .error = error};
    port_event(&t->port, &event);
}

static uint32_t turn_net(struct turn *t)
{
    struct net_event events[EVENTS_PER_TURN];

    if (t->port.net_lost)
        return 0;
    t->links.n_household = 0;
    int n = t->port.driver->poll(t->port.net, events, EVENTS_PER_TURN);
    if (n < 0) {
        turn_lose_net(t, n);
        return 1;
    }
    for (int i = 0; i < n; i++) {
        const struct net_event *e = &events[i];
        switch ((enum net_event_kind)e->kind) {
        case NET_RECEIVED:
            assert(t->port.n_posted > 0);
            t->port.n_posted--;
            rx_packet(&t->rx, e->block, e->len);
            break;
        case NET_SENT:
            link_on_sent(&t->links, e->block, 0);
            break;
        case NET_FAILED:
            link_on_sent(&t->links, e->block, e->error ? e->error : -EIO);
            break;
        case NET_PEER_DOWN:
            link_on_peer_down(&t->links, e->peer, e->error);
            break;
        }
    }
    port_post_receives(&t->port);
    return (uint32_t)n - t->links.n_household;
}

static uint32_t turn_take_given(struct turn *t, struct handover *give)
{
    uint32_t value, n = 0;

    for (; n < GIVEN_PER_TURN && handover_pop(give, &value); n++) {
        if (value & HANDOVER_BIT)
            rx_given(&t->rx, value & HANDOVER_BLOCK_MASK);
        else
            relay_given(&t->relay, value & HANDOVER_BLOCK_MASK);
    }
    return n;
}

/* What other channels of the node gave, the quick ones first, and blocks that come home from them.
 */
static uint32_t turn_given(struct turn *t)
{
    struct port *port = &t->port;
    uint32_t value, n = 0;

    for (uint32_t from = 0; from < port->n_channels; from++) {
        if (from == port->idx)
            continue;
        struct handover *back = hub_back(port->hub, from, port->idx);
        for (; handover_pop(back, &value); n++)
            port_block_done(port, value & HANDOVER_BLOCK_MASK, value & HANDOVER_BIT ? -EIO : 0);
    }
    for (int cls = 0; cls < WIRE_CLASSES; cls++)
        for (uint32_t from = 0; from < port->n_channels; from++)
            if (from != port->idx)
                n += turn_take_given(t, hub_give(port->hub, from, port->idx, (enum wire_class)cls));
    return n;
}

static void turn_attach(struct turn *t, struct channel_job *job)
{
    if (!attach_job(&t->attach, job))
        return;
    int rc = watch_add(&t->watch, job->config.event_fd);
    if (rc < 0)
        log_warn("channel %s: cannot watch a job's bell: %s", t->port.name, strerror(-rc));
    link_probe_soon(&t->links);
}

static void turn_command(struct turn *t, const struct cmd *cmd)
{
    switch ((enum cmd_type)cmd->type) {
    case CMD_ADD_LINK:
        relay_add_link(&t->relay, &cmd->add_link);
        /* Packets may have waited for this way. */
        send_no_route(&t->sender);
        break;
    case CMD_REMOVE_LINK:
        relay_remove_link(&t->relay, cmd->remove_link.slot);
        break;
    case CMD_ATTACH_JOB:
        turn_attach(t, cmd->job);
        break;
    case CMD_DETACH_RANK:
        attach_detach_rank(&t->attach, cmd->detach_rank.job, cmd->detach_rank.local,
                           cmd->detach_rank.dead != 0);
        break;
    case CMD_DETACH_JOB:
        if (attach_detach_job(&t->attach, cmd->job))
            watch_remove(&t->watch, cmd->job->config.event_fd);
        break;
    case CMD_ADD_FOREIGN:
        attach_add_foreign(&t->attach, cmd->foreign);
        break;
    case CMD_REMOVE_FOREIGN:
        attach_remove_foreign(&t->attach, cmd->foreign);
        break;
    case CMD_SET_WAIT:
        t->wait_mode = cmd->wait_mode;
        break;
    case CMD_DRAIN:
        t->drain_until_ns = t->port.now_ns + cmd->timeout_ns;
        break;
    case CMD_STOP:
        t->stop = true;
        break;
    }
}

static uint32_t turn_commands(struct turn *t)
{
    struct cmd cmd;
    uint32_t n = 0;

    while (n < CMDS_PER_TURN && cmd_pop(&t->port.cmds, &cmd)) {
        turn_command(t, &cmd);
        n++;
    }
    return n;
}

static void turn_probes(struct turn *t)
{
    link_probes(&t->links, !list_empty(&t->jobs.all));
    if (t->links.mend)
        relay_mend(&t->relay);
    if (t->links.revived) {
        t->links.revived = false;
        send_no_route(&t->sender);
    }
}

static void turn_check_drained(struct turn *t)
{
    bool done = list_empty(&t->sender.active) && list_empty(&t->links.busy) &&
                list_empty(&t->delivery.waiting) && backlog_empty(&t->backlog) &&
                !tx_has_work(&t->tx);

    if (!done && t->port.now_ns < t->drain_until_ns)
        return;
    struct cmd_event event = {.type = EVENT_DRAINED, .value = done ? 0 : 1};
    if (port_event(&t->port, &event))
        t->drain_until_ns = 0;
}

/* What the driver refused. */
static void turn_guard(struct turn *t)
{
    struct net_guard guard;

    if (t->port.net_lost || !t->port.driver->guard)
        return;
    t->port.driver->guard(t->port.net, &guard);
    count_set(&t->port.count, COUNT_FORGED, guard.forged);
    count_set(&t->port.count, COUNT_REPLAYED, guard.replayed);
    count_set(&t->port.count, COUNT_STRANGERS, guard.strangers);
}

static void turn_slow(struct turn *t)
{
    struct count *count = &t->port.count;

    t->slow_ns = t->port.now_ns + SLOW_NS;
    send_no_route(&t->sender);
    backlog_age(&t->backlog);
    send_snapshot(&t->sender);
    turn_guard(t);
    count_set(count, COUNT_OUT_QUEUED, link_snapshot(&t->links));
    count_set(count, COUNT_BLOCKS_FREE, t->port.pool.n_free);
    count_set(count, COUNT_HELD_BYTES, (uint64_t)t->delivery.n_blocks * t->port.arena->stride);
    count_set(count, COUNT_FLOWS_ACTIVE, t->sender.n_active);
}

uint32_t turn_run(struct turn *t, uint64_t now_ns)
{
    uint32_t n = 0;

    t->port.now_ns = now_ns;
    count_add(&t->port.count, COUNT_TURNS, 1);
    /* acquire: pairs with the release of the control thread; the new ways are seen with it. */
    uint32_t generation = atomic_load_explicit(&t->port.hops->generation, memory_order_acquire);
    if (generation != t->generation) {
        t->generation = generation;
        send_on_routes(&t->sender);
    }
    /* The ranks first: to look at their rings costs a few loads, to look at the network system
     * calls. */
    n += tx_poll(&t->tx, TX_PER_TURN);
    send_pump(&t->sender);
    n += turn_net(t);
    if (t->port.n_channels > 1)
        n += turn_given(t);
    n += turn_commands(t);
    if (!list_empty(&t->delivery.waiting))
        n += delivery_poll(&t->delivery);
    if (now_ns >= t->sender.due_ns)
        send_timers(&t->sender);
    send_pump(&t->sender);
    n += ack_poll(&t->acks, false);
    if (!list_empty(&t->links.busy))
        n += link_flush(&t->links);
    if (now_ns >= t->links.probe_due_ns || t->links.revived)
        turn_probes(t);
    if (now_ns >= t->slow_ns)
        turn_slow(t);
    if (attach_owes(&t->attach))
        attach_answer(&t->attach);
    if (t->drain_until_ns != 0)
        turn_check_drained(t);
    return n;
}

uint64_t turn_next_ns(const struct turn *t)
{
    uint64_t due = t->sender.due_ns, ack_ns = ack_due(&t->acks);

    if (t->links.probe_due_ns < due)
        due = t->links.probe_due_ns;
    if (ack_ns < due)
        due = ack_ns;
    /* Ranks that drain their rings ring no bell, nor does a driver that can send again without
     * having said so. */
    if (!list_empty(&t->delivery.waiting) || !list_empty(&t->links.busy) ||
        send_has_work(&t->sender) || attach_owes(&t->attach) || t->drain_until_ns != 0 ||
        backlog_needs_time(&t->backlog)) {
        uint64_t soon = t->port.now_ns + CLOCK_NS_PER_MS;
        if (soon < due)
            due = soon;
    }
    if ((!list_empty(&t->sender.active) || !list_empty(&t->sender.shown)) && t->slow_ns < due)
        due = t->slow_ns;
    return due;
}

bool turn_has_work(const struct turn *t)
{
    const struct port *port = &t->port;

    if (cmd_pending(&port->cmds) || tx_has_work(&t->tx) || send_has_work(&t->sender) ||
        delivery_has_work(&t->delivery))
        return true;
    if (atomic_load_explicit(&port->hops->generation, memory_order_acquire) != t->generation)
        return true;
    for (uint32_t from = 0; from < port->n_channels; from++)
        if (from != port->idx &&
            (!handover_empty(hub_back(port->hub, from, port->idx)) ||
             !handover_empty(hub_give(port->hub, from, port->idx, WIRE_QUICK)) ||
             !handover_empty(hub_give(port->hub, from, port->idx, WIRE_BULK))))
            return true;
    return false;
}
