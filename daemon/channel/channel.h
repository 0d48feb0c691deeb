/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Channels: one per NIC (libfabric endpoint) of the node, each with a thread of its own. A channel
 * takes messages from the ranks' up rings, numbers and sends them, receives packets, delivers them
 * into the ranks' down rings, and forwards packets for other nodes; the channels of a node pass
 * blocks to one another by index.
 *
 * `struct hub` is what the channels of a node share: the arena of blocks, the rings between them,
 * who owns which incoming flow. Made by the daemon's root object (daemon/node.c) and by the
 * simulation; what happens afterwards goes through cmd.h.
 *
 *      ranks --up rings--> tx --> flow --> link --> driver --> network
 *      ranks <--down rings-- rx <------------------ driver <-- network
 *                             '--> relay --> link, or lane --> another channel's link
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/channel/cmd.h"
#include "daemon/channel/count.h"
#include "daemon/net/net.h"
#include "proto/hop.h"

struct hub;
struct channel;

struct hub_config {
    uint32_t node_id;
    uint32_t epoch;               /* this daemon's incarnation, not 0 */
    uint32_t n_channels;          /* at most HOP_MAX_CHANNELS */
    uint32_t blocks_per_channel;  /* 0: default (2048) */
    bool fenced;                  /* membarrier is missing: see base/thread.h */
    const struct hop_table *hops; /* packet_bytes must be set; outlives the hub */
};

/* 0 or negative errno. The hub outlives its channels. */
int hub_new(const struct hub_config *config, struct hub **ret_hub);
void hub_free(struct hub *hub);

struct channel_config {
    uint32_t idx;                    /* channel index on this node, as in hop words */
    const char *name;                /* for log and thread name; copied */
    const struct net_driver *driver; /* NULL: what net_pick says */
    struct net_config net; /* interface, address, provider, options; the rest is filled in. Strings
                              are read in channel_new only */
    const char *fault;     /* NULL, or what net_fault shall inject:
                              "drop=0.01,duplicate=0.01,delay_us=500,reorder=0.01,seed=7" */
    enum wait_mode wait_mode;
    /* Tunables; 0 means the default. */
    uint64_t spin_ns;              /* without work before sleeping (200 us) */
    uint64_t ack_delay_ns;         /* longest wait before an acknowledgement (500 us) */
    uint64_t rto_min_ns;           /* (20 ms) */
    uint64_t rto_max_ns;           /* (1 s) */
    uint64_t unreachable_after_ns; /* (10 s) */
    uint64_t hold_stall_ns;        /* a rank over its hold for so long is reported (10 s) */
    uint64_t probe_ns;             /* between probes of a link (1 s); UINT64_MAX: none */
    uint32_t window_max;           /* packets under way per flow (512, which is also the limit) */
    uint32_t
        relay_limit; /* packets waiting for one neighbour before forwarded ones are dropped (512) */
    uint32_t n_receives; /* blocks posted for receiving (a quarter of the channel's) */
};

/* Opens the endpoint; may take a while (libfabric), runs on the control thread. 0 or negative
 * errno, logged. */
int channel_new(struct hub *hub, const struct channel_config *config, struct channel **ret_channel);
/* Stops the thread if it runs. NULL is fine. */
void channel_free(struct channel *ch);

/* Starts the channel's thread, when all channels of the hub are there. 0 or negative errno. */
int channel_start(struct channel *ch);
/* Ends it and waits for that (at most about a second). */
void channel_stop(struct channel *ch);

/* Address of the endpoint, for the peers. *len: in size of buf (NET_ADDRESS_BYTES is enough), out
 * bytes used. 0 or -errno. */
int channel_address(struct channel *ch, void *buf, size_t *len);
const char *channel_name(const struct channel *ch);
/* What the endpoint can do and which provider it is. */
void channel_info(const struct channel *ch, struct net_info *ret_info);

/*
 * One turn: bounded work, never waits. Returns how much was done. For the thread loop and the
 * simulation. now_ns must not go backwards.
 */
uint32_t channel_turn(struct channel *ch, uint64_t now_ns);
/* When the channel wants its next turn even if nothing happens (a timer); UINT64_MAX: never. */
uint64_t channel_next_ns(const struct channel *ch);

/* Status; any thread. */
const struct count *channel_counters(const struct channel *ch);
/* Turn of the thread when it last moved, for the watchdog: changes at least once a second while the
 * thread lives. */
uint64_t channel_heartbeat(const struct channel *ch);
/* Snapshot of the flow to, or the link to, the node of this hop table slot. False if there is none.
 * At most 100 ms old. */
bool channel_flow(const struct channel *ch, uint32_t slot, struct count_flow *ret_flow);
bool channel_link(const struct channel *ch, uint32_t slot, struct count_link *ret_link);
