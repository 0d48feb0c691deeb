/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A driver around a driver that loses, doubles, reorders and delays packets on their way in, by a
 * seed. For tests of running daemons: `fault = drop=0.01,seed=7` in a channel's configuration.
 */
#pragma once

#include "daemon/net/net.h"

/*
 * Puts itself around an open endpoint; replaces *driver and *net. Options, all optional, with
 * commas: drop, duplicate, reorder (probabilities 0..1), delay_us (every packet waits so long),
 * seed. 0 or negative errno, logged; then nothing is changed.
 */
int net_fault_wrap(const struct net_driver **driver, struct net **net, const char *options,
                   const struct arena *arena);
