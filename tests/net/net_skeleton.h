/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The smallest network driver: endpoints of one process that copy packets to one another. It shows
 * what each function of daemon/net/net.h has to do; begin a new driver with a copy.
 */
#pragma once

#include "daemon/net/net.h"

extern const struct net_driver net_skeleton;
