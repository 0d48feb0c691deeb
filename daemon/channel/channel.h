/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Channels: one per NIC (libfabric endpoint) of the node, each with a thread of its own. A channel
 * takes messages from the ranks' up rings, numbers and sends them, receives packets, delivers them
 * into the ranks' down rings, and forwards packets for other nodes; the channels of a node pass
 * blocks to one another by index.
 *
 * What the channels of a node share is a hub (port/hub.h). Both are made by the daemon's control
 * thread and by the simulation; what happens afterwards goes through commands and events. The code
 * of the folder calls downwards only:
 *
 *      channel (making, the control thread's side)
 *        loop (the thread) --> turn (what is looked at)
 *          attach (jobs' rings come and go)
 *            tx (from the ranks) --> backlog --> send (flows)
 *            rx (from the network) --> delivery (to the ranks) --> ack
 *
 * and below it daemon/port, which sends a packet along a way:
 *
 *      ranks --up rings--> tx --> send --> way --> link --> driver --> network
 *      ranks <--down rings-- delivery <-- rx <------------- driver <-- network
 *                                         '--> relay --> way --> link, or handover ring
 *                                                                --> another channel's link
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/port/cmd.h"
#include "daemon/port/count.h"
#include "daemon/port/hub.h"
#include "proto/hop.h"

struct channel;
struct channel_job;

struct channel_config {
    uint32_t idx;                    /* channel index on this node, as in hop words */
    const char *name;                /* for log and thread name; copied */
    const struct net_driver *driver; /* NULL: what net_drivers_pick says */
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
    uint64_t stall_ns;             /* a rank that refuses for so long is reported (10 s) */
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

/* Sends a command and wakes the channel. 0, or -EAGAIN when the ring is full (try again after
 * reading events). Copies *cmd. */
int channel_command(struct channel *ch, const struct cmd *cmd);
/* Fetches the next event. False when there is none. */
bool channel_next_event(struct channel *ch, struct cmd_event *ret_event);
/* Becomes readable when events come: read 8 bytes, then fetch events until there are none. */
int channel_event_fd(const struct channel *ch);

/* Builds a channel's view of a job, to be passed with CMD_ATTACH_JOB. 0 or negative errno. */
int channel_job_new(const struct channel *ch, const struct cmd_job *config,
                    struct channel_job **ret_job);
/* After EVENT_JOB_DETACHED, or if it was never attached. NULL is fine. */
void channel_job_free(struct channel_job *job);

/* A channel's end of a connection between this job and another one, for CMD_ADD_FOREIGN: the other
 * job's ranks 0 to n - 1 run at these places (node id and slot in the hop table) and become peers
 * `first` and up, n_world or higher. `in` and `out` are the connection's numbers by direction,
 * which differ in the lowest bit. 0 or negative errno. */
int channel_foreign_new(struct channel_job *job, uint64_t out, uint64_t in, uint32_t first,
                        uint32_t n, const struct channel_place *places,
                        struct channel_foreign **ret_foreign);
/* After EVENT_FOREIGN_REMOVED; the end of the job frees those that it still has. NULL is fine. */
void channel_foreign_free(struct channel_foreign *foreign);

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
/* Snapshot of the flow of a class to, or the link to, the node of this hop table slot. False if
 * there is none. At most 100 ms old. */
bool channel_flow(const struct channel *ch, uint32_t slot, enum wire_class cls,
                  struct count_flow *ret_flow);
bool channel_link(const struct channel *ch, uint32_t slot, struct count_link *ret_link);
/* For tests, between turns: has everything come home? If not, says what is missing. */
bool channel_is_quiet(const struct channel *ch, char *why, size_t why_bytes);
