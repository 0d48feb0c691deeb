/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/channel/channel.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/channel/loop.h"

struct channel {
    struct turn turn;
    struct loop loop;
};

static void channel_set_defaults(struct channel_config *c, uint32_t n_blocks)
{
#define DEFAULT(field, value)                                                                      \
    if (c->field == 0)                                                                             \
    c->field = (value)
    DEFAULT(spin_ns, 200 * CLOCK_NS_PER_US);
    DEFAULT(ack_delay_ns, 500 * CLOCK_NS_PER_US);
    DEFAULT(rto_min_ns, 20 * CLOCK_NS_PER_MS);
    DEFAULT(rto_max_ns, CLOCK_NS_PER_S);
    DEFAULT(unreachable_after_ns, 10 * CLOCK_NS_PER_S);
    DEFAULT(stall_ns, 10 * CLOCK_NS_PER_S);
    DEFAULT(probe_ns, CLOCK_NS_PER_S);
    DEFAULT(window_max, FLOW_WINDOW);
    DEFAULT(relay_limit, 512);
    DEFAULT(n_receives, n_blocks / 4);
#undef DEFAULT
    if (c->window_max > FLOW_WINDOW)
        c->window_max = FLOW_WINDOW;
    if (c->n_receives > n_blocks / 4)
        c->n_receives = n_blocks / 4;
}

static int channel_init(struct channel *ch, struct hub *hub, const struct channel_config *config)
{
    struct turn *t = &ch->turn;
    uint32_t n_blocks = hub->blocks_per_channel;
    struct port_config pc = {
        .idx = config->idx,
        .name = config->name,
        .driver = config->driver,
        .net = config->net,
        .fault = config->fault,
        .n_receives = config->n_receives,
    };
    struct send_config sc = {
        .limits = {.rto_min_ns = config->rto_min_ns,
                   .rto_max_ns = config->rto_max_ns,
                   .window_max = config->window_max},
        .unreachable_after_ns = config->unreachable_after_ns,
    };

    int rc = port_open(&t->port, hub, &pc);
    if (rc < 0)
        return rc;
    rc = link_init(&t->links, &t->port, config->probe_ns);
    if (rc < 0)
        return rc;
    t->relay = (struct relay){.links = &t->links, .queue_max = config->relay_limit};
    job_table_init(&t->jobs);
    rc = ack_init(&t->acks, &t->links, config->ack_delay_ns);
    if (rc < 0)
        return rc;
    delivery_init(&t->delivery, &t->acks, &t->jobs, n_blocks / 4, config->stall_ns);
    sc.limits.window_initial = t->port.info.caps & NET_CAP_DATAGRAM ? 8 : 32;
    rc = send_init(&t->sender, &t->links, &t->jobs, &sc);
    if (rc < 0)
        return rc;
    backlog_init(&t->backlog, &t->sender, n_blocks / 4);
    tx_init(&t->tx, &t->backlog, &t->delivery);
    t->rx = (struct rx){.port = &t->port,
                        .links = &t->links,
                        .relay = &t->relay,
                        .jobs = &t->jobs,
                        .acks = &t->acks,
                        .delivery = &t->delivery,
                        .backlog = &t->backlog};
    attach_init(&t->attach, &t->tx, &t->jobs);
    t->wait_mode = (uint32_t)config->wait_mode;
    loop_init(&ch->loop, t, config->spin_ns);
    rc = watch_open(&t->watch);
    return rc < 0 ? rc : watch_add(&t->watch, hub->wake[config->idx].event_fd);
}

int channel_new(struct hub *hub, const struct channel_config *config, struct channel **ret_channel)
{
    struct channel_config c = *config;

    if (config->idx >= hub->config.n_channels)
        return -EINVAL;
    struct channel *ch = aligned_alloc(_Alignof(struct channel), sizeof *ch);
    if (!ch)
        return -ENOMEM;
    memset(ch, 0, sizeof *ch);
    ch->turn.watch.epoll_fd = -1;
    channel_set_defaults(&c, hub->blocks_per_channel);
    int rc = channel_init(ch, hub, &c);
    if (rc < 0) {
        channel_free(ch);
        return rc;
    }
    *ret_channel = ch;
    return 0;
}

void channel_free(struct channel *ch)
{
    if (!ch)
        return;
    channel_stop(ch);
    watch_close(&ch->turn.watch);
    send_deinit(&ch->turn.sender);
    ack_deinit(&ch->turn.acks);
    /* The endpoint first: it knows the seals that lie in the links. */
    port_close(&ch->turn.port);
    link_deinit(&ch->turn.links);
    free(ch);
}

int channel_start(struct channel *ch)
{
    return loop_start(&ch->loop);
}

void channel_stop(struct channel *ch)
{
    struct cmd cmd = {.type = CMD_STOP};

    if (!ch->loop.running)
        return;
    /* The ring empties in every turn. */
    while (channel_command(ch, &cmd) == -EAGAIN)
        sched_yield();
    loop_join(&ch->loop);
}

int channel_command(struct channel *ch, const struct cmd *cmd)
{
    int rc = cmd_push(&ch->turn.port.cmds, cmd);

    if (rc == 0)
        hub_wake(ch->turn.port.hub, ch->turn.port.idx);
    return rc;
}

bool channel_next_event(struct channel *ch, struct cmd_event *ret_event)
{
    return cmd_pop_event(&ch->turn.port.cmds, ret_event);
}

int channel_event_fd(const struct channel *ch)
{
    return ch->turn.port.cmds.event_fd;
}

int channel_job_new(const struct channel *ch, const struct cmd_job *config,
                    struct channel_job **ret_job)
{
    return attach_job_new(&ch->turn.port, config, ret_job);
}

void channel_job_free(struct channel_job *job)
{
    attach_job_free(job);
}

int channel_foreign_new(struct channel_job *job, uint64_t out, uint64_t in, uint32_t first,
                        uint32_t n, const struct channel_place *places,
                        struct channel_foreign **ret_foreign)
{
    return attach_foreign_new(job, out, in, first, n, places, ret_foreign);
}

void channel_foreign_free(struct channel_foreign *foreign)
{
    attach_foreign_free(foreign);
}

int channel_address(struct channel *ch, void *buf, size_t *len)
{
    return ch->turn.port.driver->address(ch->turn.port.net, buf, len);
}

const char *channel_name(const struct channel *ch)
{
    return ch->turn.port.name;
}

void channel_info(const struct channel *ch, struct net_info *ret_info)
{
    *ret_info = ch->turn.port.info;
}

uint32_t channel_turn(struct channel *ch, uint64_t now_ns)
{
    return turn_run(&ch->turn, now_ns);
}

uint64_t channel_next_ns(const struct channel *ch)
{
    return turn_next_ns(&ch->turn);
}

const struct count *channel_counters(const struct channel *ch)
{
    return &ch->turn.port.count;
}

uint64_t channel_heartbeat(const struct channel *ch)
{
    return atomic_load_explicit(&ch->loop.heartbeat, memory_order_relaxed);
}

bool channel_flow(const struct channel *ch, uint32_t slot, enum wire_class cls,
                  struct count_flow *ret_flow)
{
    return slot < HOP_MAX_NODES && count_row_read(&ch->turn.sender.rows[slot * WIRE_CLASSES + cls],
                                                  ret_flow, sizeof *ret_flow);
}

bool channel_link(const struct channel *ch, uint32_t slot, struct count_link *ret_link)
{
    return slot < HOP_MAX_NODES &&
           count_row_read(&ch->turn.links.rows[slot], ret_link, sizeof *ret_link);
}

bool channel_is_quiet(const struct channel *ch, char *why, size_t why_bytes)
{
    const struct turn *t = &ch->turn;
    const struct pool *p = &t->port.pool;
    uint32_t n_posted = t->port.n_posted;

    if (p->n_use[BLOCK_FLOW] || p->n_use[BLOCK_ORPHAN] || p->n_use[BLOCK_NOTE] ||
        p->n_use[BLOCK_BACKLOG] || p->n_use[BLOCK_RECEIVE] != n_posted ||
        p->n_free + n_posted != p->n_blocks) {
        snprintf(why, why_bytes,
                 "blocks did not come back: free %u of %u, posted %u, receive %u, flow %u, orphan "
                 "%u, note %u, backlog %u",
                 p->n_free, p->n_blocks, n_posted, p->n_use[BLOCK_RECEIVE], p->n_use[BLOCK_FLOW],
                 p->n_use[BLOCK_ORPHAN], p->n_use[BLOCK_NOTE], p->n_use[BLOCK_BACKLOG]);
        return false;
    }
    if (t->sender.n_active || t->delivery.n_blocks || !backlog_empty(&t->backlog) ||
        t->attach.n_detaching) {
        snprintf(why, why_bytes,
                 "%u flows active, %u blocks for ranks, %u at the source, %u ranks "
                 "detaching",
                 t->sender.n_active, t->delivery.n_blocks,
                 t->backlog.n_waiting + t->backlog.n_refused, t->attach.n_detaching);
        return false;
    }
    return true;
}
