/* SPDX-License-Identifier: BSD-3-Clause */
/* The native TCP driver: a stream of frames between two channels. daemon/net/tcp is its inside. */
#pragma once

#include "daemon/net/net.h"

extern const struct net_driver net_tcp;
