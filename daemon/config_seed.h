/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of seeds of a channel: "host", "host:port", "[v6]:port" or a bare IPv6 address,
 * separated by commas or blanks. Pure; read by config (whether it is right) and by the mesh. */
#pragma once

#include <stdint.h>

struct config_seed {
    char host[128];
    uint32_t port;
};

/* Takes the next seed of the list at *at, with `port` where it names none. 1: there was one; 0: the
 * end; -EINVAL: it is wrong, *ret_why says how, and *at is behind it. */
int config_seed_next(const char **at, uint32_t port, struct config_seed *ret_seed,
                     const char **ret_why);
