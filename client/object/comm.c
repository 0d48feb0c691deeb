/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/object/comm.h"

#include "client/abi/semantics.h"
#include "client/client.h"
#include "client/object/attr.h"
#include "client/object/err.h"
#include "client/object/errhandler.h"
#include "client/object/group.h"
#include "client/object/handle.h"
#include "client/object/info.h"
#include "client/object/session.h"
#include "client/object/topo.h"
#include "client/transport/foreign.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct comm_state comm_first;
struct comm_state *comm_here = &comm_first;
CLIENT_PART(comm_here, comm_first);

/* ---- life ---- */

void comm_on_destroy(void (*fn)(struct comm *comm))
{
    assert(comm_here->n_destroy_hooks < COMM_MAX_HOOKS);
    comm_here->destroy_hooks[comm_here->n_destroy_hooks++] = fn;
}

/* What the members of other jobs are reached by is in use for as long as the communicator lives.
 * True: there are such members. */
static bool count_foreign(const struct group *group, void (*count)(struct foreign *))
{
    bool any = false;
    struct foreign *last = NULL;
    for (int i = 0; group && i < group->size; i++) {
        uint32_t proc = (uint32_t)group->procs[i];
        if (last && proc - last->first < last->n)
            continue;
        struct foreign *f = foreign_of(proc);
        if (!f)
            continue;
        /* Members of one job lie together or not; each run counts. */
        last = f;
        count(f);
        any = true;
    }
    return any;
}

int comm_new(uint32_t context_id, struct group *group, struct group *remote_group,
             struct comm **ret_comm)
{
    struct comm *comm = calloc(1, sizeof *comm);
    if (!comm)
        return err_set(MPI_ERR_NO_MEM, "no memory for a communicator");
    comm->obj.kind = OBJECT_COMM;
    comm->obj.refs = 1;
    comm->context_id = context_id;
    comm->rank = group->rank;
    comm->size = group->size;
    comm->group = group;
    group_ref(group);
    comm->remote_group = remote_group;
    if (remote_group)
        group_ref(remote_group);
    comm->errhandler = &errhandler_here->fatal;
    errhandler_ref(&errhandler_here->fatal);
    if (foreign_here->n > 0) {
        comm->foreign = count_foreign(group, foreign_ref);
        comm->foreign |= count_foreign(remote_group, foreign_ref);
    }
    comm_here->life->begin(comm);
    *ret_comm = comm;
    return MPI_SUCCESS;
}

int comm_publish(struct comm *comm)
{
    return handle_new(&comm->obj) ? MPI_SUCCESS
                                  : err_set(MPI_ERR_NO_MEM, "no handle is left for a communicator");
}

static void comm_destroy(struct object *object)
{
    struct comm *comm = (struct comm *)object;

    handle_free(&comm->obj);
    comm_here->life->end(comm);
    for (int i = comm_here->n_destroy_hooks - 1; i >= 0; i--)
        comm_here->destroy_hooks[i](comm);
    if (comm->local_comm)
        comm_unref(comm->local_comm);
    if (comm->foreign) {
        count_foreign(comm->group, foreign_unref);
        count_foreign(comm->remote_group, foreign_unref);
    }
    group_unref(comm->group);
    group_unref(comm->remote_group);
    errhandler_unref(comm->errhandler);
    info_free(comm->info);
    topo_unref(comm->topo);
    session_unref(comm->session);
    free(comm);
}

void comm_last_unref(struct comm *comm)
{
    if (!comm_here->life->defer(&comm->obj, comm_destroy))
        comm_destroy(&comm->obj);
}

int comm_release(struct comm *comm)
{
    int err = attr_delete_all(&comm->attrs, ATTR_COMM, comm->obj.handle);
    if (err)
        return err;
    handle_free(&comm->obj);
    comm_unref(comm);
    return MPI_SUCCESS;
}

int comm_remote_size(const struct comm *comm)
{
    return comm_peers(comm)->size;
}

/* ---- MPI functions ---- */

int mpi_comm_size(struct comm *comm, int *size)
{
    *size = comm->size;
    return MPI_SUCCESS;
}

int mpi_comm_rank(struct comm *comm, int *rank)
{
    *rank = comm->rank;
    return MPI_SUCCESS;
}

int mpi_comm_test_inter(struct comm *comm, int *flag)
{
    *flag = comm_is_inter(comm);
    return MPI_SUCCESS;
}

static int check_inter(const struct comm *comm)
{
    return comm_is_inter(comm) ? MPI_SUCCESS
                               : err_set(MPI_ERR_COMM, "%s is an intracommunicator", comm->name);
}

int mpi_comm_remote_size(struct comm *comm, int *size)
{
    int err = check_inter(comm);
    if (!err)
        *size = comm->remote_group->size;
    return err;
}

int mpi_comm_group(struct comm *comm, struct group **ret_group)
{
    group_ref(comm->group);
    return group_publish(comm->group, ret_group);
}

int mpi_comm_remote_group(struct comm *comm, struct group **ret_group)
{
    int err = check_inter(comm);
    if (err)
        return err;
    group_ref(comm->remote_group);
    return group_publish(comm->remote_group, ret_group);
}

/* Of two groups' results the one that is less alike; MPI_IDENT, MPI_SIMILAR and MPI_UNEQUAL
 * ascend. */
int mpi_comm_compare(struct comm *comm1, struct comm *comm2, int *result)
{
    *result = MPI_UNEQUAL;
    if (comm1 == comm2) {
        *result = MPI_IDENT;
    } else if (comm_is_inter(comm1) == comm_is_inter(comm2)) {
        int alike = group_compare(comm1->group, comm2->group);
        if (comm_is_inter(comm1)) {
            int remote = group_compare(comm1->remote_group, comm2->remote_group);
            alike = remote > alike ? remote : alike;
        }
        *result = alike == MPI_IDENT ? MPI_CONGRUENT : alike;
    }
    return MPI_SUCCESS;
}

int mpi_comm_set_name(struct comm *comm, const char *comm_name)
{
    size_t n =
        strnlen(comm_name, sizeof comm->name - 1); /* longer names are cut (MPI-5.0 section 7.8) */
    memcpy(comm->name, comm_name, n);
    comm->name[n] = '\0';
    comm_here->life->rename(comm);
    return MPI_SUCCESS;
}

int mpi_comm_get_name(struct comm *comm, char *comm_name, int *resultlen)
{
    /* The null communicator has a name, too (MPI-5.0 section 7.8). */
    const char *name = comm ? comm->name : "MPI_COMM_NULL";

    *resultlen = (int)strlen(name);
    memcpy(comm_name, name, (size_t)*resultlen + 1);
    return MPI_SUCCESS;
}

int mpi_comm_set_info(struct comm *comm, struct info *info)
{
    struct info *copy = NULL;
    int err = info ? info_copy(info, &copy) : MPI_SUCCESS;
    if (err)
        return err;
    info_free(comm->info);
    comm->info = copy;
    return MPI_SUCCESS;
}

int mpi_comm_get_info(struct comm *comm, struct info **ret_info_used)
{
    struct info *copy;
    int err = info_copy(comm->info, &copy);
    return err ? err : info_publish(MPI_SUCCESS, copy, ret_info_used);
}

int mpi_comm_free(struct comm **comm)
{
    if ((*comm)->obj.predefined)
        return err_set(MPI_ERR_COMM, "%s cannot be freed", (*comm)->name);
    int err = comm_release(*comm);
    if (!err)
        *comm = NULL;
    return err;
}
