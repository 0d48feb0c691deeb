/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Topo_test and what the topology functions share (MPI-5.0 chapter 8). */
#include "client/topo/topo.h"

#include "client/abi/semantics.h"
#include "client/coll/family/coll.h"
#include "client/comm/context.h"
#include "client/comm/create.h"
#include "client/object/err.h"
#include "client/object/group.h"
#include "client/process/job.h"

#include <stdlib.h>

int topo_place(const int *members, int n, int rank)
{
    if (!members)
        return rank < n ? rank : MPI_UNDEFINED;
    for (int i = 0; i < n; i++)
        if (members[i] == rank)
            return i;
    return MPI_UNDEFINED;
}

static int group_of(const struct comm *comm, int n, const int *members, struct group **ret_group)
{
    int *procs = malloc(((size_t)n + 1) * sizeof(int));
    if (!procs)
        return err_set(MPI_ERR_NO_MEM, "no memory for a group of %d processes", n);
    for (int i = 0; i < n; i++)
        procs[i] = comm->group->procs[members ? members[i] : i];
    int err = group_new(n, procs, ret_group);
    free(procs);
    return err;
}

int topo_make_comm(struct comm *comm, int n, const int *members, struct topo *topo,
                   struct comm **ret_comm)
{
    struct group *group = NULL;
    struct schedule s;
    uint32_t id = 0;
    int err = group_of(comm, n, members, &group);
    if (!err) {
        schedule_begin(&s, comm, coll_next_tag(comm));
        err = context_agree(&s, &id);
        int end = schedule_end(&s);
        err = err ? err : end;
    }
    if (!err)
        err = create_published(id, comm, group, NULL, ret_comm);
    group_unref(group);
    if (!err && *ret_comm)
        (*ret_comm)->topo = topo;
    else
        topo_unref(topo);
    return err;
}

int *topo_nodes(const struct comm *comm, int n, bool *ret_several)
{
    int *nodes = malloc(((size_t)n + 1) * sizeof(int));
    *ret_several = false;
    for (int i = 0; nodes && i < n; i++) {
        /* In a communicator of several jobs not all members see the same nodes. */
        nodes[i] = comm->foreign ? 0 : job_node_of(comm->group->procs[i]);
        *ret_several = *ret_several || nodes[i] != nodes[0];
    }
    return nodes;
}

int topo_check_intra(const struct comm *comm)
{
    return comm_is_inter(comm) ? err_set(MPI_ERR_COMM, "%s is an intercommunicator", comm->name)
                               : MPI_SUCCESS;
}

int topo_check_kind(const struct comm *comm, int kind)
{
    const char *wanted = kind == MPI_CART    ? "cartesian "
                         : kind == MPI_GRAPH ? "graph "
                         : kind              ? "distributed graph "
                                             : "";
    if (comm->topo && (kind == 0 || comm->topo->kind == kind))
        return MPI_SUCCESS;
    return err_set(MPI_ERR_TOPOLOGY, "%s has no %stopology",
                   comm->name[0] ? comm->name : "the communicator", wanted);
}

int mpi_topo_test(struct comm *comm, int *status)
{
    *status = comm->topo ? comm->topo->kind : MPI_UNDEFINED;
    return MPI_SUCCESS;
}
