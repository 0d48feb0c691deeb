/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/comm/pset.h"

#include "client/object/err.h"
#include "client/process/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NODE_PREFIX    "motet://node/"
#define NETWORK_PREFIX "motet://network/"

enum { PSET_WORLD, PSET_SELF, PSET_NODES };

int pset_count(void)
{
    return PSET_NODES + job_n_nodes() + job_n_networks();
}

/* The network of a set, not negative; negative for other sets. */
static int network_of(int idx)
{
    return idx - PSET_NODES - job_n_nodes();
}

const char *pset_kind(int idx, const char **ret_of)
{
    *ret_of = "";
    if (idx < PSET_NODES)
        return idx == PSET_WORLD ? "world" : "self";
    *ret_of =
        network_of(idx) < 0 ? job_node_name(idx - PSET_NODES) : job_network_name(network_of(idx));
    return network_of(idx) < 0 ? "node" : "network";
}

void pset_name(int idx, char *name)
{
    const char *of;
    pset_kind(idx, &of);
    if (idx < PSET_NODES)
        strcpy(name, idx == PSET_WORLD ? "mpi://WORLD" : "mpi://SELF");
    else
        snprintf(name, MPI_MAX_PSET_NAME_LEN, "%s%s",
                 network_of(idx) < 0 ? NODE_PREFIX : NETWORK_PREFIX, of);
}

int pset_find(const char *name)
{
    if (strcasecmp(name, "mpi://WORLD") == 0)
        return PSET_WORLD;
    if (strcasecmp(name, "mpi://SELF") == 0)
        return PSET_SELF;
    for (int idx = PSET_NODES; idx < pset_count(); idx++) {
        char text[MPI_MAX_PSET_NAME_LEN];
        pset_name(idx, text);
        if (strcmp(name, text) == 0)
            return idx;
    }
    return -1;
}

bool pset_has(int idx, int proc)
{
    if (idx == PSET_WORLD)
        return true;
    if (idx == PSET_SELF)
        return proc == job_rank();
    return network_of(idx) < 0 ? job_node_of(proc) == idx - PSET_NODES
                               : job_on_network(job_node_of(proc), network_of(idx));
}

int pset_color(const char *name, int proc)
{
    int idx = pset_find(name);
    if (idx == PSET_SELF)
        return pset_count() + proc;
    return idx >= 0 && pset_has(idx, proc) ? idx : MPI_UNDEFINED;
}

int pset_group(int idx, struct group **ret_group)
{
    if (idx == PSET_WORLD)
        return group_new_row(0, job_size(), ret_group);
    if (idx == PSET_SELF)
        return group_new_row(job_rank(), 1, ret_group);
    int *procs = malloc((size_t)job_size() * sizeof(int)), n = 0;
    if (!procs)
        return err_set(MPI_ERR_NO_MEM, "no memory for a group of %d processes", job_size());
    for (int proc = 0; proc < job_size(); proc++)
        if (pset_has(idx, proc))
            procs[n++] = proc;
    int err = group_new(n, procs, ret_group);
    free(procs);
    return err;
}
