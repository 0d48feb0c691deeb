/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binding of ranks to cores. Called by the spawner only, on its one thread; the topology is read at
 * the first binding, since most jobs bind nothing and hwloc needs some ten milliseconds.
 */
#pragma once

#include <sched.h>
#include <stdint.h>

/*
 * The processors of the core with logical index `core` modulo the cores this process may run on.
 * Returns 0, or -ENOSYS when the machine's topology cannot be read.
 */
int bind_core_cpus(uint32_t core, cpu_set_t *ret_cpus);
