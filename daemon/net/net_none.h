/* SPDX-License-Identifier: BSD-3-Clause */
/* The network of a node that is on none: nobody can be reached. The channel on it only carries
 * messages between jobs of the node. */
#pragma once

#include "daemon/net/net.h"

extern const struct net_driver net_none;
