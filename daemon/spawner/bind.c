/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/spawner/bind.h"

#include <errno.h>
#include <hwloc.h>
#include <stdbool.h>

/* Read once and kept for the life of the spawner; NULL until then. */
static hwloc_topology_t topology;

static int topology_ready(void)
{
    hwloc_topology_t t;

    if (topology)
        return 0;
    if (hwloc_topology_init(&t) < 0)
        return -ENOSYS;
    /* By default hwloc shows only what this process may use, so a container's or slice's limits
     * hold for the ranks too. */
    if (hwloc_topology_load(t) < 0) {
        hwloc_topology_destroy(t);
        return -ENOSYS;
    }
    topology = t;
    return 0;
}

int bind_core_cpus(uint32_t core, cpu_set_t *ret_cpus)
{
    int rc = topology_ready();

    if (rc < 0)
        return rc;
    /* Machines that do not tell their cores still have processing units. */
    hwloc_obj_type_t type =
        hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    int n_cores = hwloc_get_nbobjs_by_type(topology, type);
    if (n_cores <= 0)
        return -ENOSYS;
    hwloc_obj_t obj = hwloc_get_obj_by_type(topology, type, core % (unsigned)n_cores);
    if (!obj || !obj->cpuset)
        return -ENOSYS;

    unsigned cpu;
    CPU_ZERO(ret_cpus);
    hwloc_bitmap_foreach_begin(cpu, obj->cpuset)
    {
        if (cpu < CPU_SETSIZE)
            CPU_SET(cpu, ret_cpus);
    }
    hwloc_bitmap_foreach_end();
    return CPU_COUNT(ret_cpus) > 0 ? 0 : -ENOSYS;
}
