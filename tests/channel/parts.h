/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lower parts of a channel on their own, for unit tests: a hub of two channels, the port and
 * links of the first over a simulated network, and an endpoint at the far side of it. Slot 0 is
 * this node, slot 1 the neighbour, slots 2 and on other nodes.
 */
#pragma once

#include "daemon/port/relay.h"
#include "tests/sim/net_sim.h"

#define PARTS_NODES  8u
#define PARTS_PACKET 1024u
#define PARTS_BLOCKS 128u
#define PARTS_NODE   0x100u /* id of the node of slot n: this + n */
#define PARTS_EPOCH  7u

struct parts {
    struct hop_table *hops;
    struct hub *hub;
    struct port port;
    struct links links;
    struct relay relay;
    struct sim_network *network;
    struct arena far_arena;
    struct net *far;
    uint32_t far_address;
    uint64_t now_ns;
};

/* `datagram`: of the network. */
struct parts *parts_new(bool datagram);
void parts_free(struct parts *p);
/* Adds the link to the far endpoint, as slot 1. */
void parts_add_link(struct parts *p);
/* What control would say of a neighbour. */
struct cmd_link parts_link(const struct parts *p, uint32_t slot, const void *address, uint16_t len);
/* All ways to the node of this slot: a small one, then large ones. */
void parts_set_ways(struct parts *p, uint32_t slot, hop_word quick, hop_word wide0, hop_word wide1);
/* A bulk data packet from node `src` to node `dst` in a block of the port; sealed. */
uint32_t parts_packet(struct parts *p, enum block_use use, uint32_t src, uint32_t dst,
                      uint32_t payload_bytes);
/* Time passes; what the driver is done with comes home. */
void parts_step(struct parts *p, uint64_t ns);
/* Takes a packet at the far end. False: there is none. */
bool parts_far_receive(struct parts *p, struct wire_header *ret_header);
