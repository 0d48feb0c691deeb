/* SPDX-License-Identifier: BSD-3-Clause */
/* What ranks are bound to: said by mpiexec, passed on by daemons, done by the spawner
 * (control.proto, message Binding). The values travel. */
#pragma once

enum binding_level {
    BINDING_NONE = 0,
    BINDING_CORE = 1,
    BINDING_HWTHREAD = 2,
    BINDING_L1CACHE = 3,
    BINDING_L2CACHE = 4,
    BINDING_L3CACHE = 5,
    BINDING_NUMA = 6,
    BINDING_SOCKET = 7,
    BINDING_MACHINE = 8,
    BINDING_N_LEVELS
};

#define BINDING_WIDTH_MAX 4096u
