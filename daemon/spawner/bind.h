/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binding of ranks to processors. Called by the spawner only, on its one thread; the topology is
 * read at the first binding, since most jobs bind nothing and hwloc needs some ten milliseconds.
 */
#pragma once

#include <sched.h>
#include <stdint.h>

#include "proto/binding.h"

/* enum binding_level; see message Binding. */
struct bind_request {
    uint32_t to, over, width;
    uint32_t index; /* which rank of those that are bound on this node */
};

enum {
    BIND_E_WIDTH = 1, /* there are not `width` of them for a rank */
};

/*
 * The processors of a rank: the ranks are dealt to the objects of level `over` in turn, and within
 * each get the next `width` objects of level `to`, round again when all are given; where an object
 * of level `to` is the larger one, the one around it. Only what this process may run on counts. A
 * level that a machine does not show is the next larger one that it does (of cores: their hardware
 * threads). 0, BIND_E_WIDTH, or -ENOSYS when the machine's topology cannot be read.
 */
int bind_cpus(const struct bind_request *request, cpu_set_t *ret_cpus);
