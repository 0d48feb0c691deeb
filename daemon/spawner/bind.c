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

/* The type of a level on this machine. */
static hwloc_obj_type_t bind_type(uint32_t level)
{
    static const struct {
        hwloc_obj_type_t type;
        uint32_t or_else;
    } levels[BINDING_N_LEVELS] = {
        [BINDING_NONE] = {HWLOC_OBJ_MACHINE, BINDING_MACHINE},
        [BINDING_CORE] = {HWLOC_OBJ_CORE, BINDING_HWTHREAD},
        [BINDING_HWTHREAD] = {HWLOC_OBJ_PU, BINDING_MACHINE},
        [BINDING_L1CACHE] = {HWLOC_OBJ_L1CACHE, BINDING_CORE},
        [BINDING_L2CACHE] = {HWLOC_OBJ_L2CACHE, BINDING_L3CACHE},
        [BINDING_L3CACHE] = {HWLOC_OBJ_L3CACHE, BINDING_SOCKET},
        [BINDING_NUMA] = {HWLOC_OBJ_NUMANODE, BINDING_SOCKET},
        [BINDING_SOCKET] = {HWLOC_OBJ_PACKAGE, BINDING_MACHINE},
        [BINDING_MACHINE] = {HWLOC_OBJ_MACHINE, BINDING_MACHINE},
    };

    while (level != BINDING_MACHINE && hwloc_get_nbobjs_by_type(topology, levels[level].type) <= 0)
        level = levels[level].or_else;
    return levels[level].type;
}

/* The object of a type around these processors; NULL: there is none. */
static hwloc_obj_t bind_around(hwloc_obj_type_t type, hwloc_const_cpuset_t cpus)
{
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(topology, type, o));)
        if (hwloc_bitmap_isincluded(cpus, o->cpuset))
            return o;
    return NULL;
}

static void bind_add(hwloc_const_cpuset_t from, cpu_set_t *to)
{
    unsigned cpu;

    hwloc_bitmap_foreach_begin(cpu, from)
    {
        if (cpu < CPU_SETSIZE)
            CPU_SET(cpu, to);
    }
    hwloc_bitmap_foreach_end();
}

int bind_cpus(const struct bind_request *request, cpu_set_t *ret_cpus)
{
    int rc = topology_ready();

    if (rc < 0)
        return rc;
    hwloc_obj_type_t to = bind_type(request->to), over = bind_type(request->over);
    int n_over = hwloc_get_nbobjs_by_type(topology, over);
    if (n_over <= 0)
        return -ENOSYS;
    hwloc_obj_t home = hwloc_get_obj_by_type(topology, over, request->index % (unsigned)n_over);
    uint64_t turn = request->index / (unsigned)n_over;
    if (!home || !home->cpuset)
        return -ENOSYS;
    CPU_ZERO(ret_cpus);
    int n = hwloc_get_nbobjs_inside_cpuset_by_type(topology, home->cpuset, to);
    if (n > 0 && request->width > (unsigned)n)
        return BIND_E_WIDTH;
    for (uint32_t i = 0; n > 0 && i < request->width; i++) {
        unsigned at = (unsigned)((turn * request->width + i) % (unsigned)n);
        hwloc_obj_t o = hwloc_get_obj_inside_cpuset_by_type(topology, home->cpuset, to, at);
        if (o)
            bind_add(o->cpuset, ret_cpus);
    }
    if (n <= 0) {
        hwloc_obj_t o = bind_around(to, home->cpuset);
        bind_add(o ? o->cpuset : home->cpuset, ret_cpus);
    }
    return CPU_COUNT(ret_cpus) > 0 ? 0 : -ENOSYS;
}
