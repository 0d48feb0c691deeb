/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/channel/parts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct parts *parts_new(bool datagram)
{
    struct sim_faults faults = {.datagram = datagram, .delay_min_ns = 1000, .delay_max_ns = 1001};
    struct parts *p = aligned_alloc(_Alignof(struct parts), sizeof *p);

    assert(p);
    memset(p, 0, sizeof *p);
    p->now_ns = CLOCK_NS_PER_S;
    p->hops = calloc(1, sizeof *p->hops);
    p->network = net_sim_network_new(11, &faults);
    assert(p->hops && p->network);
    p->hops->packet_bytes = PARTS_PACKET;
    for (uint32_t i = 0; i < PARTS_NODES; i++) {
        atomic_store(&p->hops->entries[i].node_id, PARTS_NODE + i);
        atomic_store(&p->hops->entries[i].epoch, PARTS_EPOCH);
    }
    atomic_store(&p->hops->n_slots, PARTS_NODES);
    struct hub_config hc = {.node_id = PARTS_NODE,
                            .epoch = PARTS_EPOCH,
                            .n_channels = 2,
                            .blocks_per_channel = PARTS_BLOCKS,
                            .hops = p->hops};
    struct port_config pc = {
        .driver = &net_sim, .net = {.context = p->network}, .n_receives = PARTS_BLOCKS / 4};
    int rc = hub_new(&hc, &p->hub);
    assert(rc == 0);
    rc = port_open(&p->port, p->hub, &pc);
    assert(rc == 0);
    p->port.now_ns = p->now_ns;
    rc = link_init(&p->links, &p->port, UINT64_MAX);
    assert(rc == 0);
    p->relay = (struct relay){.links = &p->links, .queue_max = 8};

    struct net_config nc = {.n_blocks = PARTS_BLOCKS,
                            .max_bytes = (uint32_t)sizeof(struct wire_header) + PARTS_PACKET,
                            .context = p->network};
    size_t len = sizeof p->far_address;
    rc = arena_init(&p->far_arena, PARTS_BLOCKS, PARTS_PACKET);
    assert(rc == 0);
    rc = net_sim.open(&nc, &p->far_arena, &p->far);
    assert(rc == 0);
    for (uint32_t b = 0; b < PARTS_BLOCKS; b++)
        net_sim.post(p->far, b);
    rc = net_sim.address(p->far, &p->far_address, &len);
    assert(rc == 0);
    (void)rc;
    return p;
}

void parts_free(struct parts *p)
{
    port_close(&p->port);
    link_deinit(&p->links);
    net_sim.close(p->far);
    net_sim_network_free(p->network);
    arena_deinit(&p->far_arena);
    hub_free(p->hub);
    free(p->hops);
    free(p);
}

struct cmd_link parts_link(const struct parts *p, uint32_t slot, const void *address, uint16_t len)
{
    struct cmd_link at = {.slot = (uint16_t)slot, .len = len};

    (void)p;
    memcpy(at.address, address, len);
    return at;
}

void parts_add_link(struct parts *p)
{
    struct cmd_link at = parts_link(p, 1, &p->far_address, sizeof p->far_address);

    relay_add_link(&p->relay, &at);
    /* A stream takes its time to connect. */
    parts_step(p, 5 * CLOCK_NS_PER_MS);
}

void parts_set_ways(struct parts *p, uint32_t slot, hop_word quick, hop_word wide0, hop_word wide1)
{
    struct hop_entry *e = &p->hops->entries[slot];

    atomic_store(&e->quick, quick);
    atomic_store(&e->wide[0], wide0);
    atomic_store(&e->wide[1], wide1);
}

uint32_t parts_packet(struct parts *p, enum block_use use, uint32_t src, uint32_t dst,
                      uint32_t payload_bytes)
{
    uint32_t block = pool_take(&p->port.pool, use);
    struct wire_header *h = port_header(&p->port, block);

    *h = (struct wire_header){
        .magic = WIRE_MAGIC,
        .version = WIRE_VERSION,
        .type = WIRE_DATA,
        .hops_left = WIRE_MAX_HOPS,
        .flow_class = WIRE_BULK,
        .src_node = PARTS_NODE + src,
        .dst_node = PARTS_NODE + dst,
        .src_epoch = PARTS_EPOCH,
        .dst_epoch = PARTS_EPOCH,
        .len = payload_bytes,
    };
    memset(h + 1, (int)block, payload_bytes);
    wire_seal(h);
    p->port.arena->held[block].len = (uint32_t)sizeof *h + payload_bytes;
    return block;
}

void parts_step(struct parts *p, uint64_t ns)
{
    struct net_event events[16];
    int n;

    p->now_ns += ns;
    p->port.now_ns = p->now_ns;
    net_sim_run(p->network, p->now_ns);
    while ((n = p->port.driver->poll(p->port.net, events, 16)) > 0)
        for (int i = 0; i < n; i++)
            if (events[i].kind == NET_SENT || events[i].kind == NET_FAILED)
                link_on_sent(&p->links, events[i].block, events[i].error);
}

bool parts_far_receive(struct parts *p, struct wire_header *ret_header)
{
    struct net_event event;

    net_sim_run(p->network, p->now_ns);
    while (net_sim.poll(p->far, &event, 1) == 1) {
        if (event.kind != NET_RECEIVED)
            continue;
        *ret_header = *arena_header(&p->far_arena, event.block);
        net_sim.post(p->far, event.block);
        return true;
    }
    return false;
}
