/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A simulated network for tests: endpoints in one process, on one thread, under a clock and a seed
 * of the test. It knows the two manners of real networks. A *stream* (TCP below libfabric) keeps
 * order and loses nothing while the connection lives, but a cut wire leaves packets stuck until the
 * peer is removed, and a dead peer makes sends fail. A *datagram* network takes everything at once
 * and may lose, double, reorder.
 */
#pragma once

#include <stdbool.h>

#include "base/rand.h"
#include "daemon/net/net.h"

#define NET_SIM_ENDPOINTS 32u

struct sim_faults {
    bool datagram;
    uint32_t drop, duplicate, reorder; /* datagrams, per million */
    uint64_t delay_min_ns, delay_max_ns;
    uint32_t max_datagram; /* 0: no limit */
};

extern const struct net_driver net_sim;

struct sim_network;

/* NULL without memory. */
struct sim_network *net_sim_network_new(uint64_t seed, const struct sim_faults *faults);
void net_sim_network_free(struct sim_network *nw);
void net_sim_set_faults(struct sim_network *nw, const struct sim_faults *faults);
/* Sets the clock and moves packets. Returns how many arrived. */
uint32_t net_sim_run(struct sim_network *nw, uint64_t now_ns);
/* When the next packet will arrive; UINT64_MAX: none is under way. */
uint64_t net_sim_next_ns(const struct sim_network *nw);
/* Cuts or mends the wire of an endpoint (named by its address), both directions. */
void net_sim_cut(struct sim_network *nw, uint32_t address, bool cut);
/* Puts a datagram of any content onto the wire towards this endpoint. */
void net_sim_inject(struct sim_network *nw, uint32_t address, const void *data, uint32_t len);
/* The endpoint's address as a number, from the driver's `address`. */
uint32_t net_sim_address(struct net *net);
