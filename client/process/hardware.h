/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hardware that this process is restricted to: for MPI_Comm_split_type and
 * MPI_Get_hw_resource_info.
 *
 * A type of resource has a URI, "mpi_shared_memory" (the node) or "hwloc://" and hwloc's name of
 * it. A process is restricted to one instance of a type when the set of cores that it may run on
 * (its binding, or what the system allows it) lies within one. The topology is hwloc's, so
 * HWLOC_SYNTHETIC and HWLOC_XMLFILE replace the machine's. Called with the library lock held.
 */
#ifndef MOTET_CLIENT_PROCESS_HARDWARE_H
#define MOTET_CLIENT_PROCESS_HARDWARE_H

#include <hwloc.h>
#include <stdbool.h>

/* Types are numbered from the largest to the smallest, on all processes alike; 0 is the node. */
#define HARDWARE_TYPES 9

/* No instance: the process may run on several, or the machine has none. */
#define HARDWARE_NONE (-1)

const char *hardware_uri(int type);

/* The number of a type by its URI, or by hwloc's name alone, without regard to case; -1 for
 * others. */
int hardware_find(const char *uri);

/* The instance of a type that this process is restricted to now: a number that is unique on the
 * node, or HARDWARE_NONE. */
int hardware_place(int type);

/* Whether the machine has resources of a type at all. */
bool hardware_has(int type);

/* The same within a given topology and set of cores, for tests. */
int hardware_place_in(hwloc_topology_t topology, hwloc_const_cpuset_t cpus, int type);

#endif
