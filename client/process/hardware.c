/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/process/hardware.h"

#include <string.h>
#include <strings.h>

#define PREFIX "hwloc://"

static const struct {
    const char *uri;
    hwloc_obj_type_t type; /* of those behind the first */
} types[HARDWARE_TYPES] = {
    {"mpi_shared_memory", HWLOC_OBJ_MACHINE},
    {PREFIX "Package", HWLOC_OBJ_PACKAGE},
    {PREFIX "NUMANode", HWLOC_OBJ_NUMANODE},
    {PREFIX "Die", HWLOC_OBJ_DIE},
    {PREFIX "L3Cache", HWLOC_OBJ_L3CACHE},
    {PREFIX "L2Cache", HWLOC_OBJ_L2CACHE},
    {PREFIX "L1Cache", HWLOC_OBJ_L1CACHE},
    {PREFIX "Core", HWLOC_OBJ_CORE},
    {PREFIX "PU", HWLOC_OBJ_PU},
};

/* Loaded by the first question, which costs some milliseconds, and kept; NULL as long as that
 * fails. */
static hwloc_topology_t machine(void)
{
    static hwloc_topology_t topology;
    if (topology || hwloc_topology_init(&topology) < 0)
        return topology;
    if (hwloc_topology_load(topology) < 0) {
        hwloc_topology_destroy(topology);
        topology = NULL;
    }
    return topology;
}

const char *hardware_uri(int type)
{
    return types[type].uri;
}

int hardware_find(const char *uri)
{
    for (int type = 0; type < HARDWARE_TYPES; type++)
        if (strcasecmp(uri, types[type].uri) == 0 ||
            (type > 0 && strcasecmp(uri, types[type].uri + strlen(PREFIX)) == 0))
            return type;
    return -1;
}

int hardware_place_in(hwloc_topology_t topology, hwloc_const_cpuset_t cpus, int type)
{
    if (type == 0)
        return 0;
    for (hwloc_obj_t at = NULL;
         (at = hwloc_get_next_obj_by_type(topology, types[type].type, at)) != NULL;)
        if (at->cpuset && !hwloc_bitmap_iszero(cpus) && hwloc_bitmap_isincluded(cpus, at->cpuset))
            return (int)at->logical_index;
    return HARDWARE_NONE;
}

int hardware_place(int type)
{
    int place = HARDWARE_NONE;
    if (type == 0)
        return 0;
    hwloc_topology_t topology = machine();
    hwloc_bitmap_t cpus = topology ? hwloc_bitmap_alloc() : NULL;
    if (cpus && hwloc_get_cpubind(topology, cpus, HWLOC_CPUBIND_PROCESS) == 0) {
        /* Cores that the topology does not know restrict nothing. */
        hwloc_bitmap_and(cpus, cpus, hwloc_topology_get_topology_cpuset(topology));
        place = hardware_place_in(topology, cpus, type);
    }
    hwloc_bitmap_free(cpus);
    return place;
}

bool hardware_has(int type)
{
    return type == 0 || (machine() && hwloc_get_nbobjs_by_type(machine(), types[type].type) > 0);
}
