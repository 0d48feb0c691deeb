/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network drivers, in one table, and how an endpoint is opened: which driver serves what a
 * configuration calls a provider, and which wrappers come around it. A new driver is an entry here
 * (see tests/net/net_skeleton.c for how one is written). Control thread only.
 */
#pragma once

#include <stdbool.h>

#include "daemon/net/net.h"

/* The driver of this name; NULL: there is none. */
const struct net_driver *net_drivers_find(const char *name);
/* The driver for what a configuration calls a provider: the first in the table that serves it.
 * `tcp` is net_tcp, `udp` net_udp, `auto` is net_ofi where the interface belongs to a device of a
 * fabric (InfiniBand, RoCE, EFA, Slingshot, Omni-Path) and net_tcp elsewhere, anything else is
 * net_ofi's.
 */
const struct net_driver *net_drivers_pick(const struct net_config *config);

/* An open endpoint with the driver that serves it. */
struct net_endpoint {
    const struct net_driver *driver;
    struct net *net; /* NULL: closed */
    struct net_info info;
};

/* Opens an endpoint. driver NULL: what net_drivers_pick says. Where packets of config->max_bytes
 * are larger than its datagrams, net_frag comes around it; `fault`, if it is not NULL or empty,
 * puts net_fault around that. 0 or negative errno, logged; then nothing is open. */
int net_drivers_open(const struct net_driver *driver, const struct net_config *config,
                     const char *fault, const struct arena *arena,
                     struct net_endpoint *ret_endpoint);

/* Calls `each` with what a configuration may call a provider here: our own driver, then those of
 * libfabric, each once. */
void net_drivers_list_providers(void (*each)(void *ctx, const char *provider), void *ctx);
