/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The channel: its making, its turn, and the way home of blocks. The turn looks at everything a
 * channel has to look at, does a bounded amount of each, and never waits.
 */
#include "daemon/channel/channel.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "daemon/channel/state.h"
#include "daemon/net/net_fault.h"
#include "daemon/net/net_frag.h"

#define EVENTS_PER_TURN 64
#define TX_PER_TURN     64u
#define GIVEN_PER_TURN  64u
#define SLOW_NS         (50 * CLOCK_NS_PER_MS)

/* Memory that exists where it is touched. */
static void *sparse(size_t n_bytes)
{
    void *map = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return map == MAP_FAILED ? NULL : map;
}

static const struct {
    size_t offset, entry_bytes, n;
} tables[] = {
    {offsetof(struct channel, links), sizeof(struct link), HOP_MAX_NODES},
    {offsetof(struct channel, flows), sizeof(struct flow), HOP_MAX_NODES},
    {offsetof(struct channel, flows_in), sizeof(struct flow_in),
     (size_t)HOP_MAX_NODES *HOP_MAX_CHANNELS},
    {offsetof(struct channel, flow_rows), sizeof(struct count_row), HOP_MAX_NODES},
    {offsetof(struct channel, link_rows), sizeof(struct count_row), HOP_MAX_NODES},
    {offsetof(struct channel, map), sizeof(uint32_t) * 2, NODE_MAP_SIZE},
};

static void **table_at(struct channel *ch, size_t i)
{
    return (void **)(void *)((char *)ch + tables[i].offset);
}

static void set_defaults(struct channel_config *c, uint32_t n_blocks)
{
#define DEFAULT(field, value)                                                                      \
    if (c->field == 0)                                                                             \
    c->field = (value)
    DEFAULT(spin_ns, 200 * CLOCK_NS_PER_US);
    DEFAULT(ack_delay_ns, 500 * CLOCK_NS_PER_US);
    DEFAULT(rto_min_ns, 20 * CLOCK_NS_PER_MS);
    DEFAULT(rto_max_ns, CLOCK_NS_PER_S);
    DEFAULT(unreachable_after_ns, 10 * CLOCK_NS_PER_S);
    DEFAULT(hold_stall_ns, 10 * CLOCK_NS_PER_S);
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

static int open_net(struct channel *ch)
{
    struct hub *hub = ch->hub;
    struct net_config nc = ch->config.net;

    nc.first_block = ch->idx * hub->blocks_per_channel;
    nc.n_blocks = hub->blocks_per_channel;
    nc.max_bytes = (uint32_t)sizeof(struct wire_header) + ch->packet_bytes;
    ch->driver = ch->config.driver ? ch->config.driver : net_pick(&nc);
    int rc = ch->driver->open(&nc, &hub->arena, &ch->net);
    if (rc < 0) {
        ch->net = NULL;
        return rc;
    }
    ch->driver->info(ch->net, &ch->info);
    if (ch->info.max_datagram < nc.max_bytes) {
        const struct net_driver *inner = ch->driver;
        inner->close(ch->net);
        ch->net = NULL;
        ch->driver = &net_frag;
        rc = net_frag_open(inner, &nc, &hub->arena, &ch->net);
        if (rc < 0)
            return rc;
        ch->driver->info(ch->net, &ch->info);
    }
    if (ch->config.fault && ch->config.fault[0]) {
        rc = net_fault_wrap(&ch->driver, &ch->net, ch->config.fault, &nc, &hub->arena);
        if (rc < 0)
            return rc;
        ch->driver->info(ch->net, &ch->info);
    }
    return 0;
}

int channel_new(struct hub *hub, const struct channel_config *config, struct channel **ret_channel)
{
    if (config->idx >= hub->config.n_channels)
        return -EINVAL;
    struct channel *ch = aligned_alloc(64, (sizeof *ch + 63) & ~(size_t)63);
    if (!ch)
        return -ENOMEM;
    memset(ch, 0, sizeof *ch);
    ch->hub = hub;
    ch->hops = hub->config.hops;
    ch->config = *config;
    ch->idx = config->idx;
    ch->node_id = hub->config.node_id;
    ch->epoch = hub->config.epoch;
    ch->packet_bytes = ch->hops->packet_bytes;
    ch->n_channels = hub->config.n_channels;
    ch->fenced = hub->config.fenced;
    ch->event_fd = ch->epoll_fd = -1;
    snprintf(ch->name, sizeof ch->name, "%s", config->name ? config->name : "channel");
    set_defaults(&ch->config, hub->blocks_per_channel);
    atomic_store_explicit(&ch->wait_mode, (uint32_t)config->wait_mode, memory_order_relaxed);

    struct list *lists[] = {&ch->links_up,    &ch->busy_links,  &ch->active_flows,
                            &ch->dirty_flows, &ch->acks_urgent, &ch->acks_waiting,
                            &ch->jobs,        &ch->jobs_gone,   &ch->ups_active,
                            &ch->ups_quiet,   &ch->holding};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        list_init(lists[i]);

    int rc = -ENOMEM;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        void *map = sparse(tables[i].entry_bytes * tables[i].n);
        if (!map)
            goto fail;
        *table_at(ch, i) = map;
    }
    rc = cmd_init(ch);
    if (rc < 0)
        goto fail;
    pool_init(&ch->pool, hub->blocks, ch->idx * hub->blocks_per_channel, hub->blocks_per_channel);
    rc = open_net(ch);
    if (rc < 0)
        goto fail;
    ch->n_receives =
        ch->config.n_receives < ch->info.n_receives ? ch->config.n_receives : ch->info.n_receives;
    ch->tx_max = hub->blocks_per_channel / 2;
    ch->hold_max = hub->blocks_per_channel / 4;
    rc = -ENOMEM;
    ch->parked = calloc(hub->blocks_per_channel, sizeof *ch->parked);
    if (!ch->parked)
        goto fail;
    ch->limits = (struct flow_limits){
        .rto_min_ns = ch->config.rto_min_ns,
        .rto_max_ns = ch->config.rto_max_ns,
        .window_initial = ch->info.caps & NET_CAP_DATAGRAM ? 8 : 32,
        .window_max = ch->config.window_max,
    };
    ch->flow_due_ns = ch->probe_due_ns = UINT64_MAX;
    rc = loop_init(ch);
    if (rc < 0)
        goto fail;
    count_set(&ch->count, COUNT_BLOCKS_TOTAL, ch->pool.n_blocks);
    ch->config.net = (struct net_config){0};
    ch->config.name = ch->config.fault = NULL;
    *ret_channel = ch;
    return 0;

fail:
    channel_free(ch);
    return rc;
}

void channel_free(struct channel *ch)
{
    if (!ch)
        return;
    channel_stop(ch);
    if (ch->net)
        ch->driver->close(ch->net);
    loop_deinit(ch);
    cmd_deinit(ch);
    free(ch->parked);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (*table_at(ch, i))
            munmap(*table_at(ch, i), tables[i].entry_bytes * tables[i].n);
    free(ch);
}

int channel_address(struct channel *ch, void *buf, size_t *len)
{
    return ch->driver->address(ch->net, buf, len);
}

const char *channel_name(const struct channel *ch)
{
    return ch->name;
}

void channel_info(const struct channel *ch, struct net_info *ret_info)
{
    *ret_info = ch->info;
}

const struct count *channel_counters(const struct channel *ch)
{
    return &ch->count;
}

uint64_t channel_heartbeat(const struct channel *ch)
{
    return atomic_load_explicit(&ch->heartbeat, memory_order_relaxed);
}

bool channel_flow(const struct channel *ch, uint32_t slot, struct count_flow *ret_flow)
{
    return slot < HOP_MAX_NODES && count_row_read(&ch->flow_rows[slot], ret_flow, sizeof *ret_flow);
}

bool channel_link(const struct channel *ch, uint32_t slot, struct count_link *ret_link)
{
    return slot < HOP_MAX_NODES && count_row_read(&ch->link_rows[slot], ret_link, sizeof *ret_link);
}

void channel_wake(struct hub *hub, uint32_t idx)
{
    struct hub_wake *wake = &hub->wake[idx];

    /* seq_cst: pairs with the exchange in bell_sleep_begin. */
    if (__builtin_expect(atomic_load_explicit(&wake->bell.sleeping, memory_order_seq_cst), 0)) {
        struct bell_ref ref = {.bell = &wake->bell, .event_fd = wake->event_fd};
        bell_wake(&ref);
    }
}

/* Node ids are spread well (FNV-1a): open addressing with linear steps. */
static uint32_t map_look(const struct channel *ch, uint32_t node_id)
{
    for (uint32_t i = node_id % NODE_MAP_SIZE;; i = (i + 1) % NODE_MAP_SIZE) {
        if (ch->map[i].node_id == node_id)
            return ch->map[i].slot;
        if (ch->map[i].node_id == 0)
            return UINT32_MAX;
    }
}

uint32_t channel_slot_of(struct channel *ch, uint32_t node_id)
{
    if (node_id == 0)
        return UINT32_MAX;
    uint32_t slot = map_look(ch, node_id);
    if (slot != UINT32_MAX)
        return slot;
    /* Slots are only ever added. acquire: pairs with the release of the control thread, which sets
     * the node id first. */
    uint32_t n_slots = atomic_load_explicit(&ch->hops->n_slots, memory_order_acquire);
    if (n_slots > HOP_MAX_NODES)
        n_slots = HOP_MAX_NODES;
    while (ch->map_slots < n_slots) {
        uint32_t id =
            atomic_load_explicit(&ch->hops->entries[ch->map_slots].node_id, memory_order_relaxed);
        if (id == 0)
            break;
        uint32_t i = id % NODE_MAP_SIZE;
        while (ch->map[i].node_id != 0)
            i = (i + 1) % NODE_MAP_SIZE;
        ch->map[i].node_id = id;
        ch->map[i].slot = ch->map_slots++;
    }
    return map_look(ch, node_id);
}

void channel_block_done(struct channel *ch, uint32_t block, int error)
{
    struct hub *hub = ch->hub;
    uint32_t owner = block / hub->blocks_per_channel;

    if (owner != ch->idx) {
        bool pushed = lane_push(&hub->back[ch->idx * ch->n_channels + owner],
                                block | (error ? LANE_BIT : 0), ch->fenced);
        assert(pushed);
        (void)pushed;
        channel_wake(hub, owner);
        return;
    }
    struct block *b = &hub->blocks[block];
    switch ((enum block_use)b->use) {
    case BLOCK_FLOW:
        b->out = false;
        if (error)
            send_on_lost(ch, block);
        break;
    case BLOCK_RECEIVE:
    case BLOCK_ORPHAN:
    case BLOCK_NOTE:
    case BLOCK_HOLD:
        pool_give(&ch->pool, block);
        break;
    case BLOCK_FREE:
        assert(!"a free block came home");
        break;
    }
}

static void post_receives(struct channel *ch)
{
    while (ch->n_posted < ch->n_receives && ch->pool.n_free > 0) {
        uint32_t block = pool_take(&ch->pool, BLOCK_RECEIVE);
        int rc = ch->driver->post(ch->net, block);
        if (rc < 0) {
            pool_give(&ch->pool, block);
            break;
        }
        ch->n_posted++;
    }
}

static void lose_net(struct channel *ch, int error)
{
    log_error("channel %s: endpoint lost: %s", ch->name, strerror(-error));
    ch->net_lost = true;
    struct cmd_event event = {.type = EVENT_FAILED, .error = error};
    cmd_event(ch, &event);
}

static uint32_t poll_net(struct channel *ch)
{
    struct net_event events[EVENTS_PER_TURN];

    if (ch->net_lost)
        return 0;
    ch->n_household = 0;
    int n = ch->driver->poll(ch->net, events, EVENTS_PER_TURN);
    if (n < 0) {
        lose_net(ch, n);
        return 1;
    }
    for (int i = 0; i < n; i++) {
        const struct net_event *e = &events[i];
        switch ((enum net_event_kind)e->kind) {
        case NET_RECEIVED:
            ch->n_posted--;
            rx_packet(ch, e->block, e->len);
            break;
        case NET_SENT:
            link_on_sent(ch, e->block, 0);
            break;
        case NET_FAILED:
            link_on_sent(ch, e->block, e->error ? e->error : -EIO);
            break;
        case NET_PEER_DOWN:
            list_foreach_safe(it, &ch->links_up) {
                struct link *link = list_entry(it, struct link, node);
                if (link->peer == e->peer)
                    link_on_error(ch, link, e->error);
            }
            break;
        }
    }
    post_receives(ch);
    return (uint32_t)n - ch->n_household;
}

void channel_snapshot(struct channel *ch)
{
    list_foreach(it, &ch->active_flows) {
        struct flow *f = list_entry(it, struct flow, active);
        struct count_flow row = {
            .slot = f->slot,
            .window = flow_tx_window(&f->tx),
            .in_flight = f->tx.n_sent,
            .queued = f->tx.n_resend + (f->tx.next - f->tx.send_next),
            .srtt_us = f->tx.srtt_us,
            .rto_us = (uint32_t)(f->tx.rto_ns / 1000),
            .next_slot = hop_next_slot(f->last_word),
            .next_channel = hop_channel(f->last_word),
            .packets = f->packets,
            .bytes = f->bytes,
            .resent = f->tx.n_resent,
        };
        count_row_write(&ch->flow_rows[f->slot], &row, sizeof row);
    }
    uint32_t n_queued = 0;
    list_foreach(it, &ch->links_up) {
        struct link *link = list_entry(it, struct link, node);
        struct count_link row = {
            .slot = link->slot,
            .up = 1,
            .queued = link->n_queued,
            .in_driver = link->n_driver,
            .rtt_us = link->rtt_us,
            .packets = link->packets,
            .bytes = link->bytes,
            .errors = link->errors,
            .heard_ns = link->heard_ns,
        };
        count_row_write(&ch->link_rows[link->slot], &row, sizeof row);
        n_queued += link->n_queued;
    }
    count_set(&ch->count, COUNT_BLOCKS_FREE, ch->pool.n_free);
    count_set(&ch->count, COUNT_OUT_QUEUED, n_queued);
    count_set(&ch->count, COUNT_HELD_BYTES, ch->held_bytes);
    count_set(&ch->count, COUNT_FLOWS_ACTIVE, ch->n_active);
}

static void check_drained(struct channel *ch)
{
    bool done = list_empty(&ch->active_flows) && list_empty(&ch->busy_links) &&
                list_empty(&ch->holding) && ch->n_parked == 0 && ch->n_aside_blocks == 0 &&
                !tx_has_work(ch);

    if (!done && ch->now_ns < ch->drain_until_ns)
        return;
    struct cmd_event event = {.type = EVENT_DRAINED, .value = done ? 0 : 1};
    if (cmd_event(ch, &event))
        ch->drain_until_ns = 0;
}

static void slow_tick(struct channel *ch)
{
    ch->slow_ns = ch->now_ns + SLOW_NS;
    send_no_route(ch);
    if (ch->credit.n > 0)
        credit_age(&ch->credit, ch->now_ns);
    channel_snapshot(ch);
}

uint32_t channel_turn(struct channel *ch, uint64_t now_ns)
{
    uint32_t n = 0;

    ch->now_ns = now_ns;
    count_add(&ch->count, COUNT_TURNS, 1);
    /* acquire: pairs with the release of the control thread; the new ways are seen with it. */
    uint32_t generation = atomic_load_explicit(&ch->hops->generation, memory_order_acquire);
    if (generation != ch->generation) {
        ch->generation = generation;
        send_on_routes(ch);
    }
    /* The ranks first: to look at their rings costs a few loads, to look at the network system
     * calls. */
    n += tx_poll(ch, TX_PER_TURN);
    send_pump_dirty(ch);
    n += poll_net(ch);
    if (ch->n_channels > 1)
        n += relay_poll(ch, GIVEN_PER_TURN);
    n += cmd_poll(ch);
    if (!list_empty(&ch->holding))
        n += hold_poll(ch);
    if (ch->n_parked > 0 && now_ns >= ch->park_ns)
        send_unpark(ch);
    if (now_ns >= ch->flow_due_ns)
        send_timers(ch);
    send_pump_dirty(ch);
    n += rx_acks(ch, false);
    if (!list_empty(&ch->busy_links))
        n += link_flush(ch);
    if (now_ns >= ch->probe_due_ns)
        link_probes(ch);
    if (now_ns >= ch->slow_ns)
        slow_tick(ch);
    if (ch->n_detaching > 0 || !list_empty(&ch->jobs_gone))
        job_answers(ch);
    if (ch->drain_until_ns != 0)
        check_drained(ch);
    return n;
}

uint64_t channel_next_ns(const struct channel *ch)
{
    uint64_t due = ch->flow_due_ns;

    if (ch->probe_due_ns < due)
        due = ch->probe_due_ns;
    if (!list_empty(&ch->acks_waiting)) {
        const struct flow_in *in = list_entry(ch->acks_waiting.next, struct flow_in, ack);
        if (in->rx.ack_due_ns < due)
            due = in->rx.ack_due_ns;
    }
    /* Ranks that drain their rings ring no bell, nor does a driver that can send again without
     * having said so. */
    if (!list_empty(&ch->holding) || !list_empty(&ch->busy_links) ||
        !list_empty(&ch->dirty_flows) || ch->n_detaching > 0 || !list_empty(&ch->jobs_gone) ||
        ch->drain_until_ns != 0 || ch->credit.n > 0 || ch->n_parked > 0 || ch->n_asides > 0) {
        uint64_t soon = ch->now_ns + CLOCK_NS_PER_MS;
        if (soon < due)
            due = soon;
    }
    if (!list_empty(&ch->active_flows) && ch->slow_ns < due)
        due = ch->slow_ns;
    return due;
}

bool channel_has_work(struct channel *ch)
{
    if (cmd_pending(ch) || tx_has_work(ch) || !list_empty(&ch->dirty_flows) || hold_has_work(ch))
        return true;
    if (atomic_load_explicit(&ch->hops->generation, memory_order_acquire) != ch->generation)
        return true;
    for (uint32_t from = 0; from < ch->n_channels; from++) {
        uint32_t i = from * ch->n_channels + ch->idx;
        if (from != ch->idx && (!lane_empty(&ch->hub->back[i]) || !lane_empty(&ch->hub->give[i])))
            return true;
    }
    return false;
}
