/* SPDX-License-Identifier: BSD-3-Clause */
/* The child's side of a spawn, and MPI_Comm_get_parent and MPI_Comm_disconnect. */
#include "client/abi/semantics.h"
#include "client/client.h"
#include "client/comm/connect.h"
#include "client/comm/inter.h"
#include "client/dynamic/dynamic.h"
#include "client/object/err.h"
#include "client/object/group.h"
#include "client/p2p/p2p.h"
#include "client/process/job.h"

#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>

struct parent {
    struct comm *comm; /* NULL: there is none, or it was freed */
    bool hooked;
};
static struct parent parent_first;
static struct parent *parent_here = &parent_first;
CLIENT_PART(parent_here, parent_first);

int dynamic_tag(uint64_t number)
{
    return (int)(hash_mix64(number | 1) & 0x0fffffff);
}

int dynamic_meeting(const struct foreign *foreign, int rank, struct comm **ret_comm)
{
    struct group *own = NULL, *other = NULL;

    *ret_comm = NULL;
    int err = group_new_row(job_rank(), 1, &own);
    if (!err)
        err = group_new_row((foreign ? (int)foreign->first : 0) + rank, 1, &other);
    if (!err)
        err = comm_new(COMM_CONTEXT_HELLO, own, other, ret_comm);
    group_unref(own);
    group_unref(other);
    return err;
}

/* MPI_COMM_NULL is what MPI_Comm_get_parent gives when the communicator is gone. */
static void forget_parent(struct comm *comm)
{
    if (comm == parent_here->comm)
        parent_here->comm = NULL;
}

/* The root is told that all children are there, then all meet the parents. */
static int meet_parents(const struct foreign *foreign, int root)
{
    struct comm *world = comm_here->world, *meeting = NULL;
    int tag = dynamic_tag(foreign->number), word = 0;
    bool leads = world->rank == 0;
    int err = leads ? dynamic_meeting(foreign, root, &meeting) : MPI_SUCCESS;

    if (!err)
        err = mpi_barrier(world);
    if (!err && leads)
        err = p2p_send(buffer_of(&word, 1, datatype_predefined(MPI_INT)),
                       envelope_user(meeting, 0, tag), P2P_STANDARD);
    if (!err)
        err = inter_meet(world, 0, meeting, tag, &parent_here->comm);
    if (meeting)
        comm_unref(meeting);
    return err;
}

int dynamic_start(void)
{
    const char *text = getenv("MOTET_PARENT");
    unsigned long long number;
    struct foreign *foreign;
    int root;

    if (!text || !*text || !job_attached() || job_id() == 0)
        return MPI_SUCCESS;
    if (sscanf(text, "%16llx:%d", &number, &root) != 2 || root < 0)
        return err_set(MPI_ERR_OTHER, "MOTET_PARENT is %.60s, not number:rank", text);
    int err = connect_claim(number, &foreign);
    if (err)
        return err;
    if ((uint32_t)root >= foreign->n)
        err = err_set(MPI_ERR_OTHER, "MOTET_PARENT names rank %d of %u", root, foreign->n);
    if (!err)
        err = meet_parents(foreign, root);
    foreign_unref(foreign);
    if (!err && !parent_here->hooked) {
        parent_here->hooked = true;
        comm_on_destroy(forget_parent);
    }
    return err;
}

void dynamic_stop(void)
{
    struct comm *comm = parent_here->comm;

    parent_here->comm = NULL;
    if (comm)
        comm_unref(comm);
}

int mpi_comm_get_parent(struct comm **ret_parent)
{
    *ret_parent = parent_here->comm;
    return MPI_SUCCESS;
}

int mpi_comm_disconnect(struct comm **comm)
{
    /* The barrier is what tells it from MPI_Comm_free: nothing is under way afterwards (MPI-5.0
     * section 11.10.4). */
    int err = mpi_barrier(*comm);
    return err ? err : mpi_comm_free(comm);
}
