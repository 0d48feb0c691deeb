/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets over networks whose datagrams are smaller: a driver around another one that cuts each
 * packet into fragments and puts it together again at the far end. A lost fragment is a lost
 * packet; the flow sends it again.
 */
#pragma once

#include "daemon/net/net.h"

/* Without `open`. */
extern const struct net_driver net_frag;

/* Opens an endpoint of the inner driver, with fragment buffers of its own, for use with net_frag.
 * As net_driver.open. */
int net_frag_open(const struct net_driver *inner, const struct net_config *config,
                  const struct arena *arena, struct net **ret_net);
