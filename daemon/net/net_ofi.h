/* SPDX-License-Identifier: BSD-3-Clause */
/* The libfabric driver, for every network that one of its providers serves. */
#pragma once

#include "daemon/net/net.h"

extern const struct net_driver net_ofi;
