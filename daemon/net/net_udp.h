/* SPDX-License-Identifier: BSD-3-Clause */
/* The native UDP driver (see net.h). */
#pragma once

#include "daemon/net/net.h"

extern const struct net_driver net_udp;
