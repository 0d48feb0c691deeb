/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A whole cluster in one process, on one thread, under one seed and a clock of its own: nodes with
 * their hubs and channels (the daemon's own code), simulated networks, a simple stand-in for the
 * control thread, and a schedule of faults. What happens next is drawn from the seed, so a failing
 * seed is a complete report of a bug.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/rand.h"
#include "daemon/channel/channel.h"
#include "proto/hop.h"
#include "tests/sim/net_sim.h"

#define SIM_NODES    8u
#define SIM_NETWORKS 6u
#define SIM_CHANNELS 3u
#define SIM_PACKET   4096u
#define SIM_EVENTS   512u

struct sim_nic {
    uint32_t network;
    uint32_t address;
    bool cut;
    uint64_t stalled_ns; /* its thread does not run before */
    struct channel *ch;
    bool link_up[SIM_NODES]; /* as told to the channel */
    uint32_t link_address[SIM_NODES];
};

struct sim_node {
    bool alive;
    uint32_t id, epoch;
    uint32_t n_nics;
    struct sim_nic nics[SIM_CHANNELS];
    struct hop_table *hops;
    struct hub *hub;
};

enum sim_event_kind {
    SIM_UPDATE, /* node `a` learns the topology of now */
    SIM_CUT,    /* NIC b of node a */
    SIM_HEAL,
    SIM_KILL, /* node a */
    SIM_START,
    SIM_STALL,      /* NIC b of node a: its thread is not scheduled for a while */
    SIM_JOB_ATTACH, /* job b on node a */
    SIM_JOB_END,    /* job b on node a */
    SIM_RUBBISH,    /* packets of rubbish into network a */
    SIM_LAZY,       /* rank b of job a stops reading for a while */
    SIM_EVIL,       /* rank b of job a writes rubbish into its ring */
};

struct sim_event {
    uint64_t at_ns;
    enum sim_event_kind kind;
    uint32_t a, b;
};

struct sim {
    uint64_t seed;
    struct rand rand;
    uint64_t now_ns;
    bool verbose;
    const char *topology;
    uint32_t n_nodes, n_networks;
    struct sim_node nodes[SIM_NODES];
    struct sim_network *networks[SIM_NETWORKS];
    struct sim_event events[SIM_EVENTS];
    uint32_t n_events;
    struct traffic *traffic;
    uint32_t fixed_topology; /* 0: drawn; else 1 + the number in draw_topology, smallest form */
    bool calm;               /* networks without faults */
    uint64_t n_turns;
};

/* Says what is wrong, with seed and time, and ends the process. */
void sim_fail(const struct sim *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), noreturn));
void sim_say(const struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static inline uint64_t sim_draw(struct sim *s, uint64_t n)
{
    return rand_below(&s->rand, n);
}

/* Draws a topology and starts all nodes. */
void cluster_build(struct sim *s);
void cluster_free(struct sim *s);
void cluster_schedule(struct sim *s, uint64_t at_ns, enum sim_event_kind kind, uint32_t a,
                      uint32_t b);
/* Draws cuts, deaths and stalls over the given time. */
void cluster_plan_faults(struct sim *s, uint64_t duration_ns);
/* Carries out what is due; what is not the cluster's goes to traffic.h. */
void cluster_run_events(struct sim *s);
/* Node i learns the topology of now: links and hop table. */
void cluster_update(struct sim *s, uint32_t i);
/* What the channels have counted, for the message on a failure. */
void cluster_report(const struct sim *s);
/* All blocks are back, nothing is queued. */
void cluster_check_quiet(struct sim *s);
/* Slot of node j in the hop table of node i. */
static inline uint32_t cluster_slot(uint32_t i, uint32_t j)
{
    return j == i ? 0 : j < i ? j + 1 : j;
}
static inline uint32_t cluster_node_at(uint32_t i, uint32_t slot)
{
    return slot == 0 ? i : slot <= i ? slot - 1 : slot;
}
/* Sends a command, with turns of the channel while its ring is full. */
void cluster_command(struct sim *s, struct channel *ch, const struct cmd *cmd);
