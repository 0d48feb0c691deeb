/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/comm/pset.h"

#include "client/core/err.h"
#include "client/core/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NODE_PREFIX "motet://node/"

enum { PSET_WORLD, PSET_SELF, PSET_NODES };

int pset_count(void)
{
    return PSET_NODES + job_n_nodes();
}

void pset_name(int idx, char *name)
{
    if (idx < PSET_NODES)
        strcpy(name, idx == PSET_WORLD ? "mpi://WORLD" : "mpi://SELF");
    else
        snprintf(name, MPI_MAX_PSET_NAME_LEN, NODE_PREFIX "%s", job_node_name(idx - PSET_NODES));
}

int pset_find(const char *name)
{
    if (strcasecmp(name, "mpi://WORLD") == 0)
        return PSET_WORLD;
    if (strcasecmp(name, "mpi://SELF") == 0)
        return PSET_SELF;
    if (strncmp(name, NODE_PREFIX, strlen(NODE_PREFIX)) != 0)
        return -1;
    for (int node = 0; node < job_n_nodes(); node++)
        if (strcmp(name + strlen(NODE_PREFIX), job_node_name(node)) == 0)
            return PSET_NODES + node;
    return -1;
}

bool pset_has(int idx, int proc)
{
    if (idx == PSET_WORLD)
        return true;
    return idx == PSET_SELF ? proc == job_rank() : job_node_of(proc) == idx - PSET_NODES;
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
