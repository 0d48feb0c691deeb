/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The port of a channel: its endpoint at the network, its part of the blocks, its clock, counters
 * and events, and how it names other nodes. Everything else of a channel stands on it. Belongs to
 * the channel's thread, except what is marked.
 */
#pragma once

#include "base/clock.h"
#include "daemon/net/net_drivers.h"
#include "daemon/port/cmd.h"
#include "daemon/port/count.h"
#include "daemon/port/hub.h"
#include "proto/wire.h"

/* Slot by node id: open addressing. */
struct port_slot {
    uint32_t node_id; /* 0: free */
    uint32_t slot;
};

struct port {
    /* Read-only after port_open. */
    struct hub *hub;
    const struct arena *arena; /* the hub's */
    const struct hop_table *hops;
    const struct net_driver *driver;
    struct net *net;
    struct net_info info;
    uint32_t idx, node_id, epoch, packet_bytes, n_channels;
    uint32_t n_receives;  /* blocks posted for receiving */
    uint32_t quick_bytes; /* messages of up to so many bytes are quick */
    bool fenced;
    enum seal_mode protect;
    char name[64];

    /* The channel's thread's. */
    _Alignas(64) uint64_t now_ns; /* of this turn */
    struct pool pool;
    uint32_t n_posted;
    bool net_lost;
    uint32_t *lost, n_lost; /* flows' packets whose sending failed: for channel/send */
    struct port_slot *slots;
    uint32_t n_slots; /* slots of the hop table entered so far */

    struct cmd_rings cmds; /* shared with control; see there */
    /* Written by the channel's thread, read by control. */
    _Alignas(64) struct count count;
};

struct port_config {
    uint32_t idx;
    const char *name;                /* NULL: "channel" */
    const struct net_driver *driver; /* NULL: what net_drivers_pick says */
    struct net_config net;
    const char *fault;   /* NULL, or for net_fault */
    uint32_t n_receives; /* at most; the driver may hold fewer */
};

/* Opens the endpoint, on the control thread. 0 or negative errno, logged; port_close in any case.
 * The port's memory is zero before. */
int port_open(struct port *port, struct hub *hub, const struct port_config *config);
void port_close(struct port *port);

/* Memory of so many bytes, all zero, that exists where it is touched; NULL without. */
void *port_sparse(size_t n_bytes);
void port_sparse_free(void *map, size_t n_bytes);

/* Slot of a node in the hop table; UINT32_MAX if it is not there. */
uint32_t port_slot_of(struct port *port, uint32_t node_id);
/* Posts blocks for receiving, as many as there should be. */
void port_post_receives(struct port *port);
/* The block is no longer needed by this channel, which held it; error: it was to be sent, and was
 * not. */
void port_block_done(struct port *port, uint32_t block, int error);
/* Are so few blocks free that those for receiving have to be kept? */
static inline bool port_is_short(const struct port *port)
{
    return port->pool.n_free <= port->n_receives / 4;
}
/* Tells control. False if it does not read its events; counted. */
bool port_event(struct port *port, const struct cmd_event *event);
/* Builds a packet of our own without a payload yet, to be sealed; BLOCK_NONE if there is no
 * block. */
uint32_t port_note(struct port *port, uint32_t dst_slot, enum wire_type type);
/* Seals such a packet with n_bytes of payload in place; the block is ready to be sent. */
void port_note_seal(struct port *port, uint32_t block, uint32_t n_bytes);

/* The class of the flow that carries a message of so many bytes. */
static inline enum wire_class port_class(const struct port *port, uint32_t len)
{
    return len <= port->quick_bytes ? WIRE_QUICK : WIRE_BULK;
}

static inline struct wire_header *port_header(const struct port *port, uint32_t block)
{
    return arena_header(port->arena, block);
}
