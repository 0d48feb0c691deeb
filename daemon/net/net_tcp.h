/* SPDX-License-Identifier: BSD-3-Clause */
/* The native TCP driver: a stream of frames between two channels. See tcp.h for its inside. */
#pragma once

#include "daemon/net/net.h"

extern const struct net_driver net_tcp;
