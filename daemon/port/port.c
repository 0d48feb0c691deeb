/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/port/port.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SLOT_MAP_SIZE (2u * HOP_MAX_NODES)

void *port_sparse(size_t n_bytes)
{
    void *map = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return map == MAP_FAILED ? NULL : map;
}

void port_sparse_free(void *map, size_t n_bytes)
{
    if (map)
        munmap(map, n_bytes);
}

static int port_open_net(struct port *port, const struct port_config *config)
{
    struct net_config nc = config->net;
    struct net_endpoint e;

    nc.first_block = port->idx * port->hub->blocks_per_channel;
    nc.n_blocks = port->hub->blocks_per_channel;
    nc.max_bytes = (uint32_t)sizeof(struct wire_header) + port->packet_bytes;
    int rc = net_drivers_open(config->driver, &nc, config->fault, port->arena, &e);
    if (rc < 0)
        return rc;
    port->driver = e.driver;
    port->net = e.net;
    port->info = e.info;
    return 0;
}

int port_open(struct port *port, struct hub *hub, const struct port_config *config)
{
    port->hub = hub;
    port->arena = &hub->arena;
    port->hops = hub->config.hops;
    port->idx = config->idx;
    port->node_id = hub->config.node_id;
    port->epoch = hub->config.epoch;
    port->packet_bytes = port->hops->packet_bytes;
    /* Where packets are small, as in tests, a quarter of one: both classes have something. */
    port->quick_bytes =
        port->packet_bytes / 4 < WIRE_QUICK_BYTES ? port->packet_bytes / 4 : WIRE_QUICK_BYTES;
    port->protect = config->net.protect;
    port->n_channels = hub->config.n_channels;
    port->fenced = hub->config.fenced;
    snprintf(port->name, sizeof port->name, "%s", config->name ? config->name : "channel");
    int rc = cmd_init(&port->cmds);
    if (rc < 0)
        return rc;
    port->slots = port_sparse(SLOT_MAP_SIZE * sizeof *port->slots);
    port->lost = calloc(hub->blocks_per_channel, sizeof *port->lost);
    if (!port->slots || !port->lost)
        return -ENOMEM;
    pool_init(&port->pool, port->arena, port->idx * hub->blocks_per_channel,
              hub->blocks_per_channel);
    rc = port_open_net(port, config);
    if (rc < 0)
        return rc;
    port->n_receives =
        config->n_receives < port->info.n_receives ? config->n_receives : port->info.n_receives;
    count_set(&port->count, COUNT_BLOCKS_TOTAL, port->pool.n_blocks);
    return 0;
}

void port_close(struct port *port)
{
    if (port->net)
        port->driver->close(port->net);
    free(port->lost);
    port_sparse_free(port->slots, SLOT_MAP_SIZE * sizeof *port->slots);
    cmd_deinit(&port->cmds);
}

/* Node ids are spread well (FNV-1a): linear steps. */
static uint32_t port_slot_look(const struct port *port, uint32_t node_id)
{
    for (uint32_t i = node_id % SLOT_MAP_SIZE;; i = (i + 1) % SLOT_MAP_SIZE) {
        if (port->slots[i].node_id == node_id)
            return port->slots[i].slot;
        if (port->slots[i].node_id == 0)
            return UINT32_MAX;
    }
}

uint32_t port_slot_of(struct port *port, uint32_t node_id)
{
    if (node_id == 0)
        return UINT32_MAX;
    uint32_t slot = port_slot_look(port, node_id);
    if (slot != UINT32_MAX)
        return slot;
    /* Slots are only ever added. acquire: pairs with the release of the control thread, which sets
     * the node id first. */
    uint32_t n_slots = atomic_load_explicit(&port->hops->n_slots, memory_order_acquire);
    if (n_slots > HOP_MAX_NODES)
        n_slots = HOP_MAX_NODES;
    while (port->n_slots < n_slots) {
        uint32_t id =
            atomic_load_explicit(&port->hops->entries[port->n_slots].node_id, memory_order_relaxed);
        if (id == 0)
            break;
        uint32_t i = id % SLOT_MAP_SIZE;
        while (port->slots[i].node_id != 0)
            i = (i + 1) % SLOT_MAP_SIZE;
        port->slots[i].node_id = id;
        port->slots[i].slot = port->n_slots++;
    }
    return port_slot_look(port, node_id);
}

void port_post_receives(struct port *port)
{
    while (port->n_posted < port->n_receives && port->pool.n_free > 0) {
        uint32_t block = pool_take(&port->pool, BLOCK_RECEIVE);
        int rc = port->driver->post(port->net, block);
        if (rc < 0) {
            pool_give(&port->pool, block);
            break;
        }
        port->n_posted++;
    }
}

/* A packet of a flow is back, and nobody got it: the flow looks at it in its next turn. */
static void port_lost(struct port *port, uint32_t block)
{
    struct block *b = &port->arena->blocks[block];

    if (b->lost)
        return;
    assert(port->n_lost < port->pool.n_blocks);
    b->lost = true;
    port->lost[port->n_lost++] = block;
}

void port_block_done(struct port *port, uint32_t block, int error)
{
    struct hub *hub = port->hub;
    uint32_t owner = block / hub->blocks_per_channel;

    if (owner != port->idx) {
        bool pushed = handover_push(hub_back(hub, port->idx, owner),
                                    block | (error ? HANDOVER_BIT : 0), port->fenced);
        assert(pushed);
        (void)pushed;
        hub_wake(hub, owner);
        return;
    }
    struct block *b = &port->arena->blocks[block];
    switch ((enum block_use)b->use) {
    case BLOCK_FLOW:
        b->out = false;
        if (error)
            port_lost(port, block);
        break;
    case BLOCK_RECEIVE:
    case BLOCK_ORPHAN:
    case BLOCK_NOTE:
    case BLOCK_BACKLOG:
        pool_give(&port->pool, block);
        break;
    case BLOCK_FREE:
        assert(false && "a free block came home");
        break;
    }
}

bool port_event(struct port *port, const struct cmd_event *event)
{
    if (cmd_push_event(&port->cmds, event))
        return true;
    count_add(&port->count, COUNT_EVENTS_LOST, 1);
    return false;
}

uint32_t port_note(struct port *port, uint32_t dst_slot, enum wire_type type)
{
    const struct hop_entry *e = &port->hops->entries[dst_slot];
    uint32_t block = pool_take(&port->pool, BLOCK_NOTE);

    if (block == BLOCK_NONE)
        return block;
    *port_header(port, block) = (struct wire_header){
        .magic = WIRE_MAGIC,
        .version = WIRE_VERSION,
        .type = (uint8_t)type,
        .hops_left = WIRE_MAX_HOPS,
        .src_node = port->node_id,
        .dst_node = atomic_load_explicit(&e->node_id, memory_order_relaxed),
        .src_epoch = port->epoch,
        .dst_epoch = atomic_load_explicit(&e->epoch, memory_order_relaxed),
        .sent_us = (uint32_t)(port->now_ns / CLOCK_NS_PER_US),
    };
    return block;
}

void port_note_seal(struct port *port, uint32_t block, uint32_t n_bytes)
{
    struct wire_header *h = port_header(port, block);

    h->len = n_bytes;
    wire_seal(h);
    port->arena->held[block].len = (uint32_t)sizeof *h + n_bytes;
}
