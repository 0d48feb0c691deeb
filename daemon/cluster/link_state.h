/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this node floods about itself: its endpoints, its usable links, the deaths it has seen.
 * Called by cluster.c; without socket and clock. Control thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/control.pb-c.h"

struct deaths;
struct neighbours;

struct link_state_self {
    uint32_t node_id, epoch, n_cores;
    uint64_t sequence;
    bool draining; /* takes no new ranks */
    bool busy;     /* has to do with a job that spans nodes */
    const struct deaths *deaths;
};

/* Notes in the neighbours what is told of them. The caller frees it. NULL: no memory. */
Motet__LinkState *link_state_new(const struct link_state_self *self, struct neighbours *neighbours,
                                 uint64_t now_ns);
