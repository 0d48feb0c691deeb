/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A channel's turn: looks at everything that a channel has to look at, does a bounded amount of
 * each, and never waits. What the modules have to say to one another goes through here. Called by
 * the channel's thread (channel/loop) or the simulation.
 */
#pragma once

#include "daemon/channel/attach.h"
#include "daemon/port/watch.h"

/* The channel's thread's, but for what the modules say. */
struct turn {
    struct port port;
    struct links links;
    struct relay relay;
    struct job_table jobs;
    struct acks acks;
    struct delivery delivery;
    struct sender sender;
    struct backlog backlog;
    struct tx tx;
    struct rx rx;
    struct attach attach;
    struct watch watch;

    uint64_t slow_ns;        /* next slow tick: snapshots, gauges, flows without a way */
    uint64_t drain_until_ns; /* 0: not draining */
    uint32_t generation;     /* of the hop table, as last looked at */
    uint32_t wait_mode;      /* enum wait_mode */
    bool stop;               /* the thread shall end */
};

/* One turn. Returns how much was done. now_ns must not go backwards. */
uint32_t turn_run(struct turn *t, uint64_t now_ns);
/* When the next turn is due even if nothing happens; UINT64_MAX: never. */
uint64_t turn_next_ns(const struct turn *t);
/* Is there anything that a turn would do? Before sleeping. */
bool turn_has_work(const struct turn *t);
